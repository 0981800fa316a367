# SPDX-License-Identifier: Apache-2.0
"""adapters list, show, diff: where each version comes from, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from goodbot.api.adapters import manifest
from goodbot.api.sentences import brief, clause_of, words
from goodbot.api.server import BASE
from goodbot.api.texts import beside, commas, explained, pauses, percent, say
from goodbot.base.errors import AdapterError
from goodbot.base.spawn import child_environment
from goodbot.commands.base import DETAILS, Call, Result, wrong
from goodbot.commands.liked import Liked, liked
from goodbot.conversation.notifications import states
from goodbot.conversation.notifications.trainings import counted, kept
from goodbot.learning.adapters import lineage
from goodbot.learning.adapters.examining import Distance, examine
from goodbot.store import news, runs, settings
from goodbot.store.adapters import AdapterRow

_ALL = 1_000_000
_VERDICT = 60
"""Characters of a verdict in the list."""


async def listed(call: Call) -> Result:
    """The tree of versions; `→` marks the one that answers: `*` would be a list in a chat."""
    s = call.services
    registry, language = s.registry, call.user.language
    active, rows = await registry.active(), await registry.rows()
    told_of = await liked(call)
    ends = {run.id: run for run in await s.store.read(lambda db: runs.last_runs(db, registry.scope, _ALL))}
    base = say("why_base", language)
    lines = [_line("", f"{base}  {s.model.name}", told_of.get(BASE), active == BASE, language)]
    entries: list[dict[str, Any]] = []
    for lead, row in lineage.branches(rows):
        made_of = await _material(call, row)
        end = ends.get(row.run or 0)
        parent = f"v{row.parent}" if row.parent else base
        parts = [f"v{row.version}", say("adapters_from", language, parent=parent), _day(row.created_at)]
        ratings = say("count_ratings", language, count=made_of.trained)
        parts.append(ratings if row.run else say("adapters_imported", language))
        if row.model != registry.model:
            parts.append(say("adapters_of", language, model=row.model))
        parts += _state(row, language)
        told = told_of.get(row.version)
        lines.append(_line(lead, "  ".join(parts), told, row.version == active, language))
        if end and end.ending and not row.tainted:
            lines.append(f"  {lead}   {_short(words(*brief(end.ending), language=language))}")
        entries.append(
            {
                **_for_programs(row),
                "verdict": end.reason if end else "",
                "ratings": made_of.trained,
                "liked": asdict(told) if told else None,
                "active": row.version == active,
            }
        )
    entries.sort(key=lambda entry: int(entry["version"]))
    data = {"active": active, "adapters": entries, "directory": str(registry.root)}
    return Result(text="\n".join(lines), data=data)


def _line(lead: str, text: str, liked: Liked | None, active: bool, language: str) -> str:
    told = f"  {liked.told(language)}" if liked else ""
    return f"{'→' if active else ' '} {lead}{text}{told}"


def _for_programs(row: AdapterRow) -> dict[str, Any]:
    """A row for `--json`, with why it waits or is not to be used in English."""
    return {**asdict(row), "tainted": clause_of(row.tainted), "waits": clause_of(row.waits)}


def _state(row: AdapterRow, language: str) -> list[str]:
    gone = row.erased_at is not None
    found: list[str] = []
    if row.pinned and not (row.tainted or gone):
        found.append(say("adapters_pinned", language))
    if row.tainted:
        found.append(say("adapters_withdrawn", language, why=clause_of(row.tainted, language)))
    elif row.waits and not gone:
        found.append(say("adapters_waits", language, why=clause_of(row.waits, language)))
    return [*found, say("adapters_gone", language)] if gone else found


async def show(call: Call, named: Sequence[str]) -> Result:
    """All of one version."""
    named, details = _without_details(named)
    s = call.services
    registry, language = s.registry, call.user.language
    row = await registry.row(_one(call, named, await registry.active()))
    known = await _manifest(call, row)
    line = [f"v{one.version}" for one in lineage.ancestors(await registry.rows(), row.version)]
    made_of = await _material(call, row)
    cause, verdict = await s.store.read(lambda db: news.cause(db, row.run or 0))
    told = (await liked(call)).get(row.version)
    active = await registry.active()
    way = " → ".join([say("why_base", language), *line[::-1]])
    on = f"{row.model} ({known.revision})" if known and known.revision else row.model
    lines = [
        say("adapters_made", language, version=row.version, day=_day(row.created_at), line=way),
        say("adapters_base", language, model=on),
    ]
    if row.run:
        learnt = say("adapters_learnt", language, learnt=counted(made_of, language))
        lines.append(pauses(language, learnt, kept(made_of, language)))
        why = words(*cause, language=language)
        lines.append(say("adapters_began", language, run=row.run, why=why))
        checked = verdict if details else brief(verdict)
        lines.append(say("safety_check", language, reason=words(*checked, language=language)))
    else:
        source = known.source if known else say("adapters_elsewhere", language)
        lines.append(say("adapters_source", language, source=source))
    if told:
        lines.append(told.told(language))
    off = bool(await s.store.read(lambda db: settings.switch(db, "off")))
    if row.version == active and not row.tainted:
        lines.append(states.answering(row.version, off=off, language=language))
    lines += _state(row, language)
    lines += [f"{name}: {value:g}" for name, value in _numbers(row.metrics)] if details else []
    where = registry.root / row.directory
    if row.erased_at is None:
        lines.append(say("adapters_files" if known else "adapters_broken", language, where=where))
        lines.append(say("adapters_weights", language, hash=row.sha256))
    data = {
        **_for_programs(row),
        "active": row.version == active,
        "cause": words(*cause),
        "verdict": words(*verdict),
        "trained_on": asdict(made_of),
        "liked": asdict(told) if told else None,
        "path": str(where) if row.erased_at is None else None,
        "manifest": asdict(known) if known else None,
    }
    return Result(text="\n".join(lines), data=data)


async def diff(call: Call, named: Sequence[str]) -> Result:
    """Told later: a child reads the files, and other commands do not wait for that."""
    named, details = _without_details(named)
    if len(named) != 2:
        raise wrong(call.event, "wrong_diff")
    first, second = (version_of(call, word) for word in named)
    if second == BASE:
        first, second = second, first
    if first == second:
        raise wrong(call.event, "wrong_diff_same")
    return Result(text="", later=partial(_diff, call, first, second, details=details))


async def _diff(call: Call, first: int, second: int, *, details: bool) -> Result:
    s = call.services
    registry, language = s.registry, call.user.language
    rows = await registry.rows()
    before = None if first == BASE else await registry.path(first)
    found = await examine(before, await registry.path(second), child_environment())
    old = {row.version for row in lineage.ancestors(rows, first)}
    between = [row for row in lineage.ancestors(rows, second) if row.version not in old]
    between.reverse()
    made_of = await s.store.read(lambda db: news.material(db, [row.run for row in between if row.run]))
    names = [_name(first, language), _name(second, language)]
    learnt = say("diff_learnt", language, learnt=counted(made_of, language))
    lines = [
        explained(f"{names[0]} → {names[1]}", _steps(between, language), language),
        *([learnt] if any(row.run for row in between) else []),
        *(_metrics(rows, first, second) if details else ()),
        *_sizes(found, names[0], language, details=details),
    ]
    data = {
        "before": first,
        "after": second,
        "between": [row.version for row in between],
        "trained_on": asdict(made_of),
        "distance": asdict(found),
        "metrics": {
            row.version: dict(_numbers(row.metrics)) for row in rows if row.version in (first, second)
        },
    }
    return Result(text="\n".join(lines), data=data)


def _steps(between: Sequence[AdapterRow], language: str) -> str:
    imported = say("adapters_imported", language)
    steps = [
        f"v{row.version}" if row.run else beside(f"v{row.version}", imported, language) for row in between
    ]
    if not steps:
        return say("diff_apart", language)
    return say("diff_steps", language, versions=commas(language, *steps))


def _metrics(rows: Sequence[AdapterRow], first: int, second: int) -> list[str]:
    known = {row.version: dict(_numbers(row.metrics)) for row in rows}
    one, two = known.get(first, {}), known.get(second, {})
    wide = max((len(name) for name in (*one, *two)), default=0)
    return [
        f"  {name:{wide}}  {_number(one.get(name)):>10}  {_number(two.get(name)):>10}"
        for name in dict.fromkeys((*one, *two))
        if one.get(name) != two.get(name)
    ]


def _sizes(found: Distance, first: str, language: str, *, details: bool) -> list[str]:
    change = f"{found.change:.4g}"
    if found.before:
        share = percent(found.change / found.before, language)
        change = commas(language, change, say("diff_share", language, share=share, name=first))
    if not details:
        return [say("diff_weights", language, change=change)]
    wide = max(len(group.name) for group in found.groups)
    lines = [say("diff_parts", language, change=change)]
    for group in found.groups:
        part = (group.change / found.change) ** 2 if found.change else 0.0
        share = percent(group.change / group.before, language) if group.before else ""
        own = say("diff_own", language, share=share) if share else ""
        lines.append(f"  {group.name:{wide}}  {commas(language, f'{part:4.0%}', own)}")
    return lines


def _without_details(named: Sequence[str]) -> tuple[list[str], bool]:
    """The other words, and whether all figures are asked for."""
    return [word for word in named if word != DETAILS], DETAILS in named


def version_of(call: Call, word: str) -> int:
    """`7`, `v7` or `base`. Raises UsageError."""
    number = word.removeprefix("v")
    if number == "base":
        return BASE
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise wrong(call.event, "wrong_version", word=repr(word[:40]))
    return int(number)


def _one(call: Call, named: Sequence[str], active: int) -> int:
    if len(named) > 1:
        raise wrong(call.event, "wrong_one_version", command="show")
    version = version_of(call, named[0]) if named else active
    if version == BASE:
        raise wrong(call.event, "wrong_show_base")
    return version


async def _manifest(call: Call, row: AdapterRow) -> manifest.AdapterManifest | None:
    """None where the files are gone, or are not those that were written."""
    import asyncio

    if row.erased_at is not None:
        return None
    try:
        root = call.services.registry.root
        return await asyncio.to_thread(manifest.inspect, root, row.directory)
    except AdapterError:
        return None


async def _material(call: Call, row: AdapterRow) -> news.RunMaterial:
    return await call.services.store.read(lambda db: news.material(db, [row.run] if row.run else []))


def _numbers(metrics: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The numbers of a run and of its gate, which lie one level deeper."""
    flat = {**metrics, **dict(metrics.get("gate") or {})}
    flat.pop("peak_memory", None)  # it says nothing of how good they are; `report` tells it
    return [(name, value) for name, value in flat.items() if isinstance(value, int | float)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _name(version: int, language: str) -> str:
    return f"v{version}" if version else say("why_base", language)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")  # noqa: DTZ006  the owner's clock


def _short(text: str) -> str:
    return text if len(text) <= _VERDICT else text[: _VERDICT - 1] + "…"
