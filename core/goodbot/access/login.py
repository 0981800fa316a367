# SPDX-License-Identifier: Apache-2.0
"""Logging in to the browser with a one-time code, made at the machine or in a private chat.

A code has 128 bits, holds for ten minutes and once; the store has only its hash. Who types
`/rl web` as `telegram:42` is `web:telegram:42` there: one vote, and what the one account may, the
other may, for as long as it may.

Another code, which only the machine makes, lets an owner's page change one setting that decides who may do
what, what is run, or where words go.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
from collections import deque
from dataclasses import replace

import aiosqlite

from goodbot.access import linking
from goodbot.access.authorization import WEB, Authorization, origin
from goodbot.api.commands import Grant
from goodbot.base.clock import Clock
from goodbot.base.errors import RetriableError
from goodbot.config import Grants
from goodbot.config.layout import LOGIN_PAGE
from goodbot.store import Store, codes, settings

OWNER = "owner"
"""Who logs in from the machine itself, unless the config names others."""
SECONDS = 600.0
WRONG_A_MINUTE = 5
"""Wrong codes, of everybody together; more have to wait. A right one never does: it cannot be guessed."""
_LOGIN = "web"
_SETTING = "setting"
_LONGEST = 64


def default_grants(connector: str, grants: Grants) -> Grants:
    """Whoever can log in from the machine owns this goodbot: so does `owner`, if nobody is named."""
    return replace(grants, owners=(OWNER,)) if connector == WEB and not grants.owners else grants


class Logins:
    """Makes codes and takes them back."""

    def __init__(self, *, store: Store, clock: Clock, authorization: Authorization, scope: str) -> None:
        self._store = store
        self._page = store.path.with_name(LOGIN_PAGE)
        self._forget_page()  # of the goodbot before
        self._clock = clock
        self._authorization = authorization
        self._scope = scope
        self._wrong: deque[float] = deque(maxlen=WRONG_A_MINUTE)

    async def make(self, user: str) -> str:
        """A fresh code for a user id of the web connector; the one before it is dead."""
        code = secrets.token_urlsafe(16)
        await self._keep(_LOGIN, f"{WEB}:{user}", _hash(code))
        return code

    async def permit(self, key: str) -> str:
        """A fresh code for a change of the setting `key`; the one before it is dead."""
        code = secrets.token_urlsafe(16)
        await self._keep(_SETTING, key, _hash(code, _SETTING))
        return code

    async def allows(self, key: str, code: str) -> bool:
        """Whether a code was made for this setting and holds; `use_up` ends it.

        Raises RetriableError as `redeem`.
        """
        if not code:
            return False
        now, digest = self._clock.now(), _hash(code[:_LONGEST], _SETTING)
        held = await self._store.read(lambda db: codes.unexpired(db, _SETTING, now))
        if any(one.subject == key and hmac.compare_digest(one.hash, digest) for one in held):
            return True
        self._slow_down()
        return False

    async def use_up(self, key: str) -> None:
        """No code for this setting holds any more."""
        await self._store.write(lambda db: codes.kill(db, _SETTING, key))

    async def _keep(self, purpose: str, subject: str, digest: str) -> None:
        expires = self._clock.now() + SECONDS
        await self._store.write(lambda db: codes.put(db, purpose, subject, digest, expires, ""))

    async def redeem(self, code: str) -> str:
        """The user id that a code was made for, "" for one that does not hold. It is used up.

        Raises RetriableError for a wrong one after too many of them, whoever sent those.
        """
        digest = _hash(code[:_LONGEST])
        if not await self._store.read(lambda db: self._subject(db, digest)):
            self._slow_down()
            return ""

        async def operation(db: aiosqlite.Connection) -> str:
            now = self._clock.now()
            who = await self._subject(db, digest)
            if not who:  # somebody was quicker with the same one
                return ""
            await codes.kill(db, _LOGIN, who)
            if self._authorization.level_of(who) < Grant.TALK:  # it was revoked meanwhile
                return ""
            if origin(who):
                await linking.join(db, self._scope, origin(who), who, now)
            owns = self._authorization.is_owner(who)
            await settings.record(db, who if owns else await settings.alias(db, who), "log in", {}, now)
            return who.partition(":")[2]

        user = await self._store.write(operation)
        await asyncio.to_thread(self._forget_page)
        return user

    async def drop(self) -> None:
        """No code holds any more."""

        async def operation(db: aiosqlite.Connection) -> None:
            await codes.kill_all_for(db, _LOGIN)
            await codes.kill_all_for(db, _SETTING)

        await self._store.write(operation)
        await asyncio.to_thread(self._forget_page)

    def _forget_page(self) -> None:
        """What cannot be removed keeps nobody out, and holds a code that is dead soon."""
        with contextlib.suppress(OSError):
            self._page.unlink(missing_ok=True)

    async def _subject(self, db: aiosqlite.Connection, digest: str) -> str:
        """Whose code this is the hash of; "" for none that holds."""
        held = await codes.unexpired(db, _LOGIN, self._clock.now())
        return next((one.subject for one in held if hmac.compare_digest(one.hash, digest)), "")

    def _slow_down(self) -> None:
        """Count a wrong code. Raises RetriableError where there were too many."""
        now = self._clock.monotonic()
        if len(self._wrong) == WRONG_A_MINUTE and (wait := self._wrong[0] + 60.0 - now) > 0:
            raise RetriableError("too many wrong codes: wait a minute", retry_after=wait)
        self._wrong.append(now)


def _hash(code: str, purpose: str = _LOGIN) -> str:
    return hashlib.sha256(f"{purpose} {code}".encode()).hexdigest()
