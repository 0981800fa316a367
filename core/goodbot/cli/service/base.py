# SPDX-License-Identifier: Apache-2.0
"""What every service manager can do for goodbot, and what one says about it."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from goodbot.api.texts.terminal import phrase
from goodbot.base import spawn
from goodbot.base.errors import GoodbotError
from goodbot.base.proxies import VARIABLES

_ANSWER_SECONDS = 30.0
_KEPT_ENVIRONMENT = ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where weights and sockets lie is known to the shell that installs; a service has no shell."""


class ServiceError(GoodbotError):
    """The service manager is not there, or refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceStatus:
    """How the service of one state directory stands."""

    manager: str
    """`systemd` or `launchd`; empty where this machine has neither."""
    name: str = ""
    path: Path | None = None
    """The file that describes the service to its manager; it exists if `installed`."""
    installed: bool = False
    enabled: bool = False
    """It starts by itself: at login, or at boot where the user may linger."""
    active: bool = False
    state: str = ""
    """The manager's own word for it: `active`, `failed`, `activating`, …"""
    since: str = ""
    """Since when it is in that state, as the manager writes it; empty if it does not say."""
    pid: int | None = None
    log: str = ""
    """The command that shows its log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """What `install` has done."""

    status: ServiceStatus
    changed: bool
    """False when the same service was installed and active already."""
    notes: tuple[str, ...] = ()
    """What a person may still have to do, one sentence each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """The service to install: whose directory, which config, and the command that it is."""

    home: Path
    config: Path | None = None

    @property
    def name(self) -> str:
        """`goodbot`, with a hash for any other state directory than the usual one."""
        if self.home == Path.home() / ".goodbot":
            return "goodbot"
        return f"goodbot-{hashlib.sha256(os.fsencode(self.home)).hexdigest()[:8]}"

    @property
    def command(self) -> tuple[str, ...]:
        """This very environment's goodbot; `-P` keeps the working directory out of its imports."""
        config = ("--config", str(self.config.absolute())) if self.config else ()
        python = spawn.python("-m", "goodbot")
        return (*python, "--home", str(self.home.absolute()), *config, "run")

    @property
    def environment(self) -> Mapping[str, str]:
        """What it needs of this shell's environment: paths, and proxies unless they hold a password.

        Never a token: those are stored.
        """
        kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if os.environ.get(name)}
        proxies = {name: value for name in VARIABLES if (value := os.environ.get(name))}
        return kept | {name: value for name, value in proxies.items() if "@" not in value}


class Manager(ABC):
    """One service manager. Methods raise ServiceError."""

    name: ClassVar[str]

    def __init__(self, service: Service) -> None:
        self.service = service

    @property
    @abstractmethod
    def path(self) -> Path:
        """Where the service's description belongs."""

    @abstractmethod
    def render(self) -> str:
        """The description, as it is written there."""

    @abstractmethod
    def status(self) -> ServiceStatus:
        """How it stands; nothing is changed."""

    @abstractmethod
    def check(self) -> None:
        """Raise ServiceError unless the manager answers."""

    @abstractmethod
    def start(self) -> None:
        """Make the manager read the description, start it, and start it again after a boot."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it, and let the manager forget it."""

    def notes(self) -> Sequence[str]:
        """What a person may still have to do."""
        return ()

    def written(self) -> bool:
        """Whether the very same description is in place."""
        try:
            return self.path.read_text(encoding="utf-8") == self.render()
        except (OSError, UnicodeDecodeError):
            return False

    def write(self) -> None:
        """Put the description in place, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            partial.write_text(self.render(), encoding="utf-8")
            partial.chmod(0o644)
            partial.replace(self.path)
        finally:
            partial.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take the description away."""
        self.path.unlink(missing_ok=True)


def ask(*command: str, seconds: float = _ANSWER_SECONDS) -> spawn.Done:
    """Run one of the manager's programs. Raises ServiceError when it cannot or hangs."""
    environ = spawn.child_environment("DBUS_SESSION_BUS_ADDRESS")
    try:
        return spawn.run(*command, seconds=seconds, environ={**environ, "LC_ALL": "C", "SYSTEMD_PAGER": ""})
    except TimeoutError:
        text = phrase("service_slow", command=" ".join(command), seconds=f"{seconds:.0f}")
        raise ServiceError(text) from None
    except OSError as error:
        text = phrase("service_not_run", program=command[0], why=error.strerror)
        raise ServiceError(text) from error


def tell(*command: str, seconds: float = _ANSWER_SECONDS) -> str:
    """Run one that must succeed; its output. Raises ServiceError with what it said."""
    done = ask(*command, seconds=seconds)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:400]
        text = phrase("service_failed", command=" ".join(command), why=said or done.returncode)
        raise ServiceError(text)
    return done.stdout
