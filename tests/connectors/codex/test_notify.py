# SPDX-License-Identifier: Apache-2.0
"""What `notify` tells where hooks are not trusted, and what the real Codex told in one session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from goodbot_connectors.codex import session

from tests.connectors.codex.peer import MAIN, codex, recorded, written_rollouts


def note(turn: str, *written: str, answer: str = "Well.", thread: str = MAIN) -> dict[str, Any]:
    return {
        "type": "agent-turn-complete",
        "thread-id": thread,
        "turn-id": turn,
        "cwd": "/people/me",
        "client": "codex-tui",
        "input-messages": list(written),
        "last-assistant-message": answer,
    }


async def test_a_recorded_session_with_hooks_is_one_turn_an_answer(tmp_path: Path) -> None:
    folder = tmp_path / "connectors" / "codex"
    async with codex(tmp_path) as me:
        written_rollouts(tmp_path / "dot codex", folder)
        blocked = []
        for event in recorded("hooks"):
            if "turn_id" in event:
                blocked.append((await me.hook(event)).get("reason", ""))
        for event in recorded("notify"):
            await me.notify(event)
        said = [[one["content"] for one in capture.messages] for capture in me.captures]
        first = ["answer slowly now", "and also this"]
        second = [*first, "answer number 3", "again slowly", "subagent please"]
        assert said == [first, second]
        assert [one.response for one in me.captures] == ["answer number 3", "answer number 8"]
        assert [text for text in blocked if text] == [session.RUNNING, session.STOPPED]
        assert me.ratings == []


async def test_without_hooks_it_captures_the_same_answers_and_no_hidden_ones(tmp_path: Path) -> None:
    folder = tmp_path / "connectors" / "codex"
    async with codex(tmp_path) as me:
        written_rollouts(tmp_path / "dot codex", folder)
        for event in recorded("notify"):
            await me.notify(event)
        said = [[one["content"] for one in capture.messages] for capture in me.captures]
        assert [one.response for one in me.captures] == ["answer number 3", "answer number 8"]
        assert said[0][-1] == "and also this"
        assert said[1][-2:] == ["again slowly", "subagent please"]
        assert all("title" not in text for texts in said for text in texts)


async def test_where_codex_keeps_nothing_of_a_thread_nothing_is_captured(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        await me.notify(note("one", "Hello"))
        written_rollouts(tmp_path / "dot codex", tmp_path / "connectors" / "codex")
        await me.notify(note("two", "Hello", thread="../../../../etc"))
        assert me.captures == []
        await me.notify(note("three", "Hello"))
        assert [one.event_id for one in me.captures] == ["three"]


async def test_it_completes_what_the_hooks_have_seen_by_half(tmp_path: Path) -> None:
    folder = tmp_path / "connectors" / "codex"
    async with codex(tmp_path) as me:
        written_rollouts(tmp_path / "dot codex", folder)
        await me.ask("One?", "1")
        await me.notify(note(me.captures[0].event_id, "One?", answer="1"))
        await me.stop("two", "2")  # its prompt came while goodbot was not there
        await me.notify(note("two", "One?", "Two?", answer="2"))
        said = [one["content"] for one in me.captures[1].messages]
        assert said == ["One?", "1", "Two?"]
        await me.prompt("+1")
        assert [one.turn for one in me.ratings] == [me.answer(1)]


async def test_a_rating_that_reached_the_model_counts_and_is_no_turn(tmp_path: Path) -> None:
    folder = tmp_path / "connectors" / "codex"
    async with codex(tmp_path) as me:
        written_rollouts(tmp_path / "dot codex", folder)
        await me.notify(note("one", "One?", answer="1"))
        await me.notify(note("two", "One?", "-1", answer="What do you mean?"))
        assert len(me.captures) == 1
        [rating] = me.ratings
        assert (rating.turn, rating.value) == (me.answer(0), -1.0)
        await me.notify(note("three", "One?", "-1", "+1", answer="Ah."))
        assert len(me.ratings) == 1, "the answer before it was none of ours"
        await me.notify(note("four", "One?", "-1", "+1", "Four?", answer="4"))
        assert [one["content"] for one in me.captures[1].messages] == ["One?", "1", "Four?"]
