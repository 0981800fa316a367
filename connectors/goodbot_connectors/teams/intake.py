# SPDX-License-Identifier: Apache-2.0
"""Calls on their way in: checked, stored, and only then answered with a 200."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from aiohttp import hdrs, web
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import Event, MessageEvent, Outcome, RatingEvent, Receipt
from goodbot.base.errors import GoodbotError, RetriableError, StoreError

from goodbot_connectors.kit.bridge.body import HttpError, bounded
from goodbot_connectors.kit.fields import Json, as_json, string
from goodbot_connectors.kit.rate_limit import Throttle
from goodbot_connectors.teams import feedback
from goodbot_connectors.teams.config import is_loopback
from goodbot_connectors.teams.normalize import Normalizer, place
from goodbot_connectors.teams.presses import key
from goodbot_connectors.teams.references import References
from goodbot_connectors.teams.wire import Wire

logger = logging.getLogger(__name__)

_QUIET = 60.0
"""Seconds between two lines in the log about calls that were refused."""
_FORWARDED = (hdrs.FORWARDED, hdrs.X_FORWARDED_FOR, hdrs.X_FORWARDED_HOST, hdrs.VIA)
"""What proxies and tunnels add, also those that write a `Host` of their own."""


class Intake:
    """Takes what Teams posts to the messaging endpoint."""

    def __init__(
        self, host: ConnectorHost, wire: Wire, references: References, normalizer: Normalizer, *, local: bool
    ) -> None:
        """`local`: nobody's token is checked, so only programs of this machine may call."""
        self._host, self._wire, self._references = host, wire, references
        self._normalizer, self._local = normalizer, local
        self._pace = Throttle(host.clock)
        self._failed = False

    async def receive(self, request: web.Request) -> web.Response:
        """Answer one call. Whatever is not a 200, Teams takes for "not stored"."""
        if request.content_type != "application/json":  # what a browser's page may not send unasked
            return web.Response(status=415)
        if self._local and not _from_here(request):
            return web.Response(status=403)
        token = request.headers.get(hdrs.AUTHORIZATION, "")
        try:
            await self._wire.admit(token)  # anybody can call, and parsing keeps everybody else waiting
            body = await _activity(request)
            if not string(body, "type"):
                return web.Response(status=400)
            answer = await self._wire.receive(body, token, lambda: self._take(body))
        except PermissionError as error:
            if self._pace.due("refused"):  # anybody can call, and fill a log
                self._pace.hold("refused", _QUIET)
                logger.warning("teams: a call was refused: %s", error)
            return web.Response(status=401)
        except RetriableError as error:
            self._failed = True
            self._host.trouble(str(error))
            return self._later(error)
        except StoreError as error:
            return self._later(error)
        if self._failed:  # not what others have said
            self._failed = False
            self._host.trouble("")
        return web.Response() if answer is None else web.json_response(answer)

    def _later(self, error: GoodbotError) -> web.Response:
        logger.error("teams: not acknowledged, Teams may send it again: %s", error)
        return web.Response(status=503)

    async def _take(self, activity: Json) -> Mapping[str, object]:
        """Store what an activity holds; the body of the answer if it is an invoke. Raises StoreError."""
        now_ms = int(self._host.clock.now() * 1000)
        events = self._normalizer.events(activity, now_ms)
        if events or self._normalizer.knows(activity):
            await self._references.note(activity)
        if events:
            receipts = await self._host.submit(events)
            if any(map(_lets_in, events, receipts)):
                await self._references.let_in(events[0].channel.id)
        if string(activity, "type") != "invoke":
            return {}
        channel = self._normalizer.channel(activity)
        message = key(string(activity, "replyToId"))
        turn = self._normalizer.answers.get(place(channel, message), "") if channel else ""
        return feedback.answer(activity, turn)


def _lets_in(event: Event, receipt: Receipt) -> bool:
    """Whether somebody may talk or rate there. Of a command it is not known yet."""
    heard = receipt.outcome in (Outcome.ACCEPTED, Outcome.PAIRED)
    return heard and isinstance(event, (MessageEvent, RatingEvent))


async def _activity(request: web.Request) -> Json:
    """What is in a call; nothing where that is no activity."""
    try:
        body = as_json(json.loads(await request.read()))
        bounded(body)
    except (ValueError, RecursionError, HttpError):
        return {}
    return body


def _from_here(request: web.Request) -> bool:
    """Whether a program of this machine calls: no page in a browser, and nobody behind a proxy."""
    forwarded = any(name in request.headers for name in _FORWARDED)
    return not forwarded and is_loopback(f"http://{request.headers.get(hdrs.HOST, '')}")
