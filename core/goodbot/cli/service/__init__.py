# SPDX-License-Identifier: Apache-2.0
"""goodbot in the background: a systemd user unit or a launchd agent, one a state directory.

`status`, `install`, `restart` and `uninstall` print nothing and ask nothing. `notify` is the running daemon's
word to its manager.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import BusyError
from goodbot.cli.service.base import Installed, Manager, Service, ServiceError, ServiceStatus
from goodbot.config.lock import holder, prepare_home

__all__ = [
    "Installed",
    "ServiceError",
    "ServiceStatus",
    "install",
    "render",
    "restart",
    "status",
    "uninstall",
]


def status(home: Path) -> ServiceStatus:
    """How the service of this state directory stands. Never raises, changes nothing."""
    manager = _manager(Service(home=home))
    return manager.status() if manager else ServiceStatus(manager="")


def render(home: Path, config: Path | None = None) -> tuple[Path, str]:
    """The file that `install` would write, and its text. Raises ServiceError."""
    manager = _required(_described(home, config))
    return manager.path, manager.render()


def install(home: Path, config: Path | None = None) -> Installed:
    """Write the service's description, start it, and let it start by itself from now on.

    Installing again brings it up to date. Raises BusyError when a goodbot in the foreground has the
    directory, ServiceError when there is no manager or it refuses; nothing is written then.
    """
    manager = _required(_described(home, config))
    manager.check()
    before = manager.status()
    if before.active and before.enabled and manager.written():
        return Installed(status=before, changed=False, notes=tuple(manager.notes()))
    if not before.active:
        _require_free(home)
    prepare_home(home)
    manager.write()
    manager.start()
    return Installed(status=manager.status(), changed=True, notes=tuple(manager.notes()))


def restart(home: Path) -> ServiceStatus:
    """Start the service again, so that it reads its settings; also one that stands still.

    Raises ServiceError where none is installed, or its manager refuses.
    """
    manager = _required(Service(home=home))
    if not manager.path.exists():
        raise ServiceError(phrase("service_absent"))
    manager.check()
    manager.start()
    return manager.status()


def uninstall(home: Path, *, dry_run: bool = False) -> tuple[str, ...]:
    """Stop the service and remove what `install` made; one line for each thing.

    Empty when nothing is installed. With `dry_run` only say it. Raises ServiceError.
    """
    manager = _manager(Service(home=home))
    if manager is None or not manager.path.exists():
        return ()
    if not dry_run:
        manager.stop()
        manager.remove()
    name = manager.service.name
    return (phrase("service_thing", manager=manager.name, name=name, path=manager.path),)


def _described(home: Path, config: Path | None) -> Service:
    """The same service, whether the usual config file was named or not."""
    return Service(home=home, config=None if config == home / "config.toml" else config)


def _manager(service: Service) -> Manager | None:
    if sys.platform == "darwin":
        from goodbot.cli.service.launchd import Launchd

        return Launchd(service)
    if shutil.which("systemctl"):
        from goodbot.cli.service.systemd import Systemd

        return Systemd(service)
    return None


def _required(service: Service) -> Manager:
    manager = _manager(service)
    if manager is None:
        raise ServiceError(phrase("service_by_hand", command=shlex.join(service.command)))
    return manager


def _require_free(home: Path) -> None:
    """Raise BusyError with the holder's pid; a service beside it would only fail to start."""
    held, pid = holder(home)
    if held:
        key = "service_held_by" if pid else "service_held"
        raise BusyError(phrase(key, pid=pid, home=home), pid=pid)
