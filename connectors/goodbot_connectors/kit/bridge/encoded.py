# SPDX-License-Identifier: Apache-2.0
"""Bodies that came compressed, undone piece by piece and within bounds.

One layer of gzip, deflate or zstd. What unpacks to much more than it was is refused while it is unpacked,
so that a small request costs little memory, whatever it holds.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from goodbot.base.packages import install_line

from goodbot_connectors.kit.bridge.refused import HttpError

if sys.version_info >= (3, 14):  # pragma: no cover  the library is part of Python from there on
    from compression import zstd  # pyright: ignore[reportMissingImports]
else:
    try:
        from backports import zstd
    except ImportError:
        zstd = None

GZIP, DEFLATE, ZSTD = "gzip", "deflate", "zstd"
_ALSO = {"x-gzip": GZIP}
RATIO = 200
"""Times its size that a body may unpack to, from `FREE` bytes on. Conversations come to less than 50."""
FREE = 8 << 20
_PIECE = 1 << 18
_PARTS = 1000
"""Compressed parts that a body may consist of, one behind the other. Programs make one or a few."""
_WINDOW = 25
"""Bits of the memory that zstd may ask for (32 MiB); RFC 8878 wants 8 MiB for the web."""


def coding(values: Sequence[str]) -> str:
    """What `Content-Encoding` names; empty for nothing. Raises HttpError (415) for more than one layer."""
    named = [one.strip().lower() for value in values for one in value.split(",")]
    layers = [_ALSO.get(one, one) for one in named if one not in ("", "identity")]
    if len(layers) > 1:
        raise HttpError(415, "The body is compressed more than once: compress it once, or not.")
    return layers[0] if layers else ""


def known(name: str) -> bool:
    """Whether a body of this coding can be undone here."""
    return name in ("", GZIP, DEFLATE) or (name == ZSTD and zstd is not None)


class Undone:
    """Takes the pieces of a body as they come, gives back those of what it was."""

    def __init__(self, name: str, largest: int) -> None:
        """`largest`: bytes of what comes out. Raises HttpError (415) for a coding that is not known."""
        if name == ZSTD and zstd is None:
            raise HttpError(
                415,
                "zstd is undone by a package that is not installed: send the body as it is, or "
                f"{install_line('zstd')}",
            )
        if not known(name):
            raise HttpError(
                415, f"Send the body as it is, or as gzip, deflate or zstd: {name} is not undone."
            )
        self._name, self._largest = name, largest
        self._layer: _Layer | None = None
        self._begun = b""
        self._parts = 0
        self._came = self._out = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """More of it. Raises HttpError (400, 413)."""
        self._came += len(piece)
        if not self._name:
            yield self._counted(piece)
            return
        try:
            for at in range(0, len(piece), _PIECE):
                for made in self._layers(piece[at : at + _PIECE]):
                    yield self._counted(made)
        except _errors() as error:
            raise HttpError(400, f"The body says that it is {self._name}, and it is not.") from error

    def _layers(self, rest: bytes) -> Iterator[bytes]:
        rest, self._begun = self._begun + rest, b""
        while rest:
            if self._layer is None:
                if self._parts >= (1 if self._name == DEFLATE else _PARTS):
                    raise HttpError(400, "Something follows the end of the compressed body.")
                if len(rest) < 2:  # two bytes say which kind of deflate it is
                    self._begun = rest
                    return
                self._layer = _layer(self._name, rest)
            yield from self._layer.feed(rest)
            rest = self._layer.rest
            if self._layer.over:  # gzip and zstd may have another part behind it
                self._layer = None
                self._parts += 1

    def end(self) -> None:
        """The last piece was there. Raises HttpError (400) if what it says does not end there."""
        if self._layer is not None or self._begun:
            raise HttpError(400, f"The body ends in the middle of its {self._name}.")

    def _counted(self, made: bytes) -> bytes:
        self._out += len(made)
        if self._out > self._largest:
            raise HttpError(413, f"The body is too large: at most {sized(self._largest)}.")
        if self._out > max(FREE, self._came * RATIO):
            raise HttpError(413, f"The body unpacks to more than {RATIO} times its size: send it as it is.")
        return made


def undone(data: bytes, name: str, largest: int) -> bytes:
    """A whole body as it was. Raises HttpError."""
    if not name and len(data) <= largest:
        return data
    layer = Undone(name, largest)
    whole = b"".join(layer.feed(data))
    layer.end()
    return whole


def sized(count: int) -> str:
    """Bytes as people read them."""
    return f"{count >> 20} MiB" if count % (1 << 20) == 0 else f"{count} bytes"


class _Layer(Protocol):
    rest: bytes
    """What stands behind its end."""

    @property
    def over(self) -> bool: ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What comes of it, in pieces of a bounded size."""
        ...


class _Zlib:
    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)
        self.rest = b""

    @property
    def over(self) -> bool:
        return self._inner.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        made = b"."
        while not self._inner.eof and (data or len(made) == _PIECE):
            made = self._inner.decompress(data, _PIECE)
            data = self._inner.unconsumed_tail
            yield made
        self.rest = self._inner.unused_data


class _Zstd:
    def __init__(self) -> None:
        assert zstd is not None  # noqa: S101  `known` has looked
        bound: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW}
        self._inner: Any = zstd.ZstdDecompressor(options=bound)
        self.rest = b""

    @property
    def over(self) -> bool:
        return self._inner.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._inner.decompress(data, _PIECE)
        while not self._inner.eof and not self._inner.needs_input:
            yield self._inner.decompress(b"", _PIECE)
        self.rest = self._inner.unused_data if self._inner.eof else b""


def _layer(name: str, begins: bytes) -> _Layer:
    if name == ZSTD:
        return _Zstd()
    if name == GZIP:
        return _Zlib(16 + zlib.MAX_WBITS)
    # Deflate is zlib's format, and some send the bare one.
    wrapped = begins[0] & 0x0F == 8 and (begins[0] << 8 | begins[1]) % 31 == 0
    return _Zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


def _errors() -> tuple[type[Exception], ...]:
    return (zlib.error,) if zstd is None else (zlib.error, zstd.ZstdError)
