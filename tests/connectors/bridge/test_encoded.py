# SPDX-License-Identifier: Apache-2.0
"""Bodies that came compressed: undone whatever the pieces, within bounds, and one layer."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from goodbot_connectors.kit.bridge import encoded
from goodbot_connectors.kit.bridge.encoded import FREE, RATIO, Undone, coding, undone
from goodbot_connectors.kit.bridge.refused import HttpError

MANY = 64 << 20


def bare(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


def zstd(data: bytes) -> bytes:
    if encoded.zstd is None:
        pytest.skip("zstd needs Python 3.14 or the extra `zstd`")
    return encoded.zstd.compress(data)


def flushed(data: bytes) -> bytes:
    """As a stream that its sender flushes after each few bytes."""
    made = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    parts = [
        made.compress(data[at : at + 100]) + made.flush(zlib.Z_SYNC_FLUSH) for at in range(0, len(data), 100)
    ]
    return b"".join(parts) + made.flush()


MADE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "bare": ("deflate", bare),
    "zstd": ("zstd", zstd),
    "flushed": ("gzip", flushed),
}
DICE = random.Random(1)
TEXTS = [b"", b"x", b'{"a": "\xc3\xa9"}' * 50, DICE.randbytes(300_000), b"ab" * 400_000]


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: str(len(text)))
@pytest.mark.parametrize("size", [1, 7, 1000, MANY])
def test_it_comes_back_as_it_was(kind: str, text: bytes, size: int) -> None:
    name, pack = MADE[kind]
    packed = pack(text)
    if size < 1000 and len(packed) > 10_000:
        packed = pack(text := text[:3000])
    layer = Undone(name, MANY)
    found = b"".join(
        made for at in range(0, len(packed), size) for made in layer.feed(packed[at : at + size])
    )
    layer.end()
    assert found == text


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_parts_behind_one_another_are_one(kind: str) -> None:
    name, pack = MADE[kind]
    assert undone(pack(b"ab") + pack(b"cd"), name, MANY) == b"abcd"
    with pytest.raises(HttpError, match="Something follows"):
        undone(pack(b"") * 1001, name, MANY)  # each costs as much as a whole body


@pytest.mark.parametrize("kind", MADE)
def test_what_breaks_off_or_is_something_else(kind: str) -> None:
    name, pack = MADE[kind]
    whole = pack(DICE.randbytes(5000))
    for data in (whole[:-1], whole[:10], whole[:1]):
        with pytest.raises(HttpError, match="ends in the middle of its") as refused:
            undone(data, name, MANY)
        assert refused.value.status == 400
    for data in (b'{"a": "plain"}', b"\xff" * 40):
        with pytest.raises(HttpError, match=f"says that it is {name}, and it is not"):
            undone(data, name, MANY)
    if name == "deflate":
        with pytest.raises(HttpError, match="follows the end"):
            undone(whole + b"more", name, MANY)


@pytest.mark.parametrize("kind", MADE)
def test_a_bomb_is_refused_before_it_takes_memory(kind: str) -> None:
    name, pack = MADE[kind]
    if kind == "flushed":
        pytest.skip("no bomb can be made so")
    for size in (FREE + 1, 80 << 20):
        packed = pack(bytes(size))
        assert len(packed) * RATIO < size
        tracemalloc.start()
        try:
            layer = Undone(name, MANY)
            with pytest.raises(HttpError) as refused:
                for _ in layer.feed(packed):
                    pass
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert refused.value.status == 413
        assert peak < 4 << 20
    with pytest.raises(HttpError, match="at most 1 MiB"):
        undone(pack(DICE.randbytes((1 << 20) + 1)), name, 1 << 20)
    assert len(undone(pack(bytes(FREE)), name, MANY)) == FREE


def test_what_a_header_names() -> None:
    assert [coding([one]) for one in ("", "identity", "gzip", "X-GZip", " ZSTD ", "br")] == [
        "",
        "",
        "gzip",
        "gzip",
        "zstd",
        "br",
    ]
    assert coding(["identity, gzip"]) == "gzip"
    for twice in (["gzip, gzip"], ["gzip", "zstd"], ["br,gzip"]):
        with pytest.raises(HttpError, match="more than once") as refused:
            coding(twice)
        assert refused.value.status == 415
    for name in ("br", "compress", "aes128gcm"):
        with pytest.raises(HttpError, match=f"gzip, deflate or zstd: {name} is not") as refused:
            undone(b"x", name, MANY)
        assert refused.value.status == 415


def test_without_the_package_zstd_is_told_with_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "zstd", None)
    with pytest.raises(HttpError, match=r"send the body as it is, or .*backports.zstd") as no:
        undone(b"x", "zstd", MANY)
    assert no.value.status == 415
    assert undone(gzip.compress(b"x"), "gzip", MANY) == b"x"
