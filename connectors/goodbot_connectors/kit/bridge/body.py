# SPDX-License-Identifier: Apache-2.0
"""The body of a request that may hold anything, read and parsed within bounds.

What is too large, too deep, ambiguous (one key twice) or no number at all is refused before anything
is done with it. Times are linear in the bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any, NoReturn, Protocol, cast

from aiohttp import hdrs, web

from goodbot_connectors.kit.bridge.encoded import Undone, coding, sized
from goodbot_connectors.kit.bridge.refused import TYPES, HttpError

__all__ = ["LARGEST", "TYPES", "HttpError", "bounded", "json_object", "parsed", "pieces", "read"]

LARGEST = 1 << 20
"""Bytes of a body, unless a route says otherwise."""
DEPTH = 128
"""A schema of a tool takes two levels for each of its own."""
KEYS = 8192
"""Of one object: OpenAI's API takes 5000 properties in a schema."""
VALUES = 250_000
"""In one body, whatever they are."""
_INTEGERS = range(-(2**63), 2**63)


async def json_object(request: web.Request, largest: int = LARGEST) -> dict[str, Any]:
    """The JSON object that a request carries. Raises HttpError."""
    return parsed(await read(request, largest))


async def read(
    request: web.Request, largest: int = LARGEST, *, came: int = 0, thinned: Thins | None = None
) -> bytes:
    """The bytes of a JSON body, as they were before they were compressed.

    At most `largest`; of one that is larger, and has at most `came`, `thinned` leaves out what nobody
    needs. Raises HttpError: 400, 408, 413, 415.
    """
    if request.content_type != "application/json":
        raise HttpError(415, "Send JSON, with the header `Content-Type: application/json`.")
    most = max(came, largest)
    layer = Undone(coding(request.headers.getall(hdrs.CONTENT_ENCODING, [])), most)
    kept, thin = bytearray(), False
    async for piece in pieces(request, most):
        for part in layer.feed(piece):
            kept += thinned.feed(part) if thin and thinned else part
            if len(kept) > largest and thinned and not thin:  # smaller ones stay as they are
                kept, thin = bytearray(thinned.feed(bytes(kept))), True
            if len(kept) > largest:
                _too_large(largest, " without pictures and files" if thinned else "")
    layer.end()
    if thin and thinned:
        kept += thinned.end()
    return bytes(kept)


async def pieces(request: web.Request, largest: int) -> AsyncGenerator[bytes]:
    """The bytes of a body as they come. Raises HttpError (408, 413)."""
    if (request.content_length or 0) > largest:
        _too_large(largest)
    size = 0
    try:
        while not request.content.at_eof():
            piece = await request.content.readany()
            size += len(piece)
            if size > largest:
                _too_large(largest)
            yield piece
    except web.HTTPRequestTimeout:
        raise HttpError(408, "The rest of the body never came: send it again.") from None


class Thins(Protocol):
    """Takes the pieces of a body and leaves something out."""

    def feed(self, piece: bytes) -> bytes:
        """What is left of it by now."""
        ...

    def end(self) -> bytes:
        """What was held back."""
        ...


def parsed(data: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises HttpError (400)."""
    try:
        value: object = json.loads(data.decode(), object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError:
        _too_deep()
    except HttpError:
        raise
    except UnicodeDecodeError:
        raise HttpError(400, "The body is no UTF-8.") from None
    except ValueError as error:
        at = f" (at character {error.pos + 1})" if isinstance(error, json.JSONDecodeError) else ""
        raise HttpError(400, f"The body is no JSON{at}.") from None
    if not isinstance(value, dict):
        raise HttpError(400, "The body must be one JSON object.")
    found = cast("dict[str, Any]", value)
    bounded(found)
    if b"\\u" in data:
        _no_halves(found)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise HttpError(400, "The body names a key twice in one object: which is meant?")
    if len(made) > KEYS:
        raise HttpError(400, f"An object in the body has more than {KEYS} keys.")
    return made


def _no_number(word: str) -> NoReturn:
    raise HttpError(400, f"{word} is no JSON number.")


def bounded(value: Mapping[str, Any]) -> None:
    """Check depth, count and range of all that is in it, level by level. Raises HttpError (400)."""
    level: list[Any] = [value]
    count = 0
    for _ in range(DEPTH):
        deeper: list[Any] = []
        for container in level:
            inside: Collection[Any] = _inside(container)
            count += len(inside)
            for one in inside:
                kind = one.__class__
                if kind is dict or kind is list:
                    deeper.append(one)
                elif kind is float:
                    if not math.isfinite(one):
                        _no_number("A number as large as that")
                elif kind is int and one not in _INTEGERS:
                    _no_number("An integer of more than 64 bits")
            if count > VALUES:
                raise HttpError(400, f"The body holds more than {VALUES} values.")
        if not deeper:
            return
        level = deeper
    _too_deep()


def _inside(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _no_halves(value: dict[str, Any]) -> None:
    """Half of a surrogate pair is no character: no file and no database takes it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HttpError(400, r"The body holds half a character (a lone \ud…).") from None


def _too_large(largest: int, what: str = "") -> NoReturn:
    raise HttpError(413, f"The body is too large: at most {sized(largest)}{what}.")


def _too_deep() -> NoReturn:
    raise HttpError(400, f"The body is nested more than {DEPTH} deep.")
