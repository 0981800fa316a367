# SPDX-License-Identifier: Apache-2.0
"""Into OpenClaw and out of it again: what is left is what was there, byte for byte."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.setup import CheckState
from goodbot.base.errors import FatalConnectorError
from goodbot.config.lock import socket_path
from goodbot.config.secrets import Secrets
from goodbot.testing.clock import VirtualClock
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.settings_file import SettingsFile
from goodbot_connectors.openclaw.config import OpenClawSettings
from goodbot_connectors.openclaw.seen import LastSeen, read
from goodbot_connectors.openclaw.setup import PLUGIN, OpenClawSetup

THEIRS = '{"gateway": {"mode": "local"},   "channels": {}}'
# What the real program does to its file, as seen at 2026.9.6; `said` has its command lines.
PROGRAM = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with (here / "said").open("a") as said:
    said.write(json.dumps(words) + "\\n")
if (here / "broken").exists():
    sys.exit("Config invalid")
if words[:2] == ["plugins", "uninstall"] and (here / "stuck").exists():
    sys.exit("the gateway does not answer")
if words == ["--version"]:
    print("OpenClaw 2026.9.6 (eb377ac)")
    sys.exit()
file = pathlib.Path(os.environ["OPENCLAW_STATE_DIR"]) / "openclaw.json"
config = json.loads(file.read_text()) if file.exists() else {{}}
plugins = config.setdefault("plugins", {{}})
if words[:2] == ["plugins", "install"]:
    assert {{"--link", "--force", "--accept-capabilities"}} <= set(words)
    plugins["load"] = {{"paths": [words[3]]}}
    plugins["entries"] = {{"goodbot": {{"enabled": True}}}}
elif words[:2] == ["plugins", "uninstall"]:
    plugins.pop("load", None)
    plugins["entries"]["goodbot"] = {{"enabled": False}}
elif words == ["config", "patch", "--stdin"]:
    plugins["entries"]["goodbot"] |= json.loads(sys.stdin.read())["plugins"]["entries"]["goodbot"]
elif words == ["config", "unset", "plugins.entries.goodbot"]:
    del plugins["entries"]["goodbot"]
config["meta"] = {{"lastTouchedVersion": "2026.9.6"}}
file.write_text(json.dumps(config, indent=2))
"""


class OpenClaw:
    """A stand-in for the program, with its file, and our setup for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "openclaw"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.file = folder / "openclaw.json"
        self.home = folder / "goodbot"
        self.home.mkdir()

    def setup(self, **settings: Any) -> OpenClawSetup:
        chosen = {"program": str(self.program), "state_dir": str(self.folder)} | settings
        made = OpenClawSetup(Secrets((), {}), OpenClawSettings(**chosen))
        made.home, made.address = self.home, "http://127.0.0.1:8321"
        return made

    def said(self) -> list[list[str]]:
        path = self.folder / "said"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def openclaw(tmp_path: Path) -> OpenClaw:
    return OpenClaw(tmp_path)


@pytest.mark.parametrize("before", [THEIRS, None])
async def test_it_is_left_as_it_was(openclaw: OpenClaw, before: str | None) -> None:
    if before is not None:
        openclaw.file.write_text(before)
    setup = openclaw.setup()
    assert await setup.install(dry_run=False)
    config = json.loads(openclaw.file.read_text())
    entry = config["plugins"]["entries"]["goodbot"]
    assert config["plugins"]["load"]["paths"] == [str(PLUGIN)]
    assert entry["hooks"] == {"allowConversationAccess": True}
    assert entry["config"]["url"] == "http://127.0.0.1:8321"
    token = Path(entry["config"]["tokenFile"])
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    [client] = clients.listed(openclaw.home, "openclaw")
    assert (client.name, client.admin) == ("plugin", True)
    lines = await setup.remove(dry_run=False)
    assert any("as it was before" in line for line in lines), lines
    assert (openclaw.file.read_text() if openclaw.file.exists() else None) == before
    assert not token.exists()
    assert clients.listed(openclaw.home, "openclaw") == []
    assert await setup.remove(dry_run=False) == ()


async def test_a_second_time_changes_nothing(openclaw: OpenClaw) -> None:
    await openclaw.setup().install(dry_run=False)
    said, token = openclaw.said(), openclaw.setup().token_file.read_text()
    assert await openclaw.setup().install(dry_run=False) == ()
    assert openclaw.said() == said
    moved = openclaw.setup()
    moved.address = "http://127.0.0.1:9000"
    assert await moved.install(dry_run=False)
    assert "127.0.0.1:9000" in openclaw.file.read_text()
    assert moved.token_file.read_text() == token


async def test_what_others_have_changed_since_stays(openclaw: OpenClaw) -> None:
    openclaw.file.write_text(THEIRS)
    setup = openclaw.setup()
    await setup.install(dry_run=False)
    config = json.loads(openclaw.file.read_text())
    config["gateway"]["port"] = 1
    openclaw.file.write_text(json.dumps(config))
    await setup.remove(dry_run=False)
    left = json.loads(openclaw.file.read_text())
    assert left["gateway"] == {"mode": "local", "port": 1}
    assert "goodbot" not in openclaw.file.read_text()


@pytest.mark.parametrize("why", ["it fails", "there is no program"])
async def test_what_could_not_be_taken_out_is_not_forgotten(openclaw: OpenClaw, why: str) -> None:
    setup = openclaw.setup()
    await setup.install(dry_run=False)
    config = json.loads(openclaw.file.read_text())
    openclaw.file.write_text(json.dumps(config | {"touched": "by its gateway"}))
    (openclaw.folder / "stuck").touch()
    gone = openclaw.setup(program=str(openclaw.folder / "nowhere"))
    with pytest.raises(FatalConnectorError, match="still names the plugin: run `goodbot"):
        await (setup if why == "it fails" else gone).remove(dry_run=False)
    assert not setup.token_file.exists()
    assert clients.listed(openclaw.home, "openclaw") == []
    (openclaw.folder / "stuck").unlink()
    assert await setup.remove(dry_run=False)
    assert str(PLUGIN) not in openclaw.file.read_text()
    assert await setup.remove(dry_run=False) == ()


async def test_without_its_help_it_is_left_as_it_was_if_nobody_else_wrote(openclaw: OpenClaw) -> None:
    openclaw.file.write_text(THEIRS)
    await openclaw.setup().install(dry_run=False)
    (openclaw.folder / "stuck").touch()
    lines = await openclaw.setup().remove(dry_run=False)
    assert any("as it was before" in line for line in lines), lines
    assert openclaw.file.read_text() == THEIRS


async def test_the_plugin_is_told_of_the_socket_where_there_is_one(openclaw: OpenClaw) -> None:
    def told() -> str:
        config = json.loads(openclaw.file.read_text())["plugins"]["entries"]["goodbot"]["config"]
        return config["socket"]

    await openclaw.setup().install(dry_run=False)
    assert told() == ""
    for there in (True, False):
        setup = openclaw.setup()
        setup.socket = there
        assert await setup.install(dry_run=False)
        assert told() == (str(socket_path(openclaw.home, "http.sock")) if there else "")
        assert await setup.install(dry_run=False) == ()


async def test_a_dry_run_only_tells(openclaw: OpenClaw) -> None:
    openclaw.file.write_text(THEIRS)
    assert any("plugins install --link" in line for line in await openclaw.setup().install(dry_run=True))
    assert (openclaw.said(), openclaw.file.read_text()) == ([], THEIRS)
    assert await openclaw.setup().remove(dry_run=True) == ()
    await openclaw.setup().install(dry_run=False)
    text = openclaw.file.read_text()
    assert any("put back" in line for line in await openclaw.setup().remove(dry_run=True))
    assert openclaw.file.read_text() == text


async def test_without_the_program_nothing_is_changed(openclaw: OpenClaw) -> None:
    setup = openclaw.setup(program=str(openclaw.folder / "nowhere"))
    with pytest.raises(FatalConnectorError, match="install OpenClaw"):
        await setup.install(dry_run=False)
    assert not setup.token_file.exists()
    assert {check.state for check in (await setup.examine())[:3]} == {CheckState.FAIL}


async def test_what_the_program_refuses_is_told(openclaw: OpenClaw) -> None:
    openclaw.file.write_text(THEIRS)
    (openclaw.folder / "broken").touch()
    with pytest.raises(FatalConnectorError, match="Config invalid"):
        await openclaw.setup().install(dry_run=False)
    assert openclaw.file.read_text() == THEIRS
    assert await openclaw.setup().remove(dry_run=False) == ()


async def test_doctor_says_what_is_wrong(openclaw: OpenClaw) -> None:
    setup = openclaw.setup()
    setup.clock = clock = VirtualClock()
    assert (await setup.identify()).name == "OpenClaw 2026.9.6 (eb377ac)"
    await setup.install(dry_run=False)

    async def states() -> list[str]:
        return [check.state.value for check in await setup.examine()]

    assert await states() == ["ok", "ok", "ok", "warn"]
    seen = LastSeen(openclaw.home / "connectors" / "openclaw", clock)
    seen.note()
    assert "no answer yet" in (await setup.examine())[3].text
    seen.note(captured=True)
    assert await states() == ["ok", "ok", "ok", "ok"]
    clients.create(openclaw.home, "openclaw", "plugin", admin=True)
    assert await states() == ["ok", "ok", "fail", "ok"]
    openclaw.file.write_text(THEIRS)
    assert await states() == ["ok", "fail", "fail", "ok"]


def test_when_the_plugin_was_heard_of_is_noted_though_our_clock_was_set_back(tmp_path: Path) -> None:
    clock = VirtualClock()
    seen = LastSeen(tmp_path, clock)
    for _ in range(2):
        seen.note(captured=True)
        assert read(tmp_path) == (clock.now(), clock.now())
        clock.jump(-3600)


@pytest.mark.parametrize(
    ("value", "right"),
    [("telegram:default:42", True), ("msteams:default:29:xyz", True), ("42", False), ("telegram::42", False)],
)
def test_people_are_named_with_their_channel(value: str, right: bool) -> None:
    assert (OpenClawSetup.wrong_user_id(value) == "") is right


def test_a_command_that_fails_half_way_leaves_what_was_before_known(tmp_path: Path) -> None:
    file = tmp_path / "theirs.json"
    file.write_text("before")
    foreign = SettingsFile(file, tmp_path, "kept")

    def fails() -> None:
        with foreign.lent():
            file.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    with foreign.lent():
        file.write_text("whole")
    assert "as it was before" in foreign.restore(lambda text: text)
    assert file.read_text() == "before"
    with foreign.lent():
        pass
    assert not foreign.written
