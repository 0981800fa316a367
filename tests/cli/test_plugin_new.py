# SPDX-License-Identifier: Apache-2.0
"""`goodbot plugin new`: what it writes works as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from goodbot.api.commands import TABLE
from goodbot.api.texts.terminal import speaking
from goodbot.base.errors import UsageError
from goodbot.cli.plugin.command import KINDS, render
from goodbot.inference.servers.remote import RemoteServer

from tests.examples.support import ROOT, python, require_backend


def written(kind: str, directory: Path, name: str = "pigeon") -> Path:
    done = python("-m", "goodbot", "plugin", "new", name, "--kind", kind, cwd=directory)
    assert done.returncode == 0, done.stderr
    return directory / f"goodbot-{name}"


@pytest.mark.parametrize("kind", KINDS)
def test_its_tests_pass_as_it_stands(kind: str, tmp_path: Path) -> None:
    if kind == "reward":
        require_backend()  # a whole goodbot is a part of the test
    package = written(kind, tmp_path)
    options = ("-W", "error", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
    done = python("-m", "pytest", "-q", *options, cwd=package, environ={"PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_linters_find_nothing_in_it(kind: str, tmp_path: Path) -> None:
    for file, text in render(kind, "pigeon").items():
        (tmp_path / file).write_text(text)
    words = ("check", "--config", str(ROOT / "pyproject.toml"), "--select", "F,E,W,UP,B")
    done = python("-m", "ruff", *words, str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_server_s_driver_names_what_can_be_overridden() -> None:
    names = re.findall(r"`(\w+)\(", render("server", "pigeon")["goodbot_pigeon_driver.py"])
    assert len(names) >= 6
    assert [name for name in names if not hasattr(RemoteServer, name)] == []


def test_the_table_of_commands_offers_each_kind() -> None:
    plugin = next(one for one in TABLE if one.name == "plugin")
    [kind] = [argument for argument in plugin.arguments if argument.name == "--kind"]
    assert kind.choices == tuple(KINDS)


def test_the_smallest_connector_is_small() -> None:
    lines = render("connector", "pigeon")["goodbot_pigeon.py"].splitlines()
    assert len([line for line in lines if line.strip()]) <= 40


@pytest.mark.parametrize("name", ["Pigeon", "pi-geon", "../pigeon", "", "class", "taube-ü", "x" * 41, "a b"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        render("reward", name)
    with speaking("fr"), pytest.raises(UsageError, match=r"plugin a au plus 40|n’est pas un nom de plugin"):
        render("reward", name)


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    package = written("reward", tmp_path)
    (package / "goodbot_pigeon.py").write_text("mine")
    again = python("-m", "goodbot", "plugin", "new", "pigeon", "--kind", "reward", cwd=tmp_path)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    assert (package / "goodbot_pigeon.py").read_text() == "mine"
