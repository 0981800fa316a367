# SPDX-License-Identifier: Apache-2.0
"""goodbot as a systemd user unit.

What hardens it needs no root. `ProtectSystem`, `ReadWritePaths` and `InaccessiblePaths` hold where the
user's manager may make a user namespace (systemd 254 and later, unless the distribution forbids it)
and are ignored elsewhere; the rest holds everywhere. Left out on purpose: `MemoryDenyWriteExecute`
(torch and MLX compile kernels at run time), `PrivateTmp` (the sockets of a state directory with a
long name lie in /tmp), `PrivateDevices` (the GPU), and all that drops capabilities, which
a user's manager may not.
"""

from __future__ import annotations

import contextlib
import os
import string
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.texts.terminal import phrase
from goodbot.cli.service.base import Manager, ServiceError, ServiceStatus, ask, tell

WATCHDOG_SECONDS = 120
_START_SECONDS = 900
"""Loading a large model takes minutes."""

_SAFE = frozenset(string.ascii_letters + string.digits + "/._=:@+,-")
_UNIT = """\
# Written by `goodbot service install`; `goodbot service uninstall` removes it.
# What you add with `systemctl --user edit {name}` is kept.
[Unit]
Description=goodbot in {home}
StartLimitIntervalSec=600
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart=:{command}
{environment}WatchdogSec={watchdog}
TimeoutStartSec={start}
TimeoutStopSec=90
Restart=on-failure
RestartSec=5
# Settings, another goodbot, newer data: starting again would not help.
RestartPreventExitStatus=2 75 78
# The daemon ends its own children, after the answers under way.
KillMode=mixed
# A training that runs out of memory ends alone.
OOMPolicy=continue

# A core dump would hold messages and tokens.
LimitCORE=0
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
ProtectSystem=strict
ReadWritePaths={writable}
InaccessiblePaths=-%h/.ssh -%h/.gnupg

[Install]
WantedBy=default.target
"""


class Systemd(Manager):
    """The user's own systemd, through `systemctl --user`."""

    name = "systemd"

    @property
    def unit(self) -> str:
        """The unit's name."""
        return f"{self.service.name}.service"

    @property
    def path(self) -> Path:
        config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return Path(config) / "systemd" / "user" / self.unit

    def render(self) -> str:
        service = self.service
        writable = [str(service.home.absolute()), "-/tmp", "-/var/tmp"]
        if service.config:  # a switch of the model is written there
            writable.append(f"-{service.config.absolute().parent}")
        if temporary := service.environment.get("TMPDIR"):
            writable.append(f"-{temporary}")
        environment = [f"{name}={value}" for name, value in service.environment.items()]
        return _UNIT.format(
            name=self.unit,
            home=_plain(str(service.home)),
            command=" ".join(map(_quoted, service.command)),
            environment="".join(f"Environment={_quoted(line)}\n" for line in environment),
            watchdog=WATCHDOG_SECONDS,
            start=_START_SECONDS,
            writable=" ".join(map(_quoted, writable)),
        )

    def status(self) -> ServiceStatus:
        log = f"journalctl --user -u {self.unit}"
        wanted = "UnitFileState,ActiveState,MainPID,ActiveEnterTimestamp,StateChangeTimestamp"
        shown: dict[str, str] = {}
        with contextlib.suppress(ServiceError):
            answer = tell("systemctl", "--user", "show", self.unit, f"--property={wanted}")
            shown = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
        state = shown.get("ActiveState", "")
        pid = shown.get("MainPID", "0")
        since = shown.get("ActiveEnterTimestamp" if state == "active" else "StateChangeTimestamp")
        return ServiceStatus(
            manager=self.name,
            name=self.unit,
            path=self.path,
            installed=self.path.exists(),
            enabled=shown.get("UnitFileState") == "enabled",
            active=state == "active",
            state=state,
            since=since or "",
            pid=int(pid) if pid.isdecimal() and int(pid) else None,
            log=log,
        )

    def check(self) -> None:
        done = ask("systemctl", "--user", "show", "--property=Version")
        if done.returncode:
            why = " ".join(done.stderr.split())[:200] or phrase("service_no_reason")
            raise ServiceError(phrase("service_silent", why=why))

    def start(self) -> None:
        tell("systemctl", "--user", "daemon-reload")
        tell("systemctl", "--user", "enable", self.unit)
        ask("systemctl", "--user", "reset-failed", self.unit)
        done = ask("systemctl", "--user", "restart", self.unit, seconds=_START_SECONDS + 60)
        if done.returncode:
            shows = phrase("service_log_shows", command=f"journalctl --user -u {self.unit} -n 20")
            raise ServiceError(phrase("service_no_start", name=self.unit, why=shows))

    def stop(self) -> None:
        # Without a manager nothing runs; what is on disk still goes.
        with contextlib.suppress(ServiceError):
            self.check()
            tell("systemctl", "--user", "disable", "--now", self.unit, seconds=180)
            ask("systemctl", "--user", "reset-failed", self.unit)

    def remove(self) -> None:
        wants = self.path.parent / "default.target.wants"
        (wants / self.unit).unlink(missing_ok=True)
        super().remove()
        for folder in (wants, self.path.parent, self.path.parent.parent):
            with contextlib.suppress(OSError):  # not empty: others' units
                folder.rmdir()
        with contextlib.suppress(ServiceError):
            ask("systemctl", "--user", "daemon-reload")

    def notes(self) -> Sequence[str]:
        lingers = ""
        with contextlib.suppress(ServiceError):
            lingers = ask("loginctl", "show-user", str(os.geteuid()), "--property=Linger").stdout
        if lingers.strip() == "Linger=yes":
            return ()
        return (phrase("service_lingers"),)


def _plain(text: str) -> str:
    """A text in a unit, which knows `%` as the start of a specifier. Raises ServiceError."""
    if not text.isprintable():  # newlines would start another line of the unit
        raise ServiceError(phrase("service_no_unit", text=repr(text)))
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    """One word of a unit. `$` needs nothing: `ExecStart=:` looks up no variables."""
    if text and set(text) <= _SAFE:
        return text
    return '"' + _plain(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
