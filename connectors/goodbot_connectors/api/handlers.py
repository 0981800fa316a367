# SPDX-License-Identifier: Apache-2.0
"""What each route of the table does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from aiohttp import web
from goodbot import __version__
from goodbot.api.completions import without_form
from goodbot.api.events import Outcome, RatingEvent, Receipt
from goodbot.api.turns import OwnTurn

from goodbot_connectors.api import requests, table
from goodbot_connectors.api.check import checker
from goodbot_connectors.api.proxy.waiters import Waiters
from goodbot_connectors.api.requests import RequestStamp
from goodbot_connectors.api.table import ADMIN, EVERYBODY, ROUTES, Route
from goodbot_connectors.kit.bridge.at_once import AtOnce
from goodbot_connectors.kit.bridge.body import HttpError, json_object
from goodbot_connectors.kit.bridge.clients import ApiClient
from goodbot_connectors.kit.bridge.guard import answer, guarded
from goodbot_connectors.kit.bridge.local import LocalConnector

AT_ONCE = 32
"""Requests of one client that are answered at once, besides those that wait for a model or a command."""
_WAITS = ("command", "status")
_KEY = "Idempotency-Key"
_REFUSED = {
    Outcome.DENIED: 403,
    Outcome.FAILED: 422,
    Outcome.CONFLICT: 409,
    Outcome.IGNORED: 429,
    Outcome.UNKNOWN_TARGET: 404,
}


class Handlers:
    """Answers clients; every event is committed before its answer leaves."""

    def __init__(self, connector: LocalConnector) -> None:
        self._connector = connector
        self._at_once, self._waiters = AtOnce(AT_ONCE), Waiters()
        """The second for commands, which may take long."""
        self._published = table.document(connector.host.address, __version__)

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """All of the table, each behind the guard."""
        return tuple(
            web.route(route.method, route.path, guarded(self._handler(route), self._connector.clients))
            for route in ROUTES
        )

    def _handler(self, route: Route) -> Any:
        handle, check = getattr(self, f"_{route.handler}"), checker(route.body or {})

        async def with_body(request: web.Request, client: ApiClient) -> web.StreamResponse:
            body = await json_object(request)
            check(body)
            with self._quick(route, client):
                return answer(await handle(request, client, body), route.status)

        async def without(request: web.Request, client: ApiClient) -> web.StreamResponse:
            with self._quick(route, client):
                return answer(await handle(request, client), route.status)

        return with_body if route.body else without

    def _quick(self, route: Route, client: ApiClient) -> AbstractContextManager[None]:
        """Room for what is answered at once; commands have places of their own. Raises HttpError."""
        return nullcontext() if route.handler in _WAITS else self._at_once.one(client.name)

    async def _capture(
        self, request: web.Request, client: ApiClient, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        stamp = self._stamp(request, client, body, body.get("session", ""))
        events = requests.capture(body, stamp, client.name, admin=client.admin)
        receipt, *said = await self._connector.host.submit(events)
        _accepted(receipt, client)
        for one in said:
            _accepted(one, client, f"The answer is kept as {receipt.turn}, but not what you say of it: ")
        return {
            "turn": receipt.turn,
            "outcome": receipt.outcome,
            "duplicate": receipt.duplicate,
            "text": said[0].text if said else "",
        }

    async def _turn(self, request: web.Request, client: ApiClient) -> dict[str, Any]:
        return _shown(await self._look_up(request.match_info["turn"], client))

    async def _feedback(
        self, request: web.Request, client: ApiClient, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        stamp = self._stamp(request, client, body)
        return await self._rate(requests.ratings(body, stamp, client.name), client)

    async def _undo(self, request: web.Request, client: ApiClient) -> dict[str, Any]:
        turn = request.match_info["turn"]
        stamp = self._stamp(request, client, {"undo": turn})
        return await self._rate([requests.retraction(turn, stamp)], client)

    async def _command(
        self, request: web.Request, client: ApiClient, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        name = body["name"]
        if name not in EVERYBODY and name not in ADMIN:
            raise HttpError(
                403, f"No client may use {name[:40]!r}: there are {', '.join((*EVERYBODY, *ADMIN))}."
            )
        if name in ADMIN and not client.admin:
            raise HttpError(
                403,
                f"{client.name} may not use {name!r}: `goodbot api token add {client.name} --admin` "
                "makes a token that may.",
            )
        stamp = self._stamp(request, client, body)
        with self._waiters.place(request, client.name, 0):
            receipt = await self._do(client, name, body.get("args", ""), stamp)
        news = self._connector.news(client.name)
        return {"outcome": receipt.outcome, "text": receipt.text, "news": news}

    async def _status(self, request: web.Request, client: ApiClient) -> dict[str, Any]:
        with self._waiters.place(request, client.name, 0):
            receipt = await self._do(client, "status", "", self._stamp(request, client, {}))
        return {"client": client.name, "admin": client.admin, "text": receipt.text}

    async def _document(self, request: web.Request, client: ApiClient) -> dict[str, Any]:
        return self._published

    async def _do(self, client: ApiClient, name: str, args: str, stamp: RequestStamp) -> Receipt:
        receipt = await self._connector.command(
            stamp.user, stamp.channel, name, args, event_id=stamp.event_id, digest=stamp.digest
        )
        _accepted(receipt, client)
        return receipt

    async def _rate(self, events: Sequence[RatingEvent], client: ApiClient) -> dict[str, Any]:
        receipts = await self._connector.host.submit(events)
        if any(one.outcome is Outcome.UNKNOWN_TARGET for one in receipts):
            found = await self._look_up(events[0].turn, client)
            if found.turn.kind != "main":
                text = f"{found.turn.id} is a side turn: nobody reads it, so it is not rated."
                raise HttpError(422, text)
            if client.admin:  # an owner's program may rate what another program has reported
                receipts = await self._connector.host.submit(
                    [replace(event, channel=found.turn.channel) for event in events]
                )
        first = receipts[0]
        for receipt in receipts:
            _accepted(receipt, client, f"{first.text} " if first.outcome is Outcome.ACCEPTED else "")
        return {
            "turn": first.turn,
            "outcome": first.outcome,
            "duplicate": first.duplicate,
            "text": first.text,
        }

    async def _look_up(self, turn: str, client: ApiClient) -> OwnTurn:
        user = self._connector.user(client.name)
        found = await self._connector.host.own_turn(user, turn, all_here=client.admin)
        if found is None:
            raise HttpError(404, f"{client.name} has no answer of that id.")
        return found

    def _stamp(
        self, request: web.Request, client: ApiClient, body: Mapping[str, Any], thread: str = ""
    ) -> RequestStamp:
        connector = self._connector
        keys = request.headers.getall(_KEY, [])
        if len(keys) > 1:
            raise HttpError(400, "Send one Idempotency-Key.")
        route = f"{request.method} {request.path}"
        event_id, digest = requests.identity(keys[0] if keys else None, route, client.name, body)
        behind = requests.speaks_for(request.headers.getall(table.SPEAKS_FOR, []))
        return RequestStamp(
            event_id=event_id,
            digest=digest,
            order=connector.order(),
            user=replace(connector.user(client.name), speaks_for=behind),
            channel=connector.channel(client.name, thread),
        )


def _accepted(receipt: Receipt, client: ApiClient, before: str = "") -> None:
    """Raises HttpError for any other outcome, with `before` before its sentence."""
    if receipt.outcome is Outcome.ACCEPTED:
        return
    text = {
        Outcome.DENIED: f"api:{client.name} may not do that: an owner can grant it with `goodbot people "
        f"grant rater api:{client.name}`.",
        Outcome.UNKNOWN_TARGET: f"{client.name} has no answer of that id.",
        Outcome.IGNORED: "That was a lot at once: try again in a minute.",
    }.get(receipt.outcome, "")
    if receipt.outcome is not Outcome.UNKNOWN_TARGET:
        text = receipt.text or text
    wait = 60.0 if receipt.outcome is Outcome.IGNORED else 0.0
    raise HttpError(_REFUSED.get(receipt.outcome, 422), before + text, retry_after=wait)


def _shown(found: OwnTurn) -> dict[str, Any]:
    turn = found.turn
    return {
        "turn": turn.id,
        "messages": without_form(turn.messages)[0],
        "response": turn.response,
        "model": turn.answered_by,
        "version": turn.version,
        "off_policy": bool(turn.answered_by),
        "kind": turn.kind,
        "session": turn.channel.thread,
        "created": turn.created_at,
        "score": found.score,
        "comments": list(found.comments),
        "better": found.better,
    }
