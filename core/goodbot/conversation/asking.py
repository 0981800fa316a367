# SPDX-License-Identifier: Apache-2.0
"""How the model is asked, in a chat and for a program alike: in which conversation, by which version."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from goodbot.api.events import ChannelRef, UserRef
from goodbot.api.server import GenerateRequest, Piece, Server
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.worded import Worded

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


def conversation(channel: ChannelRef, talker: UserRef) -> str:
    """What a server's caches know a conversation by: one person in one place.

    The talker's account is part of it: an id says who somebody is only within the account that knows them,
    and nobody is to be answered out of another one's cache. It is stored nowhere.
    """
    place = (channel.connector, channel.account, channel.id, channel.thread)
    return "\n".join((*place, talker.account, talker.id))


async def or_active(
    ask: Callable[[GenerateRequest], Awaitable[_T]], request: GenerateRequest, *, only: bool = False
) -> _T:
    """What `ask` returns for the version that is tried, else for the active one.

    With `only` the version was asked for by name, and no other answers. Raises what `ask` raises.
    """
    try:
        return await ask(request)
    except (AdapterError, ServerError) as error:
        if only or request.version is None:
            raise
        logger.warning("v%d does not answer, the active version does: %s", request.version, error)
    return await ask(replace(request, version=None))


async def pieces(
    server: Server, request: GenerateRequest, *, only: bool = False
) -> AsyncGenerator[Piece, None]:
    """An answer as it comes. Once it has begun, no other version goes on with it.

    `only` as in `or_active`. Raises AdapterError, ServerError.
    """
    async with contextlib.AsyncExitStack() as stack:

        async def begin(request: GenerateRequest) -> tuple[Piece, AsyncGenerator[Piece, None]]:
            answer = await stack.enter_async_context(contextlib.aclosing(server.generate(request)))
            async for piece in answer:
                return piece, answer
            raise ServerError(Worded("the model server ended an answer half way"))

        first, rest = await or_active(begin, request, only=only)
        yield first
        async for piece in rest:
            yield piece
