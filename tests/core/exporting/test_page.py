# SPDX-License-Identifier: Apache-2.0
"""docs/export.md: its commands do what it says, and its tables are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from goodbot.cli import client, parser, words
from goodbot.commands.export import OWN
from goodbot.conversation.imports.forms import FORMS as FILES
from goodbot.features.forms.plugin import FORMS
from goodbot.store import selection

from tests.architecture.source import ROOT
from tests.core.exporting.made import bring_in, export, opened, rated
from tests.core.exporting.test_others import claw, feedback, listed

PAGE = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
IMPORTS = re.findall(r"^\$ goodbot (import.*)$", PAGE, flags=re.M)
EXPORTS = re.findall(r"^\$ goodbot (export.*)$", PAGE, flags=re.M)


def section(heading: str) -> str:
    return PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("line", EXPORTS)
async def test_each_export_of_the_page_works(line: str, tmp_path: Path) -> None:
    arguments = parser.parse(shlex.split(line))
    said = " ".join([*words.typed(arguments), *client._options(arguments)])
    async with opened(tmp_path) as bot:
        await rated(bot)
        lines, data = await export(bot, said)
        assert data["lines"] == len(lines)
        assert lines or "--since" in line or "--place" in line or "--person" in line or "--version" in line


@pytest.mark.parametrize("line", IMPORTS)
async def test_each_import_of_the_page_works(line: str, tmp_path: Path) -> None:
    arguments = parser.parse(shlex.split(line))
    async with opened(tmp_path) as bot:
        match arguments.format:
            case "jsonl":
                await rated(bot)
                file = Path((await export(bot))[1]["path"])
            case "open-webui":
                file = listed(tmp_path / "feedbacks.json", feedback())
            case _:
                file = claw(tmp_path / "claw.db", ("a model", "Why?", "Because.", None, 1))
        told = await bring_in(bot, file, arguments.format, mine=arguments.mine)
        assert told["imported"] + told["known"] > told["left_out"] == 0


def test_every_form_is_on_the_page() -> None:
    assert {parser.parse(shlex.split(line)).format for line in IMPORTS} == set(FILES)


def test_its_tables_are_those_of_the_code() -> None:
    assert re.findall(r"^\| `([\w-]+)` \|", section("In which form"), flags=re.M) == [
        OWN.name,
        *(form.name for form in FORMS),
    ]
    options = set(re.findall(r"`--(\w+)`", section("Which answers")))
    named_by_pages = {"turns"}  # `export` takes no ids
    assert options == set(selection.Selection.__dataclass_fields__) - named_by_pages


async def test_it_lists_every_key_of_a_line(tmp_path: Path) -> None:
    told = [
        name
        for row in re.findall(r"^\| (`.+?`) \|", section("What is in a line"), flags=re.M)
        for name in re.findall(r"`(\w+)`", row)
    ]
    async with opened(tmp_path) as bot:
        await rated(bot)
        for line in (await export(bot))[0]:
            assert sorted(line) == sorted(told)
