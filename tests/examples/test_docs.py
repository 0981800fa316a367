# SPDX-License-Identifier: Apache-2.0
"""The code in docs/plugins.md, taken from the page and run."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from inspect import signature
from pathlib import Path

import pytest
from goodbot.api.connector import METHODS, Capability, Connector
from goodbot.cli.plugin.command import render
from goodbot.config import Config, ServingConfig
from goodbot.daemon.app import App, open_plugins
from goodbot.testing import Pilot

from tests.core.builders import until
from tests.examples.support import ROOT, python, require_backend

PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Every block that begins with a file's name, as that file."""
    for name, code in re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, flags=re.S):
        (tmp_path / name).write_text(code, encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 8
    return tmp_path


def test_the_tables_are_toml(files: Path) -> None:
    project = tomllib.loads((files / "pyproject.toml").read_text())
    assert project["project"]["entry-points"] == {"goodbot": {"box": "goodbot_box"}}
    assert tomllib.loads((files / "config.toml").read_text()) == {"plugins": {"enable": ["box"]}}


@pytest.mark.parametrize(
    ("kind", "name", "file"),
    [("connector", "box", "goodbot_box.py"), ("reward", "cautious", "goodbot_cautious.py")],
)
def test_the_page_shows_what_the_program_writes(kind: str, name: str, file: str, files: Path) -> None:
    assert (files / file).read_text() == render(kind, name)[file]


def test_the_table_of_capabilities_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]*)\| .+ \|$", PAGE, flags=re.M)
    told = {name: tuple(re.findall(r"`(\w+)`", methods)) for name, methods in rows}
    assert list(told) == [one.name for one in Capability]
    assert told == {str(one.name): METHODS.get(one, ()) for one in Capability}
    assert all(callable(getattr(Connector, method)) for methods in METHODS.values() for method in methods)


async def test_the_connector_answers_in_its_folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_backend()
    spec = importlib.util.spec_from_file_location("goodbot_box", files / "goodbot_box.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "goodbot_box", module)
    spec.loader.exec_module(module)
    config = Config(
        home=files / "home",
        serving=ServingConfig(max_tokens=48),
        connectors={"box": {"folder": str(files), "owners": ["ann"]}},
    )
    plugins = open_plugins(config)
    plugins.register(module, "box")

    async def answer(number: int) -> str:
        file = files / f"outbox/{number:06}-ann.txt"
        await until(lambda: file.exists() and file.read_text())
        return file.read_text()

    async with App.open(config, plugins, demo_model=True, grants={}) as app:
        assert app.authorization.owners() == ["box:ann"]
        (files / "inbox/1-ann.txt").write_text("What is 2 + 2?")
        # What it says is drawn by the id of the message, which is another one each time.
        assert (await answer(0)).startswith("[demo model] ")
        (files / "inbox/2-ann.txt").write_text("/rl good")
        assert (await answer(1)).startswith("Good. 1 of 40")
        assert list((files / "inbox").iterdir()) == []


def test_the_pilot_test_passes(files: Path) -> None:
    require_backend()
    assert "1 passed" in run(files, "test_plugins.py")


def test_all_that_people_can_do_in_a_test_is_told() -> None:
    for word in (Pilot.say, Pilot.react, Pilot.unreact, Pilot.command):
        options = [one.name for one in signature(word).parameters.values() if one.kind is one.KEYWORD_ONLY]
        assert [name for name in options if f"`{name}=" not in PAGE] == [], word.__name__


def test_the_model_server_keeps_the_contract(files: Path) -> None:
    assert " passed" in run(files, "test_goodbot_program.py")


def run(files: Path, tests: str) -> str:
    """The tests of the page, as their author runs them."""
    scope = "asyncio_default_fixture_loop_scope=function"
    options = ("-W", "error", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-o", scope)
    arguments = ("-m", "pytest", "-q", *options, tests)
    done = python(*arguments, cwd=files, environ={"PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_link_leads_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        links = re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8"))
        for target, anchor in links:
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in headings(there), f"{page.name}: {target}#{anchor}"


def headings(page: Path) -> set[str]:
    """The anchors of a page, as they are made of its headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}
