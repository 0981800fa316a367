# SPDX-License-Identifier: Apache-2.0
"""A user's service manager without one: `systemctl`, `loginctl`, `launchctl` as programs on PATH."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.proxies import VARIABLES

_PROGRAMS = Path(__file__).with_name("programs.py")


class FakeManager:
    """What was asked of it, and how it is to behave."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch, programs: tuple[str, ...]) -> None:
        self.base = tmp_path / "manager"
        binaries = self.base / "bin"
        binaries.mkdir(parents=True)
        for name in programs:
            path = binaries / name
            run = shlex.join([sys.executable, "-S", str(_PROGRAMS), str(self.base), name])
            path.write_text(f'#!/bin/sh\nexec {run} "$@"\n')
            path.chmod(0o755)
        self.set(there=True, lingers=False, active=False, fails=False, busy=0, enabled=[])
        patch.setenv("PATH", f"{binaries}{os.pathsep}/usr/bin{os.pathsep}/bin")
        self.person = tmp_path / "person"
        self.person.mkdir()
        patch.setenv("HOME", str(self.person))
        patch.setenv("XDG_CONFIG_HOME", str(self.person / ".config"))
        for name in (
            "HF_HOME",
            "HF_HUB_CACHE",
            "XDG_CACHE_HOME",
            "TMPDIR",
            "GOODBOT_HOME",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            *VARIABLES,
        ):
            patch.delenv(name, raising=False)

    def set(self, **how: Any) -> None:
        path = self.base / "state"
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(before | how))

    def calls(self, *ignored: str) -> list[str]:
        """Every call so far as one line, but for those that only look."""
        path = self.base / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        told = [" ".join(json.loads(line)) for line in lines]
        looks = ("systemctl --user show", "loginctl show", "launchctl print", *ignored)
        return [call for call in told if not call.startswith(looks)]

    def files(self) -> list[str]:
        """Everything in the person's home directory."""
        return sorted(str(path.relative_to(self.person)) for path in self.person.rglob("*"))
