# SPDX-License-Identifier: Apache-2.0
"""`FakeTelegram`: a Bot API server on loopback with one bot, and the people around it."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from goodbot.base.clock import Clock, SystemClock

from goodbot_fakes.dated import dated
from goodbot_fakes.telegram import methods
from goodbot_fakes.telegram.account import ApiCall, BotAccount, Failure
from goodbot_fakes.telegram.chats import SUPERGROUP, Chat
from goodbot_fakes.telegram.errors import NOT_FOUND, UNAUTHORIZED, BotApiError, Json
from goodbot_fakes.telegram.flood import FloodLimits
from goodbot_fakes.telegram.people import Person

TOKEN = "4200001:AAloopback-token_for-tests-only-0123"  # noqa: S105  opens nothing
WRONG_TOKEN = TOKEN[:-4] + "9999"


class FakeTelegram:
    """Use `async with FakeTelegram() as telegram`; `telegram.api` is what clients call a base URL.

    People act at once and without HTTP, in the loop that serves. `clock` dates messages and counts
    limits and retries; a poll waits in real time.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = "the_good_bot",
        clock: Clock | None = None,
        limits: FloodLimits | None = None,
        port: int = 0,
    ) -> None:
        self.account = BotAccount(token=token, username=username, clock=clock or SystemClock(), limits=limits)
        self.updates, self.webhook, self.seen = (
            self.account.updates,
            self.account.webhook,
            self.account.seen,
        )
        self.online = True
        """Where False, connections break off without an answer."""
        self._port = port
        self._runner: web.AppRunner | None = None
        self._ids = itertools.count(1001)
        self._group_ids = itertools.count(1_700_000_001)

    async def __aenter__(self) -> FakeTelegram:
        app = web.Application(client_max_size=1 << 20)
        dated(app, self.account.clock)
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        # A poll whose client has gone must not take updates with it.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.webhook.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def api(self) -> str:
        """The address up to the token, as python-telegram-bot's `base_url`."""
        return f"http://127.0.0.1:{self._port}/bot"

    # -- who is there

    def person(self, name: str, *, id: int = 0, started: bool = True, **fields: Any) -> Person:
        """Somebody new; `started=False` has never written to the bot. `fields` are a `User`'s."""
        user: Json = {
            "id": id or next(self._ids),
            "is_bot": False,
            "first_name": name,
            "username": f"{name.casefold()}_x",
            **fields,
        }
        self.account.users[user["id"]] = user
        chat = Chat(id=user["id"], kind="private", title=name, started=started)
        self.account.chats[chat.id] = chat
        return Person(self.account, user)

    def group(
        self,
        title: str,
        members: Sequence[Person] = (),
        *,
        id: int = 0,
        admin: bool = False,
        kind: str = SUPERGROUP,
        topics: Sequence[str] = (),
    ) -> Chat:
        """A group with the bot in it, `admin` or not; the first member has made it.

        With `topics` it is a forum; `topic` opens more.
        """
        number = id or -next(self._group_ids) - (10**12 if kind == SUPERGROUP else 0)
        chat = Chat(id=number, kind=kind, title=title, forum=bool(topics))
        chat.members = {person.id: "member" for person in members}
        if members:
            chat.members[members[0].id] = "creator"
        chat.members[self.account.id] = "administrator" if admin else "member"
        self.account.chats[chat.id] = chat
        for topic in topics:
            self.topic(chat, topic)
        return chat

    def topic(self, chat: Chat, name: str) -> int:
        """Open a topic in a forum; its `message_thread_id`."""
        creator = next(user for user, status in chat.members.items() if status == "creator")
        message = self.account.post(
            chat, self.account.users[creator], forum_topic_created={"name": name, "icon_color": 7322096}
        )
        message.json |= {"message_thread_id": message.id, "is_topic_message": True}
        chat.topics[message.id] = name
        chat.forum = True
        return message.id

    def migrate(self, chat: Chat) -> Chat:
        """Let a group become a supergroup, which has another id."""
        moved = self.group(chat.title)
        moved.members = dict(chat.members)
        chat.moved_to = moved.id
        return moved

    # -- what goes wrong

    def fail(self, method: str, code: int, description: str, *, times: int = 1, **parameters: Any) -> None:
        """Let the next calls of a method fail."""
        error = BotApiError(code, description, **parameters)
        self.account.failures.append(Failure(method=method, error=error, times=times))

    def calls(self, method: str) -> list[Json]:
        """The parameters of every call of a method so far, refused ones as well."""
        return [call.params for call in self.seen.calls if call.method == method]

    # -- HTTP

    async def _serve(self, request: web.Request) -> web.Response:
        if not self.online:
            return self._break_off(request)
        try:
            if request.match_info["token"] != self.account.token:
                raise UNAUTHORIZED
            method = methods.find(request.match_info["method"])
            if method is None:
                raise NOT_FOUND
            result = await self._call(method, await _parameters(request))
        except BotApiError as error:
            return _answer(error.code, error.body())
        if not self.online:
            return self._break_off(request)
        return _answer(200, {"ok": True, "result": result})

    async def _call(self, method: str, raw: Json) -> Any:
        call = ApiCall(method=method, params=methods.decode(method, raw))
        self.seen.calls.append(call)
        try:
            for failure in self.account.failures:
                if failure.method == method and failure.times > 0:
                    failure.times -= 1
                    raise failure.error
            result = await methods.call(self.account, method, call.params)
        except BotApiError as error:
            call.error = str(error)
            raise
        call.result = copy.deepcopy(result)  # as it was then: messages change
        return result

    def _break_off(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)


async def _parameters(request: web.Request) -> Json:
    found: Json = dict(request.query)
    if request.content_type == "application/json" and request.can_read_body:
        return found | await request.json()
    return found | dict(await request.post())


def _answer(status: int, body: Json) -> web.Response:
    text = json.dumps(body, ensure_ascii=False)
    headers = {"Retry-After": str(body["parameters"]["retry_after"])} if status == 429 else {}
    return web.Response(status=status, text=text, content_type="application/json", headers=headers)
