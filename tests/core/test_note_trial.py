# SPDX-License-Identifier: Apache-2.0
"""A model that does not follow notes has none, and nothing is said of them: each model is tried once."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.server import BASE, Generated, GenerateRequest
from goodbot.base.errors import ServerError
from goodbot.config import ServingConfig
from goodbot.conversation.note_trial import FEWEST, LEAD, QUESTIONS, AskedTwice, Compared, FollowTrial
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.learning.idle import Readings
from goodbot.store import notes

from tests.core.builders import Bot, open_bot, rows, until
from tests.core.test_notes import GRANTS, chip, noting, system
from tests.training.zoo.dialects import CHATML


async def follows(bot: Bot) -> bool | None:
    return await bot.store.read(lambda db: notes.follows(db, bot.app.pool.model))


async def known(bot: Bot) -> bool:
    return await follows(bot) is not None


async def test_a_model_that_does_not_follow_has_no_notes_and_nothing_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with noting(tmp_path) as bot:
        await until(lambda: known(bot))
        assert await follows(bot) is True
        _, told = await chip(bot, "long")
        assert told.startswith("Noted")
        assert await system(bot) != ""
        bot.fake.set(deaf=True)
        await bot.store.write(lambda db: db.execute("DELETE FROM note_trials"))
    caplog.clear()
    async with noting(tmp_path) as bot:
        await until(lambda: known(bot))
        assert await follows(bot) is False
        await until(lambda: "does not follow notes" in caplog.text)
        assert await system(bot) == "", "the note that was there before is in no prompt"
        _, told = await chip(bot, "long")
        assert told == ""
        assert "cannot follow" in await bot.command("notes")
        assert await rows(bot.store, "SELECT count(*) FROM notes") == [(1,)]


async def test_a_model_is_tried_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with noting(tmp_path) as bot:
        await until(lambda: known(bot))
        bot.fake.set(deaf=True)
        await bot.store.write(lambda db: db.execute("DELETE FROM note_trials"))
        await bot.store.write(lambda db: notes.tried(db, bot.app.pool.model, True, 1.0))
    caplog.clear()
    async with noting(tmp_path) as bot:
        await bot.say("Are you there?")
        assert await rows(bot.store, "SELECT tried_at FROM note_trials") == [(1.0,)]


async def test_it_is_known_soon_on_a_machine_that_trains_nothing_now(tmp_path: Path) -> None:
    """Until it is known notes are followed, also by a model that answers worse with them."""
    busy = Readings(on_battery=True, others_load=0.9)
    async with noting(tmp_path, machine=lambda _: busy) as bot:
        assert await bot.app.scheduler.pressure() is not None
        await until(lambda: known(bot))


async def test_who_wants_no_notes_is_spared_the_questions(tmp_path: Path) -> None:
    async with noting(tmp_path, where="never") as bot:
        await bot.say("Are you there?")
        assert await follows(bot) is None


async def test_a_first_round_is_no_smaller_where_notes_do_nothing(tmp_path: Path) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "chat_template.jinja").write_text(CHATML)
    sections = {"serving": ServingConfig(history=0, ask="never")}
    async with open_bot(tmp_path, grants=GRANTS, sections=sections, min_ratings=40, start_small=True) as bot:
        await until(lambda: known(bot))
        size = bot.app.scheduler.size
        assert await bot.store.read(size.now) < 40
        await bot.store.write(lambda db: notes.tried(db, bot.app.pool.model, False, 1.0))
        assert await bot.store.read(size.now) == 40


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (Compared(), True),  # a model that thinks first, and never comes to its answer
        (Compared(0, 0, FEWEST - 1), True),
        (Compared(0, 0, FEWEST), False),
        (Compared(LEAD, 0, LEAD), True),
        (Compared(LEAD + 1, 2, len(QUESTIONS)), False),
        (Compared(LEAD + 2, 2, len(QUESTIONS)), True),
    ],
)
def test_what_is_not_known_is_no_refusal(found: Compared, holds: bool) -> None:
    assert found.follows is holds


def test_an_answer_that_was_cut_off_is_the_longer_one() -> None:
    assert Compared().and_(5, None) == Compared(1, 0, 1)
    assert Compared().and_(None, 5) == Compared(0, 1, 1)
    assert Compared().and_(5, 5) == Compared(0, 0, 1)
    assert Compared().and_(None, None) == Compared()


async def test_answers_that_end_in_other_ways_say_nothing_and_end_the_trial() -> None:
    async def ask(_: GenerateRequest) -> Generated:
        return Generated(text="", version=0, finish="content_filter")

    found = await AskedTwice(ask).end()
    assert found.compared == 0
    assert found.follows


async def test_it_asks_no_further_once_it_is_clear() -> None:
    asked: list[GenerateRequest] = []

    async def ask(request: GenerateRequest) -> Generated:
        asked.append(request)
        return Generated(text="x" * (len(asked) % 2 or 9), version=0, finish="stop")

    assert (await AskedTwice(ask).end()).follows
    assert len(asked) == 2 * LEAD
    assert {one.version for one in asked} == {BASE}, "a version may have learnt to be brief"


async def test_what_was_compared_before_an_error_counts_at_the_next_look() -> None:
    """On a server that fails now and then a trial from the start would never end."""
    asked: list[str] = []

    async def ask(request: GenerateRequest) -> Generated:
        asked.append(request.messages[-1]["content"])
        if len(asked) in (6, 13):
            raise ServerError("it is away")
        return Generated(text="as long with either", version=0, finish="stop")

    trial = AskedTwice(ask)
    for _ in range(2):
        with pytest.raises(ServerError):
            await trial.end()
    assert await trial.end() == Compared(0, 0, len(QUESTIONS))
    assert len(asked) == 2 * (len(QUESTIONS) + 1) + 1, "one question is asked anew, and half of another"


async def test_the_next_look_goes_on_with_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = SpareTime.answer, list[GenerateRequest]()

    async def answer(self: SpareTime, request: GenerateRequest) -> Generated:
        asked.append(request)
        if len(asked) == 3:
            raise ServerError("it is away")
        return await real(self, request)

    async with noting(tmp_path) as bot:
        await until(lambda: known(bot))
        await bot.store.write(lambda db: db.execute("DELETE FROM note_trials"))
        monkeypatch.setattr(SpareTime, "answer", answer)
        trial = FollowTrial(bot.app)
        with pytest.raises(ServerError):
            await trial.once()
        assert await follows(bot) is None
        await trial.once()
        assert await follows(bot) is True
    assert len(asked) == 2 * LEAD + 1
