# SPDX-License-Identifier: Apache-2.0
"""rollback since, all, answers, person: leave ratings out, and what was learnt from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.sentences import ended, version
from goodbot.api.texts import commas, joined, pauses, say
from goodbot.commands import audit, confirm
from goodbot.commands.base import Call, Result, wrong
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

_TAINT = "kept_uncounted"
_RESET = "kept_begun_anew"


async def since(call: Call, words: tuple[str, ...]) -> Result:
    """Begin a rollback window: ratings received since `words`, a date in the owner's time zone, are out."""
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
            say("ask_since", call.user.language, day=_told(start)),
            command=f"rollback since {when} yes",
            label=say("button_leave_out", call.user.language),
        )
    return await _window(call, start)


async def reset(call: Call) -> Result:
    """Begin anew: the base model, and none of the ratings so far."""
    if call.args not in ((), ("yes",)):
        raise wrong(call.event, "wrong_rollback_all")
    sure = bool(call.args)
    if not confirm.agreed(call, "reset", sure=sure, programs=True):
        return confirm.ask(
            call,
            "reset",
            say("ask_all", call.user.language),
            command="rollback all yes",
            label=say("button_begin_anew", call.user.language),
        )
    return await _window(call, 0.0, everything=True)


async def answers(call: Call, words: tuple[str, ...]) -> Result:
    """Leave out what was said of single answers so far; with `never` it counts again."""
    sure, again = words[-1:] == ("yes",), words[-1:] == ("never",)
    ids = words[:-1] if sure or again else words
    if not ids:
        raise wrong(call.event, "wrong_answers")
    what = f"rollback answers {' '.join(ids)}"
    if not again and not confirm.agreed(call, what, sure=sure):
        return confirm.ask(
            call,
            what,
            say("ask_answers", call.user.language, count=len(ids)),
            command=f"{what} yes",
            label=say("button_leave_out", call.user.language),
        )
    return await leave_out(call, ids, again=again)


async def whose(call: Call, words: tuple[str, ...]) -> Result:
    """Leave out what one person has said so far, from all of their accounts; with `never` it counts again."""
    sure, again = words[1:] == ("yes",), words[1:] == ("never",)
    if not words or (words[1:] and not (sure or again)):
        raise wrong(call.event, "wrong_whose")
    who = words[0]

    async def operation(db: aiosqlite.Connection) -> tuple[list[str], int]:
        accounts = await people.accounts(db, who)
        return accounts, len(await raters.rated(db, accounts))

    accounts, rated = await call.services.store.read(operation)
    if not rated:
        raise wrong(call.event, "wrong_no_ratings", who=who[:200])
    what = f"rollback person {who}"
    if not again and not confirm.agreed(call, what, sure=sure):
        return confirm.ask(
            call,
            what,
            say("ask_person", call.user.language, who=who, count=rated),
            command=f"{what} yes",
            label=say("button_leave_it", call.user.language),
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
            raise wrong(call.event, "wrong_no_answer", turn=repr(min(missing)))
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
        language = call.user.language
        return replace(result, text=joined(language, result.text, say("rollback_in_time", language)))
    return result


async def _told_of(call: Call, count: int, answers: int, versions: list[int], *, again: bool) -> Result:
    """Go back from what learnt from it, and say what has come of it."""
    s, language = call.services, call.user.language
    await s.scheduler.withdraw_tainted()
    s.scheduler.wake()
    of = say("count_answers", language, answers=answers)
    told = say("out_again" if again else "out_answers", language, count=count, answers=of)
    data = {"ratings": count, "answers": answers, "versions": versions}
    if again and not versions:
        return Result(text=told, data=data)
    learnt = say("out_withdrawn", language, versions=_listed(language, versions)) if versions else ""
    return Result(text=joined(language, told, learnt, await _who_answers(call)), data=data)


def _listed(language: str, versions: Sequence[int]) -> str:
    return commas(language, *(f"v{version}" for version in versions))


async def _who_answers(call: Call) -> str:
    """While goodbot is off the base model, whatever the pointer says."""
    now, language = await call.services.registry.wanted(), call.user.language
    return say("who_answers", language, name=version(now, language, begins=True))


async def _window(call: Call, start: float, *, everything: bool = False) -> Result:
    s, language = call.services, call.user.language

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
    learnt = say("out_no_version" if everything else "out_none_learnt", language)
    if versions:
        learnt = say("out_versions", language, versions=_listed(language, versions))
    ratings = say("count_ratings", language, count=count)
    out = say("out_all" if everything else "out_since", language, ratings=ratings, day=_told(start))
    told = ended(pauses(language, out, learnt), language)
    return Result(
        text=joined(language, told, await _who_answers(call), say("out_never", language)),
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
    return Result(text=say("out_lifted", call.user.language, count=count), data={"ratings": count})


def _time(call: Call, text: str) -> float:
    """Seconds since the epoch. Raises UsageError."""
    try:
        start = datetime.fromisoformat(text).timestamp()  # without a zone: the owner's own
    except (ValueError, OverflowError, OSError):
        start = -1.0
    if start < 0:
        raise wrong(call.event, "wrong_since")
    if start > call.services.clock.now():
        usage = say("wrong_since", call.user.language)
        raise wrong(call.event, "wrong_future", moment=text, usage=usage)
    return start


def _told(start: float) -> str:
    local = datetime.fromtimestamp(start, UTC).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")
