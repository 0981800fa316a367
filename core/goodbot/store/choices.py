# SPDX-License-Identifier: Apache-2.0
"""What a blind choice teaches: its two answers, one called good and the other bad by who has chosen.

They are stored like answers that were given, with the version that wrote each and its log-probs, and rated in
the ledger: so a share, an undo, a rollback window and forgetting hold for them as for every rating. Nobody
was shown them as an answer: they stand in no history and no inbox, and do not bring a round nearer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import aiosqlite

from goodbot.api.turns import CHOICE, Turn
from goodbot.store import codec, comparisons, turns
from goodbot.store.comparisons import Pair
from goodbot.store.query import fetch, value


def weight(turn: Turn) -> float:
    """Of what a rating of it weighs: the two answers of a choice are one together."""
    return 0.5 if turn.kind == CHOICE else 1.0


async def answers(db: aiosqlite.Connection, pair: Pair, choice: str, now: float) -> list[tuple[str, float]]:
    """Store both answers of a pair: their turns, each with what `choice` says of it.

    Nothing where it speaks for neither, where the prompt may not train, or where other programs have it, too:
    who must agree then is told by the answer that was given.
    """
    given = await turns.get(db, pair.turn)
    trains = await value(db, "SELECT trainable FROM turns WHERE id = ?", (pair.turn,))
    if choice not in ("old", "new") or given is None or not trains or given.origin == "captured":
        return []
    [row] = await fetch(
        db,
        "SELECT temperature, filters, prompt_tokens, old_answer, old_tokens, old_logprobs, old_lifts,"
        " new_answer, new_tokens, new_logprobs, new_lifts FROM pairs WHERE id = ?",
        (pair.id,),
    )
    temperature, filters, prompt, *said = row
    versions = {"old": pair.comparison.old, "new": pair.comparison.new}
    found = list(zip(versions.items(), (said[:4], said[4:]), strict=True))
    for (which, version), (text, tokens, logprobs, lifts) in found:
        turn = replace(
            given,
            id=_id(pair.id, which),
            response=text,
            version=version,
            temperature=temperature,
            filters=codec.load_filters(filters),
            prompt_tokens=codec.unpack_ints(prompt),
            tokens=codec.unpack_ints(tokens),
            logprobs=codec.unpack_floats(logprobs),
            lifts=codec.unpack_floats(lifts),
            thought="",
            thought_tokens=0,
            kind=CHOICE,
            created_at=now,
        )
        if await turns.get(db, turn.id) is None:  # it was chosen before, and taken back
            await turns.insert(db, turn, trainable=True)
    return [(_id(pair.id, which), 1.0 if which == choice else -1.0) for which in versions]


async def of(db: aiosqlite.Connection, pair: int) -> list[str]:
    """The turns of a pair's answers that are stored."""
    ids = [_id(pair, which) for which in ("old", "new")]
    return list(await turns.some(db, ids))


async def take_back(db: aiosqlite.Connection, accounts: Sequence[str], scope: str = "") -> int | None:
    """Unsay the last choice of the person with these accounts: its pair, None where there is none.

    With `scope` of what was asked there alone.

    While its comparison is open it is asked again; what came of a closed one stays.
    """
    return await value(
        db,
        "UPDATE pairs SET choice = iif("  # noqa: S608
        "(SELECT closed_at FROM comparisons c WHERE c.id = comparison) IS NULL, NULL, 'skip')"
        f" WHERE id = (SELECT id FROM pairs WHERE {comparisons.CHOSEN}"
        " AND chosen_by IN (SELECT value FROM json_each(?))"
        " AND (? = '' OR comparison IN (SELECT id FROM comparisons WHERE scope = ?))"
        " ORDER BY comparison DESC, chosen_at DESC, id DESC LIMIT 1)"
        " RETURNING id",
        (codec.dump_json(accounts), scope, scope),
    )


def _id(pair: int, which: str) -> str:
    return f"pair-{pair}-{which}"
