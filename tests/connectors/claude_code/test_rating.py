# SPDX-License-Identifier: Apache-2.0
"""`/rl` rates exactly the last answer of its own session, or says what can be rated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from goodbot.api.events import Outcome, RatingKind, Receipt

from tests.connectors.claude_code.peer import SESSION, Peer, payload


def turn(peer: Peer, number: int = -1) -> str:
    return peer._receipts[peer.captures[number].event_id].turn


async def test_good_and_bad_mean_the_last_answer_of_this_session(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    await peer.exchange("Q2", "Two.")
    await peer.exchange("Elsewhere", "Three.", session="other")
    assert await peer.rl("good") == "👍 Good. 12 of 40 ratings (28 to go). “Two.”"
    assert await peer.rl("bad") == "👎 Bad. 13 of 40 ratings (27 to go). “Two.”"
    assert [(one.turn, one.value, one.source) for one in peer.rated] == [
        (turn(peer, 1), 1.0, "command"),
        (turn(peer, 1), -1.0, "command"),
    ]
    assert peer.rated[0].order < peer.rated[1].order


@pytest.mark.parametrize("word", ["+1", "👍", "GOOD", "yes", "👍🏽"])
async def test_other_words_for_good(peer: Peer, word: str) -> None:
    await peer.exchange("Q", "A")
    await peer.rl(word)
    assert [one.value for one in peer.rated] == [1.0]


async def test_the_progress_stands_under_the_next_answer(peer: Peer) -> None:
    await peer.exchange("Q", "A")
    await peer.rl("good")
    shown = await peer.stop(await peer.ask("Q2"), "A2")
    assert shown == {"systemMessage": "👍 /rl good · 👎 /rl bad · 12 of 40 ratings (28 to go)"}


async def test_an_answer_can_be_named(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    await peer.exchange("Q2", "Two.")
    first = turn(peer, 0)
    assert "One." in await peer.rl(f"bad {first[:6]}")
    assert [one.turn for one in peer.rated] == [first]


@pytest.mark.parametrize("typed", ["bad {}", "good {} why not", "better {} It is", "stars 4 {}", "undo {}"])
async def test_a_name_that_fits_none_rates_none(peer: Peer, typed: str) -> None:
    await peer.exchange("Q1", "One.")
    known = turn(peer)[:6]
    for name in (known[:-1] + ("0" if known[-1] != "0" else "1"), "3FA91D"):
        said = await peer.rl(typed.format(name))
        assert said.startswith(f"No answer kept of this session is called {name}; nothing was rated.\n")
        assert f"/rl good {known}  “Q1” → “One.”" in said
    assert (peer.rated, peer.said) == ([], [])


@pytest.mark.parametrize("reason", ["facade", "12345", "deadbeef", "3fa91d: wrong", "2nd one"])
async def test_words_that_are_no_name_are_a_reason(peer: Peer, reason: str) -> None:
    await peer.exchange("Q1", "One.")
    await peer.rl(f"bad {reason}")
    assert [one.text for one in peer.rated] == ["", reason]


@pytest.mark.parametrize("typed", ["stars 4", "undo"])
async def test_stars_and_undo_drop_no_words(peer: Peer, typed: str) -> None:
    await peer.exchange("Q1", "One.")
    name = turn(peer)[:6]
    for more in ("please", "3fa9", f"{name} please"):
        said = await peer.rl(f"{typed} {more}")
        assert said.startswith(f"Nothing was rated: behind `/rl {typed}` goes the name of an answer")
        assert f"/rl good {name}" in said
    assert peer.said == []
    await peer.rl(f"{typed}  {name}")
    assert peer.said == [f"{typed} {turn(peer)}"]


async def test_words_behind_it_are_the_reason(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    await peer.rl("bad it is far too long")
    assert [(one.kind, one.text) for one in peer.rated] == [
        (RatingKind.RATE, ""),
        (RatingKind.COMMENT, "it is far too long"),
    ]
    await peer.rl("better It is\n\n  two.")
    assert (peer.rated[-1].kind, peer.rated[-1].text) == (RatingKind.BETTER, "It is\n\n  two.")
    assert {one.turn for one in peer.rated} == {turn(peer)}
    assert "TEXT" in await peer.rl("better")


async def test_the_rest_goes_to_the_core_with_the_answer_named(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    assert await peer.rl("stars 4") == "Did stars."
    assert await peer.rl("undo") == "Did undo."
    assert await peer.rl("status") == "Did status."
    assert await peer.rl("why") == "Did why."
    assert await peer.rl("") == "Did help."
    assert await peer.rl("nonsense now") == "Did nonsense."
    assert peer.said == [
        f"stars 4 {turn(peer)}",
        f"undo {turn(peer)}",
        "status",
        "why",
        "help",
        "nonsense now",
    ]


async def test_before_the_first_answer_there_is_nothing_to_rate(peer: Peer) -> None:
    await peer.exchange("Elsewhere", "Yes.", session="other")
    assert "no answer in this session" in await peer.rl("good")
    assert "no answer in this session" in await peer.rl("undo")
    assert peer.rated == []
    assert peer.said == []


async def test_an_unfinished_prompt_is_a_question(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    await peer.ask("Interrupted.")
    said = await peer.rl("good")
    assert "no finished answer" in said
    assert f"/rl good {turn(peer)[:6]}  “Q1” → “One.”" in said
    assert peer.rated == []
    assert "One." in await peer.rl(f"good {turn(peer)[:6]}")


async def test_two_answers_to_one_prompt_are_a_question(peer: Peer) -> None:
    prompt_id = await peer.ask("Q1")
    await peer.stop(prompt_id, "One.")
    await peer.stop(prompt_id, "Two.", stop_hook_active=True)
    said = await peer.rl("bad")
    assert "more than once" in said
    assert said.index("Two.") < said.index("One."), "newest first"
    assert peer.rated == []


async def test_an_answer_that_was_not_kept_is_no_earlier_one(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    await peer.stop("shell-0001", "Of a shell command.")
    assert "was not kept" in await peer.rl("good")
    assert peer.rated == []


async def test_a_name_that_fits_several_is_a_question(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        peer.answer = lambda event, n=number: Receipt(
            event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=f"abcd{n}000"
        )
        await peer.exchange(f"Q{number}", f"A{number}")
    assert "several" in await peer.rl("good abcd")
    assert peer.rated == []


async def test_who_may_not_rate_is_told(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    peer.answer = lambda event: Receipt(event_id=event.event_id, outcome=Outcome.DENIED)
    assert "may not rate" in await peer.rl("good")


async def test_a_full_disk_is_said_and_no_model_is_asked(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    peer.refuse()
    assert "could not do that now" in await peer.rl("good")
    assert "Good." in await peer.rl("good")


async def test_the_commands_of_the_plugin(peer: Peer) -> None:
    await peer.exchange("Q1", "One.")
    for name, args in (("rl:good", ""), ("rl:bad", ""), ("rl:bad", "too long")):
        await peer.post(
            {
                "hook_event_name": "UserPromptSubmit",
                "session_id": peer.captures[0].channel.thread,
                "prompt_id": f"p-{len(peer.rated)}",
                "prompt": f"/{name} {args}",
            }
        )
        answer = await peer.post(
            {
                "hook_event_name": "UserPromptExpansion",
                "session_id": peer.captures[0].channel.thread,
                "prompt_id": f"p-{len(peer.rated)}",
                "command_name": name,
                "command_args": args,
            }
        )
        assert "to go). “One.”" in answer["reason"]
    assert [one.value for one in peer.rated] == [1.0, -1.0, -1.0, None]


async def test_a_later_turn_in_the_transcript_is_a_question(peer: Peer, tmp_path: Path) -> None:
    """Where no script notes that goodbot was down: with `hooks = "http"`."""
    path = tmp_path / "projects" / "-work" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)

    async def good() -> str:
        call = payload(
            "UserPromptExpansion", f"p-{len(peer.attempts)}", command_name="rl", command_args="good"
        )
        return str((await peer.post(call | {"transcript_path": str(path)}))["reason"])

    await peer.exchange("Q1", "One.")
    rows = [
        {"type": "user", "promptId": id_, "message": {"role": "user", "content": text}}
        for id_, text in ((peer.captures[0].event_id.partition(":")[0], "Q1"), ("p2", "Q2"))
    ]
    path.write_text(json.dumps(rows[0]) + "\n")
    assert "“One.”" in await good()
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert "Which of these do you mean?" in await good()
    assert len(peer.rated) == 1
    await peer.exchange("Q3", "Three.")
    last = peer.captures[-1].event_id.partition(":")[0]
    rows.append({"type": "user", "promptId": last, "message": {"content": "Q3"}})
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert "“Three.”" in await good()
