# SPDX-License-Identifier: Apache-2.0
"""The systemd unit: what it says, and that installing and removing it leaves nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.base.errors import BusyError
from goodbot.cli import service
from goodbot.cli.service import ServiceError
from goodbot.config.lock import HomeLock, prepare_home

from tests.core.cli.service.manager import FakeManager
from tests.support import require_program

ODD = "a $HOME 100%h \"quoted\" 'it' back\\slash ü"
VERIFY = shutil.which("systemd-analyze")


def lines(unit: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", unit, flags=re.M))


@pytest.mark.parametrize("folder", [".goodbot", ODD])
@pytest.mark.parametrize("manager", ["--user", "--system"])
def test_systemd_finds_nothing_to_say_about_the_unit(
    systemd: FakeManager, tmp_path: Path, folder: str, manager: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyze = VERIFY or require_program("systemd-analyze")
    monkeypatch.setenv("HF_HOME", str(tmp_path / ODD / "hub"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / ODD))
    path, unit = service.render(systemd.person / folder, tmp_path / ODD / "config.toml")
    written = tmp_path / path.name
    written.write_text(unit)
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    done = subprocess.run(
        [analyze, "verify", manager, str(written)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(runtime), "HOME": str(systemd.person), "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_verify_would_see_a_wrong_line(systemd: FakeManager, tmp_path: Path) -> None:
    """So that the test above can fail."""
    analyze = VERIFY or require_program("systemd-analyze")
    _, unit = service.render(systemd.person / ".goodbot")
    wrong = tmp_path / "wrong.service"
    wrong.write_text(unit.replace("UMask", "UMsk").replace("strict", "very"))
    done = subprocess.run([analyze, "verify", str(wrong)], capture_output=True, check=False)
    assert b"UMsk" in done.stderr
    assert b"very" in done.stderr


def unquoted(line: str) -> list[str]:
    """The words of a unit's line, read as systemd.syntax(7) says."""
    words = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)
    whole = [re.sub(r"\\(.)", r"\1", quoted) or plain for quoted, plain in words]
    assert not any("%" in word.replace("%%", "") for word in whole), "a specifier"
    return [word.replace("%%", "%") for word in whole]


def test_the_command_arrives_as_it_was_meant(systemd: FakeManager, tmp_path: Path) -> None:
    home, config = systemd.person / ODD, tmp_path / "x y.toml"
    _, unit = service.render(home, config)
    command = lines(unit)["ExecStart"]
    assert command.startswith(":"), "without it, systemd would replace $HOME"
    assert unquoted(command[1:]) == [
        sys.executable,
        "-P",
        "-m",
        "goodbot",
        "--home",
        str(home),
        "--config",
        str(config),
        "run",
    ]
    assert unquoted(lines(unit)["ReadWritePaths"])[0] == str(home)


def test_what_the_unit_promises(systemd: FakeManager) -> None:
    found = lines(service.render(systemd.person / ".goodbot")[1])
    expected = {
        "Type": "notify",
        "NotifyAccess": "main",
        "Restart": "on-failure",
        "UMask": "0077",
        "RestartPreventExitStatus": "2 75 78",
        "NoNewPrivileges": "yes",
        "LimitCORE": "0",
        "ProtectSystem": "strict",
        "OOMPolicy": "continue",
        "WantedBy": "default.target",
    }
    assert {name: found[name] for name in expected} == expected
    assert int(found["WatchdogSec"]) >= 60
    assert not {"MemoryDenyWriteExecute", "PrivateTmp", "PrivateDevices"} & found.keys()


def test_a_path_with_a_newline_is_refused(systemd: FakeManager) -> None:
    with pytest.raises(ServiceError, match="use another path"):
        service.render(systemd.person / "a\nExecStartPre=evil")
    with pytest.raises(ServiceError, match="use another path"):
        service.render(systemd.person / "not utf-8 \udcff")


def test_each_directory_has_a_service_of_its_own(systemd: FakeManager) -> None:
    usual, _ = service.render(systemd.person / ".goodbot")
    first, _ = service.render(systemd.person / "one")
    second, _ = service.render(systemd.person / "two")
    assert usual.name == "goodbot.service"
    assert re.fullmatch(r"goodbot-[0-9a-f]{8}\.service", first.name)
    assert first != second


def test_no_token_gets_into_it(systemd: FakeManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODBOT_TELEGRAM_TOKEN", "4711:canary")
    monkeypatch.setenv("HF_TOKEN", "canary")
    monkeypatch.setenv("HF_HOME", "/somewhere/hub")
    _, unit = service.render(systemd.person / ".goodbot")
    assert "canary" not in unit
    assert "Environment=HF_HOME=/somewhere/hub\n" in unit


def test_the_unit_knows_the_proxy_but_no_password(
    systemd: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    monkeypatch.setenv("ALL_PROXY", "http://ada:hush@proxy.example:3128")
    _, unit = service.render(systemd.person / ".goodbot")
    assert "Environment=HTTPS_PROXY=http://proxy.example:3128\n" in unit
    assert "Environment=NO_PROXY=10.0.0.0/8\n" in unit
    assert "hush" not in unit


def test_install_status_uninstall(systemd: FakeManager) -> None:
    home = systemd.person / ".goodbot"
    (systemd.person / ".config").mkdir()
    before = systemd.files()
    assert service.status(home).installed is False
    assert systemd.calls() == []

    done = service.install(home)
    assert systemd.calls() == [
        "systemctl --user daemon-reload",
        "systemctl --user enable goodbot.service",
        "systemctl --user reset-failed goodbot.service",
        "systemctl --user restart goodbot.service",
    ]
    path = systemd.person / ".config/systemd/user/goodbot.service"
    assert path.read_text() == service.render(home)[1]
    assert path.stat().st_mode & 0o777 == 0o644
    assert "enable-linger" in done.notes[0]
    status = service.status(home)
    assert status == done.status
    assert (status.installed, status.enabled, status.active, status.pid) == (True, True, True, 4711)
    assert status.since == "Sat 2026-11-21 13:47:47 UTC"
    assert status.log == "journalctl --user -u goodbot.service"

    assert service.uninstall(home, dry_run=True) == (f"the systemd service goodbot ({path})",)
    assert path.exists()
    assert service.uninstall(home) == (f"the systemd service goodbot ({path})",)
    assert "systemctl --user disable --now goodbot.service" in systemd.calls()
    assert systemd.calls()[-1] == "systemctl --user daemon-reload"
    home.rmdir()
    assert systemd.files() == before
    assert service.uninstall(home) == ()


def test_installing_again_changes_nothing_and_a_new_setting_restarts(systemd: FakeManager) -> None:
    home = systemd.person / ".goodbot"
    assert service.install(home).changed
    calls = systemd.calls()
    assert not service.install(home).changed
    assert not service.install(home, home / "config.toml").changed, "the usual one"
    assert systemd.calls() == calls
    assert service.install(home, systemd.person / "other.toml").changed
    assert systemd.calls()[len(calls) :] == calls


def test_others_units_stay(systemd: FakeManager) -> None:
    folder = systemd.person / ".config/systemd/user"
    (folder / "default.target.wants").mkdir(parents=True)
    (folder / "other.service").write_text("[Service]\nExecStart=/bin/true\n")
    before = systemd.files()
    service.install(systemd.person / ".goodbot")
    service.uninstall(systemd.person / ".goodbot")
    assert [f for f in systemd.files() if f != ".goodbot"] == [f for f in before if not f.endswith("wants")]


def test_a_goodbot_in_the_foreground_is_not_disturbed(systemd: FakeManager) -> None:
    home = systemd.person / ".goodbot"
    prepare_home(home)
    lock = HomeLock(home)
    lock.acquire()
    try:
        with pytest.raises(BusyError, match="already running here as process") as raised:
            service.install(home)
        assert raised.value.exit_code == 75
    finally:
        lock.release()
    assert ".config" not in systemd.files()
    assert systemd.calls() == []


def test_without_a_session_nothing_is_written(systemd: FakeManager) -> None:
    systemd.set(there=False)
    with pytest.raises(ServiceError, match=r"does not answer .*No medium found.*enable-linger"):
        service.install(systemd.person / ".goodbot")
    assert systemd.files() == []


def test_what_is_left_without_a_session_still_goes(systemd: FakeManager) -> None:
    home = systemd.person / ".goodbot"
    service.install(home)
    systemd.set(there=False)
    assert service.status(home).installed
    assert service.uninstall(home)
    assert systemd.files() == [".config", ".goodbot"]


def test_one_that_does_not_start_says_where_the_reason_is(systemd: FakeManager) -> None:
    systemd.set(fails=True)
    home = systemd.person / ".goodbot"
    with pytest.raises(ServiceError, match=r"journalctl --user -u goodbot\.service -n 20"):
        service.install(home)
    status = service.status(home)
    assert (status.installed, status.active, status.state) == (True, False, "failed")


def test_whoever_lingers_is_told_nothing(systemd: FakeManager) -> None:
    systemd.set(lingers=True)
    assert service.install(systemd.person / ".goodbot").notes == ()


def test_without_a_manager_one_is_told_the_command(
    systemd: FakeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(systemd.person))
    home = systemd.person / "a b"
    assert service.status(home).manager == ""
    assert service.uninstall(home) == ()
    with pytest.raises(ServiceError, match=r"neither systemd nor launchd.*-m goodbot --home '.*a b'"):
        service.install(home)
