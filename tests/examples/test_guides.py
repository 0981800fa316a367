# SPDX-License-Identifier: Apache-2.0
"""The short guides: their commands are run in empty homes, and every command that any page names is one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import goodbot_training
import pytest
from goodbot.api import commands, model_shape
from goodbot.api.estimate import ModelEstimate, estimate
from goodbot.base.machine import device
from goodbot.cli import parser
from goodbot.config import parse
from goodbot.inference.models import catalogue

from tests.examples.support import ROOT, python, require_backend

SHORT = ("laptop", "move", "phone", "server", "wsl", "costs", "privacy", "faq", "reinforceclaw")
PAGES = sorted({*ROOT.glob("docs/*.md"), ROOT / "README.md"})


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def typed(name: str) -> list[list[str]]:
    """The words behind `goodbot` in the page's console blocks."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", page(name), flags=re.S))
    return [line.split() for line in re.findall(r"^\$ goodbot (.+)$", blocks, flags=re.M)]


def say(home: Path, words: list[str]) -> str:
    """One command of a person whose home is `home`."""
    here = {"HOME": str(home), "GOODBOT_HOME": ""}
    words = [word.replace("~", str(home.parent)) for word in words]
    done = python("-m", "goodbot", *words, cwd=home, environ=here)
    # What `doctor` finds wrong with the machine is not this test's.
    assert done.returncode in ((0, 1) if words == ["doctor"] else (0,)), f"{words}: {done.stderr}"
    return done.stdout + done.stderr


def newcomer(home: Path) -> Path:
    home.mkdir()
    say(home, ["init", "--yes", "--platform", "terminal", "--model", "demo"])
    return home


@pytest.mark.parametrize("name", SHORT)
def test_a_guide_is_short(name: str) -> None:
    assert len(page(name).splitlines()) <= 80


@pytest.mark.parametrize("name", ["laptop", "wsl", "privacy", "faq"])
def test_the_commands_of_a_guide_work(name: str, tmp_path: Path) -> None:
    require_backend()
    home = newcomer(tmp_path / "ada")
    commands = typed(name)
    assert commands
    for words in commands:
        told = say(home, words)
        for line in ("cage", "memory", "backend", "service") if words == ["doctor"] else ():
            assert re.search(rf"^\w+ +{line} ", told, flags=re.M), "the page speaks of this line"
    assert (name == "privacy") == any((home / ".goodbot/exports").glob("*"))


def test_the_models_for_a_laptop_are_those_of_the_list_with_what_is_reckoned_for_a_mac(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the page calls these figures estimates."""
    monkeypatch.setattr("goodbot.base.machine.device.sys.platform", "darwin")

    def row(entry: catalogue.CatalogueEntry) -> tuple[str, ...]:
        def on(gigabytes: int) -> ModelEstimate:
            where = device.place("mlx", memory=gigabytes * 10**9)
            return estimate(entry.architecture, where, entry.bytes)

        least = next(gigabytes for gigabytes in range(1, 1000) if on(gigabytes).fits)
        times = f"{round(on(1000).answer)} s", f"{max(1, round(on(1000).round / 60))} min"
        return (entry.name, f"{entry.bytes / 1e9:.1f} GB", f"{least} GB", *times)

    told = re.findall(r"^\| `([^`]+/[^`]+)` \| (.+) \| (.+) \| (.+) \| (.+) \|$", page("laptop"), flags=re.M)
    assert told == [row(entry) for entry in catalogue.entries() if not entry.gated]
    assert "**The last three columns are estimates.**" in page("laptop")


def test_the_memory_of_the_tiny_model_is_what_is_reckoned_for_it() -> None:
    shipped = Path(goodbot_training.__file__).parent / "tiny" / "model"
    found = model_shape.read(json.loads((shipped / "config.json").read_bytes()))
    where = device.Device(backend="torch", device="cpu", memory=10**12, flops=1e10, bandwidth=1e10, step=2e-3)
    cost = estimate(found, where, (shipped / "model.safetensors").stat().st_size)
    answers, trains, longest = (
        f"{round(size / 1e6)} MB" for size in (cost.serving, cost.usual, cost.training)
    )
    laptop = page("laptop")
    assert f"| memory to answer (estimate) | {answers} |" in laptop
    assert f"| memory to train, beside that (estimate) | {trains}, {longest} with long " in laptop
    assert f"| memory to answer | {answers}, as `doctor` estimates |" in page("costs")
    assert f"| memory to train, beside that | {trains}, as `doctor` estimates |" in page("costs")


def test_what_it_costs_is_what_the_other_pages_say() -> None:
    """What was measured is measured once, and told in several places."""
    costs, laptop = page("costs"), page("laptop")
    [download, disk] = re.findall(
        r"installed by `make demo` \| about (\d+) MB to download, about (\d+) MB on disk", costs
    )[0]
    for text in (page("demo"), page("server"), (ROOT / "README.md").read_text(encoding="utf-8"), costs):
        assert f"about {disk} MB" in text
    assert costs.count(f"about {download} MB") == 2
    assert f"about {download} MB" in page("demo")
    [seconds] = re.findall(r"\| a training on 40 ratings \| (\d+) processor seconds \|", costs)
    assert f"on one processor core (measured) | {seconds} seconds |" in laptop
    assert f"a whole round of 40 ratings takes {seconds}." in page("performance").replace("\n", " ")
    [torch] = re.findall(r"goodbot with PyTorch \| about ([\d.]+) GB to download on Linux", costs)
    assert f"about {torch} GB" in page("demo")
    [(after_24, after_40, after_80, after_200, before)] = re.findall(
        r"\(measured\) \| (\d+), (\d+), (\d+) and (\d+) \((\d+) before\)", laptop
    )
    goals = " ".join(page("results-goals").split())
    assert f"24 ratings brought liked answers from {before} to {after_24} of 100, 40 to {after_40}," in goals
    assert f"80 to {after_80} and 200 to {after_200}" in goals


def test_a_bot_moves(tmp_path: Path) -> None:
    """Its owner goes from one home to another by the page's commands; the file is carried between."""
    require_backend()
    backup, restore, *looks = typed("move")
    old = newcomer(tmp_path / "old")
    config = old / ".goodbot/config.toml"
    config.write_text(config.read_text() + "\n# it came along\n")
    say(old, ["status"])  # it has been used: there is a database
    say(old, backup)
    (new := tmp_path / "new").mkdir()
    assert restore[0] == "restore"
    say(new, [*restore, "--yes"])
    assert "# it came along" in (new / ".goodbot/config.toml").read_text()
    assert "0 of 40" in say(new, looks[0])
    for words in looks[1:]:
        say(new, words)


def test_the_settings_of_the_phone_are_settings(tmp_path: Path) -> None:
    [block] = re.findall(r"```toml\n(.*?)```", page("phone"), flags=re.S)
    assert parse(block, home=tmp_path).http.url == "https://bot.example.org"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_command_that_a_page_names_is_one(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    _, program = parser._parser()
    of_plugins = {"api", "chat", "demo", "help", "webhooks"}
    named = re.findall(r"(?:`|^\$ )goodbot ([a-z_]+)", text, flags=re.M)
    assert [word for word in named if word not in {*program.choices, *of_plugins}] == []
    chat = re.findall(r"`/rl ([a-z]+)", text)
    assert [word for word in chat if commands.find(word) is None] == []


def test_the_pages_name_many() -> None:
    """Else the scan has lost its subject."""
    everything = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert len(re.findall(r"`goodbot [a-z]", everything)) > 150
