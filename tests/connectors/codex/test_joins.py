# SPDX-License-Identifier: Apache-2.0
"""A rating is of the last answer of its own session, or of none."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.events import ChannelKind, CommandEvent, RatingKind
from goodbot.testing.host import RecordingHost
from goodbot_connectors.codex import SPEC, session

from tests.connectors.codex.peer import MAIN, Codex, codex, recorded

OTHER = "01a203ed-0000-7022-819f-4064e052618b"


async def test_an_answer_is_captured_with_the_prompt_of_its_turn(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        turn, blocked = await me.prompt("What is 2 + 2?")
        assert not blocked
        assert "+1" in await me.stop(turn, "It is 4.")
        [capture] = me.captures
        assert capture.messages == ({"role": "user", "content": "What is 2 + 2?"},)
        assert (capture.response, capture.model, capture.version) == ("It is 4.", "m", None)
        assert capture.event_id == capture.message_id == turn
        assert capture.trace == f"codex:{turn}"
        assert (capture.user.id, capture.channel.id) == ("me", "me")
        assert (capture.channel.thread, capture.channel.kind) == (MAIN, ChannelKind.PRIVATE)


async def test_what_was_said_before_is_part_of_the_prompt(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        await me.ask("And two?", "2")
        await me.ask("Elsewhere", "no", session=OTHER)
        assert [one["content"] for one in me.captures[1].messages] == ["One?", "1", "And two?"]
        assert len(me.captures[2].messages) == 1


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("+1", 1.0),
        ("-1", -1.0),
        ("👍", 1.0),
        ("👎🏽", -1.0),
        ("rl good", 1.0),
        ("RL Bad", -1.0),
        (" /rl good", 1.0),
        (" /rl 👎", -1.0),
        ("+1\n", 1.0),
        (" /rl +1", 1.0),
        (" /rl\tgood", 1.0),
        ("/rl\u00a0good", 1.0),
    ],
)
async def test_a_prompt_rates_the_last_answer(tmp_path: Path, typed: str, value: float) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        await me.ask("Two?", "The second answer")
        turn, blocked = await me.prompt(typed)
        assert blocked == f"Counted {value}. “The second answer”"
        [rating] = me.ratings
        assert (rating.kind, rating.value, rating.source) == (RatingKind.RATE, value, "command")
        assert (rating.turn, rating.event_id) == (me.answer(1), f"{turn}:{'good' if value > 0 else 'bad'}")


@pytest.mark.parametrize(
    "typed",
    [
        "+1 for effort, and go on",
        "-1 is what it prints",
        "rl good news",
        "rl is a field",
        "👍 go on",
        "good",
        "/rl/good is missing",
        "/rlgood",
        "1",
        "+10",
        "undo",
        "rl",
    ],
)
async def test_a_prompt_that_only_begins_so_goes_to_the_model(tmp_path: Path, typed: str) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        turn, blocked = await me.prompt(typed)
        assert not blocked
        await me.stop(turn, "well")
        assert me.ratings == []
        assert me.captures[1].messages[-1]["content"] == typed


async def test_a_rating_never_means_another_sessions_answer(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        _, blocked = await me.prompt("+1", session=OTHER)
        assert blocked == session.NONE
        await me.ask("Two?", "2", session=OTHER)
        await me.prompt("+1")
        assert [one.turn for one in me.ratings] == [me.answer(0)]


async def test_while_an_answer_is_written_nothing_can_be_rated(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        turn, _ = await me.prompt("Two?")
        _, blocked = await me.prompt("+1", turn=turn)
        assert blocked == session.RUNNING
        await me.prompt("and this, too", turn=turn)
        await me.stop(turn, "2")
        _, blocked = await me.prompt("+1", turn=turn)
        assert blocked == session.RUNNING, "typed before the turn had ended"
        assert me.ratings == []
        said = [one["content"] for one in me.captures[1].messages]
        assert said == ["One?", "1", "Two?", "and this, too"]
        await me.prompt("-1")
        assert [one.turn for one in me.ratings] == [me.answer(1)]


async def test_an_answer_that_was_stopped_is_not_rated_nor_the_one_before(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        await me.prompt("Two, slowly")
        _, blocked = await me.prompt("+1")
        assert blocked == session.STOPPED
        assert me.ratings == []
        await me.ask("Three?", "3")
        said = [one["content"] for one in me.captures[1].messages]
        assert said == ["One?", "1", "Two, slowly", "Three?"]
        await me.prompt("+1")
        assert [one.turn for one in me.ratings] == [me.answer(1)]


async def test_an_answer_without_a_prompt_is_not_captured_and_hides_the_one_before(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        await me.stop("somebody-elses", "2")
        assert len(me.captures) == 1
        assert (await me.prompt("+1"))[1] == session.STOPPED


async def test_no_answer_at_all_is_nothing_to_rate(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        turn, _ = await me.prompt("One?")
        assert await me.stop(turn, None) == ""
        assert me.captures == []
        assert (await me.prompt("+1"))[1] == session.NONE


async def test_the_prompt_and_the_answer_outlive_a_restart(tmp_path: Path) -> None:
    host = RecordingHost(SPEC, state_dir=tmp_path / "connectors" / "codex")
    async with codex(tmp_path, host) as me:
        await me.ask("One?", "1")
        turn, _ = await me.prompt("Two?")
    async with codex(tmp_path, host) as me:
        await me.stop(turn, "2")
        said = [one["content"] for one in me.captures[1].messages]
        assert said == ["One?", "1", "Two?"]
    async with codex(tmp_path, host) as me:
        await me.prompt("+1")
        assert [one.turn for one in me.ratings] == [me.answer(1)]
    await host.close()


async def test_an_agent_that_goes_on_in_its_turn_is_rated_by_its_last_words(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        turn = await me.ask("One?", "Not yet.")
        await me.stop(turn, "Now it is 1.")
        await me.stop(turn, "Now it is 1.")
        first, second = (me.captures[0], me.captures[1])
        assert first.messages == second.messages
        assert first.trace == second.trace
        assert len({one.event_id for one in me.captures}) == len(me.captures) == 2
        await me.prompt("+1")
        assert [one.turn for one in me.ratings] == [me.answer(1)]


async def test_undo_takes_the_last_rating_back_whatever_came_since(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        assert (await me.prompt("rl undo"))[1] == session.NO_UNDO
        await me.prompt("+1")
        await me.ask("Two?", "2")
        await me.prompt(" /rl undo")
        assert me.ratings[1].kind is RatingKind.RETRACT
        assert (me.ratings[1].turn, me.ratings[1].source) == (me.answer(0), "")
        assert (await me.prompt("rl undo"))[1] == session.NO_UNDO


async def test_stars_reasons_and_better_answers(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        await me.prompt(" /rl stars 4")
        await me.prompt(" /rl stars 0")
        await me.prompt(" /rl reason Too short.\nAnd wrong.")
        await me.prompt(" /rl better It is one.")
        kinds = [(one.kind, one.value, one.source) for one in me.ratings]
        assert kinds[:2] == [(RatingKind.RATE, 0.5, "stars"), (RatingKind.RETRACT, None, "stars")]
        assert (me.ratings[2].kind, me.ratings[2].text) == (RatingKind.COMMENT, "Too short.\nAnd wrong.")
        assert (me.ratings[3].kind, me.ratings[3].text) == (RatingKind.BETTER, "It is one.")
        assert {one.turn for one in me.ratings} == {me.answer(0)}
        for wrong in (" /rl stars", " /rl stars nine", " /rl reason", " /rl good because"):
            assert "/rl" in (await me.prompt(wrong))[1]
        assert len(me.ratings) == 4


async def test_only_what_anybody_may_do_is_done_from_a_prompt(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        assert "stars" in (await me.prompt(" /rl help"))[1]
        for word in ("rollback", "train", "people", "forget", "nonsense"):
            assert "terminal" in (await me.prompt(f" /rl {word} me"))[1]
        assert me.of(CommandEvent) == []


async def test_subagents_are_not_a_persons_turns(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        for event in recorded("hooks"):
            if "agent_id" in event:
                assert await me.hook(event) == {}
        assert (await me.prompt("+1"))[1].startswith("Counted")
        assert len(me.captures) == 1


async def test_a_full_disk_is_said_and_the_rating_can_be_given_again(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        me.host.refuse()
        assert "Nothing was rated" in (await me.prompt("+1"))[1]
        assert (await me.prompt("+1"))[1].startswith("Counted")
        await refused_stop(me)


async def refused_stop(me: Codex) -> None:
    turn, _ = await me.prompt("Two?")
    me.host.refuse()
    event = {"session_id": MAIN, "turn_id": turn, "hook_event_name": "Stop", "last_assistant_message": "2"}
    await me.hook(event, status=503)
    assert (await me.prompt("+1"))[1] == session.STOPPED


async def test_a_session_that_spoke_while_we_were_away_is_not_guessed_at(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.ask("One?", "1")
        marks = tmp_path / "connectors" / "codex" / "missed"
        marks.mkdir()
        for name in ("another", MAIN):
            (marks / name).touch()
        assert (await me.prompt("+1"))[1] == session.STOPPED
        assert (await me.prompt("+1"))[1] == session.STOPPED
        await me.ask("Three?", "3")
        assert (await me.prompt("+1"))[1].startswith("Counted")
        assert [one.turn for one in me.ratings] == [me.answer(1)]


@pytest.mark.parametrize("missing", ["session_id", "turn_id"])
async def test_what_is_not_codex_is_refused(tmp_path: Path, missing: str) -> None:
    async with codex(tmp_path) as me:
        event = {"session_id": "a", "turn_id": "b", "hook_event_name": "Stop"}
        del event[missing]
        answer = await me.hook(event, status=400)
        assert missing in answer["error"]["message"]


async def test_whoever_goes_back_in_a_conversation_rates_nothing_that_was_taken_back(tmp_path: Path) -> None:
    """Codex keeps the session and begins another file."""

    def said(name: str, turn: str, thread: str, **more: str) -> dict[str, str]:
        file = f"/people/me/.codex/sessions/2026/11/22/rollout-2026-11-22T15-43-28-{thread}.jsonl"
        return {"session_id": MAIN, "turn_id": turn, "hook_event_name": name, "transcript_path": file, **more}

    async with codex(tmp_path) as me:
        await me.hook(said("UserPromptSubmit", "t1", MAIN, prompt="One?"))
        await me.hook(said("Stop", "t1", MAIN, last_assistant_message="1"))
        answer = await me.hook(said("UserPromptSubmit", "t2", OTHER, prompt="+1"))
        assert answer["reason"] == session.NONE
        assert me.ratings == []
        await me.hook(said("UserPromptSubmit", "t3", OTHER, prompt="Three?"))
        await me.hook(said("Stop", "t3", OTHER, last_assistant_message="3"))
        await me.hook(said("UserPromptSubmit", "t4", OTHER, prompt="-1"))
        assert [one.turn for one in me.ratings] == [me.answer(1)]
        assert [one["content"] for one in me.captures[1].messages] == ["Three?"]
        await me.hook(said("UserPromptSubmit", "t5", MAIN, prompt="+1"))
        assert me.ratings[1].turn == me.answer(0), "back in the first thread"
