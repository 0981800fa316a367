# SPDX-License-Identifier: Apache-2.0
"""The metadata of a GGUF file, as Ollama reads it before it takes one.

After the format's description (ggml's `docs/gguf.md`), little-endian, versions 2 and 3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

MAGIC = b"GGUF"
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9


def metadata(blob: bytes) -> dict[str, Any]:
    """The key-value pairs; arrays are left out. Raises ValueError for what is no GGUF file."""
    if blob[:4] != MAGIC:
        raise ValueError("supplied file was not in GGUF format")
    try:
        return _read(blob)
    except (struct.error, UnicodeDecodeError, KeyError) as error:
        raise ValueError("invalid GGUF file") from error


def _read(blob: bytes) -> dict[str, Any]:
    place = 4

    def scalar(kind: str) -> Any:
        nonlocal place
        [value] = struct.unpack_from(kind, blob, place)
        place += struct.calcsize(kind)
        return value

    def string() -> str:
        nonlocal place
        size = scalar("<Q")
        place += size
        if place > len(blob):
            raise struct.error("a string beyond the end")
        return blob[place - size : place].decode()

    def value(kind: int) -> Any:
        if kind == _STRING:
            return string()
        if kind != _ARRAY:
            return scalar(_SCALARS[kind])
        of, count = scalar("<I"), scalar("<Q")
        read: Callable[[], Any] = lambda: value(of)  # noqa: E731
        for _ in range(count):
            read()
        return None

    scalar("<I")  # the version
    scalar("<Q")  # how many tensors
    pairs = {string(): value(scalar("<I")) for _ in range(scalar("<Q"))}
    return {key: told for key, told in pairs.items() if told is not None}


def written(**pairs: str) -> bytes:
    """A GGUF file of these strings and no tensors; `_` in a name stands for `.`."""
    body = struct.pack("<IQQ", 3, 0, len(pairs))
    for key, told in pairs.items():
        for text, kind in ((key.replace("_", "."), True), (told, False)):
            data = text.encode()
            body += struct.pack("<Q", len(data)) + data
            if kind:
                body += struct.pack("<I", _STRING)
    return MAGIC + body
