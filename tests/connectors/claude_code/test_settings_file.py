# SPDX-License-Identifier: Apache-2.0
"""Our hooks go into Claude Code's settings and out again; all else stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from goodbot_connectors.claude_code.settings_file import (
    EVENTS,
    http_hook,
    ours,
    script_hook,
    with_ours,
    without_ours,
)

SCRIPT = {event: script_hook("/h/.goodbot/connectors/claude_code/hook.sh", event) for event in EVENTS}
HTTP = {event: http_hook("http://127.0.0.1:8321/v1/claude-code/hook", "gb_x", event) for event in EVENTS}
THEIRS: dict[str, Any] = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}],
    },
    "permissions": {"allow": ["Bash(git status)"]},
    "nested": {"umlaut": "ü", "n": 1.0},
}


@pytest.mark.parametrize("handlers", [SCRIPT, HTTP])
def test_ours_are_added_behind_theirs(handlers: Any) -> None:
    text = with_ours(json.dumps(THEIRS, indent=2, ensure_ascii=False), handlers)
    after = json.loads(text)
    assert list(after) == list(THEIRS)
    assert after["hooks"]["Stop"][0] == THEIRS["hooks"]["Stop"][0]
    assert after["hooks"]["PreToolUse"] == THEIRS["hooks"]["PreToolUse"]
    assert after["hooks"]["UserPromptExpansion"][0]["matcher"] == "rl"
    assert ours(text) == handlers
    assert "ü" in text
    assert with_ours(text, handlers) == text, "a second time changes nothing"
    assert json.loads(without_ours(text)) == THEIRS


def test_one_way_takes_the_place_of_the_other() -> None:
    text = with_ours(with_ours("{}", HTTP), SCRIPT)
    assert ours(text) == SCRIPT
    assert "gb_x" not in text
    assert without_ours(text) == ""


def test_a_hook_that_its_owner_put_beside_ours_stays() -> None:
    settings = json.loads(with_ours("{}", SCRIPT))
    settings["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "theirs"})
    left = json.loads(without_ours(json.dumps(settings)))
    assert left == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}}


@pytest.mark.parametrize(
    ("text", "starts", "ends"),
    [
        ('{\n    "a": 1\n}\n', '{\n    "a": 1,\n    "hooks"', "}\n"),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"hooks"', "\n}"),
        ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "hooks"', "}\r\n"),
        ('{"a":1}', '{"a":1,"hooks":{"UserPromptSubmit"', "}"),
        ("", '{\n  "hooks"', "}\n"),
    ],
)
def test_it_looks_as_it_did(text: str, starts: str, ends: str) -> None:
    after = with_ours(text, SCRIPT)
    assert after.startswith(starts)
    assert after.endswith(ends)
    assert after.count("\r\n") in (0, after.count("\n"))


@pytest.mark.parametrize(
    "text", ["[1]", "{,", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": 3}', "[" * 100_000]
)
def test_what_it_does_not_understand_it_leaves_alone(text: str) -> None:
    for change in (lambda: with_ours(text, SCRIPT), lambda: without_ours(text)):
        with pytest.raises(ValueError, match=r"^it"):
            change()


def test_odd_entries_of_theirs_are_no_reason_to_fail() -> None:
    text = '{"hooks": {"Stop": [null, {"hooks": 3}, {"hooks": ["x"]}]}}'
    assert without_ours(text) == text
    assert json.loads(without_ours(with_ours(text, SCRIPT))) == json.loads(text)
