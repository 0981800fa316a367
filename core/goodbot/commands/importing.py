# SPDX-License-Identifier: Apache-2.0
"""import: rated answers that `goodbot import` has laid ready are stored, each whole, once, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.sentences import words
from goodbot.base.errors import GoodbotError, StoreError, StoreFullError, UsageError
from goodbot.base.worded import Worded
from goodbot.commands.base import Call, Result
from goodbot.conversation.capture_rules import trains
from goodbot.conversation.imports.checks import Here, checked
from goodbot.conversation.imports.fields import Unfit
from goodbot.conversation.imports.files import objects
from goodbot.learning.training.settings import vocabulary
from goodbot.store import importing, workshop
from goodbot.store.importing import ImportedAnswer

_PAGE, _PAGE_LENGTH = 50, 8 << 20
"""Answers that are looked at together, and characters of the file: some may be very long."""
_UNSTORABLE = (StoreError, UnicodeError, OverflowError)
_TOLD = 5
"""So many of those that were left out are told apart."""


async def bring_in(call: Call) -> Result:
    """Store what lies ready under that name; what is here already is not stored twice."""
    s, name = call.services, " ".join(call.args)
    place = s.config.home / workshop.IMPORTS / name
    path = place / workshop.ANSWERS
    if place.name != name or not name.startswith(workshop.STAGED) or not path.is_file():
        raise UsageError(Worded("nothing lies ready to be imported under that name"))
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

    at = 0

    def page(records: Iterator[tuple[int, Any]], first: int) -> list[tuple[int, ImportedAnswer | Unfit]]:
        nonlocal at
        found: list[tuple[int, ImportedAnswer | Unfit]] = []
        began = at
        for number, (end, record) in enumerate(islice(records, _PAGE), first):
            try:
                found.append((number, checked(record, here)))
            except Unfit as error:
                found.append((number, error))
            at = end
            if at - began > _PAGE_LENGTH:
                break
        return found

    records, number = objects(path), 1
    while found := await asyncio.to_thread(page, records, number):
        if (full := s.quotas.no_reserve()) is not None:
            raise GoodbotError(words(full))
        number += len(found)
        found = [(n, one if isinstance(one, Unfit) else _allowed(call, one)) for n, one in found]
        new, left = await _stored(call, found, now)
        counted["imported"] += new
        counted["known"] += len(found) - len(left) - new
        counted["left_out"] += len(left)
        counted["why"] = [*counted["why"], *(f"line {n}: {why}" for n, why in left)][:_TOLD]
    return counted


async def _stored(
    call: Call, found: Sequence[tuple[int, ImportedAnswer | Unfit]], now: float
) -> tuple[int, list[tuple[int, Unfit]]]:
    """Store a page: how many are new, and which are left out. Raises StoreError if nothing can be stored."""
    store = call.services.store
    fit = [(n, one) for n, one in found if isinstance(one, ImportedAnswer)]
    left = [(n, one) for n, one in found if isinstance(one, Unfit)]

    async def add(db: aiosqlite.Connection, answers: Sequence[ImportedAnswer]) -> int:
        return sum([await importing.add(db, one, now) for one in answers])

    async def stored(*answers: ImportedAnswer) -> int | None:
        """How many of them are new; None where one is to blame that nothing was stored."""
        try:
            return await store.write(lambda db: add(db, answers))
        except _UNSTORABLE as error:
            if isinstance(error, StoreFullError) or store.trouble:
                raise
            return None

    new = await stored(*(one for _, one in fit))
    if new is not None:
        return new, left
    each = [(n, await stored(one)) for n, one in fit]
    left += [(n, Unfit("it cannot be stored")) for n, count in each if count is None]
    return sum(count or 0 for _, count in each), sorted(left, key=lambda one: one[0])


def _allowed(call: Call, answer: ImportedAnswer) -> ImportedAnswer:
    """As a capture is: a plugin may keep it out of training."""
    plugins = call.services.plugins
    teaches = answer.trainable and trains(answer.turn) and plugins.veto_capture(answer.turn) is None
    return replace(answer, trainable=teaches)


def _told(counted: dict[str, Any]) -> Result:
    new, known, out = counted["imported"], counted["known"], counted["left_out"]
    text = f"{new} rated answer{'' if new == 1 else 's'} imported."
    if known:
        text += f" {known} {'was' if known == 1 else 'were'} here already."
    if out:
        text += f" {out} left out: {'; '.join(counted['why'])}{' …' if out > len(counted['why']) else '.'}"
    return Result(text=text, data=counted)
