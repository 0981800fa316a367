# SPDX-License-Identifier: Apache-2.0
"""The one address that Claude Code calls. Whatever is wrong with a call, Claude goes on undisturbed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from goodbot_connectors.kit.bridge.clients import ApiClient, Clients
from goodbot_connectors.kit.bridge.guard import HttpError, answer, guarded, json_object, refusal

logger = logging.getLogger(__name__)

Take = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]

LARGEST = 1 << 20
"""Bytes of one call: Claude Code sends the whole answer."""
_TOLD = (401, 403, 429, 503)


def routes(path: str, take: Take, clients: Clients, running: Callable[[], bool]) -> list[web.RouteDef]:
    """The route; `take` gets the person and what their hook says, while we are `running`."""

    async def called(request: web.Request, client: ApiClient) -> web.StreamResponse:
        if not running():  # the script notes that it was not heard
            raise HttpError(503, "goodbot is starting or stopping: try again in a moment.")
        return answer(await take(client.name, await json_object(request, LARGEST)))

    return [web.post(path, guarded(called, clients, largest=LARGEST, refused=_unheard))]


def _unheard(error: HttpError) -> web.StreamResponse:
    """Who has no token is told so, and that we are not there yet.

    What cannot be read is passed over, or Claude Code would complain.
    """
    if error.status in _TOLD:
        return refusal(error)
    logger.warning("claude_code: a hook's call was passed over: %s", error)
    return answer({})
