# SPDX-License-Identifier: Apache-2.0
"""Which threads we take part in, and what we said last there: Slack's events do not tell.

A message in a thread names the thread's root, never the message that it answers. So a reply to us
without a mention is known only by what is remembered here; it outlives a restart, newest first.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import cast

from goodbot_connectors.kit.fields import as_json, string
from goodbot_connectors.kit.lru import Recent, forget

KEY = "threads"
_MOST = 300
_MESSAGES = 3000


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread of ours: our newest message there, and our newest answer, by `ts`."""

    channel: str
    root: str
    message: str
    answer: str = ""
    asker: str = ""
    """Who wrote the message that it began with, and with whom it is forgotten; empty: that is not known."""


class Threads:
    """The threads where we spoke lately. Only ids are kept."""

    def __init__(self) -> None:
        self._threads: OrderedDict[tuple[str, str], Thread] = OrderedDict()
        self._roots: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._askers: Recent[tuple[str, str], str] = Recent()

    def began(self, channel: str, root: str, asker: str) -> None:
        """Somebody has written the message that a thread begins with."""
        if asker:
            self._askers[channel, root] = asker

    def note(self, channel: str, root: str, message: str, *, answer: bool) -> bool:
        """We have sent a message; True when that is worth storing."""
        self._roots[channel, message] = root
        while len(self._roots) > _MESSAGES:
            self._roots.popitem(last=False)
        if not root:
            return False
        known = self._threads.pop((channel, root), None)
        kept = message if answer else known.answer if known else ""
        asker = self._askers.get((channel, root), known.asker if known else "")
        self._threads[channel, root] = Thread(channel, root, message, kept, asker)
        while len(self._threads) > _MOST:
            self._threads.popitem(last=False)
        return True

    def ours(self, channel: str, root: str) -> str:
        """Our newest message in a thread; empty where we never spoke."""
        thread = self._threads.get((channel, root))
        return thread.message if thread else ""

    def answer(self, channel: str, root: str = "") -> str:
        """Our newest answer in a thread, or without one in the whole channel; empty for none."""
        if root:
            thread = self._threads.get((channel, root))
            return thread.answer if thread else ""
        found = (t.answer for t in reversed(self._threads.values()) if t.channel == channel)
        return next((answer for answer in found if answer), "")

    def newest(self) -> list[Thread]:
        """All that are known, the last used first."""
        return list(reversed(self._threads.values()))

    def root(self, channel: str, message: str) -> str:
        """The thread where a message of ours stands; empty when it is none or forgotten."""
        return self._roots.get((channel, message), "")

    def drop(self, channel: str) -> None:
        """Forget a channel and its threads."""
        for known in (self._threads, self._roots, self._askers):
            for place in [place for place in known if place[0] == channel]:
                del known[place]

    def forget(self, user: str) -> None:
        """Forget the threads that somebody began: each is named by a message of theirs.

        Also those of shared channels of which nobody knows who began them, as after a crash.
        """
        for place, thread in list(self._threads.items()):
            asker = self._askers.get(place, thread.asker)
            if asker == user or not (asker or thread.channel.startswith("D")):
                del self._threads[place]
        forget(user, self._askers)
        for place, root in list(self._roots.items()):
            if root and (place[0], root) not in self._threads:
                del self._roots[place]

    def dump(self) -> str:
        """What outlives a restart, as JSON; empty for nothing."""
        return json.dumps([asdict(thread) for thread in self._threads.values()]) if self._threads else ""

    def load(self, text: str | None) -> None:
        """Take up what `dump` wrote; anything else is left out."""
        try:
            rows: object = json.loads(text or "[]")
        except ValueError:
            return
        for row in map(as_json, cast("list[object]", rows) if isinstance(rows, list) else []):
            thread = Thread(*(string(row, name) for name in Thread.__dataclass_fields__))
            self._threads[thread.channel, thread.root] = thread
            for message in filter(None, (thread.answer, thread.message)):
                self._roots[thread.channel, message] = thread.root
