# SPDX-License-Identifier: Apache-2.0
"""`goodbot connect codex`, `doctor` and `goodbot disconnect codex`, on settings as people have them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from goodbot.api.setup import CheckState
from goodbot.base.errors import FatalConnectorError
from goodbot.config.secrets import Secrets
from goodbot_connectors.codex import hooks_file, sidecar
from goodbot_connectors.codex.config import CodexSettings
from goodbot_connectors.codex.setup import CodexSetup
from goodbot_connectors.kit.bridge import clients

from tests.connectors.codex.test_trust import program

HOOKS = '{\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/theirs"}]}]}}\n'
CONFIG = 'model = "x"  # mine\nnotify = ["/mine", "--loud"]\n\n[tui]\nseen = 1\n'


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodexSetup:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "dot codex"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    made = CodexSetup(Secrets((), {}), CodexSettings())
    made.home = tmp_path / "home"
    made.address = "http://127.0.0.1:8321"
    made.home.mkdir()
    (tmp_path / "dot codex").mkdir()
    return made


def files(setup: CodexSetup) -> dict[str, str]:
    return {path.name: path.read_text() for path in setup.codex_home.iterdir() if path.is_file()}


def folder(setup: CodexSetup) -> Path:
    return setup.home / "connectors" / "codex"


@pytest.mark.parametrize(
    "before", [{}, {"hooks.json": HOOKS, "config.toml": CONFIG}, {"config.toml": CONFIG}]
)
async def test_there_and_back_byte_for_byte(setup: CodexSetup, before: dict[str, str]) -> None:
    for name, text in before.items():
        (setup.codex_home / name).write_text(text)
    planned = await setup.install(dry_run=True)
    assert files(setup) == before
    assert not folder(setup).exists()
    done = await setup.install(dry_run=False)
    assert [*done[:-1]] == [*planned]
    assert len(planned) == 2
    assert "press 1" in done[-1]
    after = files(setup)
    config = tomllib.loads(after["config.toml"])
    theirs = tomllib.loads(before.get("config.toml", "")).get("notify", [])
    assert config["notify"] == [str(folder(setup) / "notify"), *theirs]
    assert len(hooks_file.places(after["hooks.json"], sidecar.command(folder(setup)))) == 2
    token = sidecar.token(folder(setup))
    assert len(await setup.install(dry_run=False)) == 1, "nothing but what is to be pressed"
    assert (files(setup), sidecar.token(folder(setup))) == (after, token)
    assert [one.name for one in clients.listed(setup.home, "codex")] == ["me"]
    assert await setup.remove(dry_run=True)
    assert files(setup) == after
    assert await setup.remove(dry_run=False)
    assert files(setup) == before
    assert clients.listed(setup.home, "codex") == []
    assert {path.name for path in folder(setup).iterdir()} == {"clients.json"}
    assert await setup.remove(dry_run=False) == []


async def test_what_codex_and_others_have_written_since_stays(setup: CodexSetup) -> None:
    hooks, config = setup.codex_home / "hooks.json", setup.codex_home / "config.toml"
    hooks.write_text(HOOKS)
    config.write_text(CONFIG)
    await setup.install(dry_run=False)
    trusted = "".join(
        f'\n[hooks.state."{hooks}:{place}"]\ntrusted_hash = "sha256:0"\n'
        for place in ("user_prompt_submit:0:0", "stop:1:0")
    )
    config.write_text(config.read_text() + "\n[hooks.state]\n" + trusted)
    data = json.loads(hooks.read_text())
    data["hooks"]["Interrupt"] = [{"hooks": [{"type": "command", "command": "/later"}]}]
    hooks.write_text(json.dumps(data))
    await setup.remove(dry_run=False)
    assert config.read_text() == CONFIG
    left = json.loads(hooks.read_text())["hooks"]
    assert left["Interrupt"] == data["hooks"]["Interrupt"]
    assert left["Stop"] == json.loads(HOOKS)["hooks"]["Stop"]
    assert str(folder(setup)) not in hooks.read_text()


async def test_whoever_has_hooks_in_config_toml_gets_ours_there(setup: CodexSetup) -> None:
    inline = CONFIG + '\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "/theirs"\n'
    (setup.codex_home / "config.toml").write_text(inline)
    await setup.install(dry_run=False)
    assert not (setup.codex_home / "hooks.json").exists()
    found = hooks_file.places(files(setup)["config.toml"], sidecar.command(folder(setup)), toml=True)
    assert found == ["user_prompt_submit:0:0", "stop:1:0"]
    assert len(await setup.install(dry_run=False)) == 1
    config = setup.codex_home / "config.toml"
    config.write_text(config.read_text() + "\n[later]\na = 1\n")
    await setup.remove(dry_run=False)
    assert files(setup) == {"config.toml": inline + "\n[later]\na = 1\n"}


async def test_a_file_that_cannot_be_read_stays_and_is_named(setup: CodexSetup) -> None:
    (setup.codex_home / "hooks.json").write_text("{nope")
    with pytest.raises(FatalConnectorError, match=r"hooks\.json"):
        await setup.install(dry_run=False)
    assert files(setup) == {"hooks.json": "{nope"}


async def test_a_link_of_a_dotfile_manager_stays_one(setup: CodexSetup, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(CONFIG)
    link = setup.codex_home / "config.toml"
    link.symlink_to(real)
    await setup.install(dry_run=False)
    assert link.is_symlink()
    assert "goodbot" in real.read_text() or str(folder(setup)) in real.read_text()
    await setup.remove(dry_run=False)
    assert link.is_symlink()
    assert real.read_text() == CONFIG


async def test_without_codex_it_says_what_to_do(setup: CodexSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await setup.identify()).account == "local"
    setup.codex_home.rmdir()
    with pytest.raises(FatalConnectorError, match="install it"):
        await setup.identify()


async def test_where_codex_was_connected_it_is_disconnected(
    setup: CodexSetup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await setup.install(dry_run=False)
    home = setup.codex_home
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "another"))
    await setup.remove(dry_run=False)
    assert [*home.iterdir()] == []


async def test_the_doctor_says_what_is_wrong(
    setup: CodexSetup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def check() -> tuple[CheckState, str]:
        [found] = await setup.examine()
        return found.state, f"{found.text} {found.fix}"

    state, text = await check()
    assert (state, "goodbot connect codex" in text) == (CheckState.FAIL, True)
    await setup.install(dry_run=False)
    state, text = await check()
    assert (state, "PATH" in text) == (CheckState.WARN, True)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    command = sidecar.command(folder(setup))
    answers = tmp_path / "answers"
    program(
        bin_,
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' in asked:\n"
        f"        result = json.loads(open({str(answers)!r}).read())\n"
        "        print(json.dumps({'id': asked['id'], 'result': result}), flush=True)\n",
    )
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    for status, expected, word in (
        ("trusted", CheckState.OK, "runs them"),
        ("untrusted", CheckState.WARN, "press 1"),
        ("modified", CheckState.WARN, "others than"),
    ):
        hooks = [
            {"eventName": name, "command": command, "trustStatus": status, "enabled": True}
            for name in ("stop", "userPromptSubmit")
        ]
        answers.write_text(json.dumps({"data": [{"hooks": hooks, "warnings": [], "errors": []}]}))
        state, text = await check()
        assert (state, word in text) == (expected, True), text
    (setup.codex_home / "hooks.json").write_text("{}")
    state, text = await check()
    assert (state, "not in" in text) == (CheckState.FAIL, True)
