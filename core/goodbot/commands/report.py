# SPDX-License-Identifier: Apache-2.0
"""report: the answers as they are now, shown to each part that plugins offer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from goodbot.access.inbox import viewer_of
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection, ReportSpec, ReportTold
from goodbot.api.texts import ENGLISH, reworded, say
from goodbot.api.texts.terminal import instead
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.commands import fixed_questions, report_parts
from goodbot.commands.base import Call, Result
from goodbot.commands.overview import rated
from goodbot.learning import reward_model
from goodbot.learning.adapters import lineage
from goodbot.store import fixed, news, predictions, reporting

if TYPE_CHECKING:
    from goodbot.commands.services import Services

logger = logging.getLogger(__name__)

PAIRS = "--pairs"
MOST = 100_000
"""Answers that a report looks at, the newest."""
_T = TypeVar("_T")


async def report(call: Call) -> Result:
    """All parts, or one. What came while it was made is not in it."""
    specs = _wanted(call)
    if PAIRS in call.args:  # it takes minutes: other commands do not wait for it
        return Result(text="", later=partial(_asked, call, specs))
    return await _reported(call, specs)


def _silent(_: int, _of: int) -> None:
    """Nobody watches."""


async def _asked(call: Call, specs: Mapping[str, ReportSpec]) -> Result:
    await fixed_questions.ask(call.services, _silent)
    return await _reported(call, specs)


async def _reported(call: Call, specs: Mapping[str, ReportSpec]) -> Result:
    told = await made(call, specs, lambda _: None)
    lines = [line for one in told for line in ("", one.title, *one.lines)]
    return Result(
        text="\n".join(lines[1:]) or say("report_none", call.user.language),
        data={one.name: dict(one.data) for one in told},
    )


async def made(call: Call, specs: Mapping[str, ReportSpec], count: Callable[[int], None]) -> list[ReportTold]:
    """What these parts say; `count` is told how many answers they have been shown."""
    language = call.user.language
    make = partial(report_parts.make, call.services.config)
    parts = {name: _tried(name, language, partial(make, spec)) for name, spec in specs.items()}
    told = await asyncio.to_thread(_told, parts, await _shown(call, parts, count))
    titles = {name: reworded(spec.title, language) for name, spec in specs.items()}
    return [
        ReportTold(name=name, title=titles[name], lines=section.lines, data=section.data)
        for name, section in told.items()
    ]


async def most(services: Services) -> int:
    """How many answers a report would look at, at most."""
    return min(MOST, await services.store.read(reporting.newest))


def _wanted(call: Call) -> dict[str, ReportSpec]:
    specs = call.services.plugins.reports()
    words = [word for word in call.args if word != PAIRS]
    if not words:
        return specs
    [name, *more] = words
    if name not in specs or more:

        def told(language: str) -> str:
            part, there = repr(" ".join(words)[:40]), instead(name, specs, language)
            return say("report_no_part", language, part=part, instead=there)

        raise UsageError(told(call.user.language), english=told(ENGLISH))
    return {name: specs[name]}


async def _shown(call: Call, parts: Mapping[str, ReportPart], count: Callable[[int], None]) -> ReportedBot:
    """Show them the answers, and return what else they may know."""
    s = call.services
    questions = await asyncio.to_thread(fixed_questions.load, s.config.home)
    live, rows = await s.registry.active(), await s.registry.rows()
    line = [*lineage.ancestors(rows, live)]
    learnt: dict[int, int] = {}
    seen = 0
    async with s.store.moment() as db:
        viewer = await viewer_of(db, s.authorization, call.user)
        if viewer is None:
            raise UsageError(say("see_report", call.user.language))
        for row in rows:
            runs = [one.run for one in lineage.ancestors(rows, row.version) if one.run]
            learnt[row.version] = (await news.material(db, runs)).trained
        runs = [row.run for row in line if row.run]
        before: int | None = 1 << 62
        while before is not None and seen < MOST:
            answers, before = await reporting.page(db, s.pool, viewer, runs, before)
            seen += len(answers)
            await asyncio.to_thread(_add, parts, answers, call.user.language)
            count(seen)
    return ReportedBot(
        live=live,
        line=[row.version for row in reversed(line)],
        versions=await rated(call, live),
        learnt=learnt,
        memory={row.version: held for row in rows if isinstance(held := row.metrics.get("peak_memory"), int)},
        questions=questions,
        said=await s.store.read(lambda db: fixed.of(db, s.model.name)),
        predicted=await s.store.read(lambda db: predictions.of(db, reward_model.shown(s))),
        answers=seen,
        more=before is not None,
        language=call.user.language,
    )


def _add(parts: Mapping[str, ReportPart], answers: Sequence[ReportedAnswer], language: str) -> None:
    for name, part in parts.items():
        _tried(name, language, partial(part.add, answers))


def _told(parts: Mapping[str, ReportPart], bot: ReportedBot) -> dict[str, ReportSection]:
    return {name: _tried(name, bot.language, partial(part.told, bot)) for name, part in parts.items()}


def _tried(name: str, language: str, work: Callable[[], _T]) -> _T:
    try:
        return work()
    except Exception as error:  # a plugin's
        logger.exception("a part of a report has failed")
        raise GoodbotError(say("report_part_failed", language, name=name)) from error
