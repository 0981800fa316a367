# SPDX-License-Identifier: Apache-2.0
"""docs/codex.md says what the code does."""

from __future__ import annotations

import dataclasses
import re
import tomllib

from goodbot_connectors.codex import hooks_file, session, words
from goodbot_connectors.codex.config import CodexSettings

from tests.architecture.source import ROOT

TEXT = (ROOT / "docs" / "codex.md").read_text(encoding="utf-8")


def test_every_word_of_the_table_is_meant_for_goodbot() -> None:
    cells = [line.split("|")[1] for line in TEXT.splitlines() if re.match(r"\| .*(`|👍)", line)]
    typed = [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)] + ["👍", "👎"]
    assert len(typed) == 13
    for word in typed:
        said = words.said(word)
        assert said is not None, word
        assert not said.wrong, word
    assert words.said("+1 for effort, go on") is None


def test_its_settings_are_the_defaults() -> None:
    block = TEXT.rpartition("```toml\n")[2].partition("```")[0]
    section = tomllib.loads(re.sub(r"(?m)^# ", "", block))["connectors"]["codex"]
    assert section.pop("owners") == ["me"]
    assert section == dataclasses.asdict(CodexSettings())


def test_its_numbers_and_names() -> None:
    assert f"newest {session.MOST_MESSAGES} messages" in " ".join(TEXT.split())
    for event in hooks_file.EVENTS:
        assert f"`{event}`" in TEXT
