# SPDX-License-Identifier: Apache-2.0
"""The conversations of each person, kept over a restart as values of the connector.

A person's values are named by a random alias, so that what is left after a `forget me` names nobody.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from goodbot.api.connector import ConnectorHost

from goodbot_connectors.kit.fields import as_json, items, string, strings
from goodbot_connectors.web.entries import PageConversation

_PEOPLE = "people"
_MOST_OPEN = 500
"""Conversations in memory at a time …"""
_MOST_BYTES = 64_000_000
"""… and their bytes; the rest is read again."""
_MOST_LISTED = 200
"""Conversations of one person."""
_MOST_DELETED = 200
"""Conversations of one person of which is known that they were deleted."""
_LOOKED_AT = 50
"""Conversations that one search reads …"""
_LOOKED_AT_BYTES = 8_000_000
"""… and their bytes; the next page goes on behind them."""
_DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One line in a person's list of conversations. `at` is when it was last touched, in ms."""

    id: str
    title: str
    at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Match(Listed):
    """A conversation that was searched for; `excerpt` is empty where only its title matches."""

    excerpt: str


class ConversationCache:
    """Opens, lists and stores conversations. Every method that changes something raises StoreError."""

    def __init__(self, host: ConnectorHost, keep_days: int) -> None:
        self._host = host
        self._keep_ms = keep_days * _DAY_MS
        self._aliases: dict[str, str] = {}
        self._lists: dict[str, list[Listed]] = {}
        self._deleted: dict[str, list[str]] = {}
        self._open: dict[tuple[str, str], PageConversation] = {}
        self._lock = asyncio.Lock()
        self._searching = asyncio.Lock()

    async def load(self) -> None:
        """Read who is known."""
        kept = as_json(json.loads(await self._host.get(_PEOPLE) or "{}"))
        self._aliases = {user: alias for user, alias in kept.items() if isinstance(alias, str)}

    def knows(self, user: str) -> bool:
        """Whether this person has ever been here."""
        return user in self._aliases

    async def alias(self, user: str) -> str:
        """The random name under which this person's things are kept and told apart; made at need."""
        async with self._lock:
            if user not in self._aliases:
                named = {**self._aliases, user: secrets.token_hex(8)}
                await self._host.set(_PEOPLE, json.dumps(named))
                self._aliases = named
            return self._aliases[user]

    async def open(self, user: str, id_: str) -> PageConversation:
        """One conversation of a person; an empty one that is not stored yet if there is none."""
        alias = await self.alias(user)
        async with self._lock:
            await self._lines(user, alias)
            if id_ in self._deleted[user]:
                return PageConversation(id=id_)
            found = self._open.pop((user, id_), None)
            if found is None:
                found = PageConversation.load(id_, await self._host.get(_page(alias, id_)))
            self._open[user, id_] = found
            self._make_room(user)
            return found

    def _make_room(self, user: str) -> None:
        """What was not opened for longest goes, this person's own first, but for what is not stored yet."""
        size = sum(one.size for one in self._open.values())
        if len(self._open) <= _MOST_OPEN and size <= _MOST_BYTES:
            return
        for key in sorted([*self._open][:-1], key=lambda one: one[0] != user):
            if not self._open[key].pending:
                size -= self._open.pop(key).size
                if len(self._open) <= _MOST_OPEN and size <= _MOST_BYTES:
                    return

    async def list(self, user: str) -> list[Listed]:
        """A person's conversations, the last touched first; those kept too long are dropped."""
        alias = await self.alias(user)
        async with self._lock:
            lines = await self._lines(user, alias)
            oldest = int(self._host.clock.now() * 1000) - self._keep_ms if self._host.steady else 0
            kept = [one for one in lines if one.at >= oldest][:_MOST_LISTED]
            if len(kept) != len(lines):
                await self._drop(user, alias, {one.id for one in lines if one not in kept})
                await self._store_list(user, alias, kept)
            return list(self._lists[user])

    async def save(self, user: str, conversation: PageConversation) -> bool:
        """Store a conversation and its place in the list; whether the list has changed."""
        alias = await self.alias(user)
        changes = conversation.changes  # it may change again before these are stored
        await self._host.set(_page(alias, conversation.id), conversation.dump())
        conversation.stored = max(conversation.stored, changes)
        self._make_room(user)
        last = max((entry.at for entry in conversation.entries), default=0)
        line = Listed(id=conversation.id, title=conversation.title, at=last)
        async with self._lock:  # not by `list`: it would drop what is old and has just been touched
            lines = await self._lines(user, alias)
            if conversation.id in self._deleted[user]:  # an answer that was under way
                await self._drop(user, alias, {conversation.id})
                return False
            if line in lines:
                return False
            rest = [one for one in lines if one.id != line.id]
            ordered = sorted([line, *rest], key=lambda one: -one.at)
            await self._store_list(user, alias, ordered)
        return True

    async def rename(self, user: str, id_: str, title: str) -> None:
        """Call a conversation something else; by its first question again where the title is empty."""
        conversation = await self.open(user, id_)
        if conversation.entries:
            conversation.rename(title)
            await self.save(user, conversation)

    async def delete(self, user: str, id_: str, *, comes_back: bool = False) -> None:
        """Take a conversation away, and what still comes for it, until its person writes there again.

        With `comes_back` what comes later is kept.
        """
        alias = await self.alias(user)
        async with self._lock:
            rest = [one for one in await self._lines(user, alias) if one.id != id_]
            others = [one for one in self._deleted[user] if one != id_]
            deleted = self._deleted[user] if comes_back else [*others, id_][-_MOST_DELETED:]
            await self._drop(user, alias, {id_})
            await self._store_list(user, alias, rest, deleted)

    async def revive(self, user: str, id_: str) -> bool:
        """Its person writes in a conversation; whether it had been deleted."""
        alias = await self.alias(user)
        async with self._lock:
            lines = await self._lines(user, alias)
            if id_ not in self._deleted[user]:
                return False
            deleted = [one for one in self._deleted[user] if one != id_]
            await self._store_list(user, alias, lines, deleted)
            return True

    async def find(self, user: str, text: str, after: str = "") -> tuple[list[Match], str]:
        """Conversations that hold this text, whatever its case, the last touched first.

        And behind which one to go on looking; empty where there are no more.
        """
        listed = await self.list(user)
        start = next((n for n, one in enumerate(listed, 1) if one.id == after), 0)
        found: list[Match] = []
        left = _LOOKED_AT_BYTES
        async with self._searching:  # one after the other, beside the event loop
            for number, one in enumerate(listed[start:], start + 1):
                excerpt, size = await self._look(user, one.id, text)
                if excerpt is not None:
                    found.append(Match(id=one.id, title=one.title, at=one.at, excerpt=excerpt))
                left -= size
                if number - start == _LOOKED_AT or left <= 0:
                    return found, one.id if number < len(listed) else ""
        return found, ""

    async def _look(self, user: str, id_: str, text: str) -> tuple[str | None, int]:
        """The excerpt of a conversation that is only read, and its bytes: it takes no place in memory."""
        alias = await self.alias(user)
        there, kept = self._open.get((user, id_)), None
        if there is None:
            kept = await self._host.get(_page(alias, id_))
        else:
            there = replace(there, entries=[*there.entries], said={})  # it may change meanwhile

        def look() -> tuple[str | None, int]:
            one = there or PageConversation.load(id_, kept)
            return one.excerpt(text), one.size

        return await asyncio.to_thread(look)

    async def forget(self, user: str) -> None:
        """Empty all that is kept of a person, and the alias that led there. Idempotent."""
        if user not in self._aliases:
            return
        alias = await self.alias(user)
        async with self._lock:
            listed = {one.id for one in await self._lines(user, alias)}
            await self._drop(user, alias, listed | {id_ for who, id_ in self._open if who == user})
            await self._host.set(_list(alias), "")
            rest = {who: name for who, name in self._aliases.items() if who != user}
            await self._host.set(_PEOPLE, json.dumps(rest))
            self._aliases = rest
            self._lists.pop(user, None)
            self._deleted.pop(user, None)

    async def _lines(self, user: str, alias: str) -> list[Listed]:
        if user not in self._lists:
            kept = as_json(json.loads(await self._host.get(_list(alias)) or "{}"))
            self._lists[user] = [
                Listed(id=string(one, "id"), title=string(one, "title"), at=_at(one))
                for one in items(kept, "conversations")
            ]
            self._deleted[user] = list(strings(kept, "deleted"))
        return self._lists[user]

    async def _drop(self, user: str, alias: str, ids: set[str]) -> None:
        for id_ in ids:
            await self._host.set(_page(alias, id_), "")
            self._open.pop((user, id_), None)

    async def _store_list(
        self, user: str, alias: str, lines: list[Listed], deleted: list[str] | None = None
    ) -> None:
        """What is not stored is not so in memory either: whoever asks for it asks again."""
        shown = [{"id": one.id, "title": one.title, "at": one.at} for one in lines]
        deleted = self._deleted[user] if deleted is None else deleted
        await self._host.set(_list(alias), json.dumps({"conversations": shown, "deleted": deleted}))
        self._lists[user], self._deleted[user] = lines, deleted


def _page(alias: str, id_: str) -> str:
    return f"page {alias} {id_}"


def _list(alias: str) -> str:
    return f"list {alias}"


def _at(line: Mapping[str, Any]) -> int:
    at = line.get("at")
    return at if isinstance(at, int) else 0
