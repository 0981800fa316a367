# SPDX-License-Identifier: Apache-2.0
"""docs/reference.md and docs/plugin-api.md are what docs/tools/reference.py writes, and whole."""

from __future__ import annotations

import dataclasses
import inspect
import re

import goodbot
import pytest
from goodbot.api.commands import TABLE
from goodbot_training.job.settings import TrainingSettings

from tests.architecture.test_public_api import PARTS
from tests.examples.support import ROOT, tool

TOOL = tool("reference")
PAGE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
API = (ROOT / "docs/plugin-api.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([a-z_]+)", PAGE, flags=re.M)


def test_the_page_is_what_the_script_writes() -> None:
    assert (TOOL.page(), TOOL.api_page()) == (PAGE, API), "python docs/tools/reference.py"


def test_the_plugin_api_is_whole() -> None:
    """Each class that a plugin can import, each method of it, and what a method's arguments are."""
    classes = {one.__name__ for one in PARTS} | {
        name for name in goodbot.__all__ if inspect.isclass(getattr(goodbot, name))
    }
    told = set(re.findall(r"^(?:### |\| )`(\w+)`", API, flags=re.M))
    assert classes - told == set()
    heard = API.partition("async heard(")[2].partition("\n**`")[0]
    for line in (
        "* `at`: The platform's time of it, in seconds since the epoch.",
        "* `StoreError`: Nothing was",
    ):
        assert line in heard
    assert "| `is_bot` | `bool` | `False` |" in API
    assert "| `EDITS` | A message of ours can be changed. |" in API
    assert not re.search(r"^(?:Args|Returns|Yields|Raises):$", API, flags=re.M), (
        "a section as it stands in code"
    )


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
