# SPDX-License-Identifier: Apache-2.0
"""adapters list, show, diff: where each version comes from, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any

from goodbot.api.adapters import manifest
from goodbot.api.server import BASE
from goodbot.base.errors import AdapterError, UsageError
from goodbot.base.intervals import wilson
from goodbot.base.spawn import child_environment
from goodbot.commands.base import DETAILS, Call, Result
from goodbot.conversation.notifications import states
from goodbot.conversation.notifications.trainings import counted, kept
from goodbot.learning.adapters import lineage
from goodbot.learning.adapters.examining import Distance, examine
from goodbot.learning.evaluation.report import ENOUGH
from goodbot.store import acceptance, news, runs, settings
from goodbot.store.adapters import AdapterRow
from goodbot.store.training_pool import Pool

_ALL = 1_000_000
_VERDICT = 60
"""Characters of a verdict in the list."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Liked:
    """How the rated answers of a version were rated; low and high bound 95 % of the share."""

    good: int
    rated: int
    share: float
    low: float
    high: float

    @property
    def text(self) -> str:
        if self.rated < ENOUGH:
            return f"liked {self.good} of {self.rated} rated answer{'' if self.rated == 1 else 's'}"
        return f"liked {self.share:.0%} ({self.low:.0%} to {self.high:.0%}) of {self.rated} rated answers"


async def listed(call: Call) -> Result:
    """The tree of versions; `→` marks the one that answers: `*` would be a list in a chat."""
    s = call.services
    registry = s.registry
    active, rows = await registry.active(), await registry.rows()
    told_of = await liked(call)
    ends = {run.id: run for run in await s.store.read(lambda db: runs.last_runs(db, registry.scope, _ALL))}
    lines = [_line("", f"base  {s.model.name}", told_of.get(BASE), active == BASE)]
    entries: list[dict[str, Any]] = []
    for lead, row in lineage.branches(rows):
        made_of = await _material(call, row)
        end = ends.get(row.run or 0)
        verdict = end.reason if end else ""
        parts = [f"v{row.version}", f"from {f'v{row.parent}' if row.parent else 'base'}"]
        parts += [
            _day(row.created_at),
            f"{made_of.trained} rating{'' if made_of.trained == 1 else 's'}" if row.run else "imported",
        ]
        if row.model != registry.model:
            parts.append(f"of {row.model}")
        parts += _state(row)
        lines.append(_line(lead, "  ".join(parts), told_of.get(row.version), row.version == active))
        if verdict and not row.tainted:
            lines.append(f"  {lead}   {_short(verdict)}")
        told = told_of.get(row.version)
        entries.append(
            {
                **asdict(row),
                "verdict": verdict,
                "ratings": made_of.trained,
                "liked": asdict(told) if told else None,
                "active": row.version == active,
            }
        )
    entries.sort(key=lambda entry: int(entry["version"]))
    data = {"active": active, "adapters": entries, "directory": str(registry.root)}
    return Result(text="\n".join(lines), data=data)


def _line(lead: str, text: str, liked: Liked | None, active: bool) -> str:
    told = f"  {liked.text}" if liked else ""
    return f"{'→' if active else ' '} {lead}{text}{told}"


def _state(row: AdapterRow) -> list[str]:
    gone = row.erased_at is not None
    found = ["pinned"] if row.pinned and not (row.tainted or gone) else []
    if row.tainted:
        found.append(f"not to be used: {row.tainted}")
    elif row.waits and not gone:
        found.append(f"waits: {row.waits}")
    return [*found, "files removed"] if gone else found


async def show(call: Call, words: Sequence[str]) -> Result:
    """All of one version."""
    words, details = _without_details(words)
    s = call.services
    registry = s.registry
    row = await registry.row(_one(words, await registry.active()))
    known = await _manifest(call, row)
    line = [f"v{one.version}" for one in lineage.ancestors(await registry.rows(), row.version)]
    made_of = await _material(call, row)
    cause, verdict = await s.store.read(lambda db: news.cause(db, row.run or 0))
    told = (await liked(call)).get(row.version)
    active = await registry.active()
    lines = [
        f"v{row.version}, made {_day(row.created_at)}, {' → '.join(['base', *line[::-1]])}",
        f"base: {row.model}" + (f" at {known.revision}" if known and known.revision else ""),
    ]
    if row.run:
        lines.append("; ".join(filter(None, [f"learnt from {counted(made_of)}", kept(made_of)])))
        lines += [f"training {row.run}: {cause}", f"gate: {verdict}"]
    else:
        lines.append(f"imported: {known.source if known else 'from elsewhere'}")
    if told:
        lines.append(told.text)
    off = bool(await s.store.read(lambda db: settings.switch(db, "off")))
    if row.version == active and not row.tainted:
        lines.append(states.answering(row.version, off=off))
    lines += _state(row)
    lines += [f"{name}: {value:g}" for name, value in _numbers(row.metrics)] if details else []
    where = registry.root / row.directory
    if row.erased_at is None:
        lines.append(f"files: {where}" + ("" if known else " (they cannot be used: see `doctor`)"))
        lines.append(f"weights: sha256 {row.sha256}")
    data = {
        **asdict(row),
        "active": row.version == active,
        "cause": cause,
        "verdict": verdict,
        "trained_on": asdict(made_of),
        "liked": asdict(told) if told else None,
        "path": str(where) if row.erased_at is None else None,
        "manifest": asdict(known) if known else None,
    }
    return Result(text="\n".join(lines), data=data)


async def diff(call: Call, words: Sequence[str]) -> Result:
    """Told later: a child reads the files, and other commands do not wait for that."""
    words, details = _without_details(words)
    if len(words) != 2:
        raise UsageError("say which two: `adapters diff 6 7`, or `adapters diff base 7`")
    first, second = (version_of(word) for word in words)
    if second == BASE:
        first, second = second, first
    if first == second:
        raise UsageError("say two different versions: `adapters diff 6 7`")
    return Result(text="", later=partial(_diff, call, first, second, details=details))


async def _diff(call: Call, first: int, second: int, *, details: bool) -> Result:
    s = call.services
    registry = s.registry
    rows = await registry.rows()
    before = None if first == BASE else await registry.path(first)
    found = await examine(before, await registry.path(second), child_environment())
    old = {row.version for row in lineage.ancestors(rows, first)}
    between = [row for row in lineage.ancestors(rows, second) if row.version not in old]
    between.reverse()
    made_of = await s.store.read(lambda db: news.material(db, [row.run for row in between if row.run]))
    names = [_name(first), _name(second)]
    lines = [
        f"{names[0]} → {names[1]}: {_steps(between)}",
        *([f"learnt in between: {counted(made_of)}"] if any(row.run for row in between) else []),
        *(_metrics(rows, first, second) if details else ()),
        *_sizes(found, names, details=details),
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


def _steps(between: Sequence[AdapterRow]) -> str:
    steps = [f"v{row.version}{'' if row.run else ' (imported)'}" for row in between]
    return f"by way of {', '.join(steps)}" if steps else "none comes from the other"


def _metrics(rows: Sequence[AdapterRow], first: int, second: int) -> list[str]:
    known = {row.version: dict(_numbers(row.metrics)) for row in rows}
    one, two = known.get(first, {}), known.get(second, {})
    wide = max((len(name) for name in (*one, *two)), default=0)
    return [
        f"  {name:{wide}}  {_number(one.get(name)):>10}  {_number(two.get(name)):>10}"
        for name in dict.fromkeys((*one, *two))
        if one.get(name) != two.get(name)
    ]


def _sizes(found: Distance, names: Sequence[str], *, details: bool) -> list[str]:
    share = f", {found.change / found.before:.0%} of the size of {names[0]}" if found.before else ""
    if not details:
        return [f"change of the weights: {found.change:.4g}{share}; `--details` says where"]
    wide = max(len(group.name) for group in found.groups)
    lines = [f"change of the weights: {found.change:.4g}{share}. By part:"]
    for group in found.groups:
        part = (group.change / found.change) ** 2 if found.change else 0.0
        own = f", {group.change / group.before:.0%} of its own" if group.before else ""
        lines.append(f"  {group.name:{wide}}  {part:4.0%}{own}")
    return lines


def _without_details(words: Sequence[str]) -> tuple[list[str], bool]:
    """The other words, and whether all figures are asked for."""
    return [word for word in words if word != DETAILS], DETAILS in words


def version_of(word: str) -> int:
    """`7`, `v7` or `base`. Raises UsageError."""
    number = word.removeprefix("v")
    if number == "base":
        return BASE
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise UsageError(f"{word[:40]!r} is no version: say a number from `adapters`, or `base`")
    return int(number)


def _one(words: Sequence[str], active: int) -> int:
    if len(words) > 1:
        raise UsageError("say one version: `adapters show 7`")
    version = version_of(words[0]) if words else active
    if version == BASE:
        raise UsageError("the base model is as it came: say a version, `adapters show 7`")
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


async def liked(call: Call) -> dict[int, Liked]:
    """By version, how its answers were rated; nothing of one of which no answer was."""
    registry = call.services.registry
    pool = Pool(scope=registry.scope, model=registry.model, owners=())
    found = await call.services.store.read(lambda db: acceptance.by_version(db, pool, limit=_ALL))
    told: dict[int, Liked] = {}
    for one in found:
        if one.rated:
            low, high = wilson(one.good, one.rated)
            told[one.version] = Liked(
                good=one.good, rated=one.rated, share=one.good / one.rated, low=low, high=high
            )
    return told


def _numbers(metrics: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The numbers of a run and of its gate, which lie one level deeper."""
    flat = {**metrics, **dict(metrics.get("gate") or {})}
    return [(name, value) for name, value in flat.items() if isinstance(value, int | float)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _name(version: int) -> str:
    return f"v{version}" if version else "base"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")  # noqa: DTZ006  the owner's clock


def _short(text: str) -> str:
    return text if len(text) <= _VERDICT else text[: _VERDICT - 1] + "…"
