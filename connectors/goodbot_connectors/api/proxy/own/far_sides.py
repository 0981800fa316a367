# SPDX-License-Identifier: Apache-2.0
"""The servers of the owner's that answer in our model's place, each asked with its manners."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any

import aiohttp
from aiohttp import hdrs
from goodbot.api.completions import FarSide
from goodbot.api.manners import Attempt, Manners, refusal
from goodbot.base.clock import Clock

from goodbot_connectors.api.proxy.far import Far
from goodbot_connectors.api.proxy.own import asking

EMBEDDINGS = "/v1/embeddings"
_LONGEST_REFUSAL = 64 * 1024
_MOST = 16
"""A server that is a process of ours has another port with each version."""


class Fars:
    """Sessions with them, by their addresses."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, Far] = {}

    async def close(self) -> None:
        """Hang up; idempotent."""
        for far in self._open.values():
            await far.close()

    @contextlib.asynccontextmanager
    async def asked(
        self, far: FarSide, path: str, body: Mapping[str, Any], theirs: frozenset[str]
    ) -> AsyncGenerator[tuple[aiohttp.ClientResponse, FarSide]]:
        """The answer to a program's request, and the server with the manners that it was asked with.

        `theirs`: the fields whose values are the program's. Raises HttpError.
        """
        there = self._open.pop(far.url, None) or Far(far.url, self._clock, reads=True)
        self._open[far.url] = there  # the last one used comes last
        while len(self._open) > _MOST:
            await self._open.pop(next(iter(self._open))).close()
        # What makes embeddings tells nothing of how answers are to be asked for.
        manners = None if path == EMBEDDINGS else far.manners
        attempt = Attempt(manners or Manners(), body, theirs)
        while True:
            data = json.dumps(attempt.sent, ensure_ascii=False).encode("utf-8", "replace")
            headers = asking.headers(far)
            async with there.ask(hdrs.METH_POST, far.url + path, headers, data) as response:
                if response.status == 200:
                    attempt.taken()
                    yield response, replace(far, manners=attempt.manners)
                    return
                words = refusal(await response.content.read(_LONGEST_REFUSAL))
                if not attempt.again(response.status, words):
                    raise asking.refused(far, response.status, words)
