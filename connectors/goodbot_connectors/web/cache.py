# SPDX-License-Identifier: Apache-2.0
"""The conversations of each person, kept over a restart as values of the connector.

A person's values are named by a random alias, so that what is left after a `forget me` names nobody.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodbot.api.connector import ConnectorHost

from goodbot_connectors.kit.fields import as_json, items, string
from goodbot_connectors.web.entries import WRITING, PageConversation

_PEOPLE = "people"
_MOST_OPEN = 500
"""Conversations in memory at a time; the rest is read again."""
_MOST_LISTED = 200
"""Conversations of one person."""
_DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One line in a person's list of conversations. `at` is when it was last touched, in ms."""

    id: str
    title: str
    at: int


class Shelf:
    """Opens, lists and stores conversations. Every method that changes something raises StoreError."""

    def __init__(self, host: ConnectorHost, keep_days: int) -> None:
        self._host = host
        self._keep_ms = keep_days * _DAY_MS
        self._aliases: dict[str, str] = {}
        self._lists: dict[str, list[Listed]] = {}
        self._open: dict[tuple[str, str], PageConversation] = {}
        self._lock = asyncio.Lock()

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
            found = self._open.pop((user, id_), None)
            if found is None:
                found = PageConversation.load(id_, await self._host.get(_page(alias, id_)))
            self._open[user, id_] = found
            for key, old in list(self._open.items())[:-_MOST_OPEN]:
                if not any(entry.state == WRITING for entry in old.entries):  # that is not stored
                    del self._open[key]
            return found

    async def list(self, user: str) -> list[Listed]:
        """A person's conversations, the last touched first; those kept too long are dropped."""
        alias = await self.alias(user)
        async with self._lock:
            lines = await self._lines(user, alias)
            oldest = int(self._host.clock.now() * 1000) - self._keep_ms
            kept = [one for one in lines if one.at >= oldest][:_MOST_LISTED]
            if len(kept) != len(lines):
                await self._drop(user, alias, {one.id for one in lines if one not in kept})
                await self._store_list(user, alias, kept)
            return list(self._lists[user])

    async def save(self, user: str, conversation: PageConversation) -> bool:
        """Store a conversation and its place in the list; whether the list has changed."""
        alias = await self.alias(user)
        await self._host.set(_page(alias, conversation.id), conversation.dump())
        last = max((entry.at for entry in conversation.entries), default=0)
        line = Listed(id=conversation.id, title=conversation.title, at=last)
        async with self._lock:  # not by `list`: it would drop what is old and has just been touched
            lines = await self._lines(user, alias)
            if line in lines:
                return False
            rest = [one for one in lines if one.id != line.id]
            ordered = sorted([line, *rest], key=lambda one: -one.at)
            await self._store_list(user, alias, ordered)
        return True

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

    async def _lines(self, user: str, alias: str) -> list[Listed]:
        if user not in self._lists:
            kept = as_json(json.loads(await self._host.get(_list(alias)) or "{}"))
            self._lists[user] = [
                Listed(id=string(one, "id"), title=string(one, "title"), at=_at(one))
                for one in items(kept, "conversations")
            ]
        return self._lists[user]

    async def _drop(self, user: str, alias: str, ids: set[str]) -> None:
        for id_ in ids:
            await self._host.set(_page(alias, id_), "")
            self._open.pop((user, id_), None)

    async def _store_list(self, user: str, alias: str, lines: list[Listed]) -> None:
        shown = [{"id": one.id, "title": one.title, "at": one.at} for one in lines]
        await self._host.set(_list(alias), json.dumps({"conversations": shown}))
        self._lists[user] = lines


def _page(alias: str, id_: str) -> str:
    return f"page {alias} {id_}"


def _list(alias: str) -> str:
    return f"list {alias}"


def _at(line: Mapping[str, Any]) -> int:
    at = line.get("at")
    return at if isinstance(at, int) else 0
