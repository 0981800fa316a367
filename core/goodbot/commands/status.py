# SPDX-License-Identifier: Apache-2.0
"""status, history, plugins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from goodbot.access import pairing
from goodbot.api.events import RatingKind
from goodbot.api.plugins import PluginInfo
from goodbot.api.sentences import brief, clause, clause_of, version, words
from goodbot.api.texts import beside, percent, say
from goodbot.base.busy import TurnedAway
from goodbot.base.clock import ago
from goodbot.commands.base import DETAILS, Call, Result
from goodbot.commands.compare import later
from goodbot.commands.services import Services
from goodbot.commands.state import STOPPED, Status
from goodbot.commands.whose import own_standing
from goodbot.conversation.notifications import changed, states
from goodbot.conversation.notifications.alarms import described
from goodbot.inference.servers.health import Righted
from goodbot.learning.canary import TrialTally
from goodbot.learning.evaluation import report
from goodbot.learning.rating_quality import contradictions
from goodbot.store import adapters, feedback, judgements, quarantined, runs, settings, turns

_SHOWN = 60
_NEWS_SECONDS = 86400.0
_REMARKS = {RatingKind.COMMENT: "reason", RatingKind.BETTER: "better"}


async def status(call: Call) -> Result:
    s = call.services
    question = await s.ab_test.current()
    language = call.user.language
    compared = await report.of(s.store, s.ab_test.pool, question, await later(s, question, language))
    details = DETAILS in call.args
    found = replace(await _now(s, compared, language, details=details), own=await own_standing(call))
    lines = found.for_everybody(language)
    if call.confidential:
        lines = [*found.for_owners(language, details=details), *compared.lines(language)]
    return Result(text="\n".join(lines), data=found.for_programs(language))


async def _now(s: Services, compared: report.Report, language: str, *, details: bool) -> Status:
    condition = (await s.scheduler.readiness()).condition
    active = await s.registry.active()
    last = await s.store.read(lambda db: runs.last_runs(db, s.registry.scope))
    standing, pressure = await s.scheduler.standing(), await s.scheduler.pressure()
    off = bool(await s.store.read(lambda db: settings.switch(db, "off")))
    paused = bool(await s.store.read(lambda db: settings.switch(db, "paused")))
    progress = dict(s.scheduler.progress) if s.scheduler.progress else None
    set_aside = await s.store.read(lambda db: quarantined.listed(db, s.pool))
    rows, now = await s.registry.rows(), states.Now(model=s.model.name, active=active, off=off)
    # While nothing runs, the demonstration model may only stand in for one that nobody has chosen yet.
    chosen = s.config.model.path or s.presence.state != STOPPED
    shown = active if chosen else None
    tainted_by = next((row.tainted for row in rows if row.version == shown), "")
    return Status(
        model=s.model.name if chosen else None,
        backend=s.backend.name,
        version=shown,
        off=off,
        paused=paused,
        tainted=bool(tainted_by),
        tainted_by=tainted_by,
        server=s.presence.state,
        starting=s.presence.starting(language),
        server_trouble=s.server.trouble(),
        proof=s.registry.health.found,
        put_right=_recent(s.registry.health.righted, s.clock.now(), language),
        canary=_tried(await s.canary.standing(), s.registry.share, rows, language, off=off),
        unserved=_unserved(s.registry.model, rows, language),
        ratings=standing.available,
        needed=await s.scheduler.needed(),
        condition=condition,
        next=condition.for_owners(language),
        waiting_for_consent=standing.waiting_for_consent,
        off_policy=standing.off_policy,
        training=progress,
        judged=await _judged(s),
        pressure=pressure.for_owners(language) if pressure else None,
        last_run=await _last_run(s, last[0], rows, now, language, details=details) if last else None,
        tenancy=s.memory.plan,
        waits=words(s.memory.note(), language=language),
        retrying=sorted(s.connectors.retrying),
        connectors={**dict.fromkeys(sorted(s.connectors.running), "running"), **s.connectors.problems},
        clock=[_clock(title, ahead, language) for title, ahead in s.connectors.time.ahead.items()],
        store=s.store.trouble or "ok",
        **_http(s, language),
        **_limits(s, language),
        set_aside=[asdict(one) for one in set_aside],
        reward=s.config.training.reward,
        preset=str(s.config.training.settings.get("preset", "balanced")),
        learning=s.learning or None,
        sampling={**s.sampling.data(), "text": str(s.sampling)},
        thinking=s.thinks,
        alarms=await _alarms(s, language),
        pairing_locked=await s.store.read(lambda db: pairing.locked(db, s.clock.now())),
        **compared.data(),
        **_process(s),
    )


async def _alarms(s: Services, language: str) -> list[dict[str, Any]]:
    found = await s.store.read(lambda db: contradictions.alarmed(db, s.registry.scope))
    return [{**asdict(alarm), "text": described(alarm, language)} for alarm in found]


def _process(s: Services) -> dict[str, Any]:
    """The process that is goodbot: its directory, and since when it runs."""
    found = {"pid": os.getpid(), "uptime": s.clock.now() - s.started_at, "started_at": s.started_at}
    if s.presence.state == STOPPED:
        found = dict.fromkeys(found)
    return {"home": str(s.config.home), **found}


def _limits(s: Services, language: str) -> dict[str, Any]:
    """What is not kept for want of space, and what nobody else tells of those who are let in nowhere."""
    disk = clause(words(s.quotas.no_reserve(), language=language), small=True)
    return {"disk": disk, "strangers": s.quotas.strangers}


def _http(s: Services, language: str) -> dict[str, Any]:
    """Where it is reached by HTTP, and what is wrong there."""
    return {
        "address": s.http.address if s.http.listening else "",
        "moved": s.http.moved(language),
        "turned_away": TurnedAway.total,
        "told_later": TurnedAway.answered.total(),
        "descriptors": s.http.descriptors.trouble,
    }


async def _judged(s: Services) -> dict[str, Any] | None:
    if not (by := s.config.judge.by):
        return None
    return {"by": by, **asdict(await s.store.read(lambda db: judgements.counts(db, s.pool)))}


async def _last_run(
    s: Services,
    run: runs.Run,
    rows: Sequence[adapters.AdapterRow],
    now: states.Now,
    language: str,
    *,
    details: bool,
) -> dict[str, Any]:
    """Its codes, the same in English, and what came of it as it is told here; `short`: its verdict."""
    account = await changed.said(s.store, run, language)
    told = states.of_run(run, rows, now, account, language, details=details)
    short = words(*brief(run.ending), language=language)
    return {**asdict(run), "why": run.why, "reason": run.reason, "told": told, "short": short}


def _clock(title: str, ahead: float, language: str) -> str:
    key = "fault_clock_ahead" if ahead > 0 else "fault_clock_behind"
    return clause(say(key, language, title=title, seconds=round(abs(ahead))), small=True)


def _recent(righted: Righted | None, now: float, language: str) -> str:
    """What was put right within a day, and how long ago; empty: nothing was."""
    if righted is None or ago(righted.at, now) > _NEWS_SECONDS:
        return ""
    minutes = (now - righted.at) / 60
    if minutes < 100:
        return say("put_right_minutes", language, count=f"{minutes:.0f}", what=righted.what)
    return say("put_right_hours", language, count=f"{minutes / 60:.0f}", what=righted.what)


def _tried(
    standing: TrialTally | None,
    share: float,
    rows: Sequence[adapters.AdapterRow],
    language: str,
    *,
    off: bool,
) -> str:
    """How the version is rated that a share of the conversations meets; empty while none is tried."""
    if standing is None or any(row.tainted for row in rows if row.version == standing.trial.version):
        return ""
    if off:
        return say("trial_resumes", language, version=standing.trial.version)
    new, old = standing.new, standing.old
    told = say(
        "trial_now",
        language,
        version=standing.trial.version,
        share=percent(share, language),
        good=new.good,
        rated=new.rated,
        then=old.good,
        of=old.rated,
        other=version(old.version, language),
    )
    if (interval := standing.interval) is None:
        return told
    low, high = (f"{100 * bound:+.0f}" for bound in interval)
    return beside(told, say("trial_apart", language, low=low, high=high), language)


def _unserved(model: str, rows: Sequence[adapters.AdapterRow], language: str) -> str:
    """The newest version that is not live because it had no effect on the server; empty: none."""
    for row in reversed(rows):
        own = row.model == model and not row.tainted
        if own and row.waits == adapters.UNSERVED:
            return say("status_unserved", language, version=row.version, why=clause_of(row.waits, language))
    return ""


async def history(call: Call) -> Result:
    s = call.services
    limit = int(call.args[0][:9]) if call.args and call.args[0].isdecimal() else 10
    found = await s.store.read(lambda db: turns.history(db, min(limit, 1000)))
    judged = await s.store.read(lambda db: judgements.values(db, [turn.turn for turn in found]))
    said: dict[str, list[feedback.Remark]] = {turn.turn: [] for turn in found}
    for remark in await s.store.read(lambda db: feedback.remarks(db, list(said))):
        said[remark.turn].append(remark)
    lines: list[str] = []
    for turn in found:
        mark = " " if turn.value is None else _thumb(turn.value)
        if turn.turn in judged:
            mark = f"judged {_thumb(judged[turn.turn])}"
        answer = " ".join(turn.response.split())[:_SHOWN]
        again = "↻ " if turn.instead_of else ""
        question = f"{again}{turn.prompt}"[:_SHOWN]
        lines.append(f"{turn.turn}  {mark}  v{turn.version}  {question} → {answer}")
        lines += [
            f"{' ' * 18}{_REMARKS[remark.kind]}: {' '.join(remark.text.split())[:_SHOWN]}"
            for remark in said[turn.turn]
        ]
    data = [
        {
            **asdict(turn),
            "judged": judged.get(turn.turn),
            "remarks": [asdict(remark) for remark in said[turn.turn]],
        }
        for turn in found
    ]
    return Result(text="\n".join(lines) or say("no_answers_yet", call.user.language), data={"turns": data})


def _thumb(value: float) -> str:
    return "👍" if value > 0 else "👎" if value < 0 else "="


async def plugins(call: Call) -> Result:
    return plugged_in(call.services.plugins.infos())


def plugged_in(infos: Sequence[PluginInfo]) -> Result:
    """Every plugin that was found, with what became of it."""
    lines = [
        f"{info.name:16} {info.state:8} {info.distribution} {info.version} {info.error}".rstrip()
        for info in infos
    ]
    return Result(text="\n".join(lines), data={"plugins": [asdict(info) for info in infos]})
