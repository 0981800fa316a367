# SPDX-License-Identifier: Apache-2.0
"""docs/openclaw.md says what is so."""

from __future__ import annotations

import dataclasses
import re

from goodbot.api.commands import find
from goodbot_connectors.openclaw.config import OpenClawSettings

from tests.agents.programs import PINNED
from tests.architecture.source import ROOT

PAGE = (ROOT / "docs" / "openclaw.md").read_text(encoding="utf-8")


def test_the_settings_are_those_that_there_are() -> None:
    named = re.findall(r"^\| (`[a-z_`, ]+`) \| (?:`([^`]+)`)? ?\|", PAGE, flags=re.M)
    defaults = {name: default for names, default in named for name in re.findall(r"[a-z_]+", names)}
    fields = {field.name: field.default for field in dataclasses.fields(OpenClawSettings)}
    assert set(defaults) == set(fields)
    for name, default in defaults.items():
        if default:
            assert default == {True: "true", False: "false"}.get(fields[name], f'"{fields[name]}"'), name  # type: ignore[call-overload]


def test_the_commands_are_those_that_there_are() -> None:
    words = set(re.findall(r"`/(?:rl|rladmin) ([a-z]+)", PAGE))
    assert {"good", "undo", "train", "enable", "people"} <= words
    assert [word for word in words if find(word) is None] == []


def test_the_version_is_the_one_that_it_is_tried_with() -> None:
    assert f"Tried with OpenClaw {PINNED['openclaw']}" in PAGE
