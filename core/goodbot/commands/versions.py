# SPDX-License-Identifier: Apache-2.0
"""All versions, for a page: what `adapters`, `why` and `compare` tell an owner."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.events import UserRef
from goodbot.api.learnt import AnsweredTwice, card
from goodbot.api.overview import VersionRatings
from goodbot.api.sentences import Reason, clause, clause_of, ended, sentence, words
from goodbot.api.sentences import version as version_name
from goodbot.api.server import BASE
from goodbot.api.texts import commas, joined, say
from goodbot.api.versions import Versions, VersionsCompared, VersionSeen
from goodbot.base.errors import UsageError
from goodbot.commands.base import Call
from goodbot.commands.measured import measured
from goodbot.commands.overview import in_private, may, rated, reads
from goodbot.commands.places import program
from goodbot.commands.why import what_changed
from goodbot.conversation.notifications import states
from goodbot.conversation.notifications.trainings import counted
from goodbot.learning.adapters import lineage
from goodbot.learning.evaluation import leaderboard
from goodbot.learning.evaluation.blind import summed
from goodbot.store import adapters, comparisons, news, settings, shifts, verdicts
from goodbot.store.adapters import AdapterRow
from goodbot.store.comparisons import Sum, Tally
from goodbot.store.training_pool import Pool

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_PAIRS = 5
_TOLD = 100
"""So many of the newest versions say what they learnt from and what changed: each takes milliseconds."""
_ALL = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """What the store has of all versions, read at once."""

    active: int
    off: bool
    model: str
    language: str
    program: Sequence[str]
    """How goodbot is called at its machine."""
    made_of: Mapping[int, str]
    learnt: Mapping[int, str]
    refused: Mapping[int, tuple[int, tuple[Reason, ...], float]]
    lost: Collection[int]
    """Versions that owners found worse,"""
    less_liked: Mapping[int, str]
    """and those that people liked less, with the figures."""


async def versions(services: Services, user: UserRef, *two: int) -> Versions:
    """The tree, and `two` versions compared, as this owner is told it in private. Raises UsageError."""
    if not may(services, user, "adapters"):
        raise UsageError(say("see_versions", reads(services, user)))
    call, registry = in_private(services, user, "adapters"), services.registry
    active, rows = await registry.active(), await registry.rows()
    pool = services.ab_test.pool
    typed = program(services.config)
    known = await services.store.read(lambda db: _read(db, pool, rows, active, typed, user.language))
    sums = await services.store.read(lambda db: comparisons.sums(db, pool, limit=_ALL))
    closed = [one for one in sums if one.state not in comparisons.OPEN]
    by_base = await services.store.read(lambda db: verdicts.by_base(db, pool.scope))
    liked = {one.version: one for one in await rated(call, active)}
    return Versions(
        answers=ended(
            states.answering(active, off=known.off, begins=True, language=user.language), user.language
        ),
        held=any(row.pinned and row.version == active for row in rows),
        seen=list(_seen(rows, known, liked)),
        compared=await _compared(call, rows, closed, min(two), max(two)) if two else None,
        asks=await _asks(call),
        places=await asyncio.to_thread(leaderboard.places, closed[: leaderboard.NEWEST]),
        bases=leaderboard.bases(by_base),
    )


async def _read(
    db: aiosqlite.Connection,
    pool: Pool,
    rows: Sequence[AdapterRow],
    active: int,
    typed: Sequence[str],
    language: str,
) -> _Known:
    question = await comparisons.current(db, pool)
    asked = question.run if question else None
    made = sorted((row for row in rows if row.run), key=lambda row: row.version)[-_TOLD:]
    return _Known(
        active=active,
        off=bool(await settings.switch(db, "off")),
        model=pool.model,
        language=language,
        program=typed,
        made_of={row.version: counted(await news.material(db, [row.run or 0]), language) for row in made},
        learnt={
            row.version: card(await shifts.of(db, row.run), language) for row in made if row.run != asked
        },
        refused=await verdicts.refused(db, pool),
        lost=await verdicts.worse(db, pool),
        less_liked=await verdicts.less_liked(db, pool, language),
    )


def _seen(
    rows: Sequence[AdapterRow], known: _Known, liked: Mapping[int, VersionRatings]
) -> Iterator[VersionSeen]:
    """The newest first; above each version what was trained on it in vain."""
    line = [row.version for row in lineage.ancestors(rows, known.active)]
    for lead, row in reversed(list(lineage.branches(rows))):
        depth = lead.count("│")
        yield from _in_vain(row.version, depth, known)
        gone = row.erased_at is not None
        usable = not (row.tainted or gone) and row.model == known.model
        state, told = _state(row, known, line)
        yield VersionSeen(
            version=row.version,
            parent=row.parent,
            depth=depth,
            state=state,
            told=joined(known.language, told, say("version_gone", known.language) if gone else ""),
            made_at=row.created_at,
            made_of=known.made_of.get(row.version, ""),
            learnt=known.learnt.get(row.version, ""),
            pinned=row.pinned and not (row.tainted or gone),
            usable=usable,
            export=_export(row.version, known.program) if usable else "",
            liked=liked.get(row.version),
        )
    yield from _in_vain(BASE, 0, known)
    yield VersionSeen(
        version=BASE,
        parent=BASE,
        depth=0,
        state="before" if known.active else "answers",
        told=say("version_base", known.language, model=known.model),
        usable=True,
        liked=liked.get(BASE),
    )


def _export(version: int, typed: Sequence[str]) -> str:
    """A page only names it: no browser gets the weights, and who has an owner's is not at the machine."""
    return shlex.join([*typed, "adapters", "export", str(version), "--out", f"goodbot-v{version}"])


def _in_vain(parent: int, depth: int, known: _Known) -> Iterator[VersionSeen]:
    if parent in known.refused:
        count, ending, at = known.refused[parent]
        language = known.language
        why = words(*ending, language=language)
        if count > 1:
            name = version_name(parent, language)
            why = say("version_refused", language, count=count, name=name, why=why)
        told = sentence(why, language)
        yield VersionSeen(
            version=None, parent=parent, depth=depth + 1, state="refused", told=told, made_at=at
        )


def _state(row: AdapterRow, known: _Known, line: Collection[int]) -> tuple[str, str]:
    """Which of the states of `VersionSeen`, and why."""
    language, why = known.language, _why_back(row, known)
    found = {
        "answers": (row.version == known.active, say("version_paused", language) if known.off else ""),
        "withdrawn": (row.tainted, sentence(clause_of(row.tainted, language), language)),
        "other": (row.model != known.model, say("version_other", language, model=row.model)),
        "tried": (row.waits == adapters.CANARY, say("version_tried", language)),
        "waits": (row.waits, sentence(clause_of(row.waits, language), language)),
        "before": (row.version in line, ""),
        "back": (row.run, why),
        "imported": (True, say("version_resting", language)),
    }
    state = next(state for state, (so, _) in found.items() if so)
    if state == "answers" and row.tainted:
        return state, say("lesson_replaced", language, why=clause(clause_of(row.tainted, language)))
    return state, found[state][1]


def _why_back(row: AdapterRow, known: _Known) -> str:
    if row.version in known.lost:
        return say("version_lost", known.language)
    if figures := known.less_liked.get(row.version):
        return say("version_less_liked", known.language, figures=ended(figures, known.language))
    return say("version_back", known.language)


async def _asks(call: Call) -> int:
    """How many pairs of the open question wait for this person."""
    ab_test = call.services.ab_test
    found = await ab_test.current()
    if found is None or found.state != "asking":
        return 0
    return sum(not pair.choice for pair in await ab_test.pairs(found, person(call.user)))


async def _compared(
    call: Call, rows: Sequence[AdapterRow], sums: Sequence[Sum], first: int, second: int
) -> VersionsCompared:
    """Raises UsageError."""
    known = {row.version: row for row in rows}
    if first == second or not {first, second} <= {BASE, *known}:
        raise UsageError(say("versions_two", call.user.language))
    s, language = call.services, call.user.language
    between = _between(rows, first, second)
    made_of = await s.store.read(lambda db: news.material(db, [row.run for row in between or () if row.run]))
    asked = [one.tally for one in sums if (one.old, one.new) == (first, second)]
    tally = Tally(**{word: sum(getattr(one, word) for one in asked) for word in ("old", "new", "same")})
    learnt, chosen = counted(made_of, language), summed(first, second, tally, language)
    told = [
        _way(rows, first, second, between, language),
        say("version_between", language, learnt=learnt) if made_of.trained else "",
        say("version_chosen", language, chosen=chosen) if asked else "",
    ]
    tainted = any(known[one].tainted for one in (first, second) if one)
    pairs = [] if tainted else await _pairs(call, known[second], first)
    how, features = await s.store.read(lambda db: measured(db, rows, first, second, language))
    return VersionsCompared(
        first=first, second=second, told=[*filter(None, told)], pairs=pairs, measured=how, features=features
    )


async def _pairs(call: Call, second: AdapterRow, first: int) -> list[AnsweredTwice]:
    s, found = call.services, list[AnsweredTwice]()
    if second.parent == first:
        _, found = await what_changed(call, second)
    accounts = await s.ab_test.accounts(person(call.user))
    pool = s.ab_test.pool
    chosen = await s.store.read(
        lambda db: verdicts.answered(db, pool, first, second.version, accounts, _PAIRS)
    )
    return list({pair.prompt: pair for pair in [*chosen, *found]}.values())[:_PAIRS]


def _between(rows: Sequence[AdapterRow], first: int, second: int) -> list[AdapterRow] | None:
    """The versions after the first up to the second; None where that does not come from it."""
    line = list(lineage.ancestors(rows, second))
    behind = [row.version for row in line] + [BASE]
    return line[: behind.index(first)][::-1] if first in behind else None


def _way(
    rows: Sequence[AdapterRow], first: int, second: int, between: Sequence[AdapterRow] | None, language: str
) -> str:
    one, other = version_name(first, language), version_name(second, language, begins=True)
    if between is None:
        own = {row.version for row in lineage.ancestors(rows, first)}
        both = next((row.version for row in lineage.ancestors(rows, second) if row.version in own), BASE)
        return say("version_apart", language, one=one, other=other, both=version_name(both, language))
    if steps := [version_name(row.version, language) for row in between[:-1]]:
        return say("version_by_way", language, one=one, other=other, steps=commas(language, *steps))
    return say("version_from", language, one=one, other=other)
