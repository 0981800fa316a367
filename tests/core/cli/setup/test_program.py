# SPDX-License-Identifier: Apache-2.0
"""Connecting a program of this machine: its settings are changed after ours, and put back."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from goodbot import config, hookimpl
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.plugins import PluginHost
from goodbot.api.setup import Check, CheckState, ConnectorSetup, Examined, Identity, Question
from goodbot.base.errors import FatalConnectorError
from goodbot.cli import disconnect, init
from goodbot.cli import main as goodbot
from goodbot.cli.doctor import connectors
from goodbot.cli.setup.draft import StateFound
from goodbot.cli.setup.template import NEW
from goodbot.config.file import ConfigFile
from goodbot.config.secrets import SecretStore
from goodbot.inference.servers import plugin as own_servers


@dataclasses.dataclass(frozen=True, kw_only=True)
class EditorSettings:
    """Of the program that the tests connect."""

    file: str = ""


class EditorSetup(ConnectorSetup):
    """A program whose settings are one file."""

    title = "The editor"
    guide = "It needs nothing."
    pairs = False
    owner: ClassVar[str] = "me"
    questions = (Question(key="file", text="Its settings"),)
    there = True
    fails = False

    @property
    def _theirs(self) -> Path:
        return Path(self.settings.file)

    async def identify(self) -> Identity:
        if not self.there:
            raise FatalConnectorError("there is no editor here: install it, then try again")
        return Identity(account="local", name="the editor")

    async def examine(self) -> Sequence[Check]:
        state = CheckState.OK if "goodbot" in self._theirs.read_text() else CheckState.FAIL
        return [Check(part="editor hook", state=state, text=f"{self.address} {self.home}")]

    async def install(self, *, dry_run: bool) -> Sequence[str]:
        line = f"goodbot={self.address}\n"
        text = self._theirs.read_text()
        if line in text:
            return ()
        if not dry_run:
            if self.fails:
                raise FatalConnectorError("its settings are locked: close it first.")
            ours = tomllib.loads((self.home / "config.toml").read_text())
            assert ours["connectors"]["editor"]["file"] == self.settings.file, "ours comes first"
            self._theirs.write_text(text + line)
        return (f"{self._theirs.name}: one line",)

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        kept = [line for line in self._theirs.read_text().splitlines(True) if "goodbot" not in line]
        if not dry_run:
            self._theirs.write_text("".join(kept))
        return ("its line",) if dry_run else (f"{self._theirs.name} is as it was",)


SPEC = ConnectorSpec(
    name="editor",
    factory="nowhere:Nothing",
    capabilities=Capability.NONE,
    settings=EditorSettings,
    setup=f"{__name__}:EditorSetup",
)


class Plugin:
    """Registers it."""

    @hookimpl
    def register_connector(self) -> ConnectorSpec:
        return SPEC


def plugins(*_: object) -> PluginHost:
    host = PluginHost()
    host.register(own_servers, "servers")
    host.register(Plugin(), "editor")
    return host


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "bot"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[model]\npath = "demo"\n[http]\nport = 9000\n')
    (home / "config.toml").chmod(0o600)
    return home


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    file = tmp_path / "editor.ini"
    file.write_text("colour=red\n")
    return file


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def look(arguments: Any) -> StateFound:
        return StateFound(
            config=config.load(home, None),
            file=ConfigFile(home, None, template=NEW),
            plugins=plugins(),
            secrets=SecretStore(home),
        )

    monkeypatch.setattr(init, "look", look)

    def umask(mask: int) -> int:
        return mask

    monkeypatch.setattr("os.umask", umask)
    monkeypatch.setattr(disconnect, "open_plugins", plugins)
    monkeypatch.setattr(EditorSetup, "there", True)
    monkeypatch.setattr(EditorSetup, "fails", False)

    def program(*words: str) -> tuple[int, str]:
        code = goodbot(["--home", str(home), *words])
        captured = capsys.readouterr()
        return code, " ".join(f"{captured.out}\n{captured.err}".split())

    return program


def test_its_settings_are_changed_once_and_put_back(run: Run, home: Path, theirs: Path) -> None:
    given = ("connect", "editor", "--yes", "--set", f"file={theirs}")
    code, said = run(*given)
    assert code == 0, said
    assert "Done there: editor.ini: one line." in said
    assert "goodbot web" not in said
    ours = tomllib.loads((home / "config.toml").read_text())["connectors"]["editor"]
    assert (ours["owners"], ours["file"]) == (["me"], str(theirs))
    assert theirs.read_text() == "colour=red\ngoodbot=http://127.0.0.1:9000\n"

    before = (home / "config.toml").read_text(), theirs.read_text()
    code, said = run(*given)
    assert code == 0, said
    assert "Nothing has to be changed there." in said
    assert ((home / "config.toml").read_text(), theirs.read_text()) == before

    code, said = run("disconnect", "editor", "--yes")
    assert code == 0, said
    assert "removed: editor.ini is as it was" in said
    assert theirs.read_text() == "colour=red\n"
    assert "connectors" not in tomllib.loads((home / "config.toml").read_text())


def test_a_dry_run_changes_nothing(run: Run, home: Path, theirs: Path) -> None:
    before = (home / "config.toml").read_text(), theirs.read_text()
    code, said = run("connect", "editor", "--dry-run", "--set", f"file={theirs}")
    assert (code, said) == (0, "This would change: [connectors.editor] editor.ini: one line")
    assert ((home / "config.toml").read_text(), theirs.read_text()) == before
    with (home / "config.toml").open("a") as file:
        file.write(f'[connectors.editor]\nfile = "{theirs}"\n')
    before = (home / "config.toml").read_text(), theirs.read_text()
    code, said = run("connect", "editor", "--dry-run")
    assert (code, said) == (0, "This would change: editor.ini: one line")
    assert ((home / "config.toml").read_text(), theirs.read_text()) == before
    code, said = run("connect", "editor", "--yes")  # a section that somebody has written themselves
    assert tomllib.loads((home / "config.toml").read_text())["connectors"]["editor"]["owners"]
    code, said = run("connect", "editor", "--dry-run", "--json")
    assert json.loads(said)["would_change"] == []


def test_a_program_that_is_not_there_is_no_reason_to_write(
    run: Run, home: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (home / "config.toml").read_text()
    monkeypatch.setattr(EditorSetup, "there", False)
    code, said = run("connect", "editor", "--yes", "--set", f"file={theirs}")
    assert code == 2
    assert "there is no editor here: install it" in said
    assert (home / "config.toml").read_text() == before


def test_what_cannot_be_changed_is_said_with_what_to_do(
    run: Run, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EditorSetup, "fails", True)
    code, said = run("connect", "editor", "--yes", "--set", f"file={theirs}")
    assert code == 1
    assert "was not changed: its settings are locked: close it first" in said
    assert "`goodbot connect editor` tries again" in said
    monkeypatch.setattr(EditorSetup, "fails", False)
    code, said = run("connect", "editor", "--yes")
    assert code == 0, said
    assert "goodbot" in theirs.read_text()


async def test_the_doctor_knows_where_we_are(home: Path, theirs: Path) -> None:
    with (home / "config.toml").open("a") as file:
        file.write(f'[connectors.editor]\nfile = "{theirs}"\n')
    examined = Examined(config=config.load(home, None), plugins=plugins(), environ={}, daemon=None)
    [probe] = connectors.probes(examined)
    account, hook, people = await probe.run(examined)
    assert account.text.startswith("the editor")
    assert hook.text == f"http://127.0.0.1:9000 {home}"
    assert hook.state is CheckState.FAIL
    assert (people.state, people.fix) == (CheckState.WARN, "goodbot connect editor")
