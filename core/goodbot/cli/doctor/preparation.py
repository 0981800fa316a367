# SPDX-License-Identifier: Apache-2.0
"""What the probes look at, collected without starting or changing anything.

What goes wrong here is a finding too: the rest is looked at all the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.api import control
from goodbot.api.plugins import PluginHost
from goodbot.api.setup import Check, Examined, fail
from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.deadline import within
from goodbot.base.errors import ConfigError, GoodbotError, StoreError
from goodbot.cli.doctor.checks import failed
from goodbot.config.layout import DATABASE
from goodbot.config.secrets import SecretStore
from goodbot.store import cipher

_SECONDS = 5.0


def prepare(home: Path, path: Path | None, *, demo_model: bool) -> tuple[Examined, tuple[Check, ...]]:
    """What may be examined, and what was wrong with that already."""
    logging.getLogger().addHandler(logging.NullHandler())  # what is logged here, a line says
    wrong: list[Check] = []
    try:
        settings = config.load(home, path)
    except ConfigError as error:
        settings = config.Config(home=home)
        wrong.append(failed("config", error, phrase("doc_config_fix")))
    with contextlib.suppress(GoodbotError):  # a passphrase is asked for once, before all looks begin
        cipher.key(home / DATABASE)
    plugins = PluginHost()
    try:
        plugins.load_entry_points(settings.plugins.enable, settings.where("plugins"))
    except GoodbotError as error:
        wrong.append(failed("config", error, phrase("doc_plugin_fix")))
    try:
        daemon = within(_SECONDS, lambda: _status(home))
    except (StoreError, control.RemoteError):  # another user's, or it says why not: a line says so
        daemon = None
    except (GoodbotError, OSError) as error:  # a TimeoutError is an OSError
        daemon = None
        slow = isinstance(error, TimeoutError)
        said = phrase("doc_slow", seconds=f"{_SECONDS:g}") if slow else reworded(error, here())
        wrong.append(fail("daemon", phrase("doc_silent", why=said), phrase("doc_stuck")))
    environ: Mapping[str, str] = os.environ
    try:
        names = [name for spec in plugins.connectors().values() for name in spec.secrets]
        environ = within(_SECONDS, lambda: SecretStore(home).environment(names))
    except TimeoutError:
        wrong.append(fail("tokens", phrase("doc_keyring"), phrase("doc_keyring_fix")))
    except GoodbotError as error:
        wrong.append(failed("tokens", error))
    examined = Examined(
        config=settings,
        plugins=plugins,
        environ=environ,
        daemon=daemon,
        demo_model=demo_model or _demonstrates(plugins, daemon),
    )
    return examined, tuple(wrong)


def _status(home: Path) -> Mapping[str, Any] | None:
    if not home.is_dir():
        return None
    answer = control.call(home, "status", [])
    starts = answer is not None and answer["data"].get("server") == "starting"
    return answer["data"] if answer and not starts else None


def _demonstrates(plugins: PluginHost, daemon: Mapping[str, Any] | None) -> bool:
    """Whether the running daemon answers with the demonstration model."""
    try:
        demos = [spec.name for spec in plugins.models().values() if spec.demo]
    except GoodbotError:
        return False
    return daemon is not None and daemon.get("model") in demos
