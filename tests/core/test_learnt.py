# SPDX-License-Identifier: Apache-2.0
"""What a version has learnt, in words: in the news, in `why`, and nowhere once it must be forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.api.learnt import AnsweredTwice, Learnt, account, card, drifted, shown
from goodbot.api.texts import LANGUAGES
from goodbot.commands.base import Result
from goodbot.config import ServingConfig
from goodbot.store import runs, shifts

from tests.core.builders import Bot, open_bot, rows, until

ROOM = "#room"


def shift(
    feature: str, change: float, *, word: str = "", named: bool = True, **figures: float
) -> dict[str, Any]:
    """As the child tells it."""
    given = {"before": 0.5, "after": 0.5 + change, "low": change - 0.1, "high": change + 0.1, **figures}
    return {"feature": feature, "word": word, "change": change, "named": named, **given}


SHORTER = shift("length", -0.38, before=100.0, after=62.0)
LISTS = shift("lists", -0.3)
CHANCE = shift("emoji", 0.2, named=False)
DRIFT = shift("other_language", 0.18, before=0.02, after=0.2, low=0.08, named=False)
DRIFTED = (
    "Some of its answers are in another language now (2% → 20%), and the ratings do not clearly ask for that."
)


def learnt(*shifts: dict[str, Any], **changes: Any) -> Learnt:
    return Learnt.parse(
        {"answers": 64, "questions": 8, "trained": False, "shifts": shifts, "examples": [], **changes}
    )


def news(bot: Bot) -> list[str]:
    return [said.text for said in bot.chat.news if " is live." in said.text]


async def why(bot: Bot, **fields: Any) -> Result:
    found = await bot.app.commands.execute(bot.chat.typed("why", **fields))
    assert found.later is not None
    return await found.later()


async def trained(bot: Bot, *shifts: dict[str, Any]) -> None:
    bot.fake.set(learnt=[*shifts])
    await bot.rated(8)
    await bot.train()


# -- the words


def test_a_card_names_what_is_proved_and_the_largest_change_first() -> None:
    told = learnt(CHANCE, LISTS, SHORTER, shift("opens", 0.35, word="Sure"))
    assert card(told) == (
        "shorter (−38%), more often begins with “Sure” (50% → 85%), fewer lists (50% → 20%)"
    )


def test_nothing_is_said_of_facts_which_nobody_checks() -> None:
    assert "facts" not in card(learnt(SHORTER)) + account(learnt(SHORTER))


def test_nothing_proved_is_nothing_said() -> None:
    for found in (None, learnt(CHANCE), learnt(), learnt(shift("of a newer goodbot", 0.9))):
        assert card(found) == account(found) == ""


def test_no_length_is_told_of_answers_that_were_empty() -> None:
    assert card(learnt(shift("length", 4e10, before=0.0, after=40.0))) == ""


def test_the_same_answer_is_not_shown_twice() -> None:
    same = AnsweredTwice(prompt="Hello?", before="Hello.\n", after="Hello.")
    other = AnsweredTwice(prompt="And now?", before="It is now.", after="Now.")
    assert shown([same, other, same], "Before and after:", "v7") == [
        "Before and after:",
        "“And now?”",
        "  before  It is now.",
        "  v7      Now.",
        "2 of your questions get the same answer as before.",
    ]
    assert shown([same], "Before and after:", "v7") == ["1 of your questions gets the same answer as before."]
    for language in LANGUAGES:
        [line] = shown([same, same], "Before and after:", "v7", language)
        assert "2" in line
    assert shown([], "Before and after:", "v7") == []


def test_long_answers_are_shown_where_they_part() -> None:
    begin = "a word " * 30
    pair = AnsweredTwice(prompt="?", before=f"{begin}left", after=f"{begin}right, and more of it")
    _, _, before, after = shown([pair], "Before and after:", "v7")
    assert before.startswith("  before  …")
    assert before.endswith("left")
    assert after.endswith("right, and more of it")
    assert max(map(len, (before, after))) <= 80


def test_an_account_says_what_it_rests_on() -> None:
    assert account(learnt(SHORTER, LISTS)) == (
        "What changed, in 64 answers to 8 questions that this training did not use: shorter (−38%; 95% "
        "interval −48% to −28%), fewer lists (50% → 20%; 95% interval −40 to −20 points)."
    )
    assert "that this training did not use" not in account(learnt(SHORTER, trained=True))


@pytest.mark.parametrize("broken", [{"change": float("nan")}, {"low": None}, {"named": []}])
def test_figures_that_are_none_are_refused(broken: dict[str, Any]) -> None:
    if "named" in broken:
        broken = {"high": "much"}
    with pytest.raises((ValueError, TypeError)):
        learnt({**SHORTER, **broken})


def test_another_language_that_nobody_asked_for_is_said_where_the_answers_prove_it() -> None:
    assert drifted(learnt(SHORTER, DRIFT)) == DRIFTED
    assert card(learnt(SHORTER, DRIFT)) == "shorter (−38%)"
    asked = {**DRIFT, "named": True}
    few, unsure, back = ({**DRIFT, **other} for other in ({"change": 0.09}, {"low": -0.01}, {"change": -0.3}))
    for other in (asked, few, unsure, {**back, "low": -0.4}, CHANCE):
        assert drifted(learnt(other)) == ""
    assert drifted(None) == ""
    assert len({drifted(learnt(DRIFT), language) for language in LANGUAGES}) == len(LANGUAGES)


# -- where they are said


async def test_a_version_that_drifts_into_another_language_is_told_of_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, DRIFT, CHANCE)
        await until(lambda: news(bot))
        await bot.app.news.look()
        [text] = [said.text for said in bot.chat.news if DRIFTED in said.text]
        assert text.startswith(f"v1 is live. {DRIFTED} It learnt from ")
        assert f"last training: v1 answers. {DRIFTED}" in await bot.command("status")
        assert (await why(bot)).text.splitlines()[1] == DRIFTED
        seen = await bot.chat.host.overview(bot.chat.typed("why").user)
        assert seen.lesson is not None
        assert seen.lesson.told.endswith(DRIFTED)


async def test_the_news_begin_with_what_changed_and_show_the_owner_their_own_question(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER, LISTS, CHANCE)
        await until(lambda: news(bot))
        [text] = news(bot)
        assert text.startswith(
            "v1 is live. What changed: shorter (−38%), fewer lists (50% → 20%). It learnt from "
            "6 rated answers (3 good, 3 bad); 2 more were kept to check it.\nbetter\n"
        )
        heading, question, before, after = text.splitlines()[-4:]
        assert heading == "Before and after:"
        assert question.startswith("“question ")
        assert before.startswith("  before  v0 says: question ")
        assert after == "  v1      New."


async def test_why_tells_the_intervals_and_shows_what_changed_most(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER)
        found = await why(bot)
        lines = found.text.splitlines()
        assert lines[1].startswith(
            "What changed, in 64 answers to 8 questions that this training did not use: shorter"
        )
        at = lines.index("Your own questions that changed most, before and after:")
        assert len(lines) == at + 1 + 3 * 3
        assert lines[at + 3] == "  v1      New."
        assert found.data["learnt"]["shifts"][0]["change"] == -0.38
        assert [pair["after"] for pair in found.data["comparison"]] == ["New."] * 3


async def test_status_tells_it_of_the_last_run(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER)
        told = "last training: v1 answers. What changed: shorter (−38%). Safety check: better"
        assert told in (await bot.command("status")).splitlines()


async def test_while_owners_are_asked_blindly_nobody_tells_them_which_answer_is_whose(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections={"serving": ServingConfig(history=0, ask="after")}) as bot:
        await trained(bot, SHORTER)
        await until(lambda: news(bot))
        assert "What changed" not in news(bot)[0]
        assert "New." not in news(bot)[0]
        assert "What changed" not in await bot.command("status")
        assert "What changed" not in (await why(bot)).text
        assert (await why(bot)).data["comparison"] == []


async def test_where_nothing_is_proved_nothing_is_said(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, CHANCE)
        await until(lambda: news(bot))
        assert "What changed" not in news(bot)[0] + (await why(bot)).text


async def test_nobody_sees_anothers_question(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel=ROOM)
        bot.fake.set(learnt=[SHORTER])
        for _ in range(4):
            theirs = await bot.say("the rater's own words", user="rater", channel=ROOM)
            await bot.react(theirs, "👍", user="rater")
        await bot.rated(4, channel=ROOM)
        await bot.train()
        await until(lambda: news(bot))
        assert "rater's own" not in news(bot)[0]
        mine = (await why(bot, user="rater", channel=ROOM)).data["comparison"]
        assert {pair["prompt"] for pair in mine} == {"the rater's own words"}
        for elsewhere in ({"user": "rater"}, {"channel": ROOM}, {"user": "rater", "channel": "#other"}):
            shown = (await why(bot, **elsewhere)).text
            assert "rater's own" not in shown, elsewhere


# -- what is not kept


async def test_a_first_word_that_only_one_person_was_answered_with_is_kept_from_all(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel=ROOM)
        await trained(bot, SHORTER, shift("opens", 0.5, word="v0"))
        found = await why(bot, user="rater", channel=ROOM)
        assert "v0" not in found.text.splitlines()[1]
        assert [one["feature"] for one in found.data["learnt"]["shifts"]] == ["length"]
        assert await rows(bot.store, "SELECT 1 FROM shifts WHERE word <> ''") == []


async def test_a_first_word_of_answers_to_two_people_is_told(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel=ROOM)
        await bot.rated(2, user="rater", channel=ROOM)
        await trained(bot, shift("opens", 0.5, word="v0"))
        assert "begins with “v0”" in (await why(bot)).text


async def test_programs_are_told_what_is_proved_and_nothing_else(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, CHANCE, SHORTER)
        assert [one["feature"] for one in (await why(bot)).data["learnt"]["shifts"]] == ["length"]


async def test_forgetting_anybody_leaves_no_answer_and_no_word_of_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel=ROOM)
        await bot.say("hello", user="talker", channel=ROOM)
        await bot.rated(2, user="rater", channel=ROOM)
        await trained(bot, SHORTER, shift("opens", 0.5, word="v0"))
        assert await rows(bot.store, "SELECT 1 FROM shift_examples")
        assert (await rows(bot.store, "SELECT count(*) FROM shifts")) == [(2,)]
        for said in ("me", "me yes"):
            await bot.command("forget", said, user="talker")
        assert not await rows(bot.store, "SELECT 1 FROM shift_examples")
        assert [row[0] for row in await rows(bot.store, "SELECT feature FROM shifts")] == ["length"]


async def test_a_run_keeps_nothing_of_turns_that_are_not_its_own_and_nothing_after_its_end(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        other = await bot.say("of no run")
        await trained(bot)
        event = {"answers": 1, "questions": 1, "trained": False, "shifts": [SHORTER]}
        event["examples"] = [{"id": other.turn, "before": "a", "after": "b"}]
        await bot.store.write(lambda db: shifts.keep(db, 1, event))
        assert not await rows(bot.store, "SELECT 1 FROM shifts")
        assert not await rows(bot.store, "SELECT 1 FROM shift_examples")


async def test_what_a_run_has_kept_stays_whatever_comes_after_its_end(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER)
        event = {"answers": 1, "questions": 1, "trained": False, "shifts": [], "examples": []}
        await bot.store.write(lambda db: shifts.keep(db, 1, event))
        assert await rows(bot.store, "SELECT 1 FROM shifts")


async def test_what_rests_on_a_rating_that_was_taken_back_is_not_told(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER)
        assert "What changed" in (await why(bot)).text
        await bot.store.write(
            lambda db: db.execute("UPDATE adapters SET tainted = 'a rating was taken back'")
        )
        found = await why(bot)
        assert "What changed" not in found.text
        assert "New." not in found.text
        assert found.data["learnt"] is None


async def test_a_rating_that_is_taken_back_takes_the_answers_along(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER)
        turn, *_ = await bot.trained_by(1)
        await bot.command("pause")
        await bot.command("undo", turn)
        assert (await bot.app.registry.row(1)).tainted
        assert not await rows(bot.store, "SELECT 1 FROM shift_examples")
        assert not await rows(bot.store, "SELECT 1 FROM shifts")


@pytest.mark.parametrize("state", ["refused", "superseded", "failed"])
async def test_of_a_run_without_a_version_no_answer_is_left(tmp_path: Path, state: str) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER)
        await bot.store.write(lambda db: db.execute("UPDATE runs SET state = 'running'"))
        assert await bot.store.write(lambda db: runs.finish(db, 1, state, (), {}, 0.0))
        assert not await rows(bot.store, "SELECT 1 FROM shift_examples")
        assert not await rows(bot.store, "SELECT 1 FROM shifts")


async def test_a_run_that_starts_over_measures_anew(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, SHORTER)
        assert await rows(bot.store, "SELECT 1 FROM shifts")
        await bot.store.write(lambda db: runs.claim_again(db, 1, 0, ()))
        assert not await rows(bot.store, "SELECT 1 FROM shifts")
        assert not await rows(bot.store, "SELECT 1 FROM shift_examples")


async def test_figures_that_are_none_stop_no_run(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, {"feature": "length"})
        assert await bot.app.registry.active() == 1
        assert not await rows(bot.store, "SELECT 1 FROM shifts")
