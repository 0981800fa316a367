# SPDX-License-Identifier: Apache-2.0
"""A person's home directory with a service manager that remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.service.manager import FakeManager


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManager:
    monkeypatch.setattr("sys.platform", "linux")
    return FakeManager(tmp_path, monkeypatch, ("systemctl", "loginctl"))


@pytest.fixture
def launchd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManager:
    monkeypatch.setattr("sys.platform", "darwin")
    return FakeManager(tmp_path, monkeypatch, ("launchctl",))
