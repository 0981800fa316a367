# SPDX-License-Identifier: Apache-2.0
"""What of a typed text is a command."""

from __future__ import annotations

import pytest
from goodbot import command_in


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/rl good", ("good", "")),
        (" /RL  reason too long ", ("reason", "too long")),
        ("/rl\ngood", ("good", "")),
        ("/rl\u00a0reason\u00a0too long", ("reason", "too long")),
        ("/rl", ("help", "")),
        ("/rl note\nmy pager \ud800", ("note", "my pager \N{REPLACEMENT CHARACTER}")),
        ("/good", ("good", "")),
        ("/Good", ("Good", "")),
        ("/good@bot", ("good", "")),
        ("/stars 4", ("stars", "4")),
        ("/tmp/x is full", None),
        ("/", None),
        ("/shrug hello", None),
        ("// a comment", None),
        ("", None),
        ("good", None),
        ("what does /rl do?", None),
    ],
)
def test_what_is_a_command(text: str, command: tuple[str, str] | None) -> None:
    assert command_in(text) == command
