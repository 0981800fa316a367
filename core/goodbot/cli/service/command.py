# SPDX-License-Identifier: Apache-2.0
"""`goodbot service install|restart|status|uninstall`: in the background, also after a restart."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from goodbot import config
from goodbot.api.plugins import PluginHost
from goodbot.api.texts import commas, reworded
from goodbot.api.texts.terminal import here, phrase
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
        text = phrase("service_stop_first", why=error, pid=error.pid or "PID")
        raise BusyError(text, pid=error.pid) from error
    notes = (*done.notes, *_unseen_tokens(settings))
    first = phrase("service_wrote", path=path) if done.changed else phrase("service_same")
    lines = [first, _sentence(done.status), phrase("service_log", command=done.status.log), *notes]
    data = {"changed": done.changed, "notes": notes, **_data(done.status)}
    return 0, "\n".join(lines), data


def _restart(arguments: argparse.Namespace) -> tuple[int, str, dict[str, Any]]:
    config.load(arguments.home, arguments.config)  # else it would end, and not begin again
    if arguments.dry_run:
        return 0, phrase("service_would_start"), _data(service.status(arguments.home))
    status = service.restart(arguments.home)
    return 0 if status.active else 1, _sentence(status), _data(status)


def _status(arguments: argparse.Namespace) -> tuple[int, str, dict[str, Any]]:
    status = service.status(arguments.home)
    lines = [_sentence(status)]
    if status.installed:
        lines += [phrase("service_file", path=status.path), phrase("service_log", command=status.log)]
    return 0 if status.active else 1, "\n".join(lines), _data(status)


def _uninstall(arguments: argparse.Namespace) -> tuple[int, str, dict[str, Any]]:
    removed = service.uninstall(arguments.home, dry_run=arguments.dry_run)
    key = "service_would_remove" if arguments.dry_run else "service_removed"
    text = "\n".join(phrase(key, what=thing) for thing in removed) or phrase("service_none")
    return 0, text, {"removed": removed, "dry_run": arguments.dry_run}


def _sentence(status: ServiceStatus) -> str:
    if not status.manager:
        return phrase("service_no_manager")
    if not status.installed:
        return phrase("service_absent")
    key = "service_is_since" if status.since else "service_is"
    state = status.state or phrase("service_not_loaded")
    stands = phrase(key, name=status.name, state=state, since=status.since)
    process = phrase("service_process", pid=status.pid) if status.pid else ""
    starts = "doc_service_well" if status.enabled else "service_once"
    return phrase(starts, service=commas(here(), stands, process))


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
                    home = shlex.quote(str(settings.home))
                    lines.append(phrase("service_unseen", name=secret, home=home))
    except GoodbotError as error:  # `goodbot doctor` says more; the service is installed
        lines.append(reworded(error, here()))
    return lines
