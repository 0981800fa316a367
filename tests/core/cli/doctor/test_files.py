# SPDX-License-Identifier: Apache-2.0
"""Who else can read what goodbot keeps, what it lies on, and the space left."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest
from goodbot.api.setup import CheckState
from goodbot.cli.doctor import files

from tests.core.cli.doctor.examining import examined, only, store

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store(tmp_path / "home")
    return tmp_path / "home"


async def test_a_directory_that_is_not_there_is_fine_and_stays_so(tmp_path: Path) -> None:
    seen = examined(tmp_path / "none")
    assert (await only(files.permissions(seen))).state is CheckState.OK
    assert (await only(files.disk(seen))).state is not CheckState.FAIL
    assert list(tmp_path.iterdir()) == []


async def test_a_private_directory(home: Path) -> None:
    check = await only(files.permissions(examined(home)))
    assert (check.state, "yours alone" in check.text) == (CheckState.OK, True)


async def test_what_others_can_read_is_named_with_the_command(home: Path) -> None:
    (home / "secrets.env").write_text("A=b\n")
    (home / "config.toml").write_text("")
    for name, mode in (("", 0o755), ("secrets.env", 0o640), ("goodbot.db", 0o644)):
        (home / name).chmod(mode)
    (home / "config.toml").chmod(0o666)
    checks = await files.permissions(examined(home))
    assert {check.state for check in checks} == {CheckState.FAIL}
    assert [check.fix for check in checks] == [
        f"chmod 700 {home}",
        f"chmod 600 {home}/secrets.env",
        f"chmod 600 {home}/config.toml",
        f"chmod 600 {home}/goodbot.db",
    ]
    for check in checks:
        subprocess.run(check.fix.split(), check=True)  # noqa: ASYNC221  it takes a millisecond
    assert (await only(files.permissions(examined(home)))).state is CheckState.OK


async def test_a_link_is_followed_nowhere(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(home)
    check = await only(files.permissions(examined(tmp_path / "elsewhere")))
    assert (check.state, "is a link" in check.text) == (CheckState.FAIL, True)
    (home / "secrets.env").symlink_to("/etc/hostname")
    check = await only(files.permissions(examined(home)))
    assert (check.state, "secrets.env is a link" in check.text) == (CheckState.FAIL, True)


async def test_a_directory_of_another_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    check = await only(files.permissions(examined(home)))
    assert (check.state, "belongs to another user" in check.text) == (CheckState.FAIL, True)


@pytest.mark.parametrize(
    ("free", "state"), [(100e9, CheckState.OK), (1e9, CheckState.WARN), (100e6, CheckState.FAIL)]
)
async def test_space(free: float, state: CheckState, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1e12, 0, free))
    assert (await only(files.disk(examined(home)))).state is state


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ("/dev/sda1 / ext4 rw 0 0\n", ""),
        ("/dev/sda1 / ext4 rw 0 0\nserver:/export {home} nfs4 rw 0 0\n", "nfs4"),
        ("host:/ / nfs rw 0 0\n/dev/sda1 {parent} ext4 rw 0 0\n", ""),
        ("me@host: {parent} fuse.sshfs rw 0 0\nnonsense\n", "fuse.sshfs"),
    ],
)
async def test_a_network_file_system(
    mounts: str, kind: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mounts"
    table.write_text(mounts.format(home=home, parent=home.parent))
    monkeypatch.setattr(files, "_MOUNTS", table)
    monkeypatch.setattr(files.sys, "platform", "linux")
    assert files.file_system(home) == kind
    failed = [c for c in await files.disk(examined(home)) if c.state is CheckState.FAIL]
    assert bool(failed) == bool(kind)
