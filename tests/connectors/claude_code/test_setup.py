# SPDX-License-Identifier: Apache-2.0
"""`goodbot connect claude_code` and back: files, tokens, and what the doctor sees."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.commands import find
from goodbot.api.setup import CheckState
from goodbot.base.errors import FatalConnectorError
from goodbot.config.secrets import Secrets
from goodbot_connectors.claude_code import examining, plugin_files, script, sidecar
from goodbot_connectors.claude_code.config import ClaudeCodeSettings
from goodbot_connectors.claude_code.setup import ClaudeCodeSetup
from goodbot_connectors.kit.bridge import clients

from tests.architecture.source import ROOT
from tests.connectors.claude_code.peer import Peer, payload

BEFORE = '{\n\t"model" : "opus",\n\t"hooks": {"Stop": [{"hooks": [{"type":"command","command":"ding"}]}]}\n}'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "goodbot"


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Claude Code's directory, in a home of its own, with settings of its owner's."""
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setattr(examining, "MANAGED", tmp_path / "managed" / "managed-settings.json")
    directory = tmp_path / "ada" / ".claude"
    directory.mkdir(parents=True)
    (directory / "settings.json").write_text(BEFORE)
    return directory


def setup(home: Path, **settings: Any) -> ClaudeCodeSetup:
    made = ClaudeCodeSetup(Secrets((), {}), ClaudeCodeSettings(**settings))
    made.home, made.address = home, "http://127.0.0.1:8321"
    return made


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("hooks", ["auto", "http"])
async def test_it_comes_and_goes_without_a_trace(home: Path, claude: Path, hooks: str) -> None:
    before = tree(claude)
    one = setup(home, hooks=hooks)
    planned = await one.install(dry_run=True)
    assert tree(claude) == before
    assert not home.exists()
    assert await one.install(dry_run=False) == planned
    assert len(planned) == 2
    settings = json.loads((claude / "settings.json").read_text())
    assert settings["hooks"]["Stop"][0]["hooks"][0]["command"] == "ding"
    assert (claude / "commands" / "rl.md").read_text() == plugin_files.COMMAND
    after = tree(claude)
    assert await setup(home, hooks=hooks).install(dry_run=False) == []
    assert tree(claude) == after
    assert len(await one.remove(dry_run=True)) == 3
    assert tree(claude) == after
    lines = await one.remove(dry_run=False)
    assert tree(claude) == before
    assert not (claude / "commands").exists()
    assert "as it was before" in lines[0]
    assert clients.listed(home, "claude_code") == []
    assert await one.remove(dry_run=False) == []
    assert set(tree(home)) <= {"connectors/claude_code/clients.json", "undo.key"}


async def test_the_token_is_nowhere_but_in_a_file_of_ours(home: Path, claude: Path) -> None:
    await setup(home).install(dry_run=False)
    header = home / "connectors" / "claude_code" / "header"
    token = header.read_text().split()[-1]
    assert stat.S_IMODE(header.stat().st_mode) == 0o600
    assert stat.S_IMODE(header.parent.stat().st_mode) == 0o700
    known = clients.Clients(header.parent).who(token)
    assert known is not None
    assert known.name == "me"
    assert not known.admin
    everything = b"".join([*tree(claude).values(), (header.parent / "hook.sh").read_bytes()])
    assert token.encode() not in everything


async def test_a_changed_address_and_a_lost_token_are_put_right(home: Path, claude: Path) -> None:
    one = setup(home, hooks="http")
    await one.install(dry_run=False)
    clients.remove(home, "claude_code", "me")
    one.address = "http://127.0.0.1:9999"
    await one.install(dry_run=False)
    text = (claude / "settings.json").read_text()
    assert "9999" in text
    assert "8321" not in text
    token = text.partition("Bearer ")[2].partition('"')[0]
    assert clients.Clients(home / "connectors" / "claude_code").who(token) is not None
    await one.remove(dry_run=False)
    assert (claude / "settings.json").read_text() == BEFORE


async def test_what_its_owner_changes_meanwhile_stays(home: Path, claude: Path) -> None:
    one = setup(home)
    await one.install(dry_run=False)
    settings = json.loads((claude / "settings.json").read_text())
    settings["theme"] = "light"
    (claude / "settings.json").write_text(json.dumps(settings))
    await one.remove(dry_run=False)
    assert json.loads((claude / "settings.json").read_text()) == {**json.loads(BEFORE), "theme": "light"}


@pytest.mark.parametrize("broken", ["{,", "[]", '{"hooks": []}', "\xff"])
async def test_malformed_settings_stay_as_they_are(home: Path, claude: Path, broken: str) -> None:
    (claude / "settings.json").write_bytes(broken.encode("latin-1"))
    before = tree(claude)
    with pytest.raises(FatalConnectorError, match=r"settings.json cannot be understood.*left as"):
        await setup(home).install(dry_run=False)
    assert tree(claude) == before
    assert clients.listed(home, "claude_code") == [], "nothing was begun"
    checks = await setup(home).examine()
    assert any("cannot be understood" in one.text for one in checks)


async def test_a_linked_directory_stays_a_link(home: Path, claude: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    claude.rename(dotfiles)
    claude.symlink_to(dotfiles)
    lines = await setup(home, hooks="http").install(dry_run=False)
    assert "keep it out of a repository" in lines[-1]
    assert "hooks" in json.loads((dotfiles / "settings.json").read_text())
    await setup(home).remove(dry_run=False)
    assert claude.is_symlink()
    assert (dotfiles / "settings.json").read_text() == BEFORE


async def test_a_command_of_the_persons_own_comes_back(home: Path, claude: Path) -> None:
    (claude / "commands").mkdir()
    (claude / "commands" / "rl.md").write_text("mine")
    (claude / "commands" / "other.md").write_text("other")
    await setup(home).install(dry_run=False)
    await setup(home).remove(dry_run=False)
    assert (claude / "commands" / "rl.md").read_text() == "mine"
    assert (claude / "commands" / "other.md").read_text() == "other"


async def test_it_goes_where_it_went_whatever_the_environment_says_by_then(
    home: Path, claude: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "elsewhere"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    await setup(home).install(dry_run=False)
    assert (other / "settings.json").exists()
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    await setup(home).install(dry_run=False)
    assert not other.exists()
    assert "hook.sh" in (claude / "settings.json").read_text()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    await setup(home).remove(dry_run=False)
    assert (claude / "settings.json").read_text() == BEFORE


async def test_without_claude_code_it_says_so(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FatalConnectorError, match="Claude Code is not here"):
        await setup(home).identify()


def test_the_page_tells_of_every_setting_and_command() -> None:
    page = (ROOT / "docs" / "claude-code.md").read_text()
    for field in dataclasses.fields(ClaudeCodeSettings):
        default = str(field.default).lower() if isinstance(field.default, bool) else field.default
        default = f'"{default}"' if isinstance(default, str) and default not in ("true",) else default
        assert f"| `{field.name}` | `{default}` |" in page
    for word in ("good", "bad", "better", "stars", "undo", "status", "why", "help"):
        assert f"`/rl {word}" in page
        assert find(word) is not None


def states(checks: Any) -> list[CheckState]:
    return [one.state for one in checks]


async def test_the_doctor_finds_all_well(home: Path, claude: Path, tmp_path: Path) -> None:
    peer = Peer(home)
    await peer.start()
    try:
        one = setup(home)
        one.address = peer.address
        await one.install(dry_run=False)
        await sidecar.refresh(home / "connectors" / "claude_code", peer.address)
        checks = await one.examine()
        assert states(checks) == [CheckState.OK] * 2, checks
        assert peer.events == [], "looking changes nothing"
        clients.create(home, "claude_code", "me")
        [*_, last] = await one.examine()
        assert (last.state, "token" in last.text) == (CheckState.FAIL, True)
        await peer.connector.stop()
        [*_, last] = await one.examine()
        assert last.state is CheckState.FAIL
    finally:
        await peer.close()
    [*_, last] = await one.examine()
    assert (last.state, last.fix) == (CheckState.WARN, "goodbot run")


async def test_the_doctor_finds_what_is_missing(home: Path, claude: Path) -> None:
    one = setup(home)
    checks = await one.examine()
    assert states(checks) == [CheckState.FAIL] * 3
    assert {one.fix for one in checks} == {"goodbot connect claude_code"}
    await one.install(dry_run=False)
    text = (claude / "settings.json").read_text()
    (claude / "settings.json").write_text(text.replace("hook.sh' Stop", "hook.sh' St"))
    (claude / "settings.json").write_text(text.replace("hook.sh Stop", "hook.sh --x Stop"))
    [first, *_] = await one.examine()
    assert "not those of this goodbot" in first.text


@pytest.mark.parametrize(
    ("where", "held", "found"),
    [
        ("settings.json", {"disableAllHooks": True}, "disableAllHooks"),
        ("managed", {"disableAllHooks": True}, "disableAllHooks"),
        ("managed", {"allowManagedHooksOnly": True}, "allowManagedHooksOnly"),
        ("piece", {"allowManagedHooksOnly": True}, "allowManagedHooksOnly"),
        ("managed", {"allowedHttpHookUrls": ["https://x"]}, "allowedHttpHookUrls"),
        ("managed", {"disableAllHooks": False}, ""),
        ("managed", ["x"], ""),
    ],
)
async def test_the_doctor_finds_what_keeps_hooks_from_running(
    home: Path, claude: Path, where: str, held: Any, found: str
) -> None:
    one = setup(home, hooks="http")
    await one.install(dry_run=False)
    path = {
        "settings.json": claude / "settings.json",
        "managed": examining.MANAGED,
        "piece": examining.MANAGED.with_name("managed-settings.d") / "10.json",
    }[where]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        held = {**json.loads(path.read_text()), **held}
    path.write_text(json.dumps(held))
    texts = [check.text for check in await one.examine() if check.state is not CheckState.OK]
    assert len(texts) == 1 + bool(found), "one is that no daemon runs"
    assert not found or any(found in text for text in texts)


@pytest.mark.skipif(not script.possible(), reason="there is no curl")
class TestScript:
    """What Claude Code runs at each hook."""

    async def run(self, home: Path, event: str, payload: str = "{}") -> tuple[int, str, str]:
        program = await asyncio.create_subprocess_exec(
            str(home / "connectors" / "claude_code" / "hook.sh"),
            event,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"]},
        )
        out, err = await program.communicate(payload.encode())
        return program.returncode or 0, out.decode(), err.decode()

    async def test_it_passes_on_what_it_is_told(self, home: Path, claude: Path) -> None:
        home = home.with_name("good bot's")
        peer = Peer(home)
        await peer.start()
        try:
            one = setup(home)
            one.address = peer.address
            await one.install(dry_run=False)
            await sidecar.refresh(home / "connectors" / "claude_code", peer.address)
            prompt = payload("UserPromptSubmit", "p1", prompt="It's “quoted” $HOME `x` \\n")
            assert await self.run(home, "UserPromptSubmit", json.dumps(prompt)) == (0, "{}\n", "")
            stop = payload("Stop", "p1", last_assistant_message="Yes.")
            code, out, err = await self.run(home, "Stop", json.dumps(stop))
            assert (code, err) == (0, "")
            assert json.loads(out) == {"systemMessage": "👍 /rl good · 👎 /rl bad"}
            [turn] = peer.captures
            assert turn.messages[0]["content"] == prompt["prompt"]
        finally:
            await peer.close()

    async def test_while_goodbot_is_down_it_says_so_once(self, home: Path, claude: Path) -> None:
        one = setup(home)
        one.address = "http://127.0.0.1:9"
        await one.install(dry_run=False)
        assert await self.run(home, "UserPromptSubmit") == (0, "", "")
        code, out, err = await self.run(home, "Stop")
        assert (code, err) == (0, "")
        assert json.loads(out)["systemMessage"] == script.DOWN
        assert await self.run(home, "Stop") == (0, "", "")
        code, out, _ = await self.run(home, "UserPromptExpansion")
        assert json.loads(out)["decision"] == "block", "no model is asked"
        peer = Peer(home.with_name("other"))
        await peer.start()
        try:
            await sidecar.refresh(home / "connectors" / "claude_code", peer.address)
            header = home / "connectors" / "claude_code" / "header"
            header.write_text(f"Authorization: Bearer {peer.token}\n")
            assert (await self.run(home, "Stop"))[1] == "{}\n"
        finally:
            await peer.close()
        assert json.loads((await self.run(home, "Stop"))[1])["systemMessage"] == script.DOWN

    async def test_a_turn_that_goodbot_was_not_there_for_is_no_earlier_one(
        self, home: Path, claude: Path
    ) -> None:
        await setup(home).install(dry_run=False)
        peer = Peer(home)
        await peer.start()
        try:
            await peer.exchange("Q1", "One.")
            await peer.exchange("Elsewhere", "Two.", session="other")
            await sidecar.refresh(home / "connectors" / "claude_code", "http://127.0.0.1:9")
            hooks = [
                payload("UserPromptSubmit", "p2", prompt='It, {"session_id":"other"} is'),
                payload("Stop", "p2", last_assistant_message='No, "session_id":"other"'),
            ]
            for one in (payload("UserPromptSubmit", "p0", "other", prompt="/rl good"), *hooks):
                text = json.dumps(one, separators=(",", ":"))
                await self.run(home, one["hook_event_name"], text)
            said = await peer.rl("good")
            assert "goodbot was not there" in said
            assert "“Q1” → “One.”" in said
            assert peer.rated == []
            await peer.restart()
            assert "goodbot was not there" in await peer.rl("good"), "that is kept"
            await peer.exchange("Q3", "Three.")
            assert "“Three.”" in await peer.rl("good")
            assert "“Two.”" in await peer.rl("good", session="other"), "its /rl was no turn"
        finally:
            await peer.close()

    async def test_who_takes_the_port_while_goodbot_is_down_hears_nothing(
        self, home: Path, claude: Path
    ) -> None:
        heard: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            heard.append(head + await reader.readexactly(length))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            writer.close()

        stranger = await asyncio.start_server(serve, "127.0.0.1", 0)
        one = setup(home)
        one.address = f"http://127.0.0.1:{stranger.sockets[0].getsockname()[1]}"
        await one.install(dry_run=False)
        assert await self.run(home, "UserPromptSubmit", '{"prompt":"Mine."}') == (0, "", "")
        assert [check.state for check in await one.examine()][-1] is CheckState.WARN
        assert heard == []
        place = home / "http.sock"
        ours = await asyncio.start_unix_server(serve, place)
        await sidecar.refresh(home / "connectors" / "claude_code", one.address)
        said = await self.run(home, "UserPromptSubmit", '{"prompt":"Mine."}')
        ours.close()
        await ours.wait_closed()
        assert said == (0, "{}\n", "")
        assert heard[0].startswith(b"POST /v1/claude-code/hook HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        await one.install(dry_run=False)
        await self.run(home, "UserPromptSubmit", '{"prompt":"Mine."}')
        assert len(heard) == 1
        place.unlink(missing_ok=True)
        await sidecar.refresh(home / "connectors" / "claude_code", one.address)
        await one.install(dry_run=False)
        await self.run(home, "UserPromptSubmit", '{"prompt":"Mine."}')
        assert len(heard) == 2, "a daemon without a socket is called at its port"
        stranger.close()
        await stranger.wait_closed()
        await one.remove(dry_run=False)
        assert set(tree(home)) <= {"connectors/claude_code/clients.json", "undo.key"}
        assert not (home / "connectors" / "claude_code" / "missed").exists()
