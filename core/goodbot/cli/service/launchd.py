# SPDX-License-Identifier: Apache-2.0
"""goodbot as a launchd agent of the user."""

from __future__ import annotations

import contextlib
import os
import plistlib
import shlex
import time
from pathlib import Path
from typing import Any

from goodbot.api.texts.terminal import phrase
from goodbot.cli.service.base import Manager, ServiceError, ServiceStatus, ask, tell

_START_TRIES = 40
"""`bootout` returns before the job has ended, and until then `bootstrap` refuses."""


class Launchd(Manager):
    """The user's own launchd, through `launchctl`."""

    name = "launchd"

    @property
    def path(self) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"{self.service.name}.plist"

    @property
    def log(self) -> Path:
        """What the daemon says goes there."""
        return self.service.home.absolute() / "logs" / "goodbot.log"

    def render(self) -> str:
        job: dict[str, Any] = {
            "Label": self.service.name,
            "ProgramArguments": list(self.service.command),
            "RunAtLoad": True,
            # Ended by itself: started again. Told to end (exit code 0): left alone. launchd knows
            # no exit codes that starting again would not help; hence the pause below.
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 30,
            "ExitTimeOut": 90,
            # A background process of macOS gets little of the processor and the disk.
            "ProcessType": "Standard",
            "Umask": 0o077,
            "HardResourceLimits": {"Core": 0},
            "StandardOutPath": str(self.log),
            "StandardErrorPath": str(self.log),
        }
        if self.service.environment:
            job["EnvironmentVariables"] = dict(self.service.environment)
        try:
            return plistlib.dumps(job).decode()
        except ValueError as error:  # a control character in a path
            raise ServiceError(phrase("service_no_plist", why=error)) from error

    def status(self) -> ServiceStatus:
        shown: dict[str, str] = {}
        disabled = ""
        with contextlib.suppress(ServiceError):
            done = ask("launchctl", "print", self._target)
            if done.returncode == 0:
                shown = _top_level(done.stdout)
            disabled = ask("launchctl", "print-disabled", self._domain).stdout
        installed = self.path.exists()
        state = shown.get("state", "")
        off = any(f'"{self.service.name}" => {word}' in disabled for word in ("disabled", "true"))
        pid = shown.get("pid", "")
        return ServiceStatus(
            manager=self.name,
            name=self.service.name,
            path=self.path,
            installed=installed,
            enabled=installed and not off,
            active=state == "running",
            state=state,
            pid=int(pid) if pid.isdecimal() else None,
            log=f"tail -f {shlex.quote(str(self.log))}",
        )

    def check(self) -> None:
        done = ask("launchctl", "print", self._domain)
        if done.returncode:
            raise ServiceError(phrase("service_no_session"))

    def start(self) -> None:
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        ask("launchctl", "bootout", self._target)
        tell("launchctl", "enable", self._target)
        said = ""
        for _ in range(_START_TRIES):
            done = ask("launchctl", "bootstrap", self._domain, str(self.path))
            if done.returncode == 0:
                return
            said = " ".join(done.stderr.split())[:200]
            time.sleep(0.25)
        why = phrase("service_log_may", why=said, log=self.log)
        raise ServiceError(phrase("service_no_start", name=self.service.name, why=why))

    def stop(self) -> None:
        with contextlib.suppress(ServiceError):
            ask("launchctl", "bootout", self._target, seconds=180)

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{self.service.name}"


def _top_level(text: str) -> dict[str, str]:
    """The `key = value` lines of `launchctl print` that lie one level deep."""
    lines = (line for line in text.splitlines() if line.startswith("\t") and line[1:2] != "\t")
    pairs = (line.strip().split(" = ", 1) for line in lines if " = " in line)
    return dict(pairs)
