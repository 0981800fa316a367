# SPDX-License-Identifier: Apache-2.0
"""`goodbot service`: what it prints and its exit codes. The units: tests/core/service."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from goodbot.cli import main
from goodbot.config.secrets import SecretStore

from tests.core.cli.service.manager import FakeManager

TOKEN = "GOODBOT_TELEGRAM_TOKEN"


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManager:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv(TOKEN, raising=False)
    return FakeManager(tmp_path, monkeypatch, ("systemctl", "loginctl"))


def test_from_nothing_to_a_service_and_back(systemd: FakeManager, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "status"]) == 1
    assert "`goodbot service install` makes one" in capsys.readouterr().out
    assert main(["service", "install"]) == 0
    said = capsys.readouterr().out
    assert f"wrote {systemd.person}/.config/systemd/user/goodbot.service\n" in said
    assert "goodbot.service is active since Sat 2026-11-21 13:47:47 UTC, process 4711, and" in said
    assert "its log: journalctl --user -u goodbot.service\n" in said
    assert "`loginctl enable-linger` keeps it running" in said
    assert main(["service", "install"]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert main(["service", "status", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["manager"], data["active"], data["pid"]) == ("systemd", True, 4711)
    before = systemd.calls()
    assert main(["service", "restart", "--dry-run"]) == 0
    assert systemd.calls() == before
    capsys.readouterr()
    assert main(["service", "restart"]) == 0
    assert capsys.readouterr().out.startswith("goodbot.service is active since")
    assert systemd.calls()[-1] == "systemctl --user restart goodbot.service"
    (systemd.person / ".goodbot/config.toml").write_text("[training]\nmin_ratings = 0\n")
    assert main(["service", "restart"]) == 2, "what would not begin again goes on"
    assert "min_ratings" in capsys.readouterr().err
    assert systemd.calls()[-1] == "systemctl --user restart goodbot.service"
    (systemd.person / ".goodbot/config.toml").unlink()
    assert main(["service", "uninstall", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("would remove the systemd service goodbot (")
    assert main(["service", "uninstall"]) == 0
    assert capsys.readouterr().out.startswith("removed the systemd service goodbot (")
    assert main(["service", "uninstall"]) == 0
    assert capsys.readouterr().out == "no service is installed\n"
    assert main(["service", "restart"]) == 1
    assert "`goodbot service install` makes one" in capsys.readouterr().err


def test_a_dry_run_prints_the_unit_and_does_nothing(
    systemd: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(systemd.person / "x"), "service", "install", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"ExecStart=:{sys.executable} -P -m goodbot --home {systemd.person}/x run\n" in said
    assert systemd.files() == []
    assert systemd.calls() == []


def test_a_goodbot_in_the_foreground_is_named(
    systemd: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    from goodbot.config.lock import HomeLock, prepare_home

    home = systemd.person / ".goodbot"
    prepare_home(home)
    lock = HomeLock(home)
    lock.acquire()
    assert main(["service", "install"]) == 75
    lock.release()
    assert f"as process {os.getpid()}" in (said := capsys.readouterr().err)
    assert f"stop that one first (Ctrl-C, or `kill {os.getpid()}`)" in said


def test_a_config_that_is_wrong_is_said_before_anything_is_done(
    systemd: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    home = systemd.person / ".goodbot"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serving]\ntemprature = 1\n")
    assert main(["service", "install"]) == 2
    assert "temperature" in capsys.readouterr().err
    assert main(["--config", str(home / "none.toml"), "service", "install"]) == 2
    assert systemd.calls() == []


def test_a_token_that_only_this_shell_knows_is_pointed_out(
    systemd: FakeManager, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = systemd.person / ".goodbot"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[connectors.telegram]\nowners = [1]\n")
    monkeypatch.setenv(TOKEN, "4711:canary")
    assert main(["service", "install"]) == 0
    said = capsys.readouterr().out
    assert f"{TOKEN} is set in this shell only" in said
    assert "canary" not in said
    SecretStore(home).set(TOKEN, "4711:canary")
    assert main(["service", "install"]) == 0
    assert TOKEN not in capsys.readouterr().out
    assert "canary" not in (systemd.person / ".config/systemd/user/goodbot.service").read_text()


def test_without_a_manager(
    systemd: FakeManager, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(systemd.person))
    assert main(["service", "status"]) == 1
    assert "neither systemd nor launchd" in capsys.readouterr().out
    assert main(["service", "install"]) == 1
    assert "let your own supervisor run `" in capsys.readouterr().err
    assert main(["service", "uninstall"]) == 0
