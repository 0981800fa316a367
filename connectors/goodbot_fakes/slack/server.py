# SPDX-License-Identifier: Apache-2.0
"""`FakeSlack`: the workspace, its Web API and its deliveries, on a port of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web
from goodbot.base.clock import Clock, SystemClock
from goodbot.testing.patience import patience

from goodbot_fakes.dated import dated
from goodbot_fakes.slack import api, methods_app, methods_chat, methods_conversations
from goodbot_fakes.slack.app import SlackApp, across, event_callback, wanted
from goodbot_fakes.slack.delivery import Ack, Delivery, Kind, Outbox, Pace
from goodbot_fakes.slack.errors import SlackError
from goodbot_fakes.slack.faults import Faults
from goodbot_fakes.slack.people import People
from goodbot_fakes.slack.requests import Requests
from goodbot_fakes.slack.sockets import Sockets
from goodbot_fakes.slack.workspace import View, Workspace

Json = dict[str, Any]
_LOADED = (methods_app, methods_chat, methods_conversations)


class FakeSlack:
    """One workspace with one app in it.

    ::

        async with FakeSlack() as slack:
            client = AsyncWebClient(token=slack.app.bot_token, base_url=slack.api_url)
            ...
            message = slack.people.say("ada", "hello")
            await slack.settled()
    """

    def __init__(self, *, clock: Clock | None = None, pace: Pace | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self.workspace = Workspace(self.clock)
        self.workspace.listener = self._happened
        bot = self.workspace.add_user("goodbot", app_id="A0G00DB0T", bot_id="B0G00DB0T")
        self.app = SlackApp(user=bot)
        self.faults = Faults()
        self.sockets = Sockets(self.app)
        self.requests = Requests(self.app, self.clock)
        self.outbox = Outbox(self.clock, pace or Pace(), self._attempt)
        self.people = People(self.workspace, self.app, self._interact)
        self.calls: list[api.ApiCall] = []
        """The calls of the Web API so far, with their answers."""
        self.url = ""
        self._interactions: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def api_url(self) -> str:
        """The base URL for a Web API client."""
        return f"{self.url}/api/"

    async def __aenter__(self) -> FakeSlack:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen; the port stays the same when it was closed before."""
        application = web.Application()
        dated(application, self.clock)
        application.router.add_route("*", "/api/{method}", self._api)
        application.router.add_get("/link/", self._link)
        application.router.add_post("/response/{token}", self._response)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = self.people.url = f"http://127.0.0.1:{self._port}"

    async def close(self) -> None:
        """End every connection and give up what was not delivered."""
        await self.outbox.close()
        for task in list(self._interactions):
            task.cancel()
        self.sockets.drop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # -- what a test says and asks

    def called(self, method: str) -> list[Json]:
        """The arguments of each successful call of one method."""
        return [c.arguments for c in self.calls if c.method == method and c.response.get("ok")]

    async def until(self, done: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for something; TimeoutError when it does not come."""
        async with asyncio.timeout(patience(seconds)):
            while not done():
                await asyncio.sleep(0.005)

    async def settled(self, seconds: float = 10.0) -> None:
        """Wait until everything is acknowledged or given up."""
        await self.until(lambda: not self.outbox.pending, seconds)

    def cut(self) -> None:
        """From now on the network is dead, until `mend`."""
        self.faults.network_is_down = True
        self.sockets.drop()

    def mend(self) -> None:
        """The network is back."""
        self.faults.network_is_down = False

    def redeliver(self, delivery: Delivery) -> Delivery:
        """Deliver the same payload once more, as Slack may at any time."""
        return self.outbox.put(delivery.kind, delivery.payload)

    # -- inside

    def _happened(self, event: Json) -> None:
        for found in wanted(self.app, self.workspace, event):
            payload = event_callback(self.app, found, self.workspace.mint("Ev"))
            self.outbox.put("events_api", across(self.workspace, payload))

    def _interact(self, kind: Kind, payload: Json) -> Delivery:
        delivery = self.outbox.put(kind, payload)
        task = asyncio.create_task(self._answered(delivery), name="fake slack interaction")
        self._interactions.add(task)
        task.add_done_callback(self._interactions.discard)
        return delivery

    async def _answered(self, delivery: Delivery) -> None:
        """What an acknowledgement brought: a command's words, or what becomes of a modal."""
        while delivery.state == "pending":
            await asyncio.sleep(0.005)
        payload = delivery.payload
        if delivery.state == "lost":
            user = payload.get("user_id") or payload["user"]["id"]
            self.people.told.setdefault(user, []).append("the app did not respond in time")
        elif delivery.kind == "slash_commands" and delivery.answer.get("text"):
            self.people.whisper(
                payload["user_id"],
                payload["channel_id"],
                delivery.answer["text"],
                delivery.answer.get("blocks", ()),
            )
        elif payload.get("type") == "view_submission":
            view = self.workspace.views.get(payload["view"]["id"])
            match delivery.answer.get("response_action"), view:
                case "update", View():
                    view.body = delivery.answer["view"]
                case "errors", _:
                    pass
                case _:
                    self.workspace.views.pop(payload["view"]["id"], None)

    async def _attempt(self, delivery: Delivery) -> Ack:
        if self.faults.network_is_down:
            return Ack(ok=False, reason="connection_failed")
        if self.app.socket_mode:
            return await self.sockets.attempt(delivery)
        return await self.requests.attempt(delivery)

    async def _api(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["method"]
        self._alive(request)
        fault = self.faults.take(name)
        token, arguments = await _read(request)
        if fault is not None:
            status, body, headers = fault
        else:
            status = 200
            try:
                decoded = api.decode(arguments)
            except (SlackError, ValueError):
                body, headers = {"ok": False, "error": "invalid_arguments"}, {}
            else:
                arguments = decoded
                body, headers = api.call(self._context(), name, token, decoded)
        self.calls.append(api.ApiCall(method=name, arguments=arguments, status=status, response=body))
        if not body:
            return web.Response(status=status, text="<html>upstream error</html>", headers=headers)
        return web.json_response(body, status=status, headers=headers)

    def _context(self) -> api.Context:
        return api.Context(
            workspace=self.workspace,
            app=self.app,
            people=self.people,
            url=self.url,
            open_socket=self.sockets.ticket,
        )

    async def _link(self, request: web.Request) -> web.StreamResponse:
        self._alive(request)
        return await self.sockets.handle(request)

    async def _response(self, request: web.Request) -> web.StreamResponse:
        self._alive(request)
        try:
            self.people.respond(request.match_info["token"], await request.json())
        except SlackError as error:
            return web.json_response(error.body, status=404)
        return web.Response(text="ok")

    def _alive(self, request: web.Request) -> None:
        if self.faults.network_is_down:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPServiceUnavailable


async def _read(request: web.Request) -> tuple[str, Json]:
    """Token and arguments of a call: from the header, the query, a form or JSON."""
    fields: Json = dict(request.query)
    if request.content_type == "application/json":
        body: object = json.loads(await request.text() or "{}")
        fields |= body if isinstance(body, dict) else {}
    elif request.method == "POST":
        fields |= dict(await request.post())
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return token or str(fields.pop("token", "")), {k: v for k, v in fields.items() if v is not None}
