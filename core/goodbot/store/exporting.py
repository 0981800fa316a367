# SPDX-License-Identifier: Apache-2.0
"""What is exported: the answers that somebody rated, said something of or compared; its files."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.api.completions import without_form
from goodbot.api.turns import CHOICE
from goodbot.store import codec, comparisons, feedback, rollback_window, teaching, turns
from goodbot.store.query import fetch

EXPORTS = "exports"
"""The directory in the state directory; forgetting empties it, since its files hold words."""


async def rated(db: aiosqlite.Connection) -> list[dict[str, Any]]:
    """One mapping an answer, oldest first, as JSON takes it.

    `ratings` is by rater (`connector:id`), in [-1, 1], or `[thumb, stars]`; `instead_of` is the answer
    that a retry was to replace. `choices` are pairs of answers to the same messages, of which an owner
    preferred one (see `chosen`).
    """
    rows = await fetch(
        db,
        "SELECT id, (SELECT instead_of FROM retries WHERE turn = turns.id),"  # noqa: S608
        f" (SELECT {teaching.OPINIONS} FROM labels l WHERE l.turn = turns.id)"
        f" FROM turns WHERE kind <> '{CHOICE}' AND (rated > 0 OR EXISTS (SELECT 1 FROM events e"
        f" WHERE e.turn = turns.id AND e.kind IN ('comment', 'better') AND {rollback_window.STANDS})"
        f" OR id IN (SELECT turn FROM pairs WHERE {comparisons.CHOSEN}))"
        " ORDER BY seq",
    )
    ids = [row[0] for row in rows]
    stored = await turns.some(db, ids)
    said: dict[str, list[dict[str, str]]] = {id_: [] for id_ in ids}
    for remark in await feedback.remarks(db, ids):
        about = {"kind": remark.kind.value, "rater": remark.rater, "text": remark.text}
        said[remark.turn].append(about)
    choices = await chosen(db)
    found: list[dict[str, Any]] = []
    for id_, instead_of, ratings in rows:
        turn = stored[id_]
        found.append(
            {
                "id": id_,
                "at": turn.created_at,
                "connector": turn.channel.connector,
                "channel": turn.channel.kind.value,
                "model": turn.model,
                "version": turn.version,
                "messages": without_form(turn.messages)[0],
                "answer": turn.response,
                "thought": turn.thought,
                "instead_of": instead_of,
                "ratings": dict(sorted(json.loads(ratings).items())),
                "remarks": said[id_],
                "choices": choices.get(id_, []),
            }
        )
    return found


def free(home: Path, stem: str) -> Path:
    """A file that is not there yet: what was exported in the same second stays."""
    place = home / EXPORTS
    names = (f"{stem}{f'-{number}' if number > 1 else ''}.jsonl" for number in itertools.count(1))
    return next(path for name in names if not (path := place / name).exists())


async def chosen(db: aiosqlite.Connection) -> dict[str, list[dict[str, Any]]]:
    """By turn, the pairs between which somebody has chosen, oldest first, as JSON takes them.

    `preferred` is the version whose answer was the better one, null where both were the same. Token
    ids and log-probs (at `temperature`, by `filters`; see `api.turns.Turn`) are empty where the server
    did not tell them.
    """
    rows = await fetch(
        db,
        "SELECT p.turn, c.old, c.new, p.old_answer, p.old_tokens, p.old_logprobs, p.new_answer,"  # noqa: S608
        " p.new_tokens, p.new_logprobs, p.old_lifts, p.new_lifts, p.filters, p.prompt_tokens,"
        " p.temperature, p.seed, p.choice, p.chosen_by, p.chosen_at"
        " FROM pairs p JOIN comparisons c ON c.id = p.comparison"
        f" WHERE {comparisons.CHOSEN} ORDER BY p.chosen_at, p.id",
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for turn, old, new, *said, prompt, temperature, seed, choice, who, at in rows:
        old_lifts, new_lifts, filters = said[6:]
        answers = [
            {
                "version": version,
                "text": text,
                "tokens": list(codec.unpack_ints(tokens)),
                "logprobs": list(codec.unpack_floats(logprobs)),
                "lifts": list(codec.unpack_floats(lifts)),
            }
            for version, (text, tokens, logprobs), lifts in (
                (old, said[:3], old_lifts),
                (new, said[3:6], new_lifts),
            )
        ]
        found.setdefault(turn, []).append(
            {
                "answers": answers,
                "preferred": {"old": old, "new": new}.get(choice),
                "by": who,
                "at": at,
                "prompt_tokens": list(codec.unpack_ints(prompt)),
                "temperature": temperature,
                "filters": json.loads(filters),
                "seed": seed,
            }
        )
    return found


def write(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """The whole file or none, readable by the owner alone."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)


def files(home: Path) -> list[Path]:
    """What was exported, also half of a file."""
    return [entry for entry in (home / EXPORTS).glob("*") if entry.is_file()]


def clear(home: Path) -> None:
    """Delete what was exported. Raises OSError."""
    for file in files(home):
        file.unlink()
