# SPDX-License-Identifier: Apache-2.0
"""`FakeTeams`: a tenant with one bot, its Bot Connector and its logins, on a port of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import aiohttp
from aiohttp import web
from goodbot.base.clock import Clock, SystemClock
from goodbot.testing.patience import patience

from goodbot_fakes.dated import dated
from goodbot_fakes.teams import activities
from goodbot_fakes.teams.connector_api import ApiCall, ConnectorApi
from goodbot_fakes.teams.delivery import Ack, Delivery, Outbox, Pace
from goodbot_fakes.teams.errors import TeamsError
from goodbot_fakes.teams.faults import Faults
from goodbot_fakes.teams.identity import IdentityProvider
from goodbot_fakes.teams.people import Person, World
from goodbot_fakes.teams.streaming import Streams
from goodbot_fakes.teams.tenant import Account, Tenant, TenantConversation

Json = dict[str, Any]
APP_ID = "6b00d807-60a0-4d00-8b07-00000000f4c3"
PASSWORD = "fake~8Q.loopback-secret_for-tests-only"  # noqa: S105  of the fake, which is no secret


class FakeTeams:
    """One tenant, in which one bot is installed.

    ::

        async with FakeTeams() as teams:
            teams.endpoint = "http://127.0.0.1:3978/api/messages"  # where the bot listens
            ada = teams.person("Ada")
            ada.says("hello")
            await teams.settled()
            [answer] = ada.sees()
    """

    def __init__(self, *, clock: Clock | None = None, pace: Pace | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self.tenant = Tenant(self.clock, Account(id=f"28:{APP_ID}", name="goodbot"))
        self.identity = IdentityProvider(self.clock, APP_ID, PASSWORD)
        self.streams = Streams(self.tenant)
        self.api = ConnectorApi(self.tenant, self.streams)
        self.faults = Faults()
        self.outbox = Outbox(self.clock, pace or Pace(), self._attempt)
        self.world = World(
            tenant=self.tenant, put=self._put, spawn=self._spawn, service_url=lambda: self.service_url
        )
        self.endpoint = ""
        """Where the bot listens; nobody does while it is empty."""
        self.anonymous = False
        """Whether requests to the bot go without a token, as from Microsoft's playground."""
        self.people: dict[str, Person] = {}
        """Everybody in the tenant, by name."""
        self.calls: list[ApiCall] = []
        """The calls of the Bot Connector so far, with their answers."""
        self.url = ""
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._http: aiohttp.ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def service_url(self) -> str:
        """Where the bot may call; it is in every activity and every token."""
        return f"{self.url}/emea/"

    @property
    def openid_metadata(self) -> str:
        """The address of the document that leads to the signing keys."""
        return f"{self.url}/openid/.well-known/openidconfiguration"

    @property
    def token_endpoint(self) -> str:
        """Where the bot logs in."""
        return f"{self.url}/{self.tenant.id}/oauth2/v2.0/token"

    async def __aenter__(self) -> FakeTeams:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen; the port stays the same when it was closed before."""
        application = web.Application()
        dated(application, self.clock)
        conversations = "/emea/v3/conversations"
        one = f"{conversations}/{{conversation}}"
        application.add_routes(
            [
                web.get("/openid/.well-known/openidconfiguration", self._openid),
                web.get("/openid/keys", self._openid_keys),
                web.post("/{tenant}/oauth2/v2.0/token", self._token),
                web.post(conversations, self._call("create")),
                web.post(f"{one}/activities", self._call("send")),
                web.post(f"{one}/activities/{{activity}}", self._call("reply")),
                web.put(f"{one}/activities/{{activity}}", self._call("update")),
                web.delete(f"{one}/activities/{{activity}}", self._call("delete")),
                web.get(f"{one}/members", self._call("members")),
                web.get(f"{one}/members/{{id_}}", self._call("member")),
                web.get(f"{one}/pagedmembers", self._call("paged_members")),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._http = aiohttp.ClientSession()

    async def close(self) -> None:
        """End every connection and give up what was not delivered."""
        await self.outbox.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._http is not None:
            await self._http.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # -- what a test says and asks

    def person(self, name: str) -> Person:
        """The person of this name; a new one joins the tenant."""
        if name not in self.people:
            self.people[name] = Person(account=self.tenant.add(name), world=self.world)
        return self.people[name]

    def group(self, name: str, people: Sequence[Person]) -> TenantConversation:
        """A group chat with the bot in it."""
        members = [person.account for person in people]
        return self.tenant.add_conversation("groupChat", members, name=name)

    def channel(self, name: str, people: Sequence[Person]) -> TenantConversation:
        """A channel of a team of its own, with the bot in it."""
        members = [person.account for person in people]
        team = f"19:team-{len(self.tenant.conversations)}@thread.tacv2"
        return self.tenant.add_conversation("channel", members, name=name, team=team)

    def called(self, *operations: str) -> list[Json]:
        """The bodies of the successful calls of these operations."""
        return [c.body for c in self.calls if c.operation in operations and c.status < 300]

    def tell(self, activity: Json) -> Delivery:
        """Deliver any activity."""
        return self._put(activity)

    def installs(self, person: Person) -> None:
        """Somebody adds the app to their chats."""
        where = (self.tenant, self.service_url, person.chat, person.account)
        self._put(activities.installation(*where, "add"))
        self._put(activities.members_added(*where, [self.tenant.bot]))

    async def post(self, activity: Json, authorization: str) -> tuple[int, str]:
        """A single request to the bot with this header, whoever signed it; status and body."""
        assert self._http is not None
        headers = {"Authorization": authorization} if authorization else {}
        async with self._http.post(self.endpoint, json=activity, headers=headers) as response:
            return response.status, await response.text()

    async def until(self, done: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for something; TimeoutError when it does not come."""
        async with asyncio.timeout(patience(seconds)):
            while not done():
                await asyncio.sleep(0.005)

    async def settled(self, seconds: float = 10.0) -> None:
        """Wait until everything is acknowledged or given up, and answers are shown."""
        await self.until(lambda: not self.outbox.pending and not self._tasks, seconds)

    def redeliver(self, delivery: Delivery) -> Delivery:
        """Deliver the same activity once more."""
        return self._put(delivery.payload)

    # -- inside

    def _put(self, activity: Json) -> Delivery:
        return self.outbox.put(activity["type"], activity)

    def _spawn(self, waiting: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(waiting, name="fake teams answer")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, delivery: Delivery) -> Ack:
        if self.faults.network_is_down or not self.endpoint:
            return Ack(ok=False, reason="connection_failed")
        header = "" if self.anonymous else self.identity.header(self.service_url)
        try:
            status, text = await self.post(delivery.payload, header)
        except aiohttp.ClientError:
            return Ack(ok=False, reason="connection_failed")
        if 200 <= status < 300:
            answer: Json = json.loads(text) if text.startswith("{") else {}
            return Ack(ok=True, payload=answer)
        # What the bot calls wrong is not tried again.
        return Ack(ok=False, reason=f"http {status}", no_retry=400 <= status < 500 and status != 429)

    def _call(self, operation: str) -> Callable[[web.Request], Coroutine[Any, Any, web.Response]]:
        run = getattr(self.api, operation)

        async def handle(request: web.Request) -> web.Response:
            self._alive(request)
            body: Json = await request.json() if request.can_read_body else {}
            parts: Json = dict(request.match_info)
            if request.query.get("isTargetedActivity") == "true":
                parts["targeted"] = True
            headers: dict[str, str] = {}
            try:
                if (fault := self.faults.take(operation)) is not None:
                    raise fault
                if not self.anonymous:
                    self.identity.check(request.headers.get("Authorization", ""))
                sends = operation in ("create", "send", "reply", "update")
                status, answer = run(**parts, body=body) if sends else run(**parts)
            except TeamsError as error:
                status, answer, headers = error.status, error.body, error.headers
            self.calls.append(
                ApiCall(operation=operation, path=request.path, body=body, status=status, answer=answer)
            )
            return web.json_response(answer, status=status, headers=headers)

        return handle

    async def _token(self, request: web.Request) -> web.Response:
        self._alive(request)
        try:
            if (fault := self.faults.take("token")) is not None:
                raise fault
            return web.json_response(self.identity.log_in(dict(await request.post())))
        except TeamsError as error:
            return web.json_response(error.body, status=error.status, headers=error.headers)

    async def _openid(self, request: web.Request) -> web.Response:
        self._alive(request)
        return web.json_response(self.identity.metadata(self.url))

    async def _openid_keys(self, request: web.Request) -> web.Response:
        self._alive(request)
        return web.json_response(self.identity.keys())

    def _alive(self, request: web.Request) -> None:
        if self.faults.network_is_down:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPServiceUnavailable
