# SPDX-License-Identifier: Apache-2.0
"""What is replaced is there for its owner alone, whole, and on the disk; what fails changes nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from goodbot.base import durable


def test_a_file_is_replaced_for_its_owner_alone(tmp_path: Path) -> None:
    path, secret = tmp_path / "kept", tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    secret.write_text("another's")
    (tmp_path / "kept.new").symlink_to(secret)
    durable.replace(path, b"new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
    assert secret.read_text() == "another's", "a link is no way to another file"
    durable.replace(path, b"#!/bin/sh\n", 0o700)
    assert path.stat().st_mode & 0o777 == 0o700
    assert {one.name for one in tmp_path.iterdir()} == {"kept", "secret"}


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sync, synced = tmp_path / "kept", os.fsync, list[bool]()

    def noted(descriptor: int) -> None:
        synced.append(path.exists())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    durable.replace(path, b"new")
    assert synced == [False]
    durable.write(path, b"newer")
    durable.sync(tmp_path)
    assert synced == [False, True, True]


def test_a_full_disk_leaves_what_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "kept"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        durable.replace(path, b"new")
    assert [one.read_text() for one in tmp_path.iterdir()] == ["old"]
