# SPDX-License-Identifier: Apache-2.0
"""why: what the version that answers was trained on, and what that changed; of one answer `taught`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from goodbot.api.events import Message
from goodbot.api.learnt import AnsweredTwice, Learnt, account, drifted, shown
from goodbot.api.sentences import Reason, brief, clause, clause_of, sentence, words
from goodbot.api.server import BASE, GenerateRequest
from goodbot.api.texts import commas, day, joined, pauses, reworded, say
from goodbot.api.turns import CHOICE
from goodbot.base.errors import GoodbotError
from goodbot.commands.base import Call, Result, wrong
from goodbot.commands.state import filtered, left_out
from goodbot.commands.taught import taught
from goodbot.commands.whose import back_from, theirs
from goodbot.conversation.notifications import states
from goodbot.conversation.notifications.trainings import counted, kept
from goodbot.store import adapters, comparisons, news, quarantined, runs, settings, shifts

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_PROMPTS = 3
_SECONDS = 60.0
"""For all answers together."""
_TOKENS = 80
_WORDS = ("chip", "comment", "better", "note", "next")
"""What `RunMaterial.words` counts."""


async def why(call: Call) -> Result:
    """Told later: it asks the model, and other commands do not wait for that."""
    return Result(text="", later=partial(_of_one if call.args else _why, call))


async def _of_one(call: Call) -> Result:
    if not call.confidential:
        raise wrong(call.event, "wrong_why")
    found = await taught(call.services, call.user, call.args[0])
    return Result(text=found.told, data=asdict(found), turn=call.args[0])


async def _why(call: Call) -> Result:
    """The facts of the active version, then its answers beside the base model's."""
    call, whose = await theirs(call)
    s, language = call.services, call.user.language
    active = await s.registry.active()
    if active == BASE:
        return await _untrained(call)
    line = await _lineage(s, active)
    off = bool(await s.store.read(lambda db: settings.switch(db, "off")))
    cause, verdict = await s.store.read(lambda db: news.cause(db, line[-1].run or 0))
    own, earlier = [
        await s.store.read(lambda db, ids=[row.run or 0 for row in rows]: news.material(db, ids))
        for rows in (line[-1:], line[:-1])
    ]
    way = " → ".join([say("why_base", language), *(f"v{row.version}" for row in line)])
    lines = [say("why_off" if off else "why_line", language, version=active, line=way)]
    if whose:
        lines.append(joined(language, say("why_alone", language, whose=whose), await back_from(call)))
    if line[-1].tainted:
        lines.append(say("why_replaced", language, why=clause_of(line[-1].tainted, language)))
    lines += _facts(own, cause, verdict, language)
    aside = [asdict(one) for one in await s.store.read(lambda db: quarantined.listed(db, s.pool))]
    lines += [*left_out(aside, language), *(filtered(aside, language) if call.confidential else ())]
    if len(line) > 1:
        lines.append(say("why_earlier", language, learnt=counted(earlier, language)))
    changed, pairs = await what_changed(call, line[-1])
    lines[1:1] = [*filter(None, (account(changed, language), drifted(changed, language)))]
    lines += shown(pairs, say("why_changed", language), f"v{active}", language)
    asked = bool(run := line[-1].run) and await s.store.read(lambda db: comparisons.asks(db, run))
    if not (off or pairs or asked):
        pairs, note = await _compared(call, active)
        lines += shown(pairs, say("why_own", language), f"v{active}", language)
        lines += [note] if note else []
    data: dict[str, Any] = {
        "version": active,
        "off": off,
        "lineage": [row.version for row in line],
        "trained_on": asdict(own),
        "trained_on_before": asdict(earlier),
        "run": line[-1].run,
        "gate": words(*verdict),
        "metrics": dict(line[-1].metrics),
        "learnt": asdict(replace(changed, shifts=changed.named)) if changed else None,
        "comparison": [asdict(pair) for pair in pairs],
    }
    return Result(text="\n".join(lines), data=data)


async def _untrained(call: Call) -> Result:
    """What there is to say while the base model answers: of the version that waits, if there is one."""
    s, language = call.services, call.user.language
    next_ = (await s.scheduler.readiness()).condition
    off = bool(await s.store.read(lambda db: settings.switch(db, "off")))
    told, waiting = await untrained(call)
    waits = next_.for_owners(language) if call.confidential else next_.for_everybody(language)
    lines = [joined(language, told, sentence(waits, language))]
    if waiting is not None and waiting.run:
        run = waiting.run
        made_of = await s.store.read(lambda db: news.material(db, [run]))
        lines += _facts(made_of, *await s.store.read(lambda db: news.cause(db, run)), language)
    lines.append(say("why_react", language))
    data: dict[str, Any] = {
        "version": BASE,
        "lineage": [],
        "comparison": [],
        "off": off,
        "waiting": waiting.version if waiting else None,
    }
    return Result(text="\n".join(lines), data=data)


async def untrained(call: Call) -> tuple[str, adapters.AdapterRow | None]:
    """Why the base model answers, as this person may know it, and the version that waits."""
    s = call.services
    off = bool(await s.store.read(lambda db: settings.switch(db, "off")))
    last = await s.store.read(lambda db: runs.last_runs(db, s.registry.scope, model=s.model.name))
    run = last[0] if last else None
    if run is not None and run.state == "failed" and not call.confidential:
        run = replace(run, ending=())
    now = states.Now(model=s.model.name, active=BASE, off=off)
    return states.why_the_base(await s.registry.rows(), run, now, call.user.language)


async def _lineage(s: Services, version: int) -> list[adapters.AdapterRow]:
    """The version and its ancestors, oldest first; without those that only put what there was on another."""
    rows = {row.version: row for row in await s.registry.rows()}
    line: list[adapters.AdapterRow] = []
    while version in rows:
        if rows[version].run or adapters.SHARED_PART not in rows[version].metrics:
            line.append(rows[version])
        version = rows[version].parent
    return line[::-1]


def _facts(
    own: news.RunMaterial, cause: Sequence[Reason], verdict: Sequence[Reason], language: str
) -> list[str]:
    """What one version was made of. Nobody is named: it may be read by many."""
    since, until = _day(own.since, language), _day(own.until, language)
    when = say("why_on" if since == until else "why_between", language, day=since, since=since, until=until)
    learnt = pauses(language, commas(language, counted(own, language), when), kept(own, language))
    chosen = own.words.get(CHOICE, 0)
    said = [say(f"words_{kind}", language, count=n) for kind in _WORDS if (n := own.words.get(kind, 0))]
    asked = news.was_asked(cause)  # who it was is not for everybody
    why = say("why_asked", language) if asked else words(*cause, language=language)
    lines = [
        say("learnt_from", language, learnt=learnt),
        say("why_chosen", language, count=chosen) if chosen else "",
        say("why_words", language, said=commas(language, *said)) if said else "",
        say("why_then", language, cause=why),
        say("safety_check", language, reason=words(*brief(verdict), language=language)),
    ]
    return [*filter(None, lines)]


def _day(seconds: float, language: str) -> str:
    return day(datetime.fromtimestamp(seconds), language)  # noqa: DTZ006  as the owner's clock shows it


async def what_changed(call: Call, row: adapters.AdapterRow) -> tuple[Learnt | None, list[AnsweredTwice]]:
    """What the version has changed, and the person's own questions that show it; nothing of one that rests
    on what was taken back, or that its owners are asked about: they would know which answer is whose."""
    s, run = call.services, row.run
    if row.tainted or (run and await s.store.read(lambda db: comparisons.asks(db, run))):
        return None, []
    accounts, place = [f"{call.user.connector}:{call.user.id}"], call.event.channel
    return await s.store.read(lambda db: shifts.of(db, run)), await s.store.read(
        lambda db: shifts.examples(db, run, accounts, _PROMPTS, place=place)
    )


async def _compared(call: Call, version: int) -> tuple[list[AnsweredTwice], str]:
    """The person's own last questions, answered twice, and what there is to say of that."""
    s, language = call.services, call.user.language
    prompts = await s.store.read(lambda db: news.own_prompts(db, call.user, call.event.channel, _PROMPTS))
    if not prompts:
        return [], say("why_ask", language)
    if not s.server.healthy():
        return [], say("why_stopped", language)
    pairs: list[AnsweredTwice] = []
    note = ""
    try:
        async with asyncio.timeout(_SECONDS):
            for messages in prompts:
                pairs.append(await _pair(s, messages, version))
    except TimeoutError:
        note = say("why_time", language, count=len(pairs), of=len(prompts))
    except GoodbotError as error:
        note = say("why_not_now", language, why=clause(reworded(error, language)))
    return pairs, note


async def _pair(s: Services, messages: Sequence[Message], version: int) -> AnsweredTwice:
    return AnsweredTwice(
        prompt=str(messages[-1]["content"]),
        before=await _answer(s, messages, BASE),
        after=await _answer(s, messages, version),
    )


async def _answer(s: Services, messages: Sequence[Message], version: int) -> str:
    """What a version says, always the same; people who wait for an answer go first."""
    request = GenerateRequest(messages=messages, max_tokens=_TOKENS, temperature=0.0, seed=0, version=version)
    return (await s.spare.answer(request)).text
