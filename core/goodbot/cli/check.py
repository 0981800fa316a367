"""`goodbot check`: whether everything is in place, line by line; starts and changes nothing."""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.adapters import verify
from goodbot.app import open_plugins
from goodbot.cli import output
from goodbot.errors import BusyError, ConfigError, GoodbotError, MissingExtraError
from goodbot.hosts import configured_grants
from goodbot.lock import HomeLock, prepare_home
from goodbot.models import resolve
from goodbot.plugins import PluginHost, choose_backend, missing_modules, reward_policy
from goodbot.secrets import Secrets
from goodbot.store import Store, adapters


def main(arguments: argparse.Namespace) -> int:
    """Print one line a part; the exit code is that of the first failure."""
    code, lines = 0, list[dict[str, Any]]()

    def probe(name: str, work: Callable[[], str]) -> None:
        nonlocal code
        try:
            lines.append({"part": name, "ok": True, "text": work()})
        except GoodbotError as error:
            # Of several failures, "newer data" and "busy" say most about what to do.
            code = max(code, error.exit_code)
            lines.append({"part": name, "ok": False, "text": str(error)})

    settings = config.load(arguments.home, arguments.config)
    lines.append({"part": "config", "ok": True, "text": str(settings.path or "all defaults")})
    plugins = open_plugins(settings)
    probe("plugins", lambda: _plugins(plugins))
    probe("model", lambda: str(_model(settings, plugins, arguments.demo_model)))
    probe("backend", lambda: choose_backend(plugins.backends(), settings.training.backend).name)
    probe("training", lambda: _training(settings, plugins))
    probe("connectors", lambda: _connectors(settings, plugins))
    probe("data", lambda: _data(settings.home))
    text = "\n".join(
        f"{'ok  ' if line['ok'] else 'fail'} {line['part']:11} {line['text']}" for line in lines
    )
    output.print_answer(
        {"text": text, "data": {"ok": code == 0, "checks": lines}}, as_json=arguments.json
    )
    return code


def _plugins(plugins: PluginHost) -> str:
    failed = [info for info in plugins.infos() if info.state == "failed"]
    if failed:
        raise ConfigError(f"the plugin {failed[0].name} cannot be loaded: {failed[0].error}")
    return ", ".join(info.name for info in plugins.infos() if info.state == "loaded")


def _model(settings: config.Config, plugins: PluginHost, demo: bool) -> Path:
    return resolve(settings.model.path, plugins.models(), demo=demo).path


def _training(settings: config.Config, plugins: PluginHost) -> str:
    spec = choose_backend(plugins.backends(), settings.training.backend)
    settings.training_settings(spec.settings)
    reward_policy(plugins, settings.training.reward)
    return f"{settings.training.schedule}, from {settings.training.min_ratings} ratings"


def _connectors(settings: config.Config, plugins: PluginHost) -> str:
    specs = plugins.connectors()
    grants = configured_grants(settings, specs)
    notes: list[str] = []
    for name in grants:
        spec = specs[name]
        if missing_modules(spec.requires):
            raise MissingExtraError(f"the {name} connector", spec.extra or name)
        if missing := Secrets(spec.secrets).missing():
            raise ConfigError(
                f"the {name} connector has no token: set the environment variable {missing[0]}"
            )
        nobody = not grants[name].owners
        notes.append(f"{name} (nobody is its owner: set `owners`)" if nobody else name)
    return ", ".join(["terminal", *notes])


def _data(home: Path) -> str:
    if not (home / "goodbot.db").exists():
        return f"{home}: nothing stored yet"
    return asyncio.run(_stored(home))


async def _stored(home: Path) -> str:
    """Open the store, which migrates it, unless a daemon has it."""
    prepare_home(home)
    lock = HomeLock(home)
    try:
        lock.acquire()
    except BusyError as error:
        return f"in use by the running goodbot (pid {error.pid})"
    try:
        store = await Store.open(home / "goodbot.db")
        try:
            rows = await store.read(lambda db: adapters.all_of(db, "default"))
            for row in rows:
                verify(home / "adapters", row.directory, row.sha256)
        finally:
            await store.close()
    finally:
        lock.release()
    return f"{home}: {len(rows)} adapters, SQLite {sqlite3.sqlite_version}"
