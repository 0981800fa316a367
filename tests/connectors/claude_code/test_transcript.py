# SPDX-License-Identifier: Apache-2.0
"""Which words a turn answers, from transcripts in the shape of Claude Code 2.1.330."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from goodbot_connectors.claude_code.transcript import TranscriptTurn, later, look

from tests.connectors.claude_code.peer import RECORDED, SESSION, recorded


def user(prompt_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "user",
        "promptId": prompt_id,
        "isSidechain": False,
        "message": {"role": "user", "content": content},
        "origin": {"kind": "human"},
        **more,
    }


def queued(text: str) -> dict[str, Any]:
    return {"type": "attachment", "attachment": {"type": "queued_command", "prompt": text}}


TOOL = [{"type": "tool_result", "tool_use_id": "t", "content": "the tool's words"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / ".claude" / "projects" / "-work" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    return path


def write(path: Path, *rows: dict[str, Any], end: str = "\n") -> str:
    path.write_text("\n".join(json.dumps(row) for row in rows) + end)
    return str(path)


def test_the_prompt_is_the_persons_and_no_tools(path: Path) -> None:
    rows = [user("p0", "Before."), user("p1", "Mine."), user("p1", TOOL), user("p2", "After.")]
    assert look(write(path, *rows), SESSION, "p1") == TranscriptTurn(text="Mine.")


def test_blocks_of_text_beside_a_picture(path: Path) -> None:
    content = [{"type": "text", "text": "Look:"}, {"type": "image"}, {"type": "text", "text": "?"}]
    assert look(write(path, user("p1", content)), SESSION, "p1") == TranscriptTurn(text="Look:\n?")


def test_what_waited_and_what_came_in_between(path: Path) -> None:
    rows = [
        user("p1", "First."),
        queued("Second."),
        queued("<task-notification>x"),
        user("p2", "Third.", promptSource="queued"),
        queued("Fourth."),
    ]
    text = write(path, *rows)
    assert look(text, SESSION, "p1") == TranscriptTurn(text="First.", during=("Second.",))
    assert look(text, SESSION, "p2") == TranscriptTurn(text="Third.", queued=True, during=("Fourth.",))


@pytest.mark.parametrize(
    "row",
    [
        user("p1", "<task-notification>x", origin={"kind": "task-notification"}),
        user("p1", "<bash-input>ls</bash-input>", origin=None),
        user("p1", "Wake up.", origin={"kind": "schedule"}),
    ],
)
def test_what_no_person_wrote(path: Path, row: dict[str, Any]) -> None:
    assert look(write(path, row), SESSION, "p1") == TranscriptTurn(text="")


def said(text: str, id_: str = "m1") -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"role": "assistant", "id": id_, "content": content}}


def test_whether_the_turn_has_been_written_to_its_end(path: Path) -> None:
    rows = [user("p1", "Mine."), said("Let me look.", "m0"), said("One."), said("\nTwo. ")]
    for count, whole in ((1, False), (2, False), (3, False), (4, True)):
        seen = look(write(path, *rows[:count]), SESSION, "p1", "One.\n\nTwo.")
        assert seen == TranscriptTurn(text="Mine.", answered=whole)
    assert look(str(path), SESSION, "p1", "") == TranscriptTurn(text="Mine.")


def test_a_command_as_it_was_typed(path: Path) -> None:
    content = (
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>src a</command-args>"
    )
    assert look(write(path, user("p1", content)), SESSION, "p1") == TranscriptTurn(text="/review src a")


def test_rows_of_others_do_not_count(path: Path) -> None:
    rows = [
        user("p1", "Inner.", isSidechain=True),
        user("p1", "Meta.", isMeta=True),
        {"type": "assistant", "promptId": "p1", "message": {"content": "No."}},
        {"type": "user", "promptId": "p1", "message": 3},
        user("p1", TOOL),
    ]
    assert look(write(path, *rows), SESSION, "p1") is None


def command(prompt_id: str, name: str) -> dict[str, Any]:
    return user(prompt_id, f"<command-message>x</command-message>\n<command-name>{name}</command-name>")


KNOWN = frozenset({"p0", "p1", "p9"})


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], False),
        ([user("p1", TOOL), said("More."), user("p9", "Known.")], False),
        ([user("p2", "Typed.")], True),
        ([user("p9", "Known."), user("p2", [{"type": "text", "text": "Typed."}])], True),
        ([user("p2", "Inner.", isSidechain=True), user("p2", "M", isMeta=True)], False),
        ([user("p2", "Summary.", isCompactSummary=True)], False),
        ([command("p2", "/model"), user("p2", "<local-command-stdout>x")], False),
        ([command("p2", "/review"), said("Reviewed.")], True),
        ([command("p2", "/rl"), said("goodbot is not running.")], False),
        ([user("p2", "<bash-input>ls</bash-input>")], False),
        ([user("p2", "<bash-input>ls</bash-input>"), said("Files.")], True),
        ([user("p1", "[Request interrupted by user]")], False),
    ],
)
def test_whether_there_is_a_turn_that_we_have_not_heard_of(
    path: Path, rows: list[dict[str, Any]], found: bool
) -> None:
    text = write(path, user("p7", "Long ago."), user("p1", "Mine."), said("Yes."), *rows)
    assert later(text, SESSION, "p1", KNOWN) is found


def test_a_transcript_without_the_last_turn_does_not_tell(path: Path) -> None:
    assert later(write(path, user("p0", "Before.")), SESSION, "p1", KNOWN) is None
    assert later(write(path, {"type": "summary"}), SESSION, "p1", KNOWN) is False
    assert later("", SESSION, "p1", KNOWN) is False


def test_a_line_that_is_half_written_is_passed_over(path: Path) -> None:
    half = json.dumps(user("p1", "Half."))[:-9]
    path.write_text(f"{half}\n{json.dumps(user('p1', 'Whole.'))}\n{half}")
    assert look(str(path), SESSION, "p1") == TranscriptTurn(text="Whole.")


def test_only_a_transcript_of_this_session_is_read(path: Path, tmp_path: Path) -> None:
    write(path, user("p1", "Mine."))
    other = tmp_path / f"{SESSION}.jsonl"
    other.write_text(path.read_text())
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    pipe = tmp_path / "projects" / f"{SESSION}.jsonl"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    for wrong in (
        str(other),
        str(link),
        str(pipe),
        "",
        "\0",
        f"/a\0b/projects/{SESSION}.jsonl",
        "projects/x.jsonl",
        str(path.parent),
    ):
        assert look(wrong, SESSION, "p1") is None
    assert look(str(path), "another", "p1") is None
    assert look(str(path), SESSION, "p9") is None


def test_a_long_transcript_is_read_from_its_end(path: Path) -> None:
    with path.open("w") as file:
        for _ in range(40):
            file.write(json.dumps(user("p0", [{**TOOL[0], "content": "x" * 500_000}])) + "\n")
        file.write(json.dumps(user("p1", "Mine.")) + "\n")
    assert look(str(path), SESSION, "p1") == TranscriptTurn(text="Mine.")
    assert look(str(path), SESSION, "p1".upper()) is None


@pytest.mark.parametrize("scene", sorted(one.stem for one in RECORDED.glob("*.jsonl")))
def test_it_agrees_with_the_hooks_of_the_real_program(path: Path, scene: str) -> None:
    """Where no prompt had to queue, both name the same words; where one had to, only this does."""
    path.write_text((RECORDED / f"{scene}.jsonl").read_text())
    calls = recorded(scene)
    told = [one for one in calls if one["hook_event_name"] == "UserPromptSubmit"]
    several = len({one["prompt_id"] for one in told}) < len(told)
    for call in told:
        if several or call["prompt"].startswith(("<", "/rl")):
            continue
        seen = look(str(path), SESSION, call["prompt_id"])
        assert seen == TranscriptTurn(text=call["prompt"])
