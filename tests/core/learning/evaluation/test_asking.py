# SPDX-License-Identifier: Apache-2.0
"""After a round the owners are asked, blind, which version is better; and what they say is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.sentences import Condition, Reason, waits
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded
from goodbot.commands.compare import later
from goodbot.config import Grants, ServingConfig
from goodbot.learning.adapters.deployment import NotServedError
from goodbot.learning.evaluation.electorate import LOST
from goodbot.store import adapters, people

from tests.core.builders import Bot, check, open_bot, rows, until
from tests.core.learning.evaluation.asking import (
    DAY,
    Later,
    asked,
    current,
    letter,
    open_asking,
    outcomes,
    prefer,
    questions,
    states,
    tally,
)


async def trained(bot: Bot, count: int = 8) -> None:
    await bot.rated(count)
    assert (await bot.train()).state == "activated"


async def test_an_owner_is_asked_in_private_without_names(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        assert await bot.app.registry.active() == 1, "the next reply comes from the better model"
        [question] = await asked(bot)
        assert question.message.channel.id == "owner"
        assert question.text.startswith("I have finished learning.")
        assert "v1 answers already: if it loses, the base model comes back." in question.text
        assert "(1 of 5)" in question.text
        shown = question.text.partition("Which is better?")[2]
        assert {letter(shown, 0), letter(shown, 1)} == {"a", "b"}, "one answer of each"
        assert [action.split()[-1] for action in question.buttons] == ["a", "b", "same", "skip"]
        await check(bot)


async def test_each_press_shows_the_next_pair_and_the_last_what_came_of_it(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        second = await prefer(bot, 1, 1, question)
        assert second.startswith("Noted.\n\nWhich is better? (2 of 5)")
        last = await prefer(bot, 1, 5, question)
        assert last.startswith("Noted. ")
        assert last.endswith("v1 stays.")
        assert await states(bot) == ["passed"]
        assert len(questions(bot)) == 1, "the others came as receipts"
        assert await bot.app.registry.active() == 1
        await bot.app.ab_test.look()
        assert outcomes(bot) == [], "who was there is not told again"


async def test_one_that_loses_is_rolled_back(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        text = await prefer(bot, 0, 4, question)
        assert text == "Noted. 0 for v1, 4 for the base model. The base model answers again."
        assert await states(bot) == ["lost"]
        assert await bot.app.registry.active() == 0
        assert (await bot.say("And now?")).text == "v0 says: And now?"
        assert (await bot.status())["ratings"] == 2, "what it learnt from stays used"
        await check(bot)


async def test_the_one_that_lost_can_still_be_called_back(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        await prefer(bot, 0, 4, question)
        await bot.rollback("1")
        assert await bot.app.registry.active() == 1
        await bot.app.ab_test.look()
        assert await states(bot) == ["lost"], "and is not asked about again"


async def test_two_against_it_or_a_close_race_do_not_take_it_back(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        pair = int(question.buttons[0].split()[1])
        for number, version in enumerate((0, 0, 0, 1, 1)):
            shown = await bot.command("compare")
            said = await bot.command("compare", f"{pair + number} {letter(shown, version)}")
        assert said == "Noted. 2 for v1, 3 for the base model. v1 stays."
        assert await bot.app.registry.active() == 1


# -- whose prompts


async def test_nobody_is_asked_about_prompts_of_others(tmp_path: Path) -> None:
    people = Grants(owners=("owner", "second", "silent"), raters=("rater",), talkers=("talker",))
    async with open_asking(tmp_path, grants=people) as bot:
        await bot.command("share", "on", user="rater")
        for number in range(8):
            answer = await bot.say(f"a secret {number}", user="rater")
            await bot.react(answer, "👍" if number % 2 else "👎", user="rater")
        for user in ("owner", "second"):
            await bot.say(f"a question of {user}", user=user)
        await bot.train()
        await asked(bot, 2)
        shown = {said.message.channel.id: said.text for said in questions(bot)}
        assert set(shown) == {"owner", "second"}
        for who, text in shown.items():
            assert "(1 of 1)" in text
            assert f"“a question of {who}”" in text
        owners = await rows(bot.store, "SELECT owner, count(*) FROM pairs GROUP BY 1 ORDER BY 1")
        assert owners == [("loopback:owner", 1), ("loopback:second", 1)]


async def test_without_prompts_of_theirs_the_gate_alone_decides(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="before") as bot:
        await bot.command("share", "on", user="rater")
        for number in range(8):
            answer = await bot.say(f"a secret {number}", user="rater")
            await bot.react(answer, "👍" if number % 2 else "👎", user="rater")
        await bot.train()

        async def live() -> bool:
            return await bot.app.server.served() == 1

        await until(live)
        assert await states(bot) == ["passed"]
        assert questions(bot) == []
        assert (await bot.say("And now?")).text == "v1 says: And now?"
        assert outcomes(bot) == []


async def test_what_may_not_be_learnt_is_not_asked_about(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        kept = await bot.say("only this one")
        await bot.react(kept, "👍")
        for number in range(7):
            await bot.react(await bot.say(f"another {number}", user="rater"), "👎", user="rater")
        await bot.say("not to be learnt")
        await bot.store.write(
            lambda db: db.execute("UPDATE turns SET trainable = 0 WHERE messages LIKE '%not to be learnt%'")
        )
        await bot.say("only this one")  # the same words again are one question
        await bot.command("share", "on", user="rater")
        await bot.train()
        await asked(bot)
        assert await rows(bot.store, "SELECT count(*) FROM pairs") == [(1,)]


async def test_two_versions_that_say_the_same_are_no_question(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="before") as bot:
        await bot.rated(8)
        bot.fake.set(generate="anonymous")
        await bot.train()
        await until(lambda: bot.app.registry.active())
        assert questions(bot) == []
        assert await rows(bot.store, "SELECT count(*) FROM pairs") == [(0,)]


# -- before it goes live


async def test_asked_before_the_old_one_answers_until_it_is_decided(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="before") as bot:
        await bot.rated(8)
        told = await bot.command("train", "wait")
        assert told.startswith("v1 is trained: better v1 waits: owners compare a few answers first")
        assert (await bot.last_run()).state == "activated"
        [question] = await asked(bot)
        assert "I switch to v1 unless it loses; without a reply, after 24 hours." in question.text
        assert "v1 only waits, and `compare` decides" in await bot.command("rollback")
        assert (await bot.say("And now?")).text == "v0 says: And now?"
        text = await prefer(bot, 1, 2, question)
        assert text == "Noted. 2 for v1, 0 for the base model. v1 may go live.", "3 : 2 is no loss"
        assert (await bot.say("And now?")).text == "v1 says: And now?"
        [row] = await bot.app.registry.rows()
        assert row.waits == ""
        await check(bot)


async def test_by_default_a_loser_is_not_activated(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask=ServingConfig().ask) as bot:
        await trained(bot)
        [question] = await asked(bot)
        text = await prefer(bot, 0, 4, question)
        assert text == "Noted. 0 for v1, 4 for the base model. v1 does not go live."
        assert await bot.app.registry.active() == 0
        [row] = await bot.app.registry.rows()
        assert (row.waits, row.tainted) == ("", "")
        assert await bot.app.registry.head() == 0, "the next training does not build on it"
        await check(bot)


@pytest.mark.parametrize("ask", ["before", "after"])
async def test_after_a_day_without_an_answer_the_gate_alone_decides(tmp_path: Path, ask: str) -> None:
    clock = Later()
    async with open_asking(tmp_path, ask=ask, clock=clock) as bot:
        await trained(bot)
        await asked(bot)
        clock.ahead = DAY - 60
        await bot.app.ab_test.look()
        assert await current(bot) is not None
        clock.ahead = DAY + 1
        await bot.app.ab_test.look()
        assert await states(bot) == ["passed"]
        assert await bot.app.registry.active() == 1
        expected = "Nobody has chosen, so the safety check alone decided: v1 may go live."
        assert outcomes(bot) == ([("owner", expected)] if ask == "before" else [])
        await until(lambda: any(said.text.startswith("v1 is live.") for said in bot.chat.news))
        assert "That question is closed." in await bot.command("compare", "1 a")


async def test_a_day_is_one_though_our_clock_was_set_back_since_the_question(tmp_path: Path) -> None:
    clock = Later()
    clock.ahead = 366 * DAY
    async with open_asking(tmp_path, clock=clock) as bot:
        await trained(bot)
        await asked(bot)
        for clock.ahead in (0.0, DAY - 60):
            await bot.app.ab_test.look()
            assert await current(bot) is not None
        clock.ahead = DAY + 1
        await bot.app.ab_test.look()
        assert await states(bot) == ["passed"]


async def test_three_choices_against_it_count_after_a_day_too(tmp_path: Path) -> None:
    clock = Later()
    async with open_asking(tmp_path, clock=clock) as bot:
        await trained(bot)
        [question] = await asked(bot)
        await prefer(bot, 0, 3, question)
        assert await bot.app.registry.active() == 1, "two are open, and 3 : 2 would be no loss"
        clock.ahead = DAY + 1
        await bot.app.ab_test.look()
        assert await bot.app.registry.active() == 0
        assert outcomes(bot) == [("owner", "0 for v1, 3 for the base model. The base model answers again.")]


async def test_never_asks_nothing(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="never") as bot:
        await trained(bot)
        await bot.app.ab_test.look()
        assert await states(bot) == []
        assert questions(bot) == []


# -- what happens meanwhile


@pytest.mark.parametrize("ask", ["before", "after"])
async def test_a_restart_goes_on_waiting(tmp_path: Path, ask: str) -> None:
    async with open_asking(tmp_path, ask=ask) as bot:
        await trained(bot)
        [question] = await asked(bot)
        await prefer(bot, 0, 1, question)
    async with open_asking(tmp_path, ask=ask) as bot:
        await bot.app.ab_test.look()
        assert questions(bot) == [], "they were asked before"
        assert "(2 of 5)" in await bot.command("compare")
        for _ in range(3):
            shown = await bot.command("compare")
            said = await bot.command("compare", letter(shown, 0))
        assert said.startswith("Noted. 0 for v1, 4 for the base model.")
        assert await bot.app.registry.active() == 0
        await check(bot)


async def test_killed_while_the_answers_are_written_it_goes_on_with_the_rest(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await bot.rated(8)
        await bot.command("pause")  # it writes nothing, and asks nothing
        await bot.train()
        await bot.app.ab_test.look()
        found = await current(bot)
        assert found is not None
        assert found.state == "preparing"
        assert questions(bot) == []
    async with open_asking(tmp_path) as bot:
        assert await current(bot) == found, "the same seed, so the same order"
        await bot.command("resume")
        await bot.app.ab_test.look()
        assert len(questions(bot)) == 1


@pytest.mark.parametrize("ask", ["before", "after"])
async def test_a_rollback_meanwhile_wins(tmp_path: Path, ask: str) -> None:
    async with open_asking(tmp_path, ask="never") as bot:
        await trained(bot)
    async with open_asking(tmp_path, ask=ask) as bot:
        bot.answers = []
        for number in range(6):
            answer = await bot.say(f"more {number}")
            await bot.react(answer, "👍" if number % 2 else "👎")
        await bot.train()
        [question] = await asked(bot)
        await bot.rollback("base")
        shown = await bot.chat.press(question, question.buttons[0])
        assert shown.text.startswith("That question is closed. There is nothing to compare now")
        assert await states(bot) == ["superseded"]
        assert await bot.app.registry.active() == 0
        assert await bot.app.registry.head() == 0
        await check(bot)


@pytest.mark.parametrize("ask", ["before", "after"])
async def test_a_reset_meanwhile_wins(tmp_path: Path, ask: str) -> None:
    async with open_asking(tmp_path, ask=ask) as bot:
        await trained(bot)
        await asked(bot)
        await bot.command("reset")
        await bot.command("reset", "yes")
        await bot.app.ab_test.look()
        assert await states(bot) == ["superseded"]
        assert await bot.app.registry.active() == 0
        await check(bot)


async def test_while_paused_choices_are_kept_and_nothing_is_decided(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        await bot.command("pause")
        await prefer(bot, 0, 5, question)
        assert await bot.app.registry.active() == 1
        assert (await tally(bot)).old == 5
        await bot.command("resume")
        await bot.app.ab_test.look()
        assert await bot.app.registry.active() == 0


@pytest.mark.parametrize("ask", ["before", "after"])
async def test_a_newer_round_supersedes_an_open_question(tmp_path: Path, ask: str) -> None:
    async with open_asking(tmp_path, ask=ask) as bot:
        await trained(bot)
        await asked(bot)
        await trained(bot)
        await asked(bot, 2)
        assert await states(bot) == ["superseded", "asking"]
        found = await current(bot)
        assert found is not None
        active = await bot.app.registry.active()
        assert (found.old, found.new, active) == ((0, 2, 0) if ask == "before" else (1, 2, 2))
        waits = {row.version: bool(row.waits) for row in await bot.app.registry.rows()}
        assert waits == {1: False, 2: ask == "before"}
        assert (await bot.app.registry.row(2)).parent == 1, "nothing that was learnt is lost"


BUSY = waits("battery")


def always_busy(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is ever written in the background."""

    async def busy() -> Condition:
        return BUSY

    monkeypatch.setattr(bot.app.scheduler, "pressure", busy)


async def test_rounds_that_come_faster_than_owners_answer_go_live_all_the_same(tmp_path: Path) -> None:
    clock = Later()
    async with open_asking(tmp_path, ask="before", clock=clock) as bot:
        for number in range(1, 4):
            await trained(bot)
            await asked(bot, number)
            clock.ahead += DAY / 4
        assert await bot.app.registry.active() == 0
        clock.ahead = DAY + 1
        await bot.app.ab_test.look()
        assert await states(bot) == ["superseded", "superseded", "passed"]
        assert await bot.app.registry.active() == 3


async def test_the_day_begins_when_owners_are_asked(tmp_path: Path) -> None:
    clock = Later()
    async with open_asking(tmp_path, ask="before", clock=clock) as bot:
        await bot.rated(8)
        await bot.command("pause")
        await bot.train()
        clock.ahead = 2 * DAY
        await bot.app.ab_test.look()
        await bot.command("resume")
        await bot.app.ab_test.look()
        await asked(bot)
        clock.ahead = 3 * DAY - 60
        await bot.app.ab_test.look()
        assert (await states(bot), await bot.app.registry.active()) == (["asking"], 0)
        clock.ahead = 3 * DAY + 60
        await bot.app.ab_test.look()
        assert (await states(bot), await bot.app.registry.active()) == (["passed"], 1)


async def test_a_day_is_taken_over_through_one_that_nobody_was_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """v1 is asked about; v2 ends late and is not asked about yet when v3 ends."""
    clock, busy = Later(), list[Condition | None]([None])
    async with open_asking(tmp_path, ask="before", clock=clock) as bot:

        async def pressure() -> Condition | None:
            return busy[0]

        monkeypatch.setattr(bot.app.scheduler, "pressure", pressure)
        await trained(bot)
        await asked(bot)
        clock.ahead = DAY * 20 / 24
        busy[0] = BUSY
        await trained(bot)
        clock.ahead += 600
        busy[0] = None
        await trained(bot)
        await bot.app.ab_test.look()
        await asked(bot, 2)
        clock.ahead = DAY + 60
        await bot.app.ab_test.look()
        assert await states(bot) == ["superseded", "superseded", "passed"]
        assert await bot.app.registry.active() == 3


async def test_rounds_that_come_faster_than_questions_can_be_written_go_live_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Later()
    async with open_asking(tmp_path, ask="before", clock=clock) as bot:
        always_busy(bot, monkeypatch)
        for _ in range(4):
            await trained(bot)
            await bot.app.ab_test.look()
            assert await bot.app.registry.active() == 0
            clock.ahead += DAY / 4
        clock.ahead += 60
        await bot.app.ab_test.look()
        assert await bot.app.registry.active() == 4


async def test_a_question_that_cannot_be_written_in_a_day_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Later()
    async with open_asking(tmp_path, ask="before", clock=clock) as bot:
        always_busy(bot, monkeypatch)
        await trained(bot)
        await bot.app.ab_test.look()
        clock.ahead = DAY + 60
        await bot.app.ab_test.look()
        assert (await states(bot), await bot.app.registry.active()) == (["passed"], 1)
        assert questions(bot) == []


async def test_what_is_decided_while_the_next_round_ends_is_what_that_is_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_asking(tmp_path, ask="before") as bot:
        await trained(bot)
        await asked(bot)
        first, real = await current(bot), bot.app.registry.usable_ancestor

        async def ancestor(version: int) -> int:
            found = await real(version)
            if len(await bot.app.registry.rows()) == 2:  # the round has ended, and is to be held
                monkeypatch.setattr(bot.app.registry, "usable_ancestor", real)
                assert await bot.app.ab_test._carry_out(first, "passed")
            return found

        monkeypatch.setattr(bot.app.registry, "usable_ancestor", ancestor)
        await trained(bot)
        assert await bot.app.registry.active() == 1
        found = await current(bot)
        assert found is not None
        assert (found.old, found.new, found.held) == (1, 2, True)
        assert (await bot.app.registry.row(2)).waits


async def test_an_owner_can_refuse_what_waits(tmp_path: Path) -> None:
    clock = Later()
    async with open_asking(tmp_path, ask="before", clock=clock) as bot:
        await trained(bot)
        await asked(bot)
        await bot.rollback("base")
        assert await states(bot) == ["superseded"]
        clock.ahead = DAY + 60
        await bot.app.ab_test.look()
        assert await bot.app.registry.active() == 0


async def test_what_replaces_a_tainted_version_does_not_wait(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="never") as bot:
        answers = await bot.rated(8)
        await bot.train()
    async with open_asking(tmp_path, ask="before", schedule="auto") as bot:
        used = await bot.trained_by(1)
        taken = next(answer for answer in answers if answer.turn in used)
        await bot.command("undo", taken.turn)
        await until(lambda: bot.app.registry.active(), 20)

        async def replaced() -> bool:
            return await bot.app.registry.active() == 2

        await until(replaced, 20)
        assert not (await bot.app.registry.row(2)).waits
        found = await current(bot)
        assert found is None or (found.old, found.held) == (0, False)


async def test_a_pin_meanwhile_is_kept_to(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="never") as bot:
        await trained(bot)
    async with open_asking(tmp_path, ask="before") as bot:
        bot.answers = []
        for number in range(6):
            answer = await bot.say(f"more {number}")
            await bot.react(answer, "👍" if number % 2 else "👎")
        await bot.train()
        [question] = await asked(bot)
        await bot.store.write(lambda db: adapters.pin(db, 1, 1.0))
        await prefer(bot, 2, 2, question)
        assert await states(bot) == ["passed"]
        assert await bot.app.registry.active() == 1
        assert (await bot.app.registry.row(2)).waits == adapters.PINNED


# -- who may, and where


async def test_only_owners_compare_and_only_in_private(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        for user in ("rater", "talker", "stranger"):
            said = await bot.command("compare", "a", user=user)
            told = "`compare` is for the owners of this bot."
            assert said == ("" if user == "stranger" else told)
            receipt = await bot.chat.press(question, question.buttons[0], user=user)
            assert receipt.text == ("" if user == "stranger" else told)
        assert (await tally(bot)).open == 5
        assert "in our private chat" in await bot.command("compare", channel="#room")


async def test_a_press_on_somebody_elses_pair_chooses_nothing(tmp_path: Path) -> None:
    people = Grants(owners=("owner", "second"), raters=(), talkers=())
    async with open_asking(tmp_path, grants=people) as bot:
        await bot.rated(8)
        await bot.say("a question of second", user="second")
        await bot.train()
        await asked(bot, 2)
        [mine] = [said for said in questions(bot) if said.message.channel.id == "owner"]
        receipt = await bot.chat.press(mine, mine.buttons[0], user="second")
        assert receipt.text.startswith("That question is closed.")
        assert "a question of second" in receipt.text, "they see their own"
        assert (await tally(bot)).decided == 0


async def test_an_old_button_answers_no_newer_question(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        await prefer(bot, 1, 1, question)
        again = await bot.chat.press(question, question.buttons[0])
        assert again.text.startswith("That question is closed.\n\nWhich is better? (2 of 5)")
        assert (await tally(bot)).open == 4


async def test_words_that_are_off_are_answered_with_the_right_ones(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        assert (await bot.command("compare")).startswith("There is nothing to compare now")
        assert (await bot.command("compare", "a")).startswith("That question is closed.")
        for words in ("c", "v1", "v1 v2", "1 c", "best of all", "99999999999 a"):
            assert "`compare v6 v7 PROMPT`" in await bot.command("compare", words)


async def test_a_person_with_linked_accounts_is_asked_at_each_and_answers_once(tmp_path: Path) -> None:
    people = Grants(owners=("owner", "second"), raters=(), talkers=())
    async with open_asking(tmp_path, grants=people) as bot:
        await bot.rated(8)
        code = (await bot.command("link")).split()[0]
        await bot.command("link", code, user="second")
        await bot.train()
        first, second = await asked(bot, 2)
        assert {first.message.channel.id, second.message.channel.id} == {"owner", "second"}
        await bot.chat.press(first, first.buttons[0], user="owner")
        receipt = await bot.chat.press(second, second.buttons[0], user="second")
        assert receipt.text.startswith("That question is closed.\n\nWhich is better? (2 of 5)")
        assert (await tally(bot)).open == 4


async def test_without_the_question_nothing_else_changes(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot)
        assert await states(bot) == []


async def test_a_winner_that_the_server_does_not_serve_goes_on_waiting(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="before") as bot:
        await trained(bot)
        [question] = await asked(bot)

        async def activate(*_: object, **__: object) -> bool:
            raise NotServedError("it answers like the base model")

        bot.app.registry.activate = activate
        await prefer(bot, 1, 2, question)
        assert await states(bot) == ["passed"]
        assert (await bot.app.registry.row(1)).waits == adapters.UNSERVED


async def test_a_loser_goes_on_answering_where_the_one_before_is_not_served(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)

        async def activate(*_: object, **__: object) -> bool:
            raise NotServedError("it answers like the base model")

        bot.app.registry.activate = activate
        await prefer(bot, 0, 4, question)
        assert await states(bot) == ["superseded"]
        assert (await bot.app.registry.row(1)).waits == "", "it answers"


async def test_while_the_server_is_down_the_decision_waits(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="before") as bot:
        await trained(bot)
        [question] = await asked(bot)
        activate = bot.app.registry.activate

        async def down(*_: object, **__: object) -> bool:
            raise ServerError("the model is not running")

        bot.app.registry.activate = down
        text = await prefer(bot, 1, 2, question)
        assert "(3 of 5)" in text
        assert await states(bot) == ["asking"]
        bot.app.registry.activate = activate
        await bot.app.ab_test.look()
        assert await states(bot) == ["passed"]
        assert await bot.app.registry.active() == 1


async def test_while_the_server_is_down_a_loser_stops_no_training_again_and_again(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        [question] = await asked(bot)
        activate, stop = bot.app.registry.activate, bot.app.scheduler.stop
        stopped: list[Reason] = []

        async def down(*_: object, **__: object) -> bool:
            raise ServerError("the model is not running")

        async def told(reason: Reason) -> bool:
            stopped.append(reason)
            return await stop(reason)

        bot.app.registry.activate, bot.app.scheduler.stop = down, told
        await prefer(bot, 0, 4, question)
        for _ in range(3):
            await bot.app.ab_test.look()
        assert (await states(bot), stopped) == (["asking"], [])
        bot.app.registry.activate = activate
        await bot.app.ab_test.look()
        assert (await states(bot), stopped) == (["lost"], [LOST])


async def test_a_server_that_is_away_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_asking(tmp_path) as bot:
        ab_test = bot.app.ab_test

        async def away(*_: object) -> bool:
            raise ServerError(Worded("v{version} is not loaded", version=1))

        ab_test._preparing.prepare = away
        with caplog.at_level("INFO", logger="goodbot.learning.evaluation.ab_test"):
            await trained(bot)
            await until(lambda: "is compared later" in caplog.text)
            for _ in range(3):
                await ab_test.look()
        said = [record for record in caplog.records if "v1 is not loaded" in record.getMessage()]
        assert [record.levelname for record in said] == ["INFO"]
        assert await states(bot) == ["preparing"]
        assert await later(bot.app, await ab_test.current(), "de") == "v1 ist nicht geladen"


async def test_files_that_are_gone_are_no_reason_to_ask_for_ever(tmp_path: Path) -> None:
    async with open_asking(tmp_path, ask="before") as bot:
        await trained(bot)
        [question] = await asked(bot)
        path = await bot.app.registry.path(1)
        (path / "adapter_model.safetensors").unlink()
        await prefer(bot, 1, 2, question)
        assert await states(bot) == ["superseded"]
        assert await bot.app.registry.active() == 0
        assert (await bot.app.registry.row(1)).waits == ""


async def test_a_word_counts_only_for_a_question_that_was_shown_there(tmp_path: Path) -> None:
    """In the invitation, or as `compare` shows it; a press and a number name their question."""
    async with open_asking(tmp_path) as bot:
        await trained(bot)
        await asked(bot)
        first = await bot.command("compare", "a")
        assert first.startswith("Noted."), "the invitation has shown it"
        assert (await tally(bot)).open == 4
        second = await bot.command("compare", "skip")
        assert second.startswith("Noted."), "it came with the answer to the first"
        await bot.command("people", "grant owner loopback:phone")
        await bot.store.write(lambda db: people.link(db, "loopback:owner", "loopback:phone", 1.0))
        before = await tally(bot)
        said = await bot.command("compare", "a", user="phone")
        assert said.startswith("Look at it first, then type `compare a` again.")
        assert "(3 of 5)" in said, "one person, whatever the account"
        assert await tally(bot) == before
        assert (await bot.command("compare", "a", user="phone")).startswith("Noted.")
        assert await tally(bot) != before
