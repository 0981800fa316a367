# SPDX-License-Identifier: Apache-2.0
"""The pages that look at something by their address, and change it: each asks as whoever is signed in.

| path | |
|---|---|
| `GET /api/ratings` | rated answers (`rated`): `since`, `until`, `place`, `person`, `rating`, …, `after` |
| `POST /api/ratings` | leaves answers out, for owners: `{"do": "out" or "in", "turns": […]}` |
| `GET /api/queues` | the queues of answers to rate (`queued`): one's own, and for owners all |
| `POST /api/queues` | for owners: `{"do": "make", "close" or "open"}` |
| `GET /api/waiting` | how many answers wait for one's rating: a number and no words |
| `GET /api/topics` | what the newest rated answers are about, for owners |
| `GET /api/taught` | what one answer (`turn`) has taught, for owners |
| `GET /api/people` | for owners: who asks to talk, and everybody else: `text`, `role`, `after` |
| `GET /api/activity` | what was done, for owners: `since`, `person`, `action`, …, `before` |
| `GET /api/activity/checked` | whether all of that is as it was written |
| `GET /api/report` | the report that was made last, for owners, and how far the next one is |
| `POST /api/report` | begins another one: `{"do": "make"}`, or `"ask"`: fixed questions first |
| `GET /api/settings` | all settings, for owners (`settings`) |
| `POST /api/settings` | changes one: `{"do": "set" or "default", "key", "value", "before", "code"}` |
| | or `{"do": "restart"}`: goodbot begins anew on the file |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.api.sentences import sentence
from goodbot.base.errors import UsageError

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json
from goodbot_connectors.web import guard, looks, queued, rated, settings
from goodbot_connectors.web.guard import Handler
from goodbot_connectors.web.normalize import user_ref

Look = Callable[[ConnectorHost, UserRef, Mapping[str, str]], Awaitable[Mapping[str, Any]]]
Change = Callable[[ConnectorHost, UserRef, Json], Awaitable[Mapping[str, Any]]]

_LOOKS: Mapping[str, Look] = {
    "/api/ratings": rated.page,
    "/api/queues": queued.page,
    "/api/waiting": looks.waiting,
    "/api/topics": rated.topics,
    "/api/taught": rated.taught,
    "/api/people": looks.people,
    "/api/activity": looks.activity,
    "/api/activity/checked": looks.checked,
    "/api/report": looks.report,
    "/api/settings": settings.page,
}
_CHANGES: Mapping[str, Change] = {
    "/api/ratings": rated.leave_out,
    "/api/queues": queued.change,
    "/api/report": looks.make_report,
    "/api/settings": settings.change,
}


async def _told(answer: Awaitable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What it says; a refusal of the core's in a sentence. Raises HttpError."""
    try:
        return await answer
    except UsageError as error:
        raise HttpError(400, sentence(str(error))) from None


def by_get(host: ConnectorHost, signed_in: Callable[[web.Request], str]) -> dict[str, Handler]:
    """What is asked with GET, by its path; `signed_in` says who asks, or raises HttpError."""

    def handler(of: Look) -> Handler:
        async def look(request: web.Request) -> web.StreamResponse:
            user = user_ref(signed_in(request), guard.language(request))
            return guard.answer(await _told(of(host, user, request.query)))

        return look

    return {path: handler(of) for path, of in _LOOKS.items()}


def by_post(host: ConnectorHost, signed_in: Callable[[web.Request], str]) -> dict[str, Handler]:
    """What is asked with POST, by its path; only our own pages may."""

    def handler(of: Change) -> Handler:
        async def change(request: web.Request) -> web.StreamResponse:
            guard.same_origin(request, host.address)
            user = user_ref(signed_in(request), guard.language(request))
            return guard.answer(await _told(of(host, user, await guard.body(request))))

        return change

    return {path: handler(of) for path, of in _CHANGES.items()}
