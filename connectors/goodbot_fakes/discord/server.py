# SPDX-License-Identifier: Apache-2.0
"""`FakeDiscord`: REST and gateway on one port of the loopback, and the people around the bot."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from goodbot.base.clock import Clock, SystemClock
from goodbot.testing.patience import patience

from goodbot_fakes.dated import dated
from goodbot_fakes.discord import permissions, rest
from goodbot_fakes.discord.application import Application
from goodbot_fakes.discord.errors import DiscordError, unauthorized
from goodbot_fakes.discord.gateway import Gateway
from goodbot_fakes.discord.interactions import Interactions
from goodbot_fakes.discord.limits import Faults, Limiter, RateLimits, Refusal
from goodbot_fakes.discord.people import Person
from goodbot_fakes.discord.records import Channel, Guild, Message
from goodbot_fakes.discord.registry import Commands
from goodbot_fakes.discord.rest import ApiCall, RestRoute
from goodbot_fakes.discord.sessions import GatewaySessions
from goodbot_fakes.discord.state import State
from goodbot_fakes.discord.world import World

Json = dict[str, Any]
TOKEN = "NDIwMDAwMTAwMDAwMDAwMDAx.GoodBt.loopback-token_for-tests-only-0123456789"  # noqa: S105  opens nothing
WRONG_TOKEN = TOKEN[:-4] + "9999"


class FakeDiscord:
    """Use `async with FakeDiscord() as discord`; `discord.api` and `discord.gateway_url` lead here.

    People act at once and without HTTP, in the loop that serves. `clock` dates everything, counts
    limits, and decides when an interaction has expired.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        name: str = "goodbot",
        clock: Clock | None = None,
        limits: RateLimits | None = None,
        heartbeat: float = 41.25,
        port: int = 0,
    ) -> None:
        self.clock = clock or SystemClock()
        self.world = world = World(self.clock, name, _bot_id(token))
        commands = Commands(world.ids)
        commands.application_id = world.bot.id
        self.application = Application(
            bot=world.bot, owner=world.add_user("olga"), token=token, commands=commands
        )
        self.sessions = GatewaySessions(world, self.application, self.clock)
        self.gateway = Gateway(self.application, self.sessions, heartbeat)
        self.interactions = Interactions(world)
        self.limiter = Limiter(self.clock, limits)
        self.faults = Faults()
        self.calls: list[ApiCall] = []
        """Every request to the REST API, refused ones as well."""
        self.state = State(
            clock=self.clock,
            world=world,
            application=self.application,
            gateway=self.gateway,
            interactions=self.interactions,
        )
        self._online = True
        self._port = port
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> FakeDiscord:
        app = web.Application(client_max_size=1 << 20)
        dated(app, self.clock)
        for one in rest.ROUTES:
            app.router.add_route(one.method, f"/api/v10{one.path}", self._handler(one))
        app.router.add_get("/", self._connect)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.gateway.url = self.gateway_url
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gateway.drop()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def api(self) -> str:
        """The REST API's address, discord.py's `RestRoute.BASE`."""
        return f"http://127.0.0.1:{self._port}/api/v10"

    @property
    def gateway_url(self) -> str:
        """The gateway's address, discord.py's `DiscordWebSocket.DEFAULT_GATEWAY`."""
        return f"ws://127.0.0.1:{self._port}/"

    # -- who is there

    def person(self, name: str) -> Person:
        """Somebody new."""
        return Person(self.state, self.world.add_user(name))

    def guild(self, name: str, members: Sequence[Person], *, rights: int = permissions.EVERYBODY) -> Guild:
        """A server of the first member, to which the bot was invited with `rights`."""
        return self.world.add_guild(name, [person.id for person in members], rights)

    def channel(self, name: str, guild: Guild, **more: Any) -> Channel:
        """A text channel; with `kind=FORUM` a forum."""
        return self.world.add_channel(name, guild, **more)

    def said(self, channel: Channel) -> list[Message]:
        """The bot's messages there that all can see, oldest first."""
        bot = self.world.bot.id
        return [one for one in self.world.in_channel(channel.id) if one.author_id == bot]

    # -- what goes wrong

    def cut(self) -> None:
        """The network is gone: connections break off, new ones do, too."""
        self._online = False
        self.gateway.drop()

    def mend(self) -> None:
        """It is back."""
        self._online = True

    def called(self, method: str, path: str) -> list[ApiCall]:
        """The requests of one kind so far, the path as the document writes it."""
        return [call for call in self.calls if (call.method, call.path) == (method, path)]

    async def until(self, done: Callable[[], object], seconds: float = 10.0) -> None:
        """Wait for `done()`."""
        async with asyncio.timeout(patience(seconds)):
            while not done():
                await asyncio.sleep(0.005)

    # -- HTTP

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        return await self.gateway.serve(request) if self._online else self._break_off(request)

    def _handler(self, route: RestRoute) -> Callable[[web.Request], Any]:
        async def serve(request: web.Request) -> web.StreamResponse:
            if not self._online:
                return self._break_off(request)
            call = ApiCall(
                method=route.method,
                path=route.path,
                params=dict(request.match_info),
                query=dict(request.query),
                headers=dict(request.headers),
                at=self.clock.monotonic(),
            )
            self.calls.append(call)
            headers = await self._answer(route, call, request)
            return self._response(call, headers) if self._online else self._break_off(request)

        return serve

    async def _answer(self, route: RestRoute, call: ApiCall, request: web.Request) -> dict[str, str]:
        """Do what is asked for, and note it in `call`; the headers of the answer."""
        name = f"{route.method} {route.path}"
        headers: dict[str, str] = {}
        try:
            call.body = await _body(request)
            token = request.headers.get("Authorization", "")
            if not route.free and token != f"Bot {self.application.token}":
                raise unauthorized()
            refusal = self.faults.take(name)
            if refusal is None:
                refusal, headers = self.limiter.admit(name, call.params, free=route.free)
            if refusal is not None:
                return _refuse(call, refusal)
            answer = route.handle(self.state, call)
        except DiscordError as error:
            call.status, call.answer = error.status, error.body
            return headers
        except Exception:
            call.status = 500
            raise
        call.status = 204 if answer is None else 200
        call.answer = copy.deepcopy(answer)  # as it was then: messages change
        return headers

    def _response(self, call: ApiCall, headers: dict[str, str]) -> web.Response:
        if call.status == 204:
            return web.Response(status=204, headers=headers)
        if call.answer is None:
            return web.Response(status=call.status, text="upstream error", headers=headers)
        body = json.dumps(call.answer, ensure_ascii=False).encode()
        return web.Response(status=call.status, body=body, content_type="application/json", headers=headers)

    def _break_off(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)


def _bot_id(token: str) -> str:
    """A token begins with the bot's id, in base64."""
    try:
        found = base64.b64decode(token.partition(".")[0], validate=True).decode("ascii")
    except ValueError:
        return ""
    return found if found.isdecimal() else ""


def _refuse(call: ApiCall, refusal: Refusal) -> dict[str, str]:
    call.status, call.answer = refusal.status, refusal.body
    return refusal.headers


async def _body(request: web.Request) -> Any:
    """The JSON of a request; a form with files has it in a field of its own."""
    if not request.can_read_body:
        return None
    if request.content_type == "multipart/form-data":
        return json.loads(str((await request.post())["payload_json"]))
    try:
        return await request.json()
    except ValueError:
        raise DiscordError(400, 50109, "The request body contains invalid JSON.") from None
