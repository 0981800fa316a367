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
from goodbot.api.sentences import clause
from goodbot.api.turns import Turn
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.base.suggest import version_name
from goodbot.store import importing, rated, review_queue, turns

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_SECONDS = 60.0
_SOME = 6
"""Words that are named."""
_LEAST = math.log(1.1)
"""A smaller change is not worth a word."""
_WROTE = {
    "chip": "what was wrong with it",
    "comment": "a reason",
    "better": "a better answer",
    "next": "what was written next",
}
"""The kinds of `goodbot.store.words.Word`, as people call them."""
Changes = Sequence[tuple[str, float]]


async def taught(services: Services, user: UserRef, turn: str) -> RatedTaught:
    """What an owner may know of one answer that they see. Raises UsageError."""

    async def operation(db: aiosqlite.Connection) -> tuple[Turn | None, list[rated.TaughtThere], str]:
        viewer = await viewer_of(db, services.authorization, user)
        if viewer is None or not viewer.owner or not services.authorization.may(user, Grant.ADMINISTER):
            raise UsageError("Only owners ask what one answer has taught.")
        if not await review_queue.visible(db, viewer, turn):
            return None, [], ""
        why_not = await rated.why_not(db, services.pool, turn)
        return await turns.get(db, turn), await rated.lessons(db, turn), why_not

    answer, lessons, why_not = await services.store.read(operation)
    if answer is None:
        raise UsageError("There is no such answer: the page “Ratings” knows their ids.")
    lines = [line for lesson in lessons for line in _told(lesson)]
    newest = next((one for one in lessons if one.trained and one.weight and not one.tainted), None)
    if newest is None:
        return RatedTaught(told="\n".join(lines or [why_not or "No version has learnt from it yet."]))
    changes, note = await _changes(services, answer, newest)
    lines += [note] if note else words_told(changes, newest.version, newest.parent)
    return RatedTaught(
        told="\n".join(lines), version=newest.version if changes else 0, before=newest.parent, tokens=changes
    )


def _told(lesson: rated.TaughtThere) -> list[str]:
    name, day = version_name(lesson.version), datetime.fromtimestamp(lesson.at)  # noqa: DTZ006  the owner's
    when = f"{day.day} {day:%b %Y}"
    if not lesson.trained:
        lines = [f"{name}, {when}: it was kept aside, to check what the other answers had taught."]
    elif not lesson.weight:
        lines = [f"{name}, {when}: it was there, and did not count."]
    else:
        rating = "good" if lesson.reward > 0 else "bad" if lesson.reward < 0 else "neither good nor bad"
        among = f"{lesson.answers} answer{'' if lesson.answers == 1 else 's'}"
        lines = [f"{name}, {when}: it learnt from this answer as from a {rating} one, 1 of {among}."]
        if not lesson.reward:
            lines = [f"{name}, {when}: it was 1 of {among}, rated {rating}."]
    kinds = [what for kind, what in _WROTE.items() if any(word.kind == kind for word in lesson.words)]
    if kinds and lesson.trained and lesson.weight:
        lines.append(f"Beside the rating it learnt from {', '.join(kinds)}.")
    return [*lines, *([f"{name} is withdrawn: {lesson.tainted}."] if lesson.tainted else [])]


async def _changes(services: Services, answer: Turn, lesson: rated.TaughtThere) -> tuple[Changes, str]:
    """By how many nats the version finds each token likelier than the one before did; or why nobody knows."""
    if answer.model != services.model.name:
        return (), "The model was another one then: its words cannot be compared now."
    if not services.server.healthy():
        return (), "While goodbot runs (`goodbot run`), it also shows which words are likelier since."
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
        return (), "There was no quiet moment to compare its words: try again in a few minutes."
    except (AdapterError, ServerError) as error:
        return (), f"Its words cannot be compared now: {clause(str(error))}."
    if not new or len(old) != len(new):
        return (), "The model server in use does not tell how likely the words of an answer are."
    return [(text, after - before) for (text, after), (_, before) in zip(new, old, strict=True)], ""


def words_told(changes: Changes, version: int, before: int) -> list[str]:
    """The words of an answer that have changed most, each way."""
    moved = sorted(_words(changes), key=lambda one: -abs(one[1]))
    after, ago = version_name(version), version_name(before)
    lines: list[str] = []
    for way, sign in (("likelier", 1), ("less likely", -1)):
        if some := [word for word, change in moved if sign * change >= _LEAST][:_SOME]:
            named = ", ".join(f"“{word}”" for word in dict.fromkeys(some))
            lines.append(f"In this answer {after} finds {way} than {ago}: {named}.")
    return lines or [f"{after} finds no word of this answer much likelier, or less likely, than {ago}."]


def _words(changes: Changes) -> list[tuple[str, float]]:
    """The same by whole words: what their tokens come to together."""
    found: list[tuple[str, float]] = []
    for token, change in changes:
        if found and not token[:1].isspace():
            word, total = found.pop()
            token, change = word + token, total + change
        found.append((token, change))
    return [(word, change) for token, change in found if (word := token.strip().strip(MARKS))]
