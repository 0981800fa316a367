# SPDX-License-Identifier: Apache-2.0
"""Which rated answers teach, as the reward policy in use has it: SQL's `teaches`, and `turns.rated`.

`rated` is 0 for an answer without labels, 1 where its labels teach, 2 where the policy makes no reward
of them (a tie, say), where a choice rated them, which teaches and is not counted, and where a filter keeps
them out. So what may be claimed is counted without asking the policy again, and nothing else is read.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence

import aiosqlite

from goodbot.api.judge import JUDGE
from goodbot.api.labels import Opinion
from goodbot.api.rewards import RewardPolicy, TurnRating
from goodbot.api.turns import CHOICE
from goodbot.store import codec, settings
from goodbot.store.query import fetch

logger = logging.getLogger(__name__)

OPINION = "json(iif(l.stars IS NULL, json_quote(l.value), json_array(l.value, l.stars)))"
"""SQL: the `Opinion` that a label `l` holds, as JSON."""
OPINIONS = f"json_group_object(l.rater, {OPINION})"
"""SQL: the `Opinion` of each rater in a group of `labels` `l`, as a JSON object."""
_NAMED = "SELECT 1 FROM set_aside s WHERE (s.turn, s.model, s.kind) = (turns.id, turns.model, 'filter')"
_MAY = f"turns.kind <> '{CHOICE}' AND NOT EXISTS ({_NAMED})"
"""SQL: what is said of it may teach."""
_SAID = f"SELECT l.turn, {OPINIONS} FROM labels l WHERE l.turn {{}} GROUP BY l.turn"  # noqa: S608
_OF_ONE, _OF_SOME = _SAID.format("= ?"), _SAID.format("IN (SELECT value FROM json_each(?))")
# Of the labels, which are given to it, and not of rows: a database that cannot ask us is told the answer.
_RATED = f"CASE WHEN :said = '{{}}' THEN 0 WHEN {_MAY} AND teaches(:said) THEN 1 ELSE 2 END"
_PAGE = 5000
"""Answers that are looked at together at the start."""
_SPENT = (
    "CASE WHEN rated = 0 AND EXISTS (SELECT 1 FROM runs r JOIN run_items i ON i.run = r.id"  # noqa: S608
    " WHERE r.id = turns.spent AND r.state = 'refused' AND i.turn = turns.id"
    f" AND EXISTS (SELECT 1 FROM json_each(i.labels) said WHERE said.key GLOB '{JUDGE}:*'))"
    " THEN NULL ELSE spent END"
)
"""SQL: what a refused run took as judged is free for the rating that takes the judgement's place."""
_COUNTED_BY = "counted by"
"""The switch that keeps the name of the policy that all answers were counted by."""


def by_signs(ratings: Sequence[TurnRating]) -> float | None:
    """What there is to go by without a policy: more good than bad, or the other way round."""
    sign = sum((rating.value > 0) - (rating.value < 0) for rating in ratings)
    return float(sign) if sign else None


def function(policy: RewardPolicy | None) -> Callable[[str], bool]:
    """SQL `teaches(OPINIONS)`: whether the policy makes a reward of these labels."""
    reward = policy.fn if policy else by_signs

    def teaches(opinions: str) -> bool:
        labels: Mapping[str, Opinion] = json.loads(opinions)
        if not labels:
            return False
        ratings = [TurnRating.of(rater, opinion) for rater, opinion in labels.items()]
        try:
            return reward(ratings) is not None
        except Exception:  # a plugin's: no rating is lost for it, and the training says so, too
            logger.exception("the reward policy has failed; it is counted by good and bad")
            return by_signs(ratings) is not None

    return teaches


async def count(db: aiosqlite.Connection, *turns: str) -> None:
    """The labels of these have changed, or whether a filter keeps them out."""
    # One, as each rating has it, is found without a list.
    query, values = (_OF_ONE, turns) if len(turns) == 1 else (_OF_SOME, (codec.dump_json(turns),))
    said = dict(await fetch(db, query, values))
    await db.executemany(
        f"UPDATE turns SET rated = {_RATED}, spent = {_SPENT} WHERE id = :turn",  # noqa: S608
        [{"turn": turn, "said": said.get(turn, "{}")} for turn in turns],
    )


async def count_all(db: aiosqlite.Connection, policy: RewardPolicy) -> None:
    """At start: what waits for a run is counted by the policy; everything, where it is another one."""
    same = await settings.switch(db, _COUNTED_BY) == policy.name
    which = "rated > 0 AND spent IS NULL" if same else "rated > 0"
    teaches, after = function(policy), 0
    query = (
        f"SELECT seq, id, rated, {_MAY}, (SELECT {OPINIONS} FROM labels l WHERE l.turn = turns.id)"  # noqa: S608
        f" FROM turns WHERE {which} AND seq > ? ORDER BY seq LIMIT ?"
    )
    while rows := await fetch(db, query, (after, _PAGE)):
        after = rows[-1][0]
        new = [0 if said == "{}" else 1 if may and teaches(said) else 2 for *_, may, said in rows]
        await count(db, *(row[1] for row, rated in zip(rows, new, strict=True) if row[2] != rated))
    await settings.set_switch(db, _COUNTED_BY, policy.name)
