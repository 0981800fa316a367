# SPDX-License-Identifier: Apache-2.0
"""Which notes a round teaches, on which answers, on which questions each is tried without, and which are
compared with the ratings of whoever asked for them.

A note steers prompts of whoever it speaks for, and so does what is learnt of it: it is taught on answers to
them that they have rated, at most with the weight of their ratings, and inside their share of the round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.events import ChannelRef, UserRef
from goodbot.api.labels import majority
from goodbot.api.manners import formed
from goodbot.api.noted import with_line
from goodbot.api.turns import Turn
from goodbot.learning.core import Core
from goodbot.learning.training import claims
from goodbot.store import distilled, people, progress, turns
from goodbot.store.notes import Note
from goodbot.store.runs import RunItem

TRIED = 4
"""Notes of one round that are tried, those first that were taught on the most answers."""
_PROMPTS = 32
"""Questions that one is tried on, at most."""
_LOOKED_AT = 200


class NoteLines(Protocol):
    """The notes that answers follow, as `goodbot.conversation.notes` keeps them."""

    async def chosen(self, db: aiosqlite.Connection, channel: ChannelRef, talker: UserRef) -> list[Note]:
        """Those that an answer to somebody there follows, the most important first."""
        ...

    async def of_person(self, db: aiosqlite.Connection, who: str) -> list[Note]:
        """Those of a person, of all their linked accounts."""
        ...

    async def follows(self, db: aiosqlite.Connection) -> bool:
        """Whether the model is asked to follow any."""
        ...

    def told(self, texts: Sequence[str]) -> str:
        """What a prompt says of these; empty: nothing."""
        ...


async def claim(
    db: aiosqlite.Connection, core: Core, lines: NoteLines, run: int, items: Sequence[RunItem]
) -> tuple[RunItem, ...]:
    """The items of a run that has just claimed them, with the notes that it teaches, and their weights."""
    of = await _followed(db, core, lines, items)
    rests = await distilled.rests(db, core.pool, run, (note for notes in of.values() for note in notes))
    found = _noted(core, items, of, {id_: set(ratings.values()) for id_, ratings in rests.items()})
    used = {id_ for item in found for id_ in item.notes}
    await distilled.claim(db, run, {id_: rests[id_].keys() for id_ in sorted(used)})
    await progress.weigh(db, run, found)
    return found


async def expected(
    db: aiosqlite.Connection, core: Core, lines: NoteLines, items: Sequence[RunItem]
) -> tuple[RunItem, ...]:
    """The items with the notes that a run on them would teach, at most."""
    of = await _followed(db, core, lines, items)
    return _noted(core, items, of, {note.id: {""} for notes in of.values() for note in notes})


def _noted(
    core: Core,
    items: Sequence[RunItem],
    of: Mapping[str, Sequence[Note]],
    whose: Mapping[int, Collection[str]],
) -> tuple[RunItem, ...]:
    """With those of the notes that are anybody's."""
    taught = {turn: [note.id for note in notes if note.id in whose] for turn, notes in of.items()}
    training = core.config.training
    usual = training.min_ratings - training.held_out
    return claims.noted(items, taught, whose, rater_share=training.rater_share, round_size=usual)


async def _followed(
    db: aiosqlite.Connection, core: Core, lines: NoteLines, items: Sequence[RunItem]
) -> dict[str, list[Note]]:
    """Turn → the notes that its answer follows, of those items that train; of a person's where they rated."""
    trained = {item.turn: item for item in items if item.split == "train" and item.weight}
    followed = _Followed(db, lines)
    of: dict[str, list[Note]] = {}
    for turn in (await turns.some(db, list(trained))).values():
        if not _own(core, turn):
            continue
        rated = await people.identity(db, person(turn.talker)) in trained[turn.id].labels
        chosen = await followed.of(turn)
        of[turn.id] = [note for note in chosen if rated or note.scope != "person"]
    return of


async def told(
    db: aiosqlite.Connection, lines: NoteLines | None, items: Sequence[RunItem]
) -> dict[str, dict[str, Any]]:
    """Turn → what a prompt says of its notes that are there still, and what that weighs."""
    if lines is None:
        return {}
    texts = await distilled.texts(db, (id_ for item in items for id_ in item.notes))
    said = [(item, lines.told([texts[id_] for id_ in item.notes if id_ in texts])) for item in items]
    return {item.turn: {"text": line, "weight": item.note_weight} for item, line in said if line}


async def tried(
    db: aiosqlite.Connection, core: Core, lines: NoteLines | None, run: int, items: Sequence[RunItem]
) -> list[dict[str, Any]]:
    """What a job says of each note that is tried: its number, and questions with and without it."""
    if lines is None:
        return []
    most = Counter(id_ for item in items for id_ in item.notes).most_common(TRIED)
    found: dict[int, list[dict[str, Any]]] = {id_: [] for id_, _ in most}
    followed = _Followed(db, lines)
    for turn in await _questions(db, core, run, items):
        chosen = await followed.of(turn)
        for note in chosen:
            trial = _trial(lines, turn, chosen, note)
            asks = bool(trial["messages"])  # an imported one may hold no word
            if asks and len(found.get(note.id, [0] * _PROMPTS)) < _PROMPTS:
                found[note.id].append(trial)
    return [{"id": id_, "prompts": prompts} for id_, prompts in found.items() if prompts]


async def compared(
    db: aiosqlite.Connection, core: Core, lines: NoteLines | None, items: Sequence[RunItem]
) -> list[dict[str, Any]]:
    """What a job says of each note that somebody made in this round: its number, what a prompt says that has
    no other, and which of their answers they called good, and bad.

    A note is compared once, with the ratings among which it was made: later answers follow it. Nothing
    where the answers are read elsewhere.
    """
    if lines is None or core.backend.remote or not await lines.follows(db):
        return []
    rated: defaultdict[str, dict[str, bool | None]] = defaultdict(dict)
    fresh = [item.turn for item in items if not item.replayed]
    for item in items:
        if item.split == "train" and item.weight and not item.replayed:
            for rater, opinion in item.labels.items():
                rated[rater][item.turn] = majority([opinion])
    found: list[dict[str, Any]] = []
    for rater, opinions in sorted(rated.items()):
        own = [note for note in await lines.of_person(db, rater) if note.in_use and not note.edited]
        made = await distilled.made_of(db, {note.id: note.ratings for note in own}, fresh)
        good, bad = ([turn for turn, one in opinions.items() if one is liked] for liked in (True, False))
        found += [
            {"id": note.id, "text": lines.told([note.text]), "good": good, "bad": bad}
            for note in sorted(own, key=lambda note: -note.said_last)
            if note.id in made
        ]
    return found


async def _questions(db: aiosqlite.Connection, core: Core, run: int, items: Sequence[RunItem]) -> list[Turn]:
    """What notes are tried with: what is held out, then what the same people asked and nobody rated."""
    taught = await turns.some(db, [item.turn for item in items if item.notes])
    persons = {person(turn.talker) for turn in taught.values()}
    asked = [item.turn for item in items if item.split == "held_out"]
    for more in (await distilled.asked_by(db, core.pool, run, persons, _LOOKED_AT)).values():
        asked += more
    stored = await turns.some(db, asked)
    return [stored[id_] for id_ in dict.fromkeys(asked) if id_ in stored and _own(core, stored[id_])]


def _trial(lines: NoteLines, turn: Turn, chosen: Sequence[Note], note: Note) -> dict[str, Any]:
    def said(notes: Iterable[Note]) -> str:
        return lines.told([one.text for one in notes])

    return {
        "messages": with_line(formed(turn.messages), ""),
        "with": said(chosen),
        "without": said(one for one in chosen if one is not note),
    }


def _own(core: Core, turn: Turn) -> bool:
    """Whether it is an answer of this model to somebody who asked here."""
    return turn.origin == "goodbot" and turn.model == core.pool.model and not turn.answered_by


class _Followed:
    """The notes that answers follow, looked up once for each person and place."""

    def __init__(self, db: aiosqlite.Connection, lines: NoteLines) -> None:
        self._db, self._lines = db, lines
        self._known: dict[tuple[str, str, str], list[Note]] = {}

    async def of(self, turn: Turn) -> list[Note]:
        channel = turn.channel
        key = (person(turn.talker), channel.account, channel.id)
        if key not in self._known:
            self._known[key] = await self._lines.chosen(self._db, channel, turn.talker)
        return self._known[key]
