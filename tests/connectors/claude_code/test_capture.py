# SPDX-License-Identifier: Apache-2.0
"""What is kept of a session: the person's own prompts, each with its own answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

import pytest
from goodbot.api.events import Outcome, Receipt, Reply
from goodbot.base.errors import StoreError
from goodbot.testing.clock import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.claude_code import transcript
from goodbot_connectors.claude_code.config import ClaudeCodeSettings
from goodbot_connectors.claude_code.sessions import MOST

from tests.connectors.claude_code.peer import RECORDED, SESSION, Peer, payload, recorded
from tests.core.builders import until

HINT = {"systemMessage": "👍 /rl good · 👎 /rl bad"}


async def test_an_exchange_becomes_a_turn(peer: Peer) -> None:
    prompt_id = await peer.ask("What is 2 + 2?")
    assert await peer.stop(prompt_id, "4.\n") == HINT
    [turn] = peer.captures
    digest = hashlib.sha256(b"4.").hexdigest()
    assert turn.messages == ({"role": "user", "content": "What is 2 + 2?"},)
    assert (turn.response, turn.version, turn.kind) == ("4.", None, "main")
    assert turn.model == "claude-code", "it is none of our own model's"
    assert turn.trace == f"claude:{SESSION}:{digest}"
    assert turn.event_id == turn.message_id == f"{prompt_id}:{digest[:16]}"
    assert (turn.user.id, turn.channel.id, turn.channel.thread) == ("me", "me", SESSION)


async def test_the_same_call_twice_is_one_turn(peer: Peer) -> None:
    prompt_id = await peer.ask("Hello.")
    assert await peer.stop(prompt_id, "Hi.") == await peer.stop(prompt_id, "Hi.")
    assert len(peer.captures) == 1
    assert "Good." in await peer.rl("good")


async def test_earlier_exchanges_are_part_of_the_prompt(tmp_path: Path) -> None:
    peer = Peer(tmp_path, ClaudeCodeSettings(history=2))
    await peer.start()
    try:
        for number in range(4):
            await peer.exchange(f"Q{number}", f"A{number}")
        other = await peer.exchange("Elsewhere", "Yes.", session="other")
    finally:
        await peer.close()
    said = [(one["role"], one["content"]) for one in peer.captures[3].messages]
    assert said == [("user", "Q1"), ("assistant", "A1"), ("user", "Q2"), ("assistant", "A2"), ("user", "Q3")]
    assert len(other.messages) == 1, "sessions know nothing of each other"


async def test_a_restart_between_prompt_and_answer_loses_nothing(peer: Peer) -> None:
    await peer.exchange("Before.", "Yes.")
    prompt_id = await peer.ask("Over the restart.")
    await peer.restart()
    await peer.stop(prompt_id, "Still here.")
    assert [one["content"] for one in peer.captures[-1].messages] == ["Before.", "Yes.", "Over the restart."]
    await peer.restart()
    assert "Still here" in await peer.rl("good")


async def test_an_answer_without_its_prompt_is_not_kept(peer: Peer) -> None:
    assert await peer.stop("0000-aaaa", "To nobody.") == {}
    assert peer.captures == []
    await peer.ask("Unfinished.")
    assert await peer.stop("0000-bbbb", "To whom?") == {}
    assert peer.captures == []


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
async def test_what_a_subagent_does_is_no_turn(peer: Peer, event: str) -> None:
    prompt_id = await peer.ask("Mine.")
    inner = payload(event, prompt_id, prompt="Inner.", last_assistant_message="Inner.", agent_id="a1")
    assert await peer.post(inner) == {}
    await peer.stop(prompt_id, "Outer.")
    assert [one.response for one in peer.captures] == ["Outer."]
    assert peer.captures[0].messages[-1]["content"] == "Mine."


async def test_work_in_the_background_reports_to_claude_not_to_the_person(peer: Peer) -> None:
    await peer.exchange("Start it.", "Started.")
    wake = await peer.ask("<task-notification>\n<task-id>b1</task-id></task-notification>")
    assert await peer.stop(wake, "It is done.") == {}
    assert [one.response for one in peer.captures] == ["Started."]


async def test_a_queued_prompt_without_a_transcript_is_not_guessed(peer: Peer) -> None:
    """What 2.1.330 sends: the queued prompt comes under the id of the turn under way."""
    first = await peer.ask("First.")
    await peer.post(payload("UserPromptSubmit", first, prompt="Second."))
    assert await peer.stop(first, "To the first.") == {}
    await peer.post(payload("UserPromptSubmit", "second-0001", prompt="Third."))
    assert await peer.stop("second-0001", "To the second.") == {}
    assert peer.captures == []
    assert "no answer in this session" in await peer.rl("good")


async def test_a_transcript_that_is_written_late_is_waited_for(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a Stop it may still end before the turn does."""
    path = tmp_path / "projects" / "-work" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    rows = [json.loads(line) for line in (RECORDED / "queued.jsonl").read_text().splitlines()]
    path.write_text(json.dumps(rows[0]) + "\n")
    asked = [one["prompt_id"] for one in recorded("queued") if "prompt" in one]
    first, second = [one for one in recorded("queued") if one["hook_event_name"] == "Stop"]
    for payload_ in recorded("queued"):
        if payload_["hook_event_name"] == "UserPromptSubmit":
            await peer.post(payload_ | {"transcript_path": str(path)})
    assert asked[0] == asked[1] == first["prompt_id"] != second["prompt_id"]
    waiting = asyncio.create_task(peer.post(second | {"transcript_path": str(path)}))
    await peer.connector._sessions.open("me", SESSION)
    looked = asyncio.Event()
    real = transcript.look

    def look(*arguments: str) -> transcript.TranscriptTurn | None:
        seen = real(*arguments)
        looked.set()
        return seen

    monkeypatch.setattr(transcript, "look", look)
    await until(looked.is_set, seconds=20)
    assert not waiting.done()
    answers = [
        {"type": "assistant", "message": {"id": f"m{n}", "content": [{"type": "text", "text": one}]}}
        for n, one in enumerate((first["last_assistant_message"], second["last_assistant_message"]))
    ]
    written = [*rows, answers[1]]
    path.write_text("\n".join(map(json.dumps, written)) + "\n")
    assert await waiting == HINT
    assert [one.messages[-1]["content"] for one in peer.captures] == ["Second question."]


async def test_the_hint_can_be_switched_off(tmp_path: Path) -> None:
    peer = Peer(tmp_path, ClaudeCodeSettings(hint=False))
    await peer.start()
    try:
        assert await peer.stop(await peer.ask("Q"), "A") == {}
        assert len(peer.captures) == 1
    finally:
        await peer.close()


async def test_news_come_with_the_next_answer(peer: Peer) -> None:
    channel = await peer.connector.private("me")
    assert channel is not None
    await peer.connector.send(channel, Reply(text="v3 is live."))
    answer = await peer.stop(await peer.ask("Q"), "A")
    assert answer == {"systemMessage": f"v3 is live.\n{HINT['systemMessage']}"}
    assert await peer.stop(await peer.ask("Q2"), "A2") == HINT


async def test_who_may_not_talk_is_told_once(peer: Peer) -> None:
    peer.answer = lambda event: Receipt(event_id=event.event_id, outcome=Outcome.DENIED, text="You may not.")
    assert await peer.stop(await peer.ask("Q"), "A") == {"systemMessage": "You may not."}
    assert await peer.stop(await peer.ask("Q2"), "A2") == {}


async def test_a_full_disk_leaves_claude_undisturbed(peer: Peer) -> None:
    prompt_id = await peer.ask("Q")
    peer.refuse()
    assert await peer.stop(prompt_id, "A") == {}
    assert await peer.stop(prompt_id, "A") == HINT


async def test_values_that_cannot_be_stored_do_not_either(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(self: RecordingHost, key: str, value: str) -> None:
        raise StoreError("no space left")

    monkeypatch.setattr(RecordingHost, "set", full)
    assert await peer.stop(await peer.ask("Q"), "A") == HINT


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b"\xff",
        b'"x"',
        b"[" * 5000,
        json.dumps({"hook_event_name": "Stop"}),
        json.dumps(payload("Stop", "../../x")),
        json.dumps(payload("Stop", "p", "x" * 500)),
        json.dumps(payload("Stop", "p") | {"prompt": 3}),
        json.dumps(payload("Stop", "p", last_assistant_message=["x"])),
        json.dumps(payload("SessionStart", "p")),
        json.dumps({"hook_event_name": ["Stop"]}),
        json.dumps(payload("Stop", "p", last_assistant_message="x" * 2_000_000)),
        json.dumps(payload("UserPromptSubmit", "p", prompt="\ud800")),
        json.dumps(payload("UserPromptExpansion", "p", command_name="review", command_args="good")),
    ],
)
async def test_what_it_does_not_understand_is_passed_over(peer: Peer, body: bytes | str) -> None:
    assert await peer.post(body) == {}
    assert peer.captures == []


async def test_without_a_token_nothing_is_told(peer: Peer) -> None:
    for token in ("", "gb_" + "x" * 43):
        assert await peer.post(payload("Stop", "p", last_assistant_message="A"), token) == 401
    assert peer.events == []


async def test_a_prompt_that_is_too_long_to_wait_is_not_cut(peer: Peer) -> None:
    assert await peer.stop(await peer.ask("x" * 70_000), "A") == {}
    assert peer.captures == []


async def test_what_is_kept_is_bounded_and_forgotten(peer: Peer) -> None:
    for number in range(MOST + 5):
        await peer.exchange("Q" * 9000, "A" * 9000, session=f"s{number}")
    for number in range(20):
        await peer.exchange(f"Q{number}" * 2000, "A" * 9000, session="long")
    kept = {key: value for key, value in peer._values.items() if key.startswith("session ")}
    assert len(kept) == MOST
    assert max(map(len, kept.values())) < 100_000
    await peer.connector.forget("me")
    assert not [key for key in peer._values if key.startswith("session")]
    assert "no answer in this session" in await peer.rl("good", session="long")


async def test_a_hook_in_flight_stores_nothing_again_that_was_forgotten(peer: Peer) -> None:
    await peer.exchange("Old question.", "Old.")
    prompt_id = await peer.ask("Last question.")
    peer.hold()
    stop = asyncio.ensure_future(peer.stop(prompt_id, "Late."))
    tried = len(peer.attempts)
    await until(lambda: len(peer.attempts) > tried, 30)
    await peer.connector.forget("me")
    peer.release()
    await stop
    assert "question." not in "".join(peer._values.values())
    await peer.exchange("New question.", "New.")
    assert [one["content"] for one in peer.captures[-1].messages] == ["New question."]
    assert "New question." in "".join(peer._values.values()), "it is stored as any other"


async def test_what_could_not_be_stored_is_forgotten_too(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(key: str, value: str) -> None:
        raise StoreError("The disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(peer, "set", full)
        await peer.exchange("Old question.", "Old.")
    await peer.connector.forget("me")
    assert "no answer in this session" in await peer.rl("good")
    await peer.exchange("New question.", "New.")
    assert len(peer.captures[-1].messages) == 1


async def test_what_was_said_is_dropped_after_its_days(tmp_path: Path) -> None:
    clock = VirtualClock()
    peer = Peer(tmp_path, ClaudeCodeSettings(keep_days=7), clock)
    await peer.start()
    try:
        await peer.exchange("Old question.", "Old.", session="old")
        await peer.exchange("First question.", "One.", session="both")
        clock.advance(5 * 86_400)
        await peer.exchange("Second question.", "Two.", session="both")
        clock.advance(3 * 86_400)
        assert "Old question." in "".join(peer._values.values())
        await peer.exchange("New question.", "New.", session="new")
        kept = "".join(peer._values.values())
        assert "Old question." not in kept, "whoever uses another session"
        assert "First question." not in kept
        assert "Second question." in kept
        assert "no answer in this session" in await peer.rl("good", session="old")
        assert "“Two.”" in await peer.rl("good", session="both")
        clock.advance(30 * 86_400)
        await peer.restart()
        assert "question." not in "".join(peer._values.values()), "and at each start"
        assert not [key for key, value in peer._values.items() if value and key != "news"]
    finally:
        await peer.close()


async def test_what_was_said_before_our_clock_was_set_back_is_dropped_after_its_days_too(
    tmp_path: Path,
) -> None:
    clock = VirtualClock()
    peer = Peer(tmp_path, ClaudeCodeSettings(keep_days=7), clock)
    await peer.start()
    try:
        clock.jump(400 * 86_400)
        await peer.exchange("Old question.", "Old.", session="old")
        clock.jump(-400 * 86_400)
        await peer.restart()
        clock.advance(8 * 86_400)
        await peer.exchange("New question.", "New.", session="new")
        assert "Old question." not in "".join(peer._values.values())
    finally:
        await peer.close()


async def test_b1_what_was_said_is_kept_while_our_clock_is_ahead_for_a_moment(tmp_path: Path) -> None:
    clock = VirtualClock()
    peer = Peer(tmp_path, ClaudeCodeSettings(keep_days=7), clock)
    await peer.start()
    try:
        await peer.exchange("Old question.", "Old.", session="old")
        clock.advance(3601)  # what nobody uses is looked at once an hour
        clock.jump(40 * 86_400)
        await peer.exchange("New question.", "New.", session="new")
        await peer.restart()
        clock.jump(-40 * 86_400)
        await peer.exchange("Next question.", "Next.", session="new")
        assert "Old question." in "".join(peer._values.values())
        assert "“Old.”" in await peer.rl("good", session="old")
        clock.advance(8 * 86_400)
        await peer.exchange("Last question.", "Last.", session="last")
        assert "Old question." not in "".join(peer._values.values())
    finally:
        await peer.close()


async def test_it_says_nothing_of_answers_while_stopping(peer: Peer) -> None:
    prompt_id = await peer.ask("Q")
    await peer.connector.stop()
    assert await peer.stop(prompt_id, "A") == 503, "so that the script notes it"
    assert await peer.connector.take("me", payload("Stop", prompt_id, last_assistant_message="A")) == {}
