"""The code in docs/plugins.md, taken from the page and run."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest
from goodbot.config import Config, ServingConfig
from goodbot.daemon.app import App, open_plugins

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
    assert project["project"]["entry-points"] == {"goodbot": {"line": "goodbot_line"}}
    assert tomllib.loads((files / "config.toml").read_text()) == {"plugins": {"enable": ["line"]}}


async def test_the_connector_chats_over_its_line(
    files: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    require_backend()
    spec = importlib.util.spec_from_file_location("goodbot_line", files / "goodbot_line.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "goodbot_line", module)
    spec.loader.exec_module(module)
    config = Config(
        home=files / "home",
        serving=ServingConfig(max_tokens=48),
        connectors={"line": {"port": unused_tcp_port, "owners": ["local"]}},
    )
    plugins = open_plugins(config)
    plugins.register(module, "line")
    async with App.open(config, plugins, demo_model=True, grants={}) as app:
        assert app.connectors.authorization.owners() == ["line:local"]
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        writer.write(b"What is 2 + 2?\n")
        # What it says is drawn by the id of the message, which is another one each time.
        assert (await reader.readline()).startswith(b"[demo model] ")
        writer.write(b"/good\n")
        assert (await reader.readline()).decode().startswith("(Good. 1 of 40")
        writer.close()
        await writer.wait_closed()


def test_the_pilot_test_passes(files: Path) -> None:
    require_backend()
    assert "1 passed" in run(files, "test_plugins.py")


def test_the_model_server_keeps_the_contract(files: Path) -> None:
    assert " passed" in run(files, "test_program.py")


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
