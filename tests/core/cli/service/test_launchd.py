# SPDX-License-Identifier: Apache-2.0
"""The launchd agent: its plist, and that installing and removing it leaves nothing else."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from goodbot.cli import service
from goodbot.cli.service import ServiceError
from goodbot.config.layout import ours

from tests.core.cli.service.manager import FakeManager

SCHEMA: dict[str, Any] = {
    # launchd.plist(5): the keys that we use and their types
    "Label": str,
    "ProgramArguments": list,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "ProcessType": str,
    "Umask": int,
    "HardResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
    "EnvironmentVariables": dict,
}


def job(home: Path) -> dict[str, Any]:
    return plistlib.loads(service.render(home)[1].encode())


def test_the_plist_is_what_launchd_knows(
    launchd: FakeManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", "/somewhere/hub")
    monkeypatch.setenv("GOODBOT_TELEGRAM_TOKEN", "4711:canary")
    home = launchd.person / 'we <ird> & "odd" ü'
    found = job(home)
    assert {key: type(value) for key, value in found.items()} == SCHEMA
    assert found["ProgramArguments"] == [sys.executable, "-P", "-m", "goodbot", "--home", str(home), "run"]
    assert (found["KeepAlive"], found["RunAtLoad"]) == ({"SuccessfulExit": False}, True)
    assert found["Umask"] == 0o077
    assert found["StandardErrorPath"] == str(home / "logs" / "goodbot.log")
    assert found["EnvironmentVariables"] == {"HF_HOME": "/somewhere/hub"}
    assert "canary" not in service.render(home)[1]
    if plutil := shutil.which("plutil", path="/usr/bin"):
        written = tmp_path / "goodbot.plist"
        written.write_text(service.render(home)[1])
        subprocess.run([plutil, "-lint", str(written)], check=True)


def test_a_control_character_is_refused(launchd: FakeManager) -> None:
    with pytest.raises(ServiceError, match="cannot be written to a plist"):
        service.render(launchd.person / "a\x07b")


def test_install_status_uninstall(launchd: FakeManager) -> None:
    home = launchd.person / ".goodbot"
    agents = launchd.person / "Library" / "LaunchAgents"
    agents.mkdir(parents=True)
    launchd.set(busy=2)  # the job before has not quite ended
    done = service.install(home)
    path = agents / "goodbot.plist"
    verbs = [call.split()[1] for call in launchd.calls()]
    assert verbs == ["bootout", "enable", "bootstrap", "bootstrap", "bootstrap"]
    assert launchd.calls()[-1].endswith(f" {path}")
    assert (home / "logs").is_dir()
    assert all(ours(entry.name) for entry in home.iterdir()), "or it would be refused, and stay"
    status = service.status(home)
    assert status == done.status
    assert (status.manager, status.installed, status.enabled, status.active, status.pid) == (
        "launchd",
        True,
        True,
        True,
        4711,
    )
    assert status.log == f"tail -f {home}/logs/goodbot.log"
    calls = launchd.calls()
    assert not service.install(home).changed
    assert launchd.calls() == calls
    assert service.restart(home).active
    assert [call.split()[1] for call in launchd.calls()[len(calls) :]] == ["bootout", "enable", "bootstrap"]
    assert service.uninstall(home) == (f"the launchd service goodbot ({path})",)
    assert launchd.calls()[-1].split()[1] == "bootout"
    assert not path.exists()
    assert service.status(home).active is False


def test_without_a_session_nothing_is_written(launchd: FakeManager) -> None:
    launchd.set(there=False)
    with pytest.raises(ServiceError, match="no session in which"):
        service.install(launchd.person / ".goodbot")
    assert launchd.files() == []
