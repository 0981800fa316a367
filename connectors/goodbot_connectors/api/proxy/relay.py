# SPDX-License-Identifier: Apache-2.0
"""A request that goes on to an upstream as it came, and its answer, byte for byte, on the way back."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict

from goodbot_connectors.api.proxy import errors, headers
from goodbot_connectors.api.proxy.capture import TURN
from goodbot_connectors.api.proxy.listening import LARGEST, ResponseTap

_CUT = "The upstream broke its answer off: try again."

Heard = Callable[[ResponseTap], Awaitable[str]]
"""Told once the answer's end is there, before it leaves, and at the last byte; the turn it became."""


async def relay(
    request: web.Request,
    far: aiohttp.ClientResponse,
    *,
    listener: ResponseTap | None,
    turn: str,
    heard: Heard,
) -> web.StreamResponse:
    """Pass an answer back. It is kept before its end leaves: who has seen that may rate it at once.

    `turn`: the one that it becomes; empty where it is not kept. A stream is listened to all the same: one
    that breaks off must not look whole.
    """
    kept = headers.back(far.headers, far.headers.items())
    stream = far.content_type == "text/event-stream"
    if listener is None or far.status != 200 or not (turn or stream):
        return await _carried(request, far, web.StreamResponse(status=far.status, headers=kept))
    if stream:
        kept.popall(hdrs.CONTENT_LENGTH, None)  # an error may follow
        if turn:
            kept[TURN] = turn
        response = web.StreamResponse(status=far.status, headers=kept)
        try:
            await _carried(request, far, response, listener, heard)
        finally:
            with contextlib.suppress(aiohttp.ClientError):
                await heard(listener)
        return response
    return await _whole(request, far, kept, listener, heard)


async def _carried(
    request: web.Request,
    far: aiohttp.ClientResponse,
    response: web.StreamResponse,
    listener: ResponseTap | None = None,
    heard: Heard | None = None,
) -> web.StreamResponse:
    """Piece by piece: the next one is read when the last one is written."""
    broken = False
    try:
        await response.prepare(request)
        async for piece in far.content.iter_any():
            if listener is not None:
                listener.feed(piece)
                if heard is not None and listener.over:
                    await heard(listener)
            await response.write(piece)
    except (aiohttp.ClientError, TimeoutError) as error:
        if isinstance(error, ConnectionResetError):  # it is the program that is gone
            raise
        broken = True
    if listener is not None:
        broken = await _cut(request, response, listener) or broken
    if broken:
        response.force_close()  # it must not look like an end
        if request.transport is not None:
            request.transport.close()
    return response


async def _cut(request: web.Request, response: web.StreamResponse, listener: ResponseTap) -> bool:
    """Say in a stream that nobody ends that it has none. Whether that could not be said."""
    listener.end()
    if not listener.cut:
        return False
    if listener.coded or not response.prepared:
        return True
    # What came of an event that was not whole ends here, too.
    await response.write(b"\n\n" + errors.event(request.path, _CUT, listener.number))
    return False


async def _whole(
    request: web.Request,
    far: aiohttp.ClientResponse,
    kept: CIMultiDict[str],
    listener: ResponseTap,
    heard: Heard,
) -> web.StreamResponse:
    """Held back until it is stored, unless it is too long to be."""
    pieces: list[bytes] = []
    size = 0
    async for piece in far.content.iter_any():
        listener.feed(piece)
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            response = web.StreamResponse(status=far.status, headers=kept)
            await response.prepare(request)
            for held in pieces:
                await response.write(held)
            return await _carried(request, far, response)
    kept.popall(hdrs.CONTENT_LENGTH, None)
    if turn := await heard(listener):
        kept[TURN] = turn
    return web.Response(status=far.status, headers=kept, body=b"".join(pieces))
