# SPDX-License-Identifier: Apache-2.0
"""What is exported: the answers that somebody rated, said something of or compared; where its files lie."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.api.completions import without_form
from goodbot.api.export import ExportedAnswer, ExportedPair
from goodbot.api.turns import Turn
from goodbot.config import private
from goodbot.store import codec, comparisons, feedback, people, teaching, turns
from goodbot.store.consent import CONSENT
from goodbot.store.query import fetch
from goodbot.store.training_pool import Pool

EXPORTS = "exports"
"""The directory in the state directory; forgetting empties it, since its files hold words."""
_ABOUT = (
    "SELECT t.id, r.instead_of,"  # noqa: S608
    f" (SELECT {teaching.OPINIONS} FROM labels l WHERE l.turn = t.id),"
    " (SELECT avg(value) FROM labels WHERE turn = t.id),"
    f" t.trainable AND {CONSENT}, t.trainable,"
    " (SELECT sha256 FROM adapters a WHERE (a.version, a.model) = (t.version, t.model)), r.depth, r.hint"
    " FROM turns t LEFT JOIN retries r ON r.turn = t.id WHERE t.id IN (SELECT value FROM json_each(:ids))"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Identities:
    """Everybody and every place that is stored, in the order in which they came."""

    people: Sequence[tuple[str, str]]
    """`connector:id`, and whom all their accounts stand for."""
    places: Sequence[tuple[str, str]]
    """`account`, `place` or `thread`, and its id."""


async def identities(db: aiosqlite.Connection) -> Identities:
    """Who and what an export may name: of what is stored of answers, not of those that are meant alone."""
    who = await fetch(
        db,
        f"SELECT who, {people.IDENTITY_OF.format('who')} FROM ("  # noqa: S608
        " SELECT connector || ':' || talker AS who, min(created_at) AS at FROM turns GROUP BY 1"
        " UNION ALL SELECT rater, min(received_at) FROM events GROUP BY 1"
        ") GROUP BY who ORDER BY min(at), who",
    )
    places = await fetch(
        db,
        "SELECT 'account' AS name, account FROM turns UNION SELECT 'place', channel FROM turns"
        " UNION SELECT 'thread', thread FROM turns ORDER BY 1, 2",
    )
    return Identities(people=[(row[0], row[1]) for row in who], places=[(row[0], row[1]) for row in places])


async def answers(
    db: aiosqlite.Connection, ids: Sequence[str], pool: Pool | None = None
) -> list[ExportedAnswer]:
    """These answers, in this order. What may teach is that of the pool's scope and owners.

    In `record`, `ratings` is by rater (`connector:id`), in [-1, 1], or `[thumb, stars]`; `instead_of` is the
    answer that a retry was to replace. `choices` are pairs of answers to the same messages, of which an
    owner preferred one (see `chosen`).
    """
    about = {row[0]: row[1:] for row in await fetch(db, _ABOUT, _values(ids, pool))}
    earlier = [row[0] for row in about.values() if row[0]]
    stored = await turns.some(db, [*ids, *earlier])
    before = {row[0]: row[3:5] for row in await fetch(db, _ABOUT, _values(earlier, pool))}
    said: dict[str, list[dict[str, str]]] = {id_: [] for id_ in ids}
    for remark in await feedback.remarks(db, ids):
        words = {"kind": remark.kind.value, "rater": remark.rater, "text": remark.text}
        said[remark.turn].append(words)
    choices = await chosen(db, ids)
    found: list[ExportedAnswer] = []
    for id_ in ids:
        instead_of, ratings, mean, teaches, trainable, adapter, depth, hint = about[id_]
        record: dict[str, Any] = {
            **_record(stored[id_]),
            "trainable": bool(trainable),
            "adapter": adapter or "",
            "instead_of": instead_of,
            "depth": depth,
            "hint": hint,
            "ratings": dict(sorted(json.loads(ratings).items())),
            "remarks": said[id_],
            "choices": choices.get(id_, []),
        }
        pairs = _pairs(record)
        if instead_of in before:
            pairs += _retried(stored[instead_of], before[instead_of], record["answer"], mean)
        found.append(ExportedAnswer(record=record, pairs=pairs, may_teach=bool(teaches)))
    return found


def _values(ids: Sequence[str], pool: Pool | None) -> dict[str, Any]:
    who = pool.values() if pool else {"scope": "", "owners": "[]", "consented": False}
    return {"ids": codec.dump_json(list(ids)), **{n: who[n] for n in ("scope", "owners", "consented")}}


def _record(turn: Turn) -> dict[str, Any]:
    """All that is stored of an answer itself."""
    messages, form = without_form(turn.messages)
    return {
        "id": turn.id,
        "at": turn.created_at,
        "connector": turn.channel.connector,
        "channel": turn.channel.kind.value,
        "place": turn.channel.id,
        "thread": turn.channel.thread,
        "talker": turn.talker.id,
        "model": turn.model,
        "version": turn.version,
        "answered_by": turn.answered_by,
        "origin": turn.origin,
        "messages": messages,
        "form": form,
        "answer": turn.response,
        "thought": turn.thought,
        "thought_tokens": turn.thought_tokens,
        "temperature": turn.temperature,
        "filters": turn.filters.told(),
        "prompt_tokens": list(turn.prompt_tokens),
        "tokens": list(turn.tokens),
        "logprobs": list(turn.logprobs),
        "lifts": list(turn.lifts),
        "context": [list(exchange) for exchange in turn.context],
    }


def _pairs(record: Mapping[str, Any]) -> list[ExportedPair]:
    """What people typed in place of the answer, the last one of each; and what owners preferred."""
    messages, answer = record["messages"], record["answer"]
    better = {one["rater"]: one["text"] for one in record["remarks"] if one["kind"] == "better"}
    made = [("better", text, answer) for text in better.values()]
    for choice in record["choices"]:
        first, second = choice["answers"]
        if choice["preferred"] is not None:
            liked, other = (first, second) if choice["preferred"] == first["version"] else (second, first)
            made.append(("choice", liked["text"], other["text"]))
    return [
        ExportedPair(messages=messages, preferred=preferred, other=other, source=source)
        for source, preferred, other in made
        if preferred != other
    ]


def _retried(turn: Turn, about: tuple[Any, ...], again: str, second: float | None) -> list[ExportedPair]:
    """An answer and its retry, of which one was rated better: where that answer may teach, too."""
    first, teaches = about
    if not teaches or first is None or second is None or first == second or turn.response == again:
        return []
    liked, other = (again, turn.response) if second > first else (turn.response, again)
    messages, _ = without_form(turn.messages)
    return [ExportedPair(messages=messages, preferred=liked, other=other, source="retry")]


def free(home: Path, stem: str, ending: str = "jsonl") -> Path:
    """A file that is not there yet: what was exported in the same second stays."""
    place = home / EXPORTS
    names = (f"{stem}{f'-{number}' if number > 1 else ''}.{ending}" for number in itertools.count(1))
    return next(path for name in names if not (path := private.named(place / name)).exists())


async def chosen(db: aiosqlite.Connection, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """By turn of these, the pairs between which somebody has chosen, oldest first, as JSON takes them.

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
        f" WHERE {comparisons.CHOSEN} AND p.turn IN (SELECT value FROM json_each(?))"
        " ORDER BY p.chosen_at, p.id",
        (codec.dump_json(list(ids)),),
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


def files(home: Path) -> list[Path]:
    """What was exported, also half of a file."""
    return [entry for entry in (home / EXPORTS).glob("*") if entry.is_file()]


def clear(home: Path) -> None:
    """Delete what was exported. Raises OSError."""
    for file in files(home):
        file.unlink()
