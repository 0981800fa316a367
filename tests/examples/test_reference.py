# SPDX-License-Identifier: Apache-2.0
"""docs/reference.md is what docs/tools/reference.py writes, and nothing on it is without a word."""

from __future__ import annotations

import dataclasses
import re

import pytest
from goodbot.api.commands import TABLE
from goodbot_training.job.settings import TrainingSettings

from tests.examples.support import ROOT, tool

TOOL = tool("reference")
PAGE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z_]+)", PAGE, flags=re.M)


def test_the_page_is_what_the_script_writes() -> None:
    assert TOOL.page() == PAGE, "python docs/tools/reference.py"


def test_every_command_and_every_setting_is_on_it() -> None:
    assert {command.name for command in TABLE} <= set(ROWS)
    assert {field.name for field in dataclasses.fields(TrainingSettings)} <= set(ROWS)
    assert not re.search(r"\|\s*\|$", PAGE, flags=re.M), "a row says nothing"


def test_it_follows_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    undo = next(command for command in TABLE if command.name == "undo")
    monkeypatch.setattr(TOOL, "TABLE", (undo._replace(summary="as if it had not been"),))
    made = TOOL.page()
    assert "| as if it had not been |" in made
    assert "`pause" not in made
