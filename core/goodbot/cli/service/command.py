# SPDX-License-Identifier: Apache-2.0
"""`goodbot service install|restart|status|uninstall`: in the background, also after a restart."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from goodbot import config
from goodbot.api.plugins import PluginHost
from goodbot.base.errors import BusyError, GoodbotError
from goodbot.base.printing import print_answer
from goodbot.cli import service
from goodbot.cli.service import ServiceStatus
from goodbot.config.secrets import SecretStore


def main(arguments: argparse.Namespace) -> int:
    """0 done, or active; 1 not active, or the manager refuses; 75 one runs in the foreground."""
    actions = {"install": _install, "restart": _restart, "status": _status, "uninstall": _uninstall}
    action = actions[arguments.action]
    code, text, data = action(arguments)
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return code


def _install(arguments: argparse.Namespace) -> tuple[int, str, dict[str, Any]]:
    settings = config.load(arguments.home, arguments.config)
    path, description = service.render(arguments.home, arguments.config)
    if arguments.dry_run:
        data = {"path": str(path), "description": description}
        return 0, f"# {path}\n{description}".rstrip(), data
    try:
        done = service.install(arguments.home, arguments.config)
    except BusyError as error:
        raise BusyError(
            f"{error}: stop that one first (Ctrl-C, or `kill {error.pid or 'PID'}`), then install",
            pid=error.pid,
        ) from error
    notes = (*done.notes, *_unseen_tokens(settings))
    first = f"wrote {path}" if done.changed else "it is installed already; nothing was changed"
    lines = [first, _sentence(done.status), f"its log: {done.status.log}", *notes]
    data = {"changed": done.changed, "notes": notes, **_data(done.status)}
    return 0, "\n".join(lines), data


def _restart(arguments: argparse.Namespace) -> tuple[int, str, dict[str, Any]]:
    config.load(arguments.home, arguments.config)  # else it would end, and not begin again
    if arguments.dry_run:
        return 0, "would start the service again", _data(service.status(arguments.home))
    status = service.restart(arguments.home)
    return 0 if status.active else 1, _sentence(status), _data(status)


def _status(arguments: argparse.Namespace) -> tuple[int, str, dict[str, Any]]:
    status = service.status(arguments.home)
    lines = [_sentence(status)]
    if status.installed:
        lines += [f"its description: {status.path}", f"its log: {status.log}"]
    return 0 if status.active else 1, "\n".join(lines), _data(status)


def _uninstall(arguments: argparse.Namespace) -> tuple[int, str, dict[str, Any]]:
    removed = service.uninstall(arguments.home, dry_run=arguments.dry_run)
    verb = "would remove" if arguments.dry_run else "removed"
    text = "\n".join(f"{verb} {thing}" for thing in removed) or "no service is installed"
    return 0, text, {"removed": removed, "dry_run": arguments.dry_run}


def _sentence(status: ServiceStatus) -> str:
    if not status.manager:
        return "this machine has neither systemd nor launchd: no service can be installed here"
    if not status.installed:
        return service.NOT_INSTALLED
    since = f" since {status.since}" if status.since else ""
    process = f", process {status.pid}" if status.pid else ""
    starts = "starts by itself" if status.enabled else "does not start by itself: install it again"
    return f"{status.name} is {status.state or 'not loaded'}{since}{process}, and {starts}"


def _data(status: ServiceStatus) -> dict[str, Any]:
    names = ("manager", "name", "path", "installed", "enabled", "active", "state", "since", "pid")
    return {name: getattr(status, name) for name in (*names, "log")}


def _unseen_tokens(settings: config.Config) -> list[str]:
    """A sentence for each token that only this shell's environment has; a service has no shell."""
    plugins = PluginHost()
    stored = SecretStore(settings.home)
    lines: list[str] = []
    try:
        plugins.load_entry_points(settings.plugins.enable)
        specs = plugins.connectors()
        for name in sorted(set(settings.connectors) & set(specs)):
            _, own = settings.connector(name, specs[name].settings)
            for secret in specs[name].needs(own):
                if stored.where(secret) == "environment" and not stored.stored(secret):
                    lines.append(
                        f"{secret} is set in this shell only, which the service does not see: "
                        f"`goodbot init` keeps it (home: {shlex.quote(str(settings.home))})"
                    )
    except GoodbotError as error:  # `goodbot doctor` says more; the service is installed
        lines.append(str(error))
    return lines
