# SPDX-License-Identifier: Apache-2.0
"""Answers of other models train off-policy, our own that came from elsewhere on-policy, side calls never."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CaptureEvent, OrderKey, UserRef
from goodbot.learning.training import batch
from goodbot.learning.training.filtering import Screening
from goodbot.learning.training.job_spec import make_job
from goodbot.store import acceptance, objections, training_pool, turns
from goodbot.store.query import fetch
from goodbot_training.job.types import Job
from goodbot_training.round.rollouts import _known

from tests.core.builders import CHANNEL, GRANTS, OWNER, Bot, open_bot, rate

OURS: dict[str, Any] = {
    "model": "",
    "version": 0,
    "prompt_tokens": (1,),
    "tokens": (2, 3),
    "logprobs": (-0.5, -0.25),
}
SIDE = "words of a side call"


async def captured(bot: Bot, number: int, **fields: Any) -> None:
    """A captured answer and its rating, good and bad in turn."""
    given: dict[str, Any] = {
        "messages": ({"role": "user", "content": f"question {number}"},),
        "response": "answer",
        "model": "cloud-1",
        "message_id": f"m-c{number}",
    }
    at: dict[str, Any] = {"user": OWNER, "channel": CHANNEL, "order": OrderKey(number)}
    event = CaptureEvent(event_id=f"c{number}", **{**at, **given, **fields})
    rating = rate(f"r{number}", number, 1.0 if number % 2 else -1.0, f"c{number}")
    rating = replace(rating, user=event.user, channel=event.channel)
    await bot.chat.host.submit([event, rating])


async def job_of(bot: Bot, home: Path) -> dict[str, Any]:
    """What the child of a training that begins now would get."""
    core = replace(bot.app, settings={})
    _, items = await bot.store.read(
        lambda db: batch.take(db, batch.usual(core, Screening(core.filtering), parent=0))
    )
    return await make_job(core, core.registry, run=1, parent=0, items=items, folder=home / "job")


async def test_other_models_train_off_policy_and_we_on_policy(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for number in range(6):
            await captured(bot, number)
        for number in range(6, 9):
            await captured(bot, number, **OURS)
        await captured(bot, 9, kind="side", response=SIDE)
        await captured(bot, 10, kind="side", messages=({"role": "user", "content": SIDE},))
        job = await job_of(bot, tmp_path)
        text = json.dumps(job)
        assert SIDE not in text
        by_version = [item["version"] for item in job["items"]]
        assert sorted(by_version, key=str) == [0] * 3 + [None] * 6
        own = [item for item in job["items"] if item["version"] == 0]
        assert [tuple(item["tokens"]) for item in own] == [(2, 3)] * 3
        parsed = Job.parse(json.loads(text))
        assert [item.reported for item in parsed.items] == [item.version == 0 for item in parsed.items]
        assert sum(not item.captured and not _known(item, parsed) for item in parsed.items) == 6

        status = await bot.command("status")
        assert "6 of the ratings are of answers that other models wrote" in status
        planned = await bot.command("train", "--dry-run --details")
        assert "Other models wrote 6 of them" in planned
        await bot.command("train")
        await bot.settle()
        trained = await bot.trained(1)
        assert len(trained) == 7  # two are held out
        why = await bot.command("why")
        assert re.search(r"It learnt from 7 rated answers \(. good, . bad; . by other models\)", why)
        assert "; 2 more were kept to check it." in why
        # Each is used once, as ours are.
        pool = bot.app.trainer._pool
        standing = await bot.store.read(lambda db: training_pool.standing(db, pool))
        assert standing.available == 2
        # What other models say is no word on the versions of ours.
        [base] = await bot.store.read(lambda db: acceptance.by_version(db, pool))
        assert (base.version, base.rated) == (0, 3)


async def test_who_wants_no_other_models_learns_from_its_own_alone(tmp_path: Path) -> None:
    async with open_bot(tmp_path, from_others=False) as bot:
        for number in range(4):
            await captured(bot, number)
        await captured(bot, 4, **OURS)
        await captured(bot, 5, **OURS)
        job = await job_of(bot, tmp_path)
        assert [item["version"] for item in job["items"]] == [0, 0]
        assert "2 of 8" in await bot.command("status")
        assert "Other models" not in await bot.command("train", "--dry-run")


async def test_a_private_answer_trains_with_consent_alone(tmp_path: Path) -> None:
    """Whoever set the bot up has agreed, and goes on counting when another talks."""
    async with open_bot(tmp_path) as bot:
        pool = bot.app.trainer._pool

        async def available() -> int:
            return (await bot.store.read(lambda db: training_pool.standing(db, pool))).available

        await captured(bot, 0)
        assert await available() == 1
        rater = replace(OWNER, id="rater")
        await captured(bot, 1, user=rater, channel=replace(CHANNEL, id="rater"))
        assert await available() == 1
        await bot.command("share", "on", user="rater")
        assert await available() == 2
        await bot.command("share", "off")
        assert await available() == 1


async def test_what_nobody_rated_shows_what_was_learnt_with_consent_alone(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for number in range(2):
            await captured(bot, number, **OURS)

        async def asked(name: str, **fields: Any) -> None:
            question = {"messages": ({"role": "user", "content": f"asked by {name}"},)}
            given: dict[str, Any] = {**OURS, **question, "response": "answer", "message_id": name}
            at: dict[str, Any] = {"user": OWNER, "channel": CHANNEL, "order": OrderKey(0)}
            await bot.chat.host.submit([CaptureEvent(event_id=name, **{**at, **given, **fields})])

        async def unrated() -> list[str]:
            return [one[-1]["content"] for one in (await job_of(bot, tmp_path))["unrated"]]

        await asked("an owner")
        await asked("a program", kind="side")
        rater = replace(OWNER, id="rater")
        await asked("a rater", user=rater, channel=replace(CHANNEL, id="rater"))
        assert await unrated() == ["asked by an owner"]
        await bot.command("share", "on", user="rater")
        assert await unrated() == ["asked by a rater", "asked by an owner"], "the newest first"
        job = Job.parse(await job_of(bot, tmp_path))
        assert len(job.unrated) == 2
        assert len(job.anchors) == 2, "the gate asks what it has always asked"


async def test_whoever_another_connector_saw_in_a_turn_has_to_consent_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        config = bot.app.authorization._config
        config["agent"] = replace(GRANTS, owners=(), talkers=("ada",))
        pool = bot.app.trainer._pool

        async def available() -> int:
            return (await bot.store.read(lambda db: training_pool.standing(db, pool))).available

        async def shares(who: str) -> None:
            await bot.store.write(
                lambda db: db.execute("INSERT INTO shares (person, since) VALUES (?, 1)", (who,))
            )

        await captured(bot, 0, trace="w3c:1")
        assert await available() == 1
        ada = UserRef(connector="agent", account="local", id="ada")
        hook = CaptureEvent(
            event_id="h",
            order=OrderKey(1),
            user=ada,
            response="answer",
            trace="w3c:1",
            channel=replace(CHANNEL, connector="agent", account="local", id="ada"),
            messages=({"role": "user", "content": "question 0"},),
        )
        [receipt] = await bot.app.dispatcher.submit([hook], "agent")
        assert len(await bot.store.read(lambda db: fetch(db, "SELECT id FROM turns"))) == 1
        assert await available() == 0  # the owner is not alone here any more
        talkers = await bot.store.read(lambda db: fetch(db, "SELECT person FROM talkers"))
        assert ("agent:ada",) in [tuple(row) for row in talkers]
        await shares("loopback:owner")
        assert await available() == 0
        await shares("agent:ada")
        assert await available() == 1

        async def claim(db: Any) -> None:
            await db.execute(
                "INSERT INTO runs (id, scope, state, parent, why, backend, settings, last_event_seq,"
                " started_at) VALUES (1, 'default', 'activated', 0, '', '', '{}', 0, 1)"
            )
            await db.execute(
                "INSERT INTO run_items (run, turn, split, reward, labels) VALUES (1, ?, 'train', 1, '{}')",
                (receipt.turn,),
            )

        await bot.store.write(claim)
        assert not await bot.store.read(lambda db: objections.withdrawn(db, pool, 1))
        await bot.store.write(lambda db: db.execute("DELETE FROM shares WHERE person = 'agent:ada'"))
        assert await bot.store.read(lambda db: objections.withdrawn(db, pool, 1))


async def test_answers_of_other_models_age_too(tmp_path: Path) -> None:
    """By the versions that were made since they were given: they have none of their own."""
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            assert (await bot.train()).state == "activated"
        for number in (1, 3):
            await captured(bot, number)
        first, second = [row.created_at for row in await bot.app.registry.rows()]

        async def earlier(db: Any) -> None:
            await db.execute(
                "UPDATE turns SET created_at = ? WHERE response = 'answer' AND messages LIKE '%question 1%'",
                ((first + second) / 2,),
            )

        await bot.store.write(earlier)
        pool = bot.app.trainer._pool
        found = await bot.store.read(lambda db: training_pool.candidates(db, pool, parent=2))
        ages = {str(one.turn.messages[-1]["content"]): one.age for one in found if one.turn.answered_by}
        assert ages == {"question 1": 1, "question 3": 0}


async def test_s5_long_answers_fill_no_trainings_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run takes so much at once, the oldest first, and what no model could read trains nothing at all."""
    async with open_bot(tmp_path) as bot:
        for number in range(6):
            await captured(bot, number, response="word " * 1000)
        await captured(bot, 6, response="word " * 200_000)
        pool = bot.app.trainer._pool

        async def taken(**changes: Any) -> list[str]:
            found = await bot.store.read(lambda db: training_pool.candidates(db, pool, **changes))
            return [str(one.turn.messages[-1]["content"]) for one in found]

        everything = [f"question {number}" for number in range(6)]
        assert await taken() == everything
        monkeypatch.setattr(turns, "MOST", 13_000)
        assert await taken() == everything[:2]
        assert await taken(at_least=4) == everything[:4]
        found = await bot.store.read(lambda db: training_pool.candidates(db, pool))
        of = {one.turn.id: False for one in found}
        assert await taken(of=of) == everything[:2]
        tie = "UPDATE turns SET rated = 2 WHERE id = ?"  # no run takes it, so others have its room
        await bot.store.write(lambda db: db.execute(tie, (found[0].turn.id,)))
        assert await taken() == everything[1:3]
        assert await taken(replay=True) == everything, "what another model has not learnt is taken at once"
