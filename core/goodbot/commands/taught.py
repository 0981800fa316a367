# SPDX-License-Identifier: Apache-2.0
"""why ANSWER: what one answer has taught, and which of its words are likelier or less likely since."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access.inbox import viewer_of
from goodbot.api.commands import Grant
from goodbot.api.events import UserRef
from goodbot.api.learnt import MARKS
from goodbot.api.rated import RatedTaught
from goodbot.api.sampler import GivenAnswer, TokenizedTurn
from goodbot.api.sentences import clause, clause_of
from goodbot.api.sentences import version as name_of
from goodbot.api.texts import commas, day, quoted, reworded, say
from goodbot.api.turns import Turn
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.store import importing, rated, review_queue, turns

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_SECONDS = 60.0
_SOME = 6
"""Words that are named."""
_LEAST = math.log(1.1)
"""A smaller change is not worth a word."""
_WROTE = ("chip", "comment", "better", "next")
"""The kinds of `goodbot.store.words.Word` that are named."""
Changes = Sequence[tuple[str, float]]


async def taught(services: Services, user: UserRef, turn: str) -> RatedTaught:
    """What an owner may know of one answer that they see. Raises UsageError."""
    language = user.language

    async def operation(db: aiosqlite.Connection) -> tuple[Turn | None, list[rated.TaughtThere], str]:
        viewer = await viewer_of(db, services.authorization, user)
        if viewer is None or not viewer.owner or not services.authorization.may(user, Grant.ADMINISTER):
            raise UsageError(say("taught_owners", language))
        if not await review_queue.visible(db, viewer, turn):
            return None, [], ""
        why_not = await rated.why_not(db, services.pool, turn, language)
        return await turns.get(db, turn), await rated.lessons(db, turn), why_not

    answer, lessons, why_not = await services.store.read(operation)
    if answer is None:
        raise UsageError(say("taught_gone", language))
    lines = [line for lesson in lessons for line in _told(lesson, language)]
    newest = next((one for one in lessons if one.trained and one.weight and not one.tainted), None)
    if newest is None:
        return RatedTaught(told="\n".join(lines or [why_not or say("taught_nobody", language)]))
    changes, note = await _changes(services, answer, newest, language)
    lines += [note] if note else words_told(changes, newest.version, newest.parent, language)
    return RatedTaught(
        told="\n".join(lines), version=newest.version if changes else 0, before=newest.parent, tokens=changes
    )


def _told(lesson: rated.TaughtThere, language: str) -> list[str]:
    when = day(datetime.fromtimestamp(lesson.at), language)  # noqa: DTZ006  the owner's
    said = {"name": name_of(lesson.version, language), "day": when, "answers": lesson.answers}
    if not lesson.trained:
        key = "taught_aside"
    elif not lesson.weight:
        key = "taught_uncounted"
    else:
        key = f"taught_{'good' if lesson.reward > 0 else 'bad' if lesson.reward < 0 else 'neither'}"
    lines = [say(key, language, **said)]
    there = {word.kind for word in lesson.words} if lesson.trained and lesson.weight else set[str]()
    if kinds := [say(f"wrote_{kind}", language) for kind in _WROTE if kind in there]:
        lines.append(say("taught_words", language, told=commas(language, *kinds)))
    if lesson.tainted:
        lines.append(say("taught_withdrawn", language, why=clause_of(lesson.tainted, language), **said))
    return lines


async def _changes(
    services: Services, answer: Turn, lesson: rated.TaughtThere, language: str
) -> tuple[Changes, str]:
    """By how many nats the version finds each token likelier than the one before did; or why nobody knows."""
    if answer.model != services.model.name:
        return (), say("taught_other_model", language)
    if not services.server.healthy():
        return (), say("taught_stopped", language)
    # Tokens of another model, or of an import, may spell other words.
    ours = not answer.answered_by and answer.channel.account != importing.ACCOUNT
    as_written = TokenizedTurn(prompt=answer.prompt_tokens, response=answer.tokens)
    given = GivenAnswer(
        messages=answer.messages,
        response=answer.response,
        thought=answer.thought,
        tokens=as_written if ours and as_written.prompt and as_written.response else None,
    )
    versions = (lesson.parent, lesson.version)
    try:
        async with asyncio.timeout(_SECONDS), services.registry.beside(*versions):
            old, new = [await services.spare.score(given, version) for version in versions]
    except TimeoutError:
        return (), say("taught_busy", language)
    except (AdapterError, ServerError) as error:
        return (), say("taught_not_now", language, why=clause(reworded(error, language)))
    if not new or len(old) != len(new):
        return (), say("taught_no_words", language)
    return [(text, after - before) for (text, after), (_, before) in zip(new, old, strict=True)], ""


def words_told(changes: Changes, version: int, before: int, language: str = "") -> list[str]:
    """The words of an answer that have changed most, each way."""
    moved = sorted(_words(changes), key=lambda one: -abs(one[1]))
    names = {"name": name_of(version, language), "before": name_of(before, language)}
    lines: list[str] = []
    for key, sign in (("taught_likelier", 1), ("taught_less", -1)):
        if some := [word for word, change in moved if sign * change >= _LEAST][:_SOME]:
            named = commas(language, *(quoted(word, language) for word in dict.fromkeys(some)))
            lines.append(say(key, language, words=named, **names))
    return lines or [say("taught_same", language, **names)]


def _words(changes: Changes) -> list[tuple[str, float]]:
    """The same by whole words: what their tokens come to together."""
    found: list[tuple[str, float]] = []
    for token, change in changes:
        if found and not token[:1].isspace():
            word, total = found.pop()
            token, change = word + token, total + change
        found.append((token, change))
    return [(word, change) for token, change in found if (word := token.strip().strip(MARKS))]
