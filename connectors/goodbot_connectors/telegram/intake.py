# SPDX-License-Identifier: Apache-2.0
"""Updates on their way in: normalized, submitted, and what is to be done once they are stored."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import Event

from goodbot_connectors.telegram.fields import as_json, integer, string, sub
from goodbot_connectors.telegram.normalize import Normalizer, TypingPrompt
from goodbot_connectors.telegram.prompts import Prompts
from goodbot_connectors.telegram.update_times import UpdateTimes

_ALBUMS = 100


class Taken(NamedTuple):
    """What a delivery came to, after the commit."""

    events: tuple[Event, ...]
    spare: tuple[str, ...]
    """Callback queries that are no event: their spinners are to be ended."""
    prompts: tuple[TypingPrompt, ...]
    moves: tuple[tuple[int, int], ...]
    """Groups that have become supergroups: old id, new id."""


class Cursor(NamedTuple):
    """How far the updates of a bot account are stored: `ACCOUNT OFFSET TIME`."""

    account: str = ""
    """Empty in what goodbot 0.1.0 has left: `OFFSET TIME`."""
    offset: int | None = None
    """What a poll asks for next; None after a webhook, whose calls confirm one another nothing."""
    since_ms: int = 0
    """The time of the last event, which dates button presses."""

    @classmethod
    def read(cls, text: str, account: str) -> Cursor:
        """What was committed; nothing where that was another account's."""
        *whose, offset, since = (text or " ").split(" ")
        if whose not in ([], [account]):
            return cls(account="".join(whose))
        return cls(account, int(offset) if offset else None, int(since or 0))

    def __str__(self) -> str:
        offset = "" if self.offset is None else self.offset
        return f"{self.account} {offset} {self.since_ms}"


class Intake:
    """Stores updates, from `cursor` on."""

    def __init__(
        self,
        host: ConnectorHost,
        normalizer: Normalizer,
        prompts: Prompts,
        expect: Callable[[dict[str, str]], None],
        cursor: Cursor,
    ) -> None:
        """`expect` is told the callback query of each press, by event, before that is submitted."""
        self._host, self._normalizer, self._prompts = host, normalizer, prompts
        self._expect = expect
        self._account, self._times = cursor.account, UpdateTimes(cursor.since_ms)
        self._albums: dict[str, int] = {}
        self._one_album = asyncio.Lock()

    async def take(self, updates: Sequence[object], offset: int | None = None) -> Taken:
        """Submit the events of some updates, with the `offset` that confirms them to a poll.

        Calls of a webhook come side by side; those with pictures of albums wait for each other.
        Raises StoreError.
        """
        async with self._one_album if any(map(_album, updates)) else contextlib.nullcontext():
            return await self._take(updates, offset)

    async def _take(self, updates: Sequence[object], offset: int | None) -> Taken:
        albums = dict(self._albums)
        events: list[Event] = []
        times, now = self._times.copy(), self._host.clock.now()
        numbered: list[tuple[int, int]] = []
        for update in updates:
            update_id = integer(as_json(update), "update_id") or 0
            if _is_more_of(update, albums):
                continue
            for event in self._normalizer.events(update, times.since(update_id, now)):
                time_ms = times.fitted(update_id, event.order.time_ms)
                event = replace(event, order=event.order._replace(time_ms=time_ms))
                times.note(update_id, time_ms, now)
                numbered.append((update_id, time_ms))
                events.append(self._prompts.read(event, self._normalizer.quoted(update)))
        queries = query_ids(updates)
        known = {event.event_id for event in events}
        self._expect({name: query for name, query in queries.items() if name in known})
        if events:
            cursor = Cursor(self._account, offset, times.latest_ms)
            await self._host.submit(events, cursor=str(cursor))
            for update_id, time_ms in numbered:  # another call may have come between
                self._times.note(update_id, time_ms, now)
        self._albums = dict(list({**self._albums, **albums}.items())[-_ALBUMS:])
        return Taken(
            events=tuple(events),
            spare=tuple(query for name, query in queries.items() if name not in known),
            prompts=tuple(filter(None, map(self._normalizer.prompt, updates))),
            moves=tuple(filter(None, map(migration, updates))),
        )


def next_offset(updates: Iterable[object]) -> int | None:
    """The offset that confirms these updates; None when there is none."""
    ids = (integer(as_json(update), "update_id") for update in updates)
    return max((id_ + 1 for id_ in ids if id_ is not None), default=None)


def query_ids(updates: Iterable[object]) -> dict[str, str]:
    """The callback query of each press, by the id that an event made of it has."""
    return {
        f"{integer(update, 'update_id')}:0": query
        for update in map(as_json, updates)
        if (query := string(sub(update, "callback_query"), "id"))
    }


def migration(update: object) -> tuple[int, int] | None:
    """The old and the new id of a group that has become a supergroup; both chats are told so."""
    message = sub(as_json(update), "message")
    here = integer(sub(message, "chat"), "id")
    old, new = integer(message, "migrate_from_chat_id"), integer(message, "migrate_to_chat_id")
    if here is None or (old is None) == (new is None):
        return None
    return (here, new) if new is not None else (old or 0, here)


def _is_more_of(update: object, albums: dict[str, int]) -> bool:
    """Whether this is another picture of an album, without words: one answer is enough.

    `albums` has the update with which each began, which is no other one when it comes again.
    """
    json = as_json(update)
    album, update_id = _album(update), integer(json, "update_id") or 0
    if not album:
        return False
    first = albums.setdefault(album, update_id)
    return first != update_id and not string(sub(json, "message"), "caption")


def _album(update: object) -> str:
    """The album that a picture belongs to; empty for none."""
    return string(sub(as_json(update), "message"), "media_group_id")
