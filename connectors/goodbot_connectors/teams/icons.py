# SPDX-License-Identifier: Apache-2.0
"""The two pictures of the app package, drawn here: a round face that smiles. Pure.

Teams wants one of 192 × 192 in colour, and an outline of 32 × 32, white on nothing.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable

ACCENT = "#4F46E5"
"""The colour behind the face, also the app's accent colour."""
_BACK = tuple(int(ACCENT[n : n + 2], 16) for n in (1, 3, 5))
_WHITE = (255, 255, 255)


def colour(size: int = 192) -> bytes:
    """The face in white on the accent colour, as PNG."""
    return _png(size, lambda x, y: (*_mix(_BACK, _WHITE, _face(x * 1.5, y * 1.5, 3 / size)), 255))


def outline(size: int = 32) -> bytes:
    """The face in white on nothing, as PNG."""
    return _png(size, lambda x, y: (*_WHITE, round(255 * _face(x * 1.08, y * 1.08, 2 / size))))


def _face(x: float, y: float, soft: float) -> float:
    """A ring, two eyes and a mouth; edges fade over `soft`."""
    radius = math.hypot(x, y)
    ring = _edge(0.10 - abs(radius - 0.9), soft)
    eyes = _edge(0.13 - math.hypot(abs(x) - 0.34, y + 0.22), soft)
    mouth = _edge(0.09 - abs(math.hypot(x, y - 0.02) - 0.5), soft) * _edge(y - 0.16, soft)
    return max(ring, eyes, mouth)


def _edge(inside: float, soft: float) -> float:
    return min(max(inside / soft + 0.5, 0.0), 1.0)


def _mix(back: tuple[int, ...], front: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(round(b + (f - b) * share) for b, f in zip(back, front, strict=True))


def _png(size: int, pixel: Callable[[float, float], tuple[int, ...]]) -> bytes:
    """RGBA with eight bits a channel (w3.org/TR/png)."""
    middles = [(n + 0.5) / size * 2 - 1 for n in range(size)]
    rows = b"".join(
        b"\0" + b"".join(bytes(pixel(x, y)) for x in middles) for y in middles
    )  # each row begins with its filter: none
    head = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
