# SPDX-License-Identifier: Apache-2.0
"""What a page shows of one conversation: entries in their order, and what its person said of them.

Every other platform keeps that itself; a browser keeps nothing, so it is kept here. Pure values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from goodbot.api.events import Button, RatingEvent, RatingKind
from goodbot.api.labels import STARS, is_stars
from goodbot.api.model import DEMO_LABEL
from goodbot.base.text import clean

from goodbot_connectors.kit.fields import Json, as_json, items, string

YOU, BOT, NEWS = "you", "bot", "news"
"""Who speaks in an entry: its person, goodbot in answer, goodbot unasked."""
WAITING = "waiting"
"""State of a question whose answer is to come."""
WRITING = "writing"
"""State of an answer that is not whole; such a one is never stored."""
FAILED = "failed"
"""State of what was not answered, or of an answer that was not finished: `note` says why."""
_AROUND = 40
"""Characters on each side of what was searched for."""
_MOST = 200
"""Entries that are kept of a conversation …"""
_MOST_BYTES = 2_000_000
"""… and bytes: all of it is written anew whenever something is said."""
_ENTRY_BYTES = 1000
"""Of an entry beside its texts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageEntry:
    """One message on a page. `at` is milliseconds since the epoch."""

    id: str
    by: str
    text: str
    at: int
    turn: str = ""
    """The answer that it is; empty where there is nothing to rate."""
    to: str = ""
    """The question that it answers."""
    buttons: tuple[Button, ...] = ()
    state: str = ""
    note: str = ""
    """A word of goodbot's about it, no part of the text."""

    @property
    def size(self) -> int:
        """The most bytes that it takes, in memory and in the store."""
        return _ENTRY_BYTES + _bytes(self.text) + _bytes(self.note)


@dataclass(frozen=True, slots=True)
class PersonLabels:
    """What the ledger holds of a person, by turn; `complete`: they have rated nothing else."""

    labels: Mapping[str, Mapping[str, int]]
    complete: bool

    def over(self, turn: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """What was said of an answer, with its thumb and stars as the ledger has them."""
        if turn not in self.labels and not self.complete:
            return dict(said)
        words = {name: text for name, text in said.items() if name not in ("thumb", "stars")}
        return {**words, **self.labels.get(turn, {})}


@dataclass(kw_only=True, slots=True)
class PageConversation:
    """The newest entries of one conversation, and by answer what its person has said of it."""

    id: str
    entries: list[PageEntry] = field(default_factory=list[PageEntry])
    said: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """By turn: `thumb` (1 or -1), `stars` (1 to 5), `comment` and `better` (their words)."""
    name: str = ""
    """What its person calls it."""
    size: int = field(default=0, init=False, compare=False)
    """The most bytes that all of it takes."""
    changes: int = field(default=0, init=False, compare=False)
    """How often it has changed since it was read …"""
    stored: int = field(default=0, init=False, compare=False)
    """… and how many of these changes the store has."""

    def __post_init__(self) -> None:
        self._grow(sum(entry.size for entry in self.entries) + sum(map(_words, self.said.values())))
        self.changes = 0

    @property
    def pending(self) -> bool:
        """Whether the store lacks something of it."""
        return self.stored < self.changes or any(entry.state == WRITING for entry in self.entries)

    def rename(self, name: str) -> None:
        """Call it something else."""
        self.name = name
        self.changes += 1

    def get(self, id_: str) -> PageEntry | None:
        """The entry of this id."""
        return next((entry for entry in self.entries if entry.id == id_), None)

    def put(self, entry: PageEntry) -> PageEntry:
        """Add an entry, behind what it answers, or change the one that has its id."""
        for number, there in enumerate(self.entries):
            if there.id == entry.id:
                self.entries[number] = entry = replace(entry, at=there.at)
                self._grow(entry.size - there.size)
                return entry
        place = len(self.entries)
        family = [n for n, e in enumerate(self.entries) if entry.to in (e.id, e.to)]
        if entry.to and family:
            place = family[-1] + 1
        self.entries.insert(place, entry)
        self._grow(entry.size)
        return entry

    def ask(self, entry: PageEntry) -> PageEntry:
        """Add a question; where the answer was quicker, in front of it, and as answered."""
        answers = [n for n, e in enumerate(self.entries) if e.to == entry.id]
        if answers:  # the page had not heard that we have the question, and sent it again
            entry = replace(entry, state="")
        self.entries.insert(answers[0] if answers else len(self.entries), entry)
        self._grow(entry.size)
        return entry

    def drop(self, id_: str) -> None:
        """Take an entry away."""
        if (there := self.get(id_)) is not None:
            self.entries.remove(there)
            self._grow(-there.size)

    def _grow(self, by: int) -> None:
        """It takes so many bytes more: what is said of answers that are gone goes, then the oldest do."""
        self.changes += 1
        self.size += by
        while len(self.entries) > _MOST or self.size > _MOST_BYTES:
            if lost := self.said.keys() - {entry.turn for entry in self.entries}:
                self.size -= sum(_words(self.said.pop(turn)) for turn in lost)
            elif len(self.entries) > 1:
                self.size -= self.entries.pop(0).size
            else:
                return

    def rate(self, event: RatingEvent) -> Json:
        """Note what a rating says of its answer; returns all that is said of that one now."""
        before = self.said.pop(event.turn, {})
        said = dict(before)
        if event.kind is RatingKind.RATE and event.value is not None:
            if is_stars(event.source):
                said["stars"] = round((event.value + 1) / 2 * (STARS - 1)) + 1
            else:
                said["thumb"] = 1 if event.value > 0 else -1
        elif event.kind is RatingKind.RETRACT:
            gone = {"": tuple(said), "button": ("thumb",), "stars": ("stars",)}
            for name in gone.get(event.source, ()):
                said.pop(name, None)
        else:
            said["better" if event.kind is RatingKind.BETTER else "comment"] = event.text
        if said:
            self.said[event.turn] = said
        self._grow(_words(said) - _words(before))
        return said

    @property
    def title(self) -> str:
        """What its person calls it, else its first question, cut to a line."""
        first = next((entry.text for entry in self.entries if entry.by == YOU), "")
        line = " ".join((self.name or first).split())
        return line if len(line) <= 60 else f"{line[:59].rstrip()}…"

    def excerpt(self, text: str) -> str | None:
        """Some words around this text in its newest entry that has it, whatever the case; empty where only
        the title has it, None where nothing has."""
        sought = text.casefold()
        for entry in reversed(self.entries):
            words = entry.text.removeprefix(DEMO_LABEL)  # a badge on the page
            for line in words.splitlines() if sought in words.casefold() else ():
                if (at := line.casefold().find(sought)) >= 0:
                    start = max(0, at - _AROUND)
                    end = at + len(text) + _AROUND
                    cut = " ".join(line[start:end].split())
                    return f"{'…' if start else ''}{cut}{'…' if end < len(line) else ''}"
        return "" if sought in self.title.casefold() else None

    def shown(self, rated: PersonLabels | None = None) -> dict[str, Any]:
        """As JSON, for the page; with the ratings that are `rated`."""
        turns = {entry.turn for entry in self.entries if entry.turn}
        said = {turn: words for turn, words in self.said.items() if turn in turns}
        if rated is not None:
            said = {turn: rated.over(turn, self.said.get(turn, {})) for turn in turns}
        return {"id": self.id, "entries": [asdict(entry) for entry in self.entries], "said": said}

    def dump(self) -> str:
        """As text, for the store: without what is being written."""
        kept: dict[str, Any] = {"name": self.name, **self.shown()}
        kept["entries"] = [entry for entry in kept["entries"] if entry["state"] != WRITING]
        return clean(json.dumps(kept, ensure_ascii=False))

    @classmethod
    def load(cls, id_: str, text: str | None) -> PageConversation:
        """What `dump` wrote; an empty one for anything else."""
        kept = _parsed(text)
        said = {turn: dict(as_json(words)) for turn, words in as_json(kept.get("said")).items()}
        entries = list(_entries(items(kept, "entries")))
        return cls(id=id_, entries=entries, said=said, name=string(kept, "name"))


def _bytes(text: str) -> int:
    return 4 * len(text)  # whatever is in it


def _words(said: Mapping[str, Any]) -> int:
    return sum(_bytes(text) for text in said.values() if isinstance(text, str))


def _entries(found: Iterable[Json]) -> Iterable[PageEntry]:
    texts = ("id", "by", "text", "turn", "to", "state", "note")
    for one in found:
        at = one.get("at")
        buttons = tuple(
            Button(action=string(button, "action"), label=string(button, "label"))
            for button in items(one, "buttons")
        )
        words: Mapping[str, str] = {name: string(one, name) for name in texts}
        yield PageEntry(**words, at=at if isinstance(at, int) else 0, buttons=buttons)


def _parsed(text: str | None) -> Json:
    try:
        return as_json(json.loads(text or "{}"))
    except ValueError:
        return {}
