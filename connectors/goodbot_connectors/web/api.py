# SPDX-License-Identifier: Apache-2.0
"""The requests of the pages: who asks, what they may have, what they have done.

| path | |
|---|---|
| `POST /api/login` | a one-time code for a session: `{"code": "…"}`; who it is, and their `home` |
| `POST /api/logout` | ends this browser's session |
| `GET /api/me` | who is signed in, what they may do and type, conversations, our clock, how far `live` is |
| `GET /api/conversation?id=` | its entries, and up to which frame of the live line they go |
| `GET /api/conversations?text=` | those of one's own that hold the text, and `after` which to go on looking |
| `GET /api/inbox` | answers to rate: `connector`, `since`, `text`, `rated`, `unsure`, `before`, `queue` |
| `POST /api/do` | one event (`normalize`), answered after the commit; `{"stop": ENTRY, "in"}` and the like |
| `GET /api/notes` | the lines that answers to them follow |
| `POST /api/notes` | changes one: `{"do": "on", "off", "delete" or "edit", "number", "text"}`; what is left |
| `GET /api/progress` | how far learning is: only what this person may ask the bot for |
| `GET /api/versions` | all versions, for owners; `first` and `second`: these two compared |
| `POST /api/push` | `{"do": "look", "on" or "off"}`: whether it is told while no page is open (`pushing`) |
| `/api/ratings`, `/api/taught`, `/api/people`, … | what is in lists, and changed there (`lists`) |
| `GET /api/live?after=` | a WebSocket with what happens (`live`) |
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

from aiohttp import hdrs, web
from goodbot.api.connector import ConnectorHost
from goodbot.api.model import DEMO_LABEL
from goodbot.api.sentences import sentence
from goodbot.base.errors import UsageError
from goodbot.base.redact import redact
from goodbot.base.tasks import end_tasks
from goodbot.base.text import clean

from goodbot_connectors.kit.bridge.at_once import AtOnce
from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json, string
from goodbot_connectors.web import guard, home, lists, normalize, queued, waiting
from goodbot_connectors.web.cache import ConversationCache
from goodbot_connectors.web.entries import PersonLabels
from goodbot_connectors.web.guard import Handler
from goodbot_connectors.web.live import Live
from goodbot_connectors.web.pushing import Pushing
from goodbot_connectors.web.sessions import BrowserSessions, name
from goodbot_connectors.web.site import Site

AT_ONCE = 16
"""Requests of one person; a browser has six connections."""
PAGE = 50
"""Answers in one page of the inbox."""
_RATED = 200
"""Of a person's ratings so many are looked up when a conversation is opened."""
_TRIES = 5
_CHANGES = ("on", "off", "delete", "edit")
_PING_SECONDS = 25.0
"""So often an open page is asked whether it is still there."""
_SIGN_IN = "You are not signed in: type `/rl web` to the bot, or run `goodbot web`, for a link."
_ANOTHER = "Somebody else has signed in in this browser: reload the page to go on as them."
_PAGE_OF = "X-Goodbot-User"
"""Whose page asks, as it knows: a tab that stays open shows one person's words to the end."""
_USED = "This link was used already, or is older than ten minutes: ask for another one."

Take = Callable[[str, Json, str], Awaitable[dict[str, Any]]]


class WebApi:
    """Answers the pages; `take` is what is done with an event."""

    def __init__(
        self,
        host: ConnectorHost,
        sessions: BrowserSessions,
        shelf: ConversationCache,
        live: Live,
        pushing: Pushing,
        take: Take,
    ) -> None:
        self._host = host
        self._sessions = sessions
        self._shelf = shelf
        self._live = live
        self._pushing = pushing
        self._take = take
        self._at_once = AtOnce(AT_ONCE)

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """All that is answered, each behind the guard."""
        site = Site()
        get: dict[str, Handler] = {
            **dict.fromkeys(site.paths, site.handle),
            "/home": home.leads(self._host, self._sessions),
            "/api/me": self._me,
            "/api/conversation": self._conversation,
            "/api/conversations": self._find,
            "/api/inbox": self._inbox,
            "/api/notes": self._notes,
            "/api/progress": self._progress,
            "/api/versions": self._versions,
            "/api/live": self._watch,
            **lists.by_get(self._host, self._signed_in),
        }
        post: dict[str, Handler] = {
            "/api/login": self._login,
            "/api/logout": self._logout,
            "/api/do": self._do,
            "/api/notes": self._note,
            "/api/push": self._push,
            **lists.by_post(self._host, self._signed_in),
        }
        free = {*site.paths, "/api/live"}  # an open line has a limit of its own
        get = {path: handler if path in free else self._few(handler) for path, handler in get.items()}
        return (
            *(web.get(path, guard.guarded(handler)) for path, handler in get.items()),
            *(web.post(path, guard.guarded(self._few(handler))) for path, handler in post.items()),
        )

    def _few(self, handler: Handler) -> Handler:
        """So many at once for one person: whoever looks for much leaves room for the others."""

        async def answered(request: web.Request) -> web.StreamResponse:
            user = self._sessions.user(guard.cookie(request))
            with self._at_once.one(user) if user else contextlib.nullcontext():
                return await handler(request)

        return answered

    async def _login(self, request: web.Request) -> web.StreamResponse:
        guard.same_origin(request, self._host.address)
        code = clean(string(await guard.body(request), "code")).strip()
        user = await self._host.log_in(code[:200]) if code else ""
        if not user:
            raise HttpError(401, _USED)
        before = guard.cookie(request)
        id_ = await self._sessions.begin(user, instead=before)
        self._live.close(session=name(before))
        response = guard.answer({"user": user, "home": home.of(self._host, user)})
        response.set_cookie(
            guard.cookie_name(request),
            id_,
            max_age=int(self._sessions.seconds),
            httponly=True,
            samesite="Strict",
            secure=request.headers[hdrs.ORIGIN].startswith("https:"),
            path="/",
        )
        return response

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        guard.same_origin(request, self._host.address)
        id_ = guard.cookie(request)
        await self._sessions.end(id_)
        self._live.close(session=name(id_))
        response = guard.answer({})
        response.del_cookie(guard.cookie_name(request), path="/", httponly=True, samesite="Strict")
        return response

    async def _me(self, request: web.Request) -> web.StreamResponse:
        user = self._signed_in(request)
        last = self._live.last(user)  # first: what is told while we read comes after it
        listed, ref = await self._shelf.list(user), normalize.user_ref(user)
        commands = sorted(self._host.commands(ref), key=lambda one: "chat" not in one.first)
        return guard.answer(
            {
                "user": user,
                "rates": self._host.may_rate(ref),
                "commands": [
                    {"name": one.name, "usage": one.usage, "summary": one.summary} for one in commands
                ],
                "now": int(self._host.clock.now() * 1000),
                "conversations": [asdict(one) for one in listed],
                "label": DEMO_LABEL,
                "n": last,
            }
        )

    async def _conversation(self, request: web.Request) -> web.StreamResponse:
        user = self._signed_in(request)
        id_ = normalize.identifier(request.query.get("id"))
        if not id_:
            raise HttpError(404, "There is no such conversation.")
        conversation, rated = await self._shelf.open(user, id_), PersonLabels({}, complete=False)
        for _ in range(_TRIES):
            last = self._live.last(user)
            rated = await self._rated(user)
            if last == self._live.last(user):  # else what was read may be older than the frames say
                break
        return guard.answer({**conversation.shown(rated), "n": self._live.last(user)})

    async def _find(self, request: web.Request) -> web.StreamResponse:
        user, query = self._signed_in(request), request.query
        text = clean(query.get("text", ""))[:200].strip()
        found, after = await self._shelf.find(user, text, query.get("after", "")[:64]) if text else ((), "")
        return guard.answer({"found": [asdict(one) for one in found], "after": after})

    async def _rated(self, user: str) -> PersonLabels:
        """What the ledger holds of this person: they may rate in other ways and places, too."""
        found = await self._host.inbox(
            normalize.user_ref(user), connector=normalize.CONNECTOR, rated=True, limit=_RATED
        )
        return PersonLabels({one.turn: waiting.said(one) for one in found}, complete=len(found) < _RATED)

    async def _inbox(self, request: web.Request) -> web.StreamResponse:
        user, query = normalize.user_ref(self._signed_in(request)), request.query
        since, queue = query.get("since", ""), query.get("queue", "")
        found = await self._host.inbox(
            user,
            connector=query.get("connector", "")[:64],
            since=float(since) if since.isdecimal() and len(since) < 12 else None,
            text=query.get("text", "")[:200],
            rated=query.get("rated") == "1",
            before=query.get("before", "")[:64],
            limit=PAGE,
            queue=queued.number(queue) if queue else 0,
            unsure=query.get("unsure") == "1",
        )
        page: dict[str, Any] = {"answers": [waiting.shown(one) for one in found], "more": len(found) == PAGE}
        if not query.get("before"):
            page["connectors"] = list(await self._host.inbox_connectors(user))
            page["unsure"] = bool(await self._host.inbox(user, unsure=True, limit=1))
        return guard.answer(page)

    async def _notes(self, request: web.Request) -> web.StreamResponse:
        return await self._noted(self._signed_in(request))

    async def _note(self, request: web.Request) -> web.StreamResponse:
        """Change one line: `do` is `on`, `off`, `delete` or `edit`, the last with `text`."""
        guard.same_origin(request, self._host.address)
        user, body = self._signed_in(request), await guard.body(request)
        do, number = string(body, "do"), string(body, "number")
        if do not in _CHANGES or not number.isdecimal():
            raise HttpError(400, "That is nothing that goodbot's page would send: reload the page.")
        text = redact(clean(string(body, "text")))[: normalize.LONGEST].split() if do == "edit" else []
        return await self._noted(user, do, number, *text)

    async def _noted(self, user: str, *words: str) -> web.StreamResponse:
        try:
            found = await self._host.notes(normalize.user_ref(user), *words)
        except UsageError as error:
            raise HttpError(400, sentence(str(error))) from None
        return guard.answer({"notes": [asdict(one) for one in found]})

    async def _progress(self, request: web.Request) -> web.StreamResponse:
        user = normalize.user_ref(self._signed_in(request), guard.language(request))
        return guard.answer(asdict(await self._host.overview(user)))

    async def _versions(self, request: web.Request) -> web.StreamResponse:
        user = normalize.user_ref(self._signed_in(request), guard.language(request))
        two = [request.query[name] for name in ("first", "second") if name in request.query]
        if len(two) == 1 or not all(one.isascii() and one.isdecimal() and len(one) < 10 for one in two):
            raise HttpError(400, "That is nothing that goodbot's page would ask: reload the page.")
        return guard.answer(asdict(await self._host.versions(user, *map(int, two))))

    async def _push(self, request: web.Request) -> web.StreamResponse:
        guard.same_origin(request, self._host.address)
        user = normalize.user_ref(self._signed_in(request), guard.language(request))
        body, origin = await guard.body(request), request.headers[hdrs.ORIGIN]
        return guard.answer(await self._pushing.change(guard.cookie(request), user, body, origin))

    async def _do(self, request: web.Request) -> web.StreamResponse:
        guard.same_origin(request, self._host.address)
        user = self._signed_in(request)
        return guard.answer(await self._take(user, await guard.body(request), guard.language(request)))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        guard.same_origin(request, self._host.address)
        user, id_ = self._signed_in(request), guard.cookie(request)
        line = web.WebSocketResponse(heartbeat=_PING_SECONDS, max_msg_size=1024, compress=False)
        line.headers.update(guard.HEADERS)
        await line.prepare(request)
        page = self._live.attach(user, name(id_), request.query.get("after", "")[:40])

        async def hear() -> None:
            async for _ in line:  # a page has nothing to say here; this sees it leave
                pass
            page.close()

        hearing = asyncio.create_task(hear(), name="web: a page")
        try:
            with contextlib.suppress(ConnectionError):
                async for frame in page:
                    await line.send_str(frame)
        finally:
            self._live.detach(user, page)
            await end_tasks(hearing)
            await line.close(code=page.code)
        return line

    def _signed_in(self, request: web.Request) -> str:
        """Who asks. Raises HttpError."""
        user = self._sessions.user(guard.cookie(request))
        if not user:
            raise HttpError(401, _SIGN_IN)
        if unquote(request.headers.get(_PAGE_OF, "")) not in ("", user):
            raise HttpError(401, _ANOTHER)
        return user
