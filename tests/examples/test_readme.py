# SPDX-License-Identifier: Apache-2.0
"""README.md is a promise, and the pages behind it: tables are whole, pictures are of real runs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from goodbot.api.commands import OLD, Grant, of
from goodbot.cli import parser
from goodbot.config import sections
from goodbot.config.database import StoreConfig
from goodbot_training.tiny import show

from tests.architecture.source import ROOT, modules, pyproject
from tests.architecture.test_source import tracked
from tests.examples.support import stranger, tool

README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs/config.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
PICTURE = tool("picture")
SECTIONS = {
    "model": sections.ModelConfig,
    "serving": sections.ServingConfig,
    "serving.sampling": sections.SamplingConfig,
    "training": sections.TrainingConfig,
    "training.remote": sections.RemoteConfig,
    "judge": sections.JudgeConfig,
    "adapters": sections.AdaptersConfig,
    "privacy": sections.PrivacyConfig,
    "store": StoreConfig,
    "http": sections.HttpConfig,
    "log": sections.LogConfig,
    "plugins": sections.PluginsConfig,
}


def _rows() -> Iterator[tuple[str, str, list[str], list[str]]]:
    """`(section, key, names and defaults of its row)` of the table of settings."""
    section = ""
    for line in SETTINGS.splitlines():
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
    apart = {"training": {"settings", "remote"}, "serving": {"sampling"}}
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
    [table] = re.findall(r"\| who \| commands \|\n\|---\|---\|\n(.*?)\n\n", COMMANDS, flags=re.S)
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
    only = set(commands.choices) - {command.name for command in (*of("chat"), *OLD)}
    assert only - terminal == set()
    of_plugins = {"api", "chat", "demo", "webhooks"}
    assert terminal - only - of_plugins == {"adapters", "people", "web"}, "words of theirs are for a terminal"


def test_it_is_short_and_has_no_word_that_only_builders_know() -> None:
    assert len(README.encode()) <= 5000
    words = r"\b(gates?|claim\w*|held[- ]out|taint\w*|candidates?|quarantine\w*|rollouts?|LoRA)\b"
    assert re.findall(words, README, flags=re.I) == []


def test_every_place_where_people_talk_is_in_its_table() -> None:
    rows = re.findall(r"^\| [\w ]+ \| `goodbot (?:connect (\w+)|(chat))` \|", README, flags=re.M)
    named = {connect or {"chat": "terminal"}[other] for connect, other in rows}
    points = pyproject()["project"]["entry-points"]["goodbot"]
    assert named == {name for name, module in points.items() if module.startswith("goodbot_connectors.")}


def test_it_shows_a_part_of_what_the_demo_said() -> None:
    [shown] = re.findall(r"<!-- demo -->\n```text\n(.*?)```\n<!-- /demo -->", README, flags=re.S)
    whole = iter(PICTURE.kept().splitlines())
    lines = [line for line in shown.splitlines() if line not in ("", "…")]
    assert len(lines) >= 8
    for line in lines:
        assert line in whole, f"not there, or not in this order: {line}"


def test_the_demo_still_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The words of the page are the program's; the figures are those of the run that was kept."""
    [style] = re.findall("likes “(.*?)”", PICTURE.kept())
    screen = show.DemoPrinter(quiet=False)
    screen.opening("mlx")
    screen.owner(style, 40)
    screen.asking("before", 120, 120)
    screen.training_started(40)
    screen.verdict("activated", "")
    said = capsys.readouterr().out.splitlines()
    kept = PICTURE.kept().splitlines()
    assert [line for line in said if not any(one.startswith(line.rstrip()) for one in kept)] == []
    [figures] = re.findall(r"^answers in the liked style: (\d+)% .* → (\d+)% ", PICTURE.kept(), flags=re.M)
    results = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    assert f"one more run: {figures[0]} before, {figures[1]} after." in results


def test_the_picture_is_what_the_script_draws() -> None:
    drawn = PICTURE.draw(PICTURE.kept())
    assert (ROOT / "docs/pictures/demo.svg").read_text(encoding="utf-8") == drawn
    other = re.sub(r"(liked style: .*→ )\d+%", r"\g<1>41%", PICTURE.kept())
    assert "41 of 100 after" in PICTURE.draw(other)
    assert "41 of 100 after" not in drawn
    ElementTree.fromstring(drawn)


def test_the_picture_plays_once_and_not_for_who_wants_no_motion() -> None:
    drawn = PICTURE.draw(PICTURE.kept())
    begins = [float(one) for one in re.findall(r'class="come" style="animation-delay: ([\d.]+)s"', drawn)]
    assert len(begins) == drawn.count("<text ") > 20, "each line comes"
    assert begins == sorted(begins)
    assert begins[-1] <= 4.7, "longer than five seconds it would have to be possible to stop it"
    [playing] = re.findall(r"[^}]*animation: .*", drawn)
    assert "@media (prefers-reduced-motion: no-preference)" in playing
    assert "infinite" not in playing


PAGES = [
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"))
    if path.name != "CHANGELOG.md"
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_installs_the_name_from_an_index(path: Path) -> None:
    """Until goodbot is published, that name is anybody's: a reader would run a stranger's code."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?:install|inject|uvx(?! --from)) [^`\n]*['\"\s]goodbot(?:\[|['\"\s]|$)", text) == []


def test_no_sentence_installs_it_either() -> None:
    found = [
        (str(module.path), line)
        for module in modules()
        for line in module.text.splitlines()
        if re.search(r"'goodbot\[[a-z{]|pip_line\(.*\bNAME\b", line) or stranger(line)
    ]
    assert found == []


def test_no_other_file_installs_it_either() -> None:
    """Decisions, the changelog, catalogues, what plugins lay down, pages, container, Makefile."""
    found: list[str] = []
    looked_at = 0
    for path in tracked():
        if path == Path(__file__):  # which has to name it, below
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture, or weights
            continue
        looked_at += 1
        if "goodbot" in text and ("install" in text or "inject" in text):
            found += [f"{path.relative_to(ROOT)}: {line}" for line in text.splitlines() if stranger(line)]
    assert found == []
    assert looked_at > 1000


def test_ci_begins_with_the_commands_of_this_page_in_its_order() -> None:
    """Before anything else is installed: a newcomer has nothing else either."""
    told = re.findall(r"^\$ (make [^#\n]*?) *(?:#.*)?$", README, flags=re.M)
    _, cloned, rest = (ROOT / ".ci/run").read_text(encoding="utf-8").partition("\ngit clone ")
    assert cloned
    assert '\n  step make "$1" && return\n' in rest, "what `tests` runs"
    lines = [line for line in rest.splitlines() if re.match(r"(?:step|tests) ", line)]
    steps = [line.replace("tests ", "step make ", 1) if line.startswith("tests") else line for line in lines]
    assert steps[: len(told)] == [f"step {one}" for one in told]
    assert len(told) == 2, "what it takes to see it and to test it"
    before = rest.partition(f"\n{lines[0]}\n")[0]
    assert re.findall(r"\b(?:pip|npm|apt-get)\b|install", before) == []


def test_what_a_stranger_could_answer_is_known_again() -> None:
    for line in (
        "pip install goodbot",
        "run `pip install --upgrade goodbot[torch]` for it",
        "'/srv/my venv/bin/pip' install --upgrade 'goodbot[telegram,torch]'",
        "uv pip install --python /v/bin/python goodbot",
        "pipx install goodbot",
    ):
        assert stranger(line), line
    for line in ("pip install .", "pip install '.[mlx]'", "pip install 'torch>=2.6'", "uninstall goodbot"):
        assert not stranger(line), line
    assert not stranger("`goodbot service install` makes one; goodbot runs")
