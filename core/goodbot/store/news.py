# SPDX-License-Identifier: Apache-2.0
"""What people are told about: how far a round is, streaks of bad ratings, what runs were made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aiosqlite

from goodbot.api.events import ChannelKind, ChannelRef, Message, UserRef
from goodbot.api.judge import JUDGE
from goodbot.api.sentences import Reason, because
from goodbot.store import codec, distilled, settings, words
from goodbot.store.consent import ALWAYS, CONSENT, OWNERS, PERSON, SHARING
from goodbot.store.people import IDENTITY
from goodbot.store.prompts import ASKABLE
from goodbot.store.query import fetch, first, value
from goodbot.store.training_pool import UNUSED, Pool, count

COUNTED = 1000
"""A rating counts what waits up to here: it costs the same however much does."""
STREAK = 8
"""So many bad ratings in a row are worth a word."""

_STREAK = (
    "SELECT l.value FROM labels l JOIN turns t ON t.id = l.turn"  # noqa: S608
    f" WHERE l.rater = {IDENTITY} AND t.scope = :scope ORDER BY l.event_seq DESC LIMIT :streak"
)
_TEACHES = "coalesce((SELECT rated = 1 FROM turns WHERE id = :turn), 0)"
_WAITS = (
    f"SELECT {PERSON} FROM turns t WHERE t.id = :turn AND t.scope = :scope AND t.trainable"  # noqa: S608
    f" AND NOT {CONSENT}"
)
_WAITED = (
    f"SELECT DISTINCT {PERSON} FROM turns t WHERE t.scope = :scope AND t.trainable AND t.rated > 0"  # noqa: S608
    f" AND t.channel_kind = 'private' AND t.created_at < :since AND {CONSENT}"
    f" AND {PERSON} NOT IN (SELECT person FROM shares)"
    " AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = t.spent AND r.finished_at < :since)"
    f" AND EXISTS (SELECT 1 FROM talkers WHERE scope = :scope AND person NOT IN {OWNERS})"
)
_STOPPED = (
    f"SELECT DISTINCT {PERSON} FROM turns t WHERE t.scope = :scope AND t.trainable AND t.rated > 0"  # noqa: S608
    f" AND t.spent IS NULL AND t.channel_kind = 'private' AND {PERSON} IN {OWNERS}"
    f" AND {PERSON} NOT IN ({SHARING}) AND {PERSON} NOT IN (SELECT person FROM withheld)"
)
TEACHING_SINCE = "teaching since"
"""The switch that says since when owners teach from private chats although others talk to the bot."""
_ASKED = "asked for by "
"""So began the sentence that a goodbot before codes kept."""
_NEWEST = 300
"""Answers that somebody's last questions are looked for in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """Where a round and one rater stand."""

    available: int
    """Rated turns that a run could claim now, counted up to the limit that was asked for."""
    round: int
    """The last run's id: the round that is being filled comes after it."""
    rater: str
    """The key that the person's labels are kept under."""
    streak: bool
    """The last `STREAK` of them are all bad."""
    waits_for: str = ""
    """Whose consent the rated answer waits for, as `connector:id`: it was said in private."""
    unused: str = ""
    """Why the rated answer trains nothing, whatever is said of it (`training_pool.UNUSED`)."""
    teaches: bool = False
    """The reward policy makes a reward of what all say of it;"""
    raters: int = 0
    """so many are they."""
    rests: bool = False
    """Training is paused, or goodbot is off: nothing starts before `resume`."""
    needed: int = 0
    """For so many the round waits."""

    @property
    def counts(self) -> bool:
        """Whether the rated answer is among those available."""
        return self.teaches and not self.unused and not self.waits_for


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMaterial:
    """What one run was made of. Times are seconds since the epoch."""

    trained: int
    """What they have learnt from: `good`, `bad`, and what a policy has in the middle."""
    held_out: int
    """Kept to check what was learnt; the numbers below are without them."""
    good: int
    bad: int
    raters: int
    since: float
    until: float
    off_policy: int = 0
    """Of those trained on, answers of other models."""
    judged: int = 0
    """Learnt beside those: answers that only a judge rated."""
    words: Mapping[str, int] = field(default_factory=dict[str, int])
    """By the kinds of `words.Word`, `note` and `choice`: of so many answers such words were learnt."""


async def level(db: aiosqlite.Connection, pool: Pool, person: str, needed: int, turn: str = "") -> Level:
    """Where it stands for `connector:id`, who has rated `turn`. One trip: every rating makes it.

    What is available is counted up to `needed`, and up to `COUNTED`.
    """
    rows = await fetch(
        db,
        pool.asked(
            f"SELECT {IDENTITY}, ({count(pool)}),"  # noqa: S608
            " coalesce((SELECT id FROM runs WHERE scope = :scope ORDER BY id DESC LIMIT 1), 0),"
            f" (SELECT count(*) FROM ({_STREAK}) WHERE value < 0), coalesce(({_WAITS}), ''),"
            f" coalesce(({UNUSED}), ''), {_TEACHES}, (SELECT count(*) FROM labels WHERE turn = :turn),"
            " EXISTS (SELECT 1 FROM switches WHERE name IN ('paused', 'off') AND value <> '')"
        ),
        {**pool.values(), "person": person, "limit": min(needed, COUNTED), "streak": STREAK, "turn": turn},
    )
    [(rater, available, round_, bad, waits, unused, teaches, raters, rests)] = rows
    return Level(
        available=available,
        round=round_,
        rater=rater,
        streak=bad == STREAK,
        waits_for="" if unused else waits,
        unused=unused,
        teaches=bool(teaches),
        raters=raters,
        rests=bool(rests),
        needed=needed,
    )


async def streak_since(db: aiosqlite.Connection, scope: str, rater: str) -> int:
    """The event that a streak of bad ratings comes after: the rater's last one that was not bad."""
    return await value(
        db,
        "SELECT l.event_seq FROM labels l JOIN turns t ON t.id = l.turn"
        " WHERE (l.rater, t.scope) = (?, ?) AND l.value >= 0 ORDER BY l.event_seq DESC LIMIT 1",
        (rater, scope),
        default=0,
    )


async def raters(db: aiosqlite.Connection, scope: str) -> list[tuple[str, bool]]:
    """Everybody with a label as `connector:id`, whoever rated last first.

    Where several accounts are linked, the one that the last rating came from. The second part
    says whether that rating is newer than the last run.
    """
    rows = await fetch(
        db,
        "SELECT l.rater, e.connector, l.last, (SELECT k.person FROM links k"
        " WHERE k.identity = l.rater AND substr(k.person, 1, length(e.connector) + 1)"
        " = e.connector || ':' ORDER BY k.person LIMIT 1)"
        " FROM (SELECT l.rater, max(l.event_seq) AS last FROM labels l JOIN turns t ON t.id = l.turn"
        " WHERE t.scope = ? GROUP BY l.rater) l JOIN events e ON e.seq = l.last ORDER BY 3 DESC",
        (scope,),
    )
    last = first(
        await fetch(db, "SELECT last_event_seq FROM runs WHERE scope = ? ORDER BY id DESC LIMIT 1", (scope,))
    )
    return [(row[3] or row[0], row[2] > (last[0] if last else 0)) for row in rows]


async def waited(db: aiosqlite.Connection, pool: Pool) -> list[str]:
    """Owners whose private ratings waited, by an older goodbot's rule, and count now."""
    since = await settings.switch(db, TEACHING_SINCE)
    rows = await fetch(db, _WAITED, {**pool.values(), "since": float(since or 0)})
    return [row[0] for row in rows]


async def stopped(db: aiosqlite.Connection, pool: Pool) -> list[str]:
    """Owners whose private ratings counted while only owners talked, and wait for their word since."""
    return [row[0] for row in await fetch(db, _STOPPED, pool.values())]


async def goes_on(db: aiosqlite.Connection, pool: Pool, person: str) -> bool:
    """Whether what this one rates in private teaches, whoever else talks."""
    rows = await fetch(db, f"SELECT 1 WHERE :person IN ({ALWAYS})", {**pool.values(), "person": person})
    return bool(rows)


async def told_of(db: aiosqlite.Connection, subject: str) -> list[str]:
    """The keys under which somebody was told of a subject, their first word."""
    start = f"{subject} "
    query = "SELECT person FROM told WHERE substr(person, 1, ?) = ?"
    return [row[0] for row in await fetch(db, query, (len(start), start))]


async def told(db: aiosqlite.Connection, key: str) -> bool:
    """Whether somebody was told this already."""
    return first(await fetch(db, "SELECT 1 FROM told WHERE person = ?", (key,))) is not None


async def untell(db: aiosqlite.Connection, key: str) -> None:
    """It could not be told now: another time."""
    await db.execute("DELETE FROM told WHERE person = ?", (key,))


async def last_seconds(db: aiosqlite.Connection, scope: str) -> float | None:
    """How long the last run took that reached a verdict."""
    return await value(
        db,
        "SELECT finished_at - started_at FROM runs WHERE scope = ?"
        " AND state IN ('activated', 'refused', 'released') AND finished_at IS NOT NULL"
        " ORDER BY id DESC LIMIT 1",
        (scope,),
    )


async def material(db: aiosqlite.Connection, runs: Sequence[int]) -> RunMaterial:
    """What these runs have learnt from or held out, together."""
    rows = await fetch(
        db,
        # One that an earlier of these runs had held out, and a later one has trained on, is one answer.
        "WITH items AS (SELECT iif(i.labels GLOB :judged, 'judged', i.split) AS split, i.reward, i.labels,"
        " t.created_at, t.answered_by FROM run_items i"
        " JOIN turns t ON t.id = i.turn WHERE i.weight > 0 AND i.run IN (SELECT CAST(value AS"
        " INTEGER) FROM json_each(:runs))"
        " AND i.run = (SELECT max(o.run) FROM run_items o WHERE o.turn = i.turn"
        " AND o.run IN (SELECT CAST(value AS INTEGER) FROM json_each(:runs))))"
        " SELECT count(*), (SELECT count(*) FROM items WHERE split = 'held_out'),"
        " coalesce(sum(reward > 0), 0), coalesce(sum(reward < 0), 0),"
        " (SELECT count(DISTINCT l.key) FROM items, json_each(items.labels) l WHERE split = 'train'),"
        " coalesce(min(created_at), 0.0), coalesce(max(created_at), 0.0),"
        " coalesce(sum(answered_by <> ''), 0), (SELECT count(*) FROM items WHERE split = 'judged')"
        " FROM items WHERE split = 'train'",
        {"runs": json.dumps(list(runs)), "judged": f'{{"{JUDGE}:*'},
    )
    (found,) = rows
    trained, held_out, good, bad, people, since, until, off_policy, judged = found
    noted = await distilled.answers(db, runs)
    return RunMaterial(
        trained=trained,
        held_out=held_out,
        good=good,
        bad=bad,
        raters=people,
        since=since,
        until=until,
        off_policy=off_policy,
        judged=judged,
        words=await words.counts(db, runs) | ({"note": noted} if noted else {}),
    )


def asked_by(who: str) -> tuple[Reason, ...]:
    """Why a run was started that somebody asked for."""
    return (because("begun_asked", person=who),)


def was_asked(cause: Sequence[Reason]) -> bool:
    """Whether somebody asked for the run, and no condition was met."""
    return any(one.code == "begun_asked" for one in cause)


async def forget_asked(db: aiosqlite.Connection, who: str, nobody: str) -> None:
    """In place of who asked for a run stands `nobody`."""
    theirs = codec.dump_reasons(asked_by(who)), f"{_ASKED}{who}"
    query = "UPDATE runs SET why = ? WHERE why IN (?, ?)"
    await db.execute(query, (codec.dump_reasons(asked_by(nobody)), *theirs))


async def cause(db: aiosqlite.Connection, run: int) -> tuple[tuple[Reason, ...], tuple[Reason, ...]]:
    """Why a run was started, and its verdict."""
    row = first(await fetch(db, "SELECT why, reason FROM runs WHERE id = ?", (run,)))
    return (_begun(row[0]), codec.load_reasons(row[1])) if row else ((), ())


def _begun(kept: str) -> tuple[Reason, ...]:
    asked, _, who = kept.partition(_ASKED)
    return asked_by(who) if who and not asked else codec.load_reasons(kept)


async def own_prompts(
    db: aiosqlite.Connection, user: UserRef, channel: ChannelRef, limit: int
) -> list[list[Message]]:
    """The newest different questions of one person in one place, with what went before each.

    In a shared channel only what was said there; in private only what was said in private. Of their
    last 300 answers, without those of which another was asked for in goodbot's words.
    """
    shared = channel.kind is ChannelKind.SHARED
    rows = await fetch(
        db,
        "SELECT messages, seq FROM turns WHERE seq IN (SELECT max(seq) FROM (SELECT seq, messages FROM turns"  # noqa: S608
        " WHERE (connector, account, talker) = (?, ?, ?)"
        f" AND channel_kind = ? AND (NOT ? OR channel = ?) AND response <> '' AND {ASKABLE}"
        " AND NOT EXISTS (SELECT 1 FROM retries r WHERE r.turn = turns.id)"
        " ORDER BY seq DESC LIMIT ?)"
        " GROUP BY json_extract(messages, '$[#-1].content')) ORDER BY 2 DESC LIMIT ?",
        (user.connector, user.account, user.id, channel.kind, shared, channel.id, _NEWEST, limit),
    )
    return [json.loads(row[0]) for row in rows]
