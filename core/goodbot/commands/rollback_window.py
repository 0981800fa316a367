# SPDX-License-Identifier: Apache-2.0
"""rollback since, all, answers, person: leave ratings out, and what was learnt from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import aiosqlite

from goodbot.access.authorization import person
from goodbot.base.errors import UsageError
from goodbot.base.suggest import version_name
from goodbot.commands import audit, confirm
from goodbot.commands.base import Call, Result
from goodbot.store import (
    adapters,
    distilled,
    judgements,
    ledger,
    people,
    raters,
    rollback_window,
    settings,
    turns,
    words,
)

_TAINT = "ratings that it was trained on do not count any more"
_RESET = "`rollback all` has withdrawn all there were"
_USAGE = (
    "say since when: `rollback since 2026-11-21`, or with a time, `2026-11-21T18:30`; "
    "`rollback since never` lets them count again"
)
_ANSWERS = (
    "say which answers: `rollback answers ID ID`; `history --json` and the page “Ratings” know their ids; "
    "`rollback answers ID never` lets what was said of one count again"
)
_IN_TIME = (
    "The rest is left out for another reason: `rollback since never` lets all of a time count again, "
    "`rollback person CONNECTOR:ID never` what one person said."
)

_PERSON = (
    "say whose: `rollback person CONNECTOR:ID`, see `people`; `rollback person CONNECTOR:ID never` lets what "
    "they said count again"
)


async def since(call: Call, words: tuple[str, ...]) -> Result:
    """Quarantine the ratings received since `words`, a date in the owner's time zone."""
    if words == ("never",):
        return await _lift(call)
    sure = words[-1:] == ("yes",)
    when = " ".join(words[:-1] if sure else words)
    start = _time(call, when)
    what = f"rollback since {start}"
    if not confirm.agreed(call, what, sure=sure):
        return confirm.ask(
            call,
            what,
            f"This leaves out all ratings that were received since {_told(start)}, and "
            "withdraws every version that learnt from one.",
            command=f"rollback since {when} yes",
            label="Yes, leave them out",
        )
    return await _quarantine(call, start, f"since {_told(start)} ")


async def reset(call: Call) -> Result:
    """Begin anew: the base model, and none of the ratings so far."""
    if call.args not in ((), ("yes",)):
        raise UsageError("say `rollback all`")
    sure = bool(call.args)
    if not confirm.agreed(call, "reset", sure=sure, programs=True):
        return confirm.ask(
            call,
            "reset",
            "This withdraws every version, imported ones too, so that the base model "
            "answers, and leaves out all ratings so far. Nothing is deleted.",
            command="rollback all yes",
            label="Yes, begin anew",
        )
    return await _quarantine(call, 0.0, "", everything=True)


async def answers(call: Call, words: tuple[str, ...]) -> Result:
    """Leave out what was said of single answers so far; with `never` it counts again."""
    sure, again = words[-1:] == ("yes",), words[-1:] == ("never",)
    ids = words[:-1] if sure or again else words
    if not ids:
        raise UsageError(_ANSWERS)
    what = f"rollback answers {' '.join(ids)}"
    if not again and not confirm.agreed(call, what, sure=sure):
        return confirm.ask(
            call,
            what,
            f"This leaves out all that was said of {_counted(len(ids), 'answer')}, and withdraws every "
            "version that learnt from it.",
            command=f"{what} yes",
            label="Yes, leave them out",
        )
    return await leave_out(call, ids, again=again)


async def whose(call: Call, words: tuple[str, ...]) -> Result:
    """Leave out what one person has said so far, from all of their accounts; with `never` it counts again."""
    sure, again = words[1:] == ("yes",), words[1:] == ("never",)
    if not words or (words[1:] and not (sure or again)):
        raise UsageError(_PERSON)
    who = words[0]

    async def operation(db: aiosqlite.Connection) -> tuple[list[str], int]:
        accounts = await people.accounts(db, who)
        return accounts, len(await raters.rated(db, accounts))

    accounts, rated = await call.services.store.read(operation)
    if not rated:
        raise UsageError(f"{who[:200]} has rated no answer that is kept: see `people`")
    what = f"rollback person {who}"
    if not again and not confirm.agreed(call, what, sure=sure):
        return confirm.ask(
            call,
            what,
            f"{who} rated {_counted(rated, 'answer')}. This leaves out all that they said of "
            f"{'it' if rated == 1 else 'them'}, and withdraws every version that learnt from it.",
            command=f"{what} yes",
            label="Yes, leave it out",
        )
    return await _leave_out_person(call, accounts, again=again)


async def _leave_out_person(call: Call, accounts: Sequence[str], *, again: bool) -> Result:
    s = call.services

    async def operation(db: aiosqlite.Connection) -> tuple[int, int, list[int]]:
        if again:
            await rollback_window.take_in_person(db, accounts)
        else:
            await rollback_window.leave_out_person(db, accounts, person(call.user), s.clock.now())
        said = await rollback_window.said(db, accounts)
        changes = [await ledger.refold(db, turn, rater) for turn, rater in said]
        ids = list(dict.fromkeys(turn for turn, _ in said))
        tainted = await _tainted(call, db, ids)
        return sum(change is not None for change in changes), len(ids), tainted

    return await _told_of(call, *await s.store.write(operation), again=again)


async def _tainted(call: Call, db: aiosqlite.Connection, ids: Sequence[str]) -> list[int]:
    """The versions that learnt from one of these answers, or from what one of them was credited to."""
    tainted: set[int] = set()
    for turn in ids:
        for one in (turn, *await judgements.credited(db, turn)):
            tainted.update(await adapters.taint(db, call.services.registry.scope, one, _TAINT))
    return sorted(tainted)


async def leave_out(call: Call, ids: Sequence[str], *, again: bool = False) -> Result:
    """What was said of these answers counts no more, or `again`; the trail has a row for each."""
    s, ids = call.services, list(dict.fromkeys(ids))

    async def operation(db: aiosqlite.Connection) -> tuple[int, int, list[int]]:
        if missing := await turns.missing(db, ids):
            raise UsageError(f"there is no answer {min(missing)!r}: nothing was changed")
        by, now = person(call.user), s.clock.now()
        if again:
            await rollback_window.take_in(db, ids)
        else:
            await rollback_window.leave_out(db, ids, by, now)
        heard = await rollback_window.heard(db, ids)
        changes = [await ledger.refold(db, turn, rater) for turn, rater in heard]
        actor = await audit.name(db, call, by)
        for turn in ids:
            await settings.record(db, actor, "take in" if again else "leave out", {"answer": turn}, now)
        tainted = await _tainted(call, db, ids)
        return sum(change is not None for change in changes), len(ids), tainted

    result = await _told_of(call, *await s.store.write(operation), again=again)
    if (
        again
        and not result.data["versions"]
        and await s.store.read(lambda db: rollback_window.in_time(db, ids))
    ):
        return replace(result, text=f"{result.text} {_IN_TIME}")
    return result


async def _told_of(call: Call, count: int, answers: int, versions: list[int], *, again: bool) -> Result:
    """Go back from what learnt from it, and say what has come of it."""
    s = call.services
    await s.scheduler.withdraw_tainted()
    s.scheduler.wake()
    said = f"{_counted(count, 'rating')} of {_counted(answers, 'answer')}"
    data = {"ratings": count, "answers": answers, "versions": versions}
    if again and not versions:
        return Result(text=f"{said} count{'s' if count == 1 else ''} again.", data=data)
    does = f"count{'s' if count == 1 else ''} again" if again else "left out"
    learnt = f" Withdrawn: {', '.join(f'v{version}' for version in versions)}." if versions else ""
    now = version_name(await s.registry.wanted(), begins=True)
    return Result(text=f"{said} {does}.{learnt} {now} answers.", data=data)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


async def _quarantine(call: Call, start: float, since: str, *, everything: bool = False) -> Result:
    s = call.services

    async def operation(db: aiosqlite.Connection) -> tuple[int, list[int]]:
        count = await rollback_window.add(db, start, person(call.user), s.clock.now())
        tainted: set[int] = set()
        for turn, rater in await rollback_window.covered(db):
            if await ledger.refold(db, turn, rater):
                tainted.update(await adapters.taint(db, s.registry.scope, turn, _TAINT))
        # What was said may lie in it, and the rating outside; what was judged is no rating.
        said = [*await words.taught(db), *await judgements.taught(db), *await distilled.rated(db)]
        for turn in dict.fromkeys(said):
            tainted.update(await adapters.taint(db, s.registry.scope, turn, _TAINT))
        if everything:
            tainted.update(await adapters.mark(db, s.registry.scope, (), _RESET, everything=True))
        return count, sorted(tainted)

    await s.scheduler.stop()
    before = await s.registry.active()
    count, versions = await s.store.write(operation)
    await s.scheduler.withdraw_tainted()
    s.scheduler.wake()
    active = await s.registry.active()
    which = ", ".join(f"v{version}" for version in versions)
    none = "there was no version" if everything else "no version had learnt from them"
    learnt = f"withdrawn: {which}" if versions else none
    now = await s.registry.wanted()  # while it is off the base model, whatever the pointer says
    return Result(
        text=f"{_counted(count, 'rating')} {since}left out; {learnt}. "
        f"{version_name(now, begins=True)} answers. `rollback since never` lets them count again.",
        data={"ratings": count, "versions": versions, "version": active, "previous": before},
    )


async def _lift(call: Call) -> Result:
    s = call.services

    async def operation(db: aiosqlite.Connection) -> int:
        covered = await rollback_window.covered(db)
        count = await rollback_window.lift(db)
        for turn, rater in covered:
            if await ledger.refold(db, turn, rater):
                await adapters.taint(db, s.registry.scope, turn, _TAINT)
        return count

    count = await s.store.write(operation)
    s.scheduler.wake()
    return Result(
        text="1 rating that was left out counts again; it trains in the next round."
        if count == 1
        else f"{count} ratings that were left out count again; they train in the next rounds.",
        data={"ratings": count},
    )


def _time(call: Call, text: str) -> float:
    """Seconds since the epoch. Raises UsageError."""
    try:
        start = datetime.fromisoformat(text).timestamp()  # without a zone: the owner's own
    except (ValueError, OverflowError, OSError):
        start = -1.0
    if start < 0:
        raise UsageError(_USAGE)
    if start > call.services.clock.now():
        raise UsageError(f"{text} lies in the future: {_USAGE}")
    return start


def _told(start: float) -> str:
    local = datetime.fromtimestamp(start, UTC).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")
