# SPDX-License-Identifier: Apache-2.0
"""Tells people how many answers wait while no page is open: a number, to browsers whose person wants it.

It goes by the service of the browser's maker (RFC 8030), which is told where to and when, and not what.
Where that service is, the browser says, so nobody's word is taken for it: `goodbot.base.outward` goes
to public addresses alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any

from goodbot.api import texts
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.base.addresses import require_url
from goodbot.base.clock import growing
from goodbot.base.errors import FatalConnectorError, GoodbotError, UsageError
from goodbot.base.outward import Answered, UndeliveredError, post

from goodbot_connectors.kit.fields import Json, string, sub
from goodbot_connectors.web import normalize
from goodbot_connectors.web.live import Live
from goodbot_connectors.web.sessions import BrowserSessions, PushAddress, name

logger = logging.getLogger(__name__)

WORDS = ("push_page_on", "push_page_off", "push_page_what", "push_page_failed", "waiting_page_denied")
"""What the page says of it by itself."""
FEWEST = 5
"""Answers that wait, for a message."""
_MOST = 100
"""So many are counted; more are that many."""
_PAUSE = 86_400.0
"""Between two messages to one person."""
_LOOK_SECONDS = 60.0
SECONDS = 10.0
"""So long a service may take."""
_GONE = (404, 410)
"""What a service answers of a browser that wants nothing any more."""
_LIVES = 43_200
"""Seconds that a service keeps a message for a browser that is off; then its number is old."""
_AT_ONCE = 8
_LENGTH = 512
"""Bytes of each message before it is encrypted."""
_LONGEST = 1000
"""Characters of an endpoint."""
_KEY = "push key"
_NOBODY = "mailto:nobody@goodbot.invalid"
"""Said where our own address is no https: some services want a contact."""


class Pushing:
    """Who wants it, and when they are told."""

    def __init__(self, host: ConnectorHost, sessions: BrowserSessions, live: Live) -> None:
        self._host, self._sessions, self._live = host, sessions, live
        self._wanted = asyncio.Event()
        self._making = asyncio.Lock()
        self._few = asyncio.Semaphore(_AT_ONCE)
        self._later: dict[str, tuple[int, float]] = {}
        """Failed tries, and the moment of `monotonic` before which there is no other, by session."""

    async def change(self, id_: str, user: UserRef, json: Json, contact: str) -> Mapping[str, Any]:
        """Tell this browser from now on, or nothing more, or only look.

        Args:
            id_: Of the browser's session.
            user: Whose browser it is, with the language of the page.
            json: `{"do": "on", "endpoint", "keys": {"p256dh", "auth"}}`, `{"do": "off"}`, `{"do": "look"}`.
            contact: The address at which the page was opened.

        Returns:
            Where it is told then, our key (empty where that cannot be had), and what the page says.

        Raises:
            UsageError: That is no endpoint that anything may be sent to, or no key.
            StoreError: Nothing was stored.
        """
        do, push, key = string(json, "do"), self._sessions.push(id_), await self._public()
        if do == "on" and key and self._host.may_rate(user):
            contact = contact if contact.startswith("https:") else _NOBODY
            await self._sessions.set_push(id_, _address(json, user.language, contact))
            self._wanted.set()
        elif do == "off" and push:
            await self._sessions.change_push({name(id_): (push, None)})
        elif do not in ("off", "look"):
            raise UsageError(normalize.MALFORMED)
        now, catalogue = self._sessions.push(id_), texts.catalogue(user.language or texts.ENGLISH)
        words = {text.rpartition("_")[2]: catalogue[text] for text in WORDS}
        return {"key": key, "endpoint": now.endpoint if now else "", "words": words}

    async def loop(self) -> None:
        """Look again and again while anybody wants it, until cancelled."""
        while True:
            if not self._sessions.pushed():
                self._wanted.clear()
                await self._wanted.wait()
            await self._host.clock.sleep(_LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Tell all who are due."""
        if not _installed():
            return
        people: dict[str, dict[str, PushAddress]] = {}
        pushed = self._sessions.pushed()
        self._later = {digest: at for digest, at in self._later.items() if digest in pushed}
        for digest, one in pushed.items():
            if one.push:
                people.setdefault(one.user, {})[digest] = one.push
        await asyncio.gather(*(self._due(user, pushes) for user, pushes in people.items()))

    async def _due(self, user: str, pushes: Mapping[str, PushAddress]) -> None:
        try:
            async with self._few:
                await self._look_at(user, pushes)
        except GoodbotError as error:
            logger.warning("web: somebody is not told how many answers wait: %s", error)

    async def _look_at(self, user: str, pushes: Mapping[str, PushAddress]) -> None:
        """Tell one person, where they are due: only browsers without an open page, which tells itself.

        Raises StoreError.
        """
        now, moment = self._host.clock.now(), self._host.clock.monotonic()
        # One from later was told before our clock was set back.
        last = max((one.told for one in pushes.values() if one.told <= now), default=0.0)
        if last and now < last + _PAUSE:
            return
        due = {
            digest: one
            for digest, one in pushes.items()
            if not self._live.is_open(digest) and self._later.get(digest, (0, moment))[1] <= moment
        }
        if not due or not self._host.may_rate(normalize.user_ref(user)):
            return
        found = await self._host.inbox(normalize.user_ref(user), limit=_MOST)
        if len(found) < FEWEST or max(one.created_at for one in found) <= last:
            return  # of the same ones nobody is told twice
        changes: dict[str, tuple[PushAddress, PushAddress | None]] = {}
        for digest, one in due.items():
            status = await self._send(digest, one, len(found))
            if 200 <= status < 300:
                changes[digest] = one, replace(one, told=now)
            elif status in _GONE:
                changes[digest] = one, None
        await self._sessions.change_push(changes)

    async def _send(self, digest: str, push: PushAddress, count: int) -> int:
        """Send one message; the status of the answer, 0 for none. What is not taken is tried again later.

        Raises StoreError.
        """
        from goodbot_connectors.web import push_message

        told = texts.say("waiting_told", push.language, count=count)
        own, now = await self._own(), self._host.clock.now()
        headers = {
            "Authorization": push_message.signed(own, push.endpoint, now=now, contact=push.contact),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "User-Agent": "goodbot",
            "TTL": str(_LIVES),
            "Topic": "waiting",  # a later one takes the place of one that has not come yet
        }
        plain = json.dumps({"told": told}).encode().ljust(_LENGTH)  # its length tells nothing of it
        body = push_message.encrypted(plain, push.key, push.secret)
        try:
            answer = await post(push.endpoint, body, headers, seconds=SECONDS)
        except (UndeliveredError, FatalConnectorError) as error:
            answer, why = Answered(status=0), str(error)
        else:
            why = f"it answers {answer.status}"
        self._hold(digest, answer)
        if not 200 <= answer.status < 300:
            logger.info("web: a browser's service has not taken a message: %s", why)
        return answer.status

    def _hold(self, digest: str, answer: Answered) -> None:
        """Send nothing there for a while, also where that cannot be stored."""
        tries, again = self._later.get(digest, (0, 0.0))[0], answer.retry_after
        wait = growing(tries, first=_LOOK_SECONDS, most=_PAUSE)
        if 200 <= answer.status < 300:
            tries, wait = -1, _PAUSE
        elif again.isascii() and again.isdecimal():
            wait = min(max(wait, float(again)), _PAUSE)
        self._later[digest] = tries + 1, self._host.clock.monotonic() + wait

    async def _public(self) -> str:
        """The key that a browser is given; empty where the library is not installed. Raises StoreError."""
        if not _installed():
            return ""
        from goodbot_connectors.web import push_message

        return push_message.public(await self._own())

    async def _own(self) -> str:
        """Our key, made once; it is in no backup, as sessions are in none. Raises StoreError."""
        from goodbot_connectors.web import push_message

        async with self._making:
            own = await self._host.get(_KEY)
            if not own:
                own = push_message.made()
                await self._host.set(_KEY, own)
            return own


@cache
def _installed() -> bool:
    return find_spec("cryptography") is not None


def _address(json: Json, language: str, contact: str) -> PushAddress:
    """Raises UsageError."""
    from goodbot_connectors.web import push_message

    endpoint, keys = string(json, "endpoint"), sub(json, "keys")
    key, secret = string(keys, "p256dh")[:200], string(keys, "auth")[:200]
    try:
        if len(endpoint) > _LONGEST or not (endpoint.isascii() and endpoint.isprintable()):
            raise ValueError(endpoint)
        require_url(endpoint, local=False)
        push_message.require_keys(key, secret)
    except ValueError:
        raise UsageError(normalize.MALFORMED) from None
    return PushAddress(endpoint=endpoint, key=key, secret=secret, language=language, contact=contact)
