# SPDX-License-Identifier: Apache-2.0
"""The rated answers, for a page: for owners those of the inbox, for raters what they have rated."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access.inbox import viewer_of
from goodbot.api.events import UserRef
from goodbot.api.rated import RatedAnswer, RatedPage, RatedTopic, RatedWanted
from goodbot.api.texts import say
from goodbot.base.errors import UsageError
from goodbot.base.topics import topics
from goodbot.commands.export import version_in
from goodbot.commands.overview import in_private, may, reads
from goodbot.commands.rollback_window import leave_out
from goodbot.store import rated, selection
from goodbot.store.selection import Selection

if TYPE_CHECKING:
    from goodbot.commands.services import Services

MOST = 200
"""Answers that are left out at once."""


async def rated_page(services: Services, user: UserRef, wanted: RatedWanted) -> RatedPage:
    """What this person may see of them. Raises UsageError."""
    language = reads(services, user)
    chosen, after = _selection(wanted, language), _after(wanted.after, language)

    async def operation(db: aiosqlite.Connection) -> tuple[Sequence[RatedAnswer], tuple[float, int] | None]:
        viewer = await viewer_of(db, services.authorization, user)
        if viewer is None:
            raise UsageError(say("see_rated", language))
        if not viewer.owner and (wanted.person or wanted.left_out or ":" in wanted.place):
            raise UsageError(say("see_rated_more", language))
        return await rated.page(
            db, viewer, services.pool, chosen, words=wanted.words, left_out=wanted.left_out, after=after
        )

    answers, end = await services.store.read(operation)
    return RatedPage(answers=answers, after=f"{end[0]!r} {end[1]}" if end else "")


async def rated_topics(services: Services, user: UserRef) -> Sequence[RatedTopic]:
    """What the newest rated answers are about, for owners; nobody else is told of others' ratings."""

    async def operation(db: aiosqlite.Connection) -> list[tuple[str, str, float]]:
        viewer = await viewer_of(db, services.authorization, user)
        return await rated.asked(db, viewer) if viewer is not None and viewer.owner else []

    return await asyncio.to_thread(_counted, await services.store.read(operation))


def _counted(rows: Sequence[tuple[str, str, float]]) -> list[RatedTopic]:
    found: list[RatedTopic] = []
    for word, asked in topics([row[0] for row in rows], [row[1] for row in rows]).items():
        bad = sum(rows[number][2] < 0 for number in asked) / len(asked)
        found.append(RatedTopic(word=word, answers=len(asked), bad=bad))
    return found


async def leave_out_here(services: Services, user: UserRef, turns: Sequence[str], *, again: bool) -> str:
    """As `rollback answers`, for a page that has asked back. Raises UsageError."""
    if not may(services, user, "rollback"):
        raise UsageError(say("rated_owners", reads(services, user)))
    if not 1 <= len(turns) <= MOST:
        raise UsageError(say("rated_choose", reads(services, user), most=MOST))
    return (await leave_out(in_private(services, user, "rollback"), turns, again=again)).text


def _selection(wanted: RatedWanted, language: str) -> Selection:
    if wanted.rating not in ("", *selection.RATINGS[:3]):
        raise UsageError(say("rated_is", language))
    return Selection(
        since=wanted.since,
        until=wanted.until,
        place=wanted.place or None,
        person=wanted.person or None,
        rating=wanted.rating or None,
        version=version_in(wanted.version) if wanted.version else None,
        topic=wanted.topic or None,
        text=wanted.text or None,
        turns=tuple(wanted.turns[:MOST]) or None,
    )


def _after(text: str, language: str) -> tuple[float, int]:
    at, _, seq = text.partition(" ")
    try:
        place = (float(at), int(seq)) if text else rated.NO_END
    except ValueError:
        place = (math.nan, 0)
    if not (math.isfinite(place[0]) and 0 <= place[1] <= rated.NO_END[1]):
        raise UsageError(say("odd_page", language))
    return place
