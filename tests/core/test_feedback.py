# SPDX-License-Identifier: Apache-2.0
"""Reasons and better answers: kept, shown, learnt from, taken back and forgotten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.events import OrderKey, Outcome, RatingKind
from goodbot.daemon.loopback import Answer
from goodbot.store import feedback, rollback_window, turns
from goodbot.store.feedback import Remark

from tests.core.builders import Bot, add_turn, open_bot, rate, retract, rows
from tests.core.exporting.made import records


async def remarks(bot: Bot, answer: Answer) -> list[Remark]:
    return await bot.store.read(lambda db: feedback.remarks(db, [answer.turn]))


async def test_a_reason_and_a_better_answer_are_kept_and_said_so(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        await bot.react(answer, "👎")
        why = await bot.chat.comment(answer, "The unit\nis missing. 🙂")
        assert why.text == "Your reason is kept. 1 of 8 ratings (7 to go)."
        better = await bot.chat.comment(answer, "It is 4 km.", better=True)
        assert better.text == "Your better answer is kept. 1 of 8 ratings (7 to go)."
        assert [(r.kind, r.text, r.rater) for r in await remarks(bot, answer)] == [
            ("comment", "The unit\nis missing. 🙂", "loopback:owner"),
            ("better", "It is 4 km.", "loopback:owner"),
        ]
        assert await bot.labels(answer) == {"loopback:owner": -1.0}, "they are no rating"
        history = await bot.command("history")
        assert "reason: The unit is missing. 🙂" in history
        assert "better: It is 4 km." in history
        result = await bot.app.commands.execute(bot.chat.typed("history"))
        [turn] = result.data["turns"]
        assert [remark["text"] for remark in turn["remarks"]] == ["The unit\nis missing. 🙂", "It is 4 km."]


async def test_undo_takes_them_back_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        await bot.react(answer, "👎")
        await bot.chat.comment(answer, "The unit is missing.")
        await bot.chat.comment(answer, "It is 4 km.", better=True)
        await bot.unreact(answer, "👎")
        assert len(await remarks(bot, answer)) == 2, "a reaction takes back what it said"
        await bot.react(answer, "👎")
        await bot.command("undo")
        assert await remarks(bot, answer) == []


@pytest.mark.parametrize("kind", [RatingKind.COMMENT, RatingKind.BETTER])
async def test_b1_f2_words_from_before_an_undo_are_not_told_as_kept(tmp_path: Path, kind: RatingKind) -> None:
    """The platform brought them after it: they were told as kept, and stood nowhere."""
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        words = rate("late", 50, None, kind=kind, source="loopback", text="It is 4 km.")
        [_, late, later] = await bot.chat.host.submit(
            [retract("undo", 100), words, replace(words, event_id="later", order=OrderKey(150))]
        )
        assert late.text.startswith("That does not count: it was taken back")
        assert "is kept. " in later.text
        assert len(await bot.store.read(lambda db: feedback.remarks(db, ["t"]))) == 1


async def test_a_reset_leaves_them_out(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        await bot.chat.comment(answer, "It is 4 km.", better=True)
        await bot.command("reset")
        await bot.command("reset", "yes")
        assert await remarks(bot, answer) == []


async def test_they_are_typed_as_commands_too_with_their_lines(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer, last = await bot.say("How far is it?"), await bot.say("And back?")
        said = await bot.command("better", "It is 4 km:\n- there\n- back", reply_to=answer.message.id)
        assert said.startswith("Your better answer is kept. 0 of 8 ratings (8 to go). “v0")
        assert [remark.text for remark in await remarks(bot, answer)] == ["It is 4 km:\n- there\n- back"]
        assert "Your reason is kept" in await bot.command("reason", "too short")
        assert [remark.text for remark in await remarks(bot, last)] == ["too short"]
        assert "`better TEXT`" in await bot.command("better")
        assert "not one of my answers" in await bot.command("reason", "x", reply_to="nowhere")


async def test_their_first_word_may_name_the_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        first, last = await bot.say("How far is it?"), await bot.say("And back?")
        assert "is kept" in await bot.command("reason", f"{first.turn} too short,\nand wrong")
        assert "is kept" in await bot.command("better", f"{first.turn} It is 4 km.")
        assert [one.text for one in await remarks(bot, first)] == ["too short,\nand wrong", "It is 4 km."]
        assert await remarks(bot, last) == []
        assert "`reason TEXT`" in await bot.command("reason", first.turn)
        assert "is kept" in await bot.command("reason", "turn-0 is no answer of yours")
        assert [one.text for one in await remarks(bot, last)] == ["turn-0 is no answer of yours"]


async def test_an_answer_of_another_chat_is_named_by_an_owner_only(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        theirs = await bot.say("How far is it?")
        mine = await bot.say("And back?", user="rater")
        await bot.command("reason", f"{theirs.turn} too short", user="rater")
        assert await remarks(bot, theirs) == []
        await bot.command("reason", f"{mine.turn} too long")
        assert [one.text for one in await remarks(bot, mine)][-1] == "too long"


async def test_who_may_not_rate_may_not_comment(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        for user in ("stranger", "talker"):
            receipt = await bot.chat.comment(answer, "I know better", better=True, user=user)
            assert receipt.outcome is Outcome.DENIED
            await bot.command("better", "I know better", user=user)
        assert await rows(bot.store, "SELECT 1 FROM events") == []


@pytest.mark.parametrize("text", ["", " \n ", "x" * 10_001])
async def test_nothing_and_too_much_are_told(tmp_path: Path, text: str) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        receipt = await bot.chat.comment(answer, text, better=True)
        assert receipt.outcome is Outcome.FAILED
        assert "a few words" in receipt.text or "at most 10000 characters" in receipt.text
        assert await rows(bot.store, "SELECT 1 FROM events") == []


async def test_a_comment_that_was_opened_before_a_retry_is_of_the_old_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        await bot.react(answer, "👎")
        new = await bot.chat.again(answer, "short")
        await bot.say("next")  # the retry is recorded then
        await bot.chat.comment(answer, "It is 4 km.", better=True)
        assert [r.text for r in await remarks(bot, answer)] == ["It is 4 km."]
        assert await remarks(bot, new) == []


async def test_they_are_forgotten_with_the_person(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        await bot.chat.comment(answer, "My street is Elm Street", better=True, user="rater")
        await bot.command("forget", "me", user="rater")
        await bot.command("forget", "me yes", user="rater")
        assert await remarks(bot, answer) == []
        assert b"Elm Street" not in (tmp_path / "bot" / "goodbot.db").read_bytes()


async def test_what_was_typed_at_an_answer_keeps_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("How far is it?")
        await bot.chat.comment(answer, "It is 4 km.", better=True)
        await bot.say("another")
        await bot.store.write(lambda db: turns.expire(db, 9e12))
        kept = await rows(bot.store, "SELECT id FROM turns")
        assert kept == [(answer.turn,)]


async def test_what_was_taken_back_keeps_nothing_and_is_not_exported(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        back, kept = await bot.say("How far is it?"), await bot.say("And how high?")
        for answer in (back, kept):
            await bot.chat.comment(answer, "The unit is missing.")
        await bot.command("undo", back.turn)
        assert [a["id"] for a in await bot.store.read(records)] == [kept.turn]
        await bot.store.write(lambda db: rollback_window.add(db, 0.0, "loopback:owner", 1.0))
        assert await bot.store.read(records) == []
        await bot.store.write(lambda db: turns.expire(db, 9e12))
        assert await rows(bot.store, "SELECT id FROM turns") == [(kept.turn,)], "it may come back"
