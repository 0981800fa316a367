# SPDX-License-Identifier: Apache-2.0
"""Answers that are brought in with what people said of them: each is stored whole, once, or not at all.

They lie under an account of their own (`ACCOUNT`), so that no chat takes them for what was just said in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiosqlite

from goodbot.api.events import Outcome, RatingEvent, Receipt
from goodbot.api.turns import Turn
from goodbot.store import codec, ledger, retries, turns
from goodbot.store.query import fetch, value
from goodbot.store.retries import Retry

ACCOUNT = "imported"
"""Of the connector that an answer names: not the bot's own there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedChoice:
    """A blind choice between two answers, as `exporting.chosen` tells it."""

    answers: tuple[dict[str, Any], dict[str, Any]]
    preferred: int | None
    by: str
    at: float
    prompt_tokens: tuple[int, ...]
    temperature: float
    filters: str
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedAnswer:
    """One answer, and what was said of it."""

    turn: Turn
    trainable: bool
    adapter: str
    """SHA-256 of the version that wrote it; empty for a base model and for other models."""
    retry: Retry | None
    ratings: Sequence[RatingEvent]
    choices: Sequence[ImportedChoice]


async def add(db: aiosqlite.Connection, answer: ImportedAnswer, now: float) -> bool:
    """Store one; False when it is there already. Part of one transaction."""
    turn = answer.turn
    if await fetch(db, "SELECT 1 FROM turns WHERE id = ?", (turn.id,)):
        return False
    if answer.adapter and (ours := await _version(db, answer.adapter, turn)):
        turn = replace(turn, version=ours, answered_by="")
    who = (turn.scope, f"{turn.talker.connector}:{turn.talker.id}")
    talked = await fetch(db, "SELECT 1 FROM talkers WHERE (scope, person) = (?, ?)", who)
    await turns.insert(db, turn, trainable=answer.trainable)
    if not talked:  # nobody of a file talks to this bot by that: what its owners say goes on to teach
        await db.execute("DELETE FROM talkers WHERE (scope, person) = (?, ?)", who)
    if answer.retry is not None:
        await retries.insert(db, answer.retry)
    for event in answer.ratings:
        rater = f"{event.user.connector}:{event.user.id}"
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=turn.id)
        await ledger.insert(db, event, turn.id, rater, receipt, now, overtaken=False)
    for choice in answer.choices:
        await _choose(db, turn, choice)
    return True


async def _version(db: aiosqlite.Connection, sha256: str, turn: Turn) -> int:
    """Which version of ours these bytes are; 0: none. Numbers say nothing across two goodbots."""
    query = "SELECT max(version) FROM adapters WHERE (sha256, model, scope) = (?, ?, ?)"
    return await value(db, query, (sha256, turn.model, turn.scope)) or 0


async def _choose(db: aiosqlite.Connection, turn: Turn, choice: ImportedChoice) -> None:
    """Under a comparison that no version here has to do with."""
    old, new = choice.answers
    rows = await fetch(
        db,
        "INSERT INTO comparisons (scope, model, run, old, new, held, seed, state, opened_at, closed_at)"
        " VALUES (?, ?, 0, ?, ?, 0, 0, 'superseded', ?, ?) RETURNING id",
        (ACCOUNT, turn.model, old["version"], new["version"], choice.at, choice.at),
    )
    said = "same" if choice.preferred is None else "old" if choice.preferred == old["version"] else "new"
    await db.execute(
        "INSERT INTO pairs (comparison, turn, owner, temperature, seed, prompt_tokens,"
        " old_answer, old_tokens, old_logprobs, old_lifts, new_answer, new_tokens, new_logprobs, new_lifts,"
        " filters, choice, chosen_by, chosen_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            rows[0][0],
            turn.id,
            choice.by,
            choice.temperature,
            choice.seed,
            codec.pack_ints(choice.prompt_tokens),
            *_packed(old),
            *_packed(new),
            choice.filters,
            said,
            choice.by,
            choice.at,
        ),
    )


def _packed(answer: dict[str, Any]) -> tuple[Any, ...]:
    floats = (codec.pack_floats(answer[name]) for name in ("logprobs", "lifts"))
    return (answer["text"], codec.pack_ints(answer["tokens"]), *floats)
