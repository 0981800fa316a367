# SPDX-License-Identifier: Apache-2.0
"""Scenes with the real Claude Code 2.1.330, played again; `tests/agents/test_claude_code.py` records them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.connectors.claude_code.peer import RECORDED, SESSION, Peer, recorded

KEPT = {
    "printed": [("Hello there.", "Answer 1.")],
    "tool": [("Please ZTOOL.", "Answer 2.")],
    "subagent": [("Please ZAGENT.", "Answer 2.")],
    "rated": [("What is 2 + 2?", "Answer 1."), ("Another one.", "Answer 2.")],
    "queued": [("First question.", "Answer 1."), ("Second question.", "Answer 2.")],
    "during": [("Please ZSLOW.\n\nAnd be kind.", "Answer 2.")],
    "background": [("Please ZBACK.", "Answer 2.")],
    "interrupted": [("A good question.", "Answer 1.")],
}
WITHOUT_TRANSCRIPT = {**KEPT, "queued": [], "during": []}
"""What had to queue cannot be told by the hooks: nothing is kept, rather than a guess."""


async def play(peer: Peer, scene: str, transcript: str) -> list[tuple[str, str]]:
    for call in recorded(scene):
        await peer.post(call | {"transcript_path": transcript})
    return [(str(one.messages[-1]["content"]), one.response) for one in peer.captures]


def test_every_scene_is_played() -> None:
    assert {one.stem for one in RECORDED.glob("*.json")} == set(KEPT)


@pytest.mark.parametrize("scene", KEPT)
async def test_each_answer_with_its_own_prompt(peer: Peer, tmp_path: Path, scene: str) -> None:
    path = tmp_path / "projects" / "-work" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text((RECORDED / f"{scene}.jsonl").read_text())
    assert await play(peer, scene, str(path)) == KEPT[scene]


@pytest.mark.parametrize("scene", KEPT)
async def test_or_none_where_there_is_no_transcript(peer: Peer, scene: str) -> None:
    assert await play(peer, scene, "/nowhere") == WITHOUT_TRANSCRIPT[scene]


@pytest.mark.parametrize("scene", KEPT)
async def test_a_restart_before_each_call_changes_nothing(peer: Peer, scene: str) -> None:
    if scene in ("queued", "during"):
        return  # without a transcript there is nothing to lose
    for call in recorded(scene):
        await peer.restart()
        await peer.post(call)
    assert [one.response for one in peer.captures] == [answer for _, answer in KEPT[scene]]


async def test_ratings_are_of_the_answer_before_them(peer: Peer) -> None:
    answers = await peer.replay("rated")
    turns = [peer._receipts[one.event_id].turn for one in peer.captures]
    assert [(one.turn, one.value) for one in peer.rated] == [(turns[0], 1.0), (turns[1], -1.0)]
    blocked = [one["reason"] for one in answers if "reason" in one]
    assert blocked[:2] == [
        "👍 Good. 12 of 40 ratings (28 to go). “Answer 1.”",
        "👎 Bad. 13 of 40 ratings (27 to go). “Answer 2.”",
    ]
    assert peer.said == [f"undo {turns[1]}", "help"]


async def test_what_is_not_of_the_person_is_asked_back(peer: Peer) -> None:
    answers = await peer.replay("background")
    [asked, rated] = [one["reason"] for one in answers if "reason" in one]
    assert "Which of these do you mean?" in asked
    assert rated == "👍 Good. 12 of 40 ratings (28 to go). “Answer 2.”"
    assert [one.turn for one in peer.rated] == [peer._receipts[peer.captures[0].event_id].turn]


async def test_nothing_of_the_machine_that_recorded_is_in_them() -> None:
    for path in RECORDED.iterdir():
        text = path.read_text()
        assert not [word for word in ("pytest", str(ROOT), "gb_") if word in text], path
