# SPDX-License-Identifier: Apache-2.0
"""import: rated answers that `goodbot import` has laid ready are stored, each whole, once, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.access.authorization import person
from goodbot.base.errors import UsageError
from goodbot.commands.base import Call, Result
from goodbot.conversation.imports.checks import Here, Unfit, checked
from goodbot.conversation.imports.files import objects
from goodbot.learning.training.settings import vocabulary
from goodbot.store import exporting, importing
from goodbot.store.importing import ImportedAnswer

STAGED = "import-"
"""How the files begin that lie ready: among what is exported, which forgetting empties."""
_PAGE = 50
_TOLD = 5
"""So many of those that were left out are told apart."""


async def bring_in(call: Call) -> Result:
    """Store what lies ready under that name; what is here already is not stored twice."""
    s, name = call.services, " ".join(call.args)
    path = s.config.home / exporting.EXPORTS / name
    if path.name != name or not path.name.startswith(STAGED) or not path.is_file():
        raise UsageError("nothing lies ready to be imported under that name")
    async with s.eraser.copying:
        counted = await _store(call, path)
    s.scheduler.wake()
    return _told(counted)


async def _store(call: Call, path: Path) -> dict[str, Any]:
    s, now = call.services, call.services.clock.now()
    counted: dict[str, Any] = {"imported": 0, "known": 0, "left_out": 0, "why": []}
    here = Here(
        me=person(call.user),
        model=s.pool.model,
        vocabulary=await asyncio.to_thread(vocabulary, s.model.path),
        scope=s.pool.scope,
        now=now,
    )

    def page(records: Iterator[tuple[int, Any]], first: int) -> list[tuple[int, ImportedAnswer | Unfit]]:
        found: list[tuple[int, ImportedAnswer | Unfit]] = []
        for number, (_, record) in enumerate(islice(records, _PAGE), first):
            try:
                found.append((number, checked(record, here)))
            except Unfit as error:
                found.append((number, error))
        return found

    async def store(db: aiosqlite.Connection, answers: list[ImportedAnswer]) -> int:
        return sum([await importing.add(db, one, now) for one in answers])

    records, number = objects(path), 1
    while found := await asyncio.to_thread(page, records, number):
        number += len(found)
        fit = [_allowed(call, one) for _, one in found if isinstance(one, ImportedAnswer)]
        new = await s.store.write(lambda db, fit=fit: store(db, fit))
        counted["imported"] += new
        counted["known"] += len(fit) - new
        for line, one in found:
            if isinstance(one, Unfit):
                counted["left_out"] += 1
                counted["why"] += [f"line {line}: {one}"] if len(counted["why"]) < _TOLD else []
    return counted


def _allowed(call: Call, answer: ImportedAnswer) -> ImportedAnswer:
    """As a capture is: a plugin may keep it out of training."""
    plugins = call.services.plugins
    teaches = answer.trainable and plugins.veto_capture(answer.turn) is None
    return replace(answer, trainable=teaches)


def _told(counted: dict[str, Any]) -> Result:
    new, known, out = counted["imported"], counted["known"], counted["left_out"]
    text = f"{new} rated answer{'' if new == 1 else 's'} imported."
    if known:
        text += f" {known} {'was' if known == 1 else 'were'} here already."
    if out:
        text += f" {out} left out: {'; '.join(counted['why'])}{' …' if out > len(counted['why']) else '.'}"
    return Result(text=text, data=counted)
