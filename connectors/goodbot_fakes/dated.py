# SPDX-License-Identifier: Apache-2.0
"""Answers that bear the fake's own time, as a real server's bear the server's."""

from __future__ import annotations

from email.utils import formatdate

from aiohttp import web
from goodbot.base.clock import Clock


def dated(application: web.Application, clock: Clock) -> None:
    """Have each answer say what `clock` says."""

    async def stamp(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(clock.now(), usegmt=True)

    application.on_response_prepare.append(stamp)
