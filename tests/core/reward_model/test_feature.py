# SPDX-License-Identifier: Apache-2.0
"""The reward model in a whole goodbot: when it looks, what is said, and that it reaches no training."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.predicted import Predicted
from goodbot.api.sentences import Reason, because
from goodbot.features.reward_model import plugin
from goodbot.learning import reward_model
from goodbot.learning.training import batch
from goodbot.learning.training.filtering import Screening
from goodbot.store import predictions
from goodbot.testing import VirtualClock

from tests.architecture.source import ROOT
from tests.core.builders import Bot, open_bot, rows, until
from tests.support import patience

ON: dict[str, Any] = {"features": {"reward_model": {}}}
LOOK = 600


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reward_model, "LEAST", 8)


def bot(
    home: Path, *, clock: VirtualClock | None = None, sections: Mapping[str, Any] = ON
) -> AbstractAsyncContextManager[Bot]:
    return open_bot(home, extra=(plugin,), clock=clock, sections=sections)


async def said(one: Bot) -> Predicted | Reason | None:
    return await one.store.read(lambda db: predictions.of(db, one.app.model.name))


async def predict(one: Bot) -> str:
    return await reward_model.predict(one.app)


async def report(one: Bot, language: str = "") -> tuple[str, dict[str, Any]]:
    typed = one.chat.typed("report", "predicted")
    user = replace(typed.user, language=language)
    result = await one.app.commands.execute(replace(typed, user=user))
    return result.text, dict(result.data)["predicted"]


async def looks(clock: VirtualClock, done: Callable[[], Awaitable[bool]]) -> None:
    """Let ten minutes after ten minutes go by until it has happened."""

    async def later() -> bool:
        if await done():
            return True
        clock.advance(LOOK)
        return False

    await until(later)


async def test_it_looks_by_itself_once_enough_is_rated_and_then_only_at_what_is_new(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with bot(tmp_path, clock=clock) as one:
        diary = one.fake.path / "predicts"

        async def why() -> bool:
            return await said(one) == because("predict_ratings", count=0, least=8)

        async def tells() -> bool:
            found = await said(one)
            return isinstance(found, Predicted) and found.tells

        async def again() -> bool:
            return diary.exists()

        await looks(clock, why)
        assert not diary.exists(), "no child is started for too little"
        await one.rated(20)
        await looks(clock, tells)
        diary.unlink()
        await one.rated(1)
        assert await predict(one) == ""
        assert not diary.exists(), "one rating more is no reason yet"
        await looks(clock, again)


async def test_the_child_is_told_no_names_and_gets_consented_answers_alone(tmp_path: Path) -> None:
    async with bot(tmp_path) as one:
        rated = await one.rated(8)
        private = await one.rated(2, user="talker")
        lone = await one.say("Nobody rates this.")
        assert await predict(one) == ""
        items = json.loads((one.fake.path / "predicts").read_text())
        assert {item["id"] for item in items} == {answer.turn for answer in [*rated, lone]}
        assert not {answer.turn for answer in private} & {item["id"] for item in items}
        assert {item["person"] for item in items} == {"0"}
        assert [item["good"] for item in items if item["id"] == lone.turn] == [None]
        assert "loopback" not in json.dumps([{**item, "messages": ""} for item in items])


async def test_the_report_names_what_is_doubtful_and_not_what_was_rated_anew(tmp_path: Path) -> None:
    async with bot(tmp_path) as one:
        answers = await one.rated(8)
        lone = await one.say("Nobody rates this.")
        await predict(one)
        text, data = await report(one)
        doubtful = {answer.turn for answer in answers[1::2]}
        assert set(data["rules"]["doubtful"]["answers"]) == doubtful
        assert data["ask"] == [lone.turn]
        assert "a good one is ranked before a bad one in 80% of pairs (70% to 90%, 99% interval)" in text
        fifth = "Of 8 answers with a predicted chance of 95% on average to be good, 50% were rated good"
        assert f"{fifth} (95% interval 22% to 78%)." in text
        assert f"`rollback answers {' '.join(data['rules']['doubtful']['answers'])}`" in text
        await one.react(answers[1], "👍")
        _, data = await report(one)
        assert set(data["rules"]["doubtful"]["answers"]) == doubtful - {answers[1].turn}
        await one.react(lone, "👍")
        assert (await report(one))[1]["ask"] == []


async def test_where_it_may_be_chance_nothing_is_said_of_any_answer(tmp_path: Path) -> None:
    async with bot(tmp_path) as one:
        one.fake.set(predict="chance")
        await one.rated(8)
        await predict(one)
        text, data = await report(one)
        assert "That may be chance. So it says nothing of any answer." in text
        assert "rules" not in data
        assert await rows(one.store, "SELECT 1 FROM predictions") == []


async def test_off_it_is_not_shown_and_does_nothing(tmp_path: Path) -> None:
    async with bot(tmp_path, sections={}) as one:
        await one.rated(8)
        await predict(one)
        text, data = await report(one)
        assert "It is off until `[features.reward_model]` is in the config" in text
        assert data == {}


async def test_why_the_child_says_nothing_is_told_and_not_tried_again_at_once(tmp_path: Path) -> None:
    async with bot(tmp_path) as one:
        one.fake.set(predict="fails")
        await one.rated(8)
        assert await predict(one) == "The model shows nothing"
        text, data = await report(one)
        assert "Nothing yet. The model shows nothing." in text
        assert data == {"why": "The model shows nothing."}
        (one.fake.path / "predicts").unlink()
        assert await predict(one) == ""
        assert not (one.fake.path / "predicts").exists()


async def test_what_the_child_has_too_little_of_is_kept_as_a_code_and_told_to_each_in_their_language(
    tmp_path: Path,
) -> None:
    async with bot(tmp_path) as one:
        one.fake.set(predict="lacks")
        await one.rated(8)
        assert await predict(one) == "4 ratings are of the rarer kind, and it takes 20"
        assert await said(one) == because("predict_rarer", count=4, least=20)
        text, data = await report(one, language="de")
        assert "Noch nichts. 4 Bewertungen sind von der selteneren Art; nötig sind 20." in text
        assert data == {"why": "4 ratings are of the rarer kind, and it takes 20."}
        assert "Was das Belohnungsmodell vorhersagt" in text


async def test_a_training_goes_first_and_ends_the_child(tmp_path: Path) -> None:
    async with bot(tmp_path, sections={}) as one:
        one.fake.set(predict="slow")
        await one.rated(8)
        predicting = asyncio.create_task(predict(one))
        await until((one.fake.path / "predicts").exists)
        await one.start_training()
        assert await predict(one) == await predicting == "a training has the machine"
        assert await said(one) is None
        await one.finish_training()


async def test_who_is_cancelled_while_the_child_ends_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for the child's own end: goodbot could not stop."""
    begun, ends, go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def trained(*_: object, **__: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.set()
            await go.wait()

    async with bot(tmp_path, sections={}) as one, asyncio.timeout(patience(60)):
        await one.rated(8)
        monkeypatch.setattr(reward_model.worker_process, "train", trained)
        monkeypatch.setattr(reward_model, "_LOOK_SECONDS", 0.01)
        predicting = asyncio.create_task(predict(one))
        await begun.wait()
        monkeypatch.setattr(type(one.app.scheduler), "training", property(lambda _: True))
        await ends.wait()
        predicting.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await predicting
        monkeypatch.undo()


async def test_all_of_it_goes_when_anybody_is_forgotten_also_where_it_is_just_computed(
    tmp_path: Path,
) -> None:
    async with bot(tmp_path, sections={}) as one:
        await one.rated(8)
        await one.say("Hello?", user="talker")
        await predict(one)
        found = await said(one)
        assert isinstance(found, Predicted)
        since = await one.store.read(predictions.seen)
        for words in ("me", "me yes"):
            await one.command("forget", words, user="talker")
        assert await said(one) is None
        assert await rows(one.store, "SELECT 1 FROM predictions") == []
        await one.store.write(lambda db: predictions.keep(db, one.app.pool, found, since, 1.0))
        assert await said(one) is None, "their ratings may be in it"
        assert await predict(one) == ""
        assert isinstance(await said(one), Predicted)


async def test_nothing_of_it_is_claimed_rewarded_or_counted(tmp_path: Path) -> None:
    """With and without it a training takes the very same answers, with the same rewards."""
    async with bot(tmp_path, sections={}) as one:
        await one.rated(8)
        for number in range(5):
            await one.say(f"Nobody rates {number}.")
        services = one.app

        async def taken() -> tuple[Any, Any]:
            wanted = batch.usual(services, Screening(services.filtering), parent=0)
            items = await one.store.read(lambda db: batch.take(db, wanted))
            return items, await services.scheduler.standing()

        before = await taken()
        await predict(one)
        assert len(await rows(one.store, "SELECT 1 FROM predictions")) == 13
        assert await taken() == before
        for table in ("labels", "events", "judgements"):
            assert len(await rows(one.store, f"SELECT 1 FROM {table}")) == (0 if table == "judgements" else 8)
        await one.train()
        assert set(await one.trained(1)) <= {answer.turn for answer in one.answers}


WORDS = re.compile(r"\b(?:predicted|predictions)\b")
MAY = {
    *("api/predicted.py", "api/report.py", "commands/report.py"),
    *("learning/reward_model.py", "store/downgrade.py", "store/predictions.py", "store/shifts.py"),
    "store/backup.py",  # the tables that travel
    # Who rates may sort by it, and an owner may have it choose what they are asked.
    *("access/inbox.py", "store/review_queue.py", "store/queues.py"),
    "commands/queues.py",
    "api/commands/learning.py",  # its part of the report, as it is typed
    "inference/servers/llama_api.py",  # a field of llama.cpp's
}


def test_no_other_part_of_the_core_names_it() -> None:
    """What claims, rewards and answers reads neither its tables nor its module."""
    core = ROOT / "core" / "goodbot"
    named = {
        path.relative_to(core).as_posix()
        for path in core.rglob("*.py")
        if WORDS.search(path.read_text(encoding="utf-8"))
    }
    assert {one for one in named if not one.startswith("features/reward_model/")} == MAY
