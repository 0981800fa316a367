# SPDX-License-Identifier: Apache-2.0
"""README.md is a promise: its tables are whole, and nothing that people read says what cannot be done."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.commands import Grant, of
from goodbot.cli import parser
from goodbot.config import sections

from tests.architecture.source import ROOT, modules

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTIONS = {
    "model": sections.ModelConfig,
    "serving": sections.ServingConfig,
    "serving.sampling": sections.SamplingConfig,
    "training": sections.TrainingConfig,
    "judge": sections.JudgeConfig,
    "adapters": sections.AdaptersConfig,
    "privacy": sections.PrivacyConfig,
    "http": sections.HttpConfig,
    "log": sections.LogConfig,
    "plugins": sections.PluginsConfig,
}


def _rows() -> Iterator[tuple[str, str, list[str], list[str]]]:
    """`(section, key, names and defaults of its row)` of the table of settings."""
    section = ""
    for line in README.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or not re.search(r"`[a-z_]+`", cells[1]):
            continue
        section = re.sub(r"[`\[\]]", "", cells[0]) or section
        names = re.findall(r"`([a-z_]+)`", cells[1])
        defaults = re.findall(r"`(.*?)`", cells[2])
        for name in names:
            yield section, name, names, defaults


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_in_the_table(section: str) -> None:
    told = {key for part, key, _, _ in _rows() if part == section}
    fields = {one.name for one in dataclasses.fields(SECTIONS[section])}
    # What has a section of its own in the table.
    apart = {"training": {"settings"}, "serving": {"sampling"}}
    assert told == fields - apart.get(section, set())


def test_the_defaults_are_those_of_the_table() -> None:
    checked = 0
    for section, key, names, defaults in _rows():
        if section not in SECTIONS or len(names) != len(defaults):
            continue
        value = getattr(SECTIONS[section](), key)
        assert defaults[names.index(key)] == _written(value), (section, key)
        checked += 1
    assert checked >= 30


def _written(value: Any) -> str:
    """As TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))  # pyright: ignore[reportUnknownArgumentType]
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_every_command_is_in_the_table() -> None:
    [table] = re.findall(r"\| who \| commands \|\n\|---\|---\|\n(.*?)\n\n", README, flags=re.S)
    talk, rate, own, terminal = (
        {word.split()[0] for word in re.findall(r"`([a-z].*?)`", row)} - {"goodbot"}
        for row in table.splitlines()
    )
    rows = {Grant.TALK: talk, Grant.RATE: rate, Grant.ADMINISTER: own}
    for command in of("chat"):
        found = {grant for grant, told in rows.items() if command.name in told}
        more = {Grant.ADMINISTER} if command.name == "forget" else set[Grant]()  # of others
        assert found == {command.grant} | more, command.name
    assert set().union(*rows.values()) == {command.name for command in of("chat")}
    _, commands = parser._parser()
    only = set(commands.choices) - {command.name for command in of("chat")}
    assert only - terminal == set()
    of_plugins = {"api", "chat", "demo"}
    assert terminal - only - of_plugins == {"adapters", "people", "web"}, "words of theirs are for a terminal"


PAGES = [
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"))
    if path.name != "CHANGELOG.md"
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_installs_the_name_from_an_index(path: Path) -> None:
    """Until goodbot is published, that name is anybody's: a reader would run a stranger's code."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?:install|inject|uvx) [^`\n]*['\"\s]goodbot(?:\[|['\"\s]|$)", text) == []


def test_no_sentence_installs_it_either() -> None:
    found = [
        (str(module.path), line)
        for module in modules()
        for line in module.text.splitlines()
        if re.search(r"'goodbot\[[a-z{]", line)
    ]
    assert found == []
