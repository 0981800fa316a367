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
from goodbot.base.deadline import within
from goodbot.base.errors import ConfigError, GoodbotError
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
        fix = "correct that line; what depends on the config is looked at then"
        wrong.append(failed("config", error, fix))
    with contextlib.suppress(GoodbotError):  # a passphrase is asked for once, before all looks begin
        cipher.key(home / DATABASE)
    plugins = PluginHost()
    try:
        plugins.load_entry_points(settings.plugins.enable, settings.where("plugins"))
    except GoodbotError as error:
        wrong.append(failed("config", error, "install it, or take the name out"))
    try:
        daemon = within(_SECONDS, lambda: _status(home))
    except (GoodbotError, OSError) as error:  # a TimeoutError is an OSError
        daemon = None
        said = f"no answer within {_SECONDS:g} s" if isinstance(error, TimeoutError) else str(error)
        fix = "look at its log; if it is stuck, end it and start it again"
        wrong.append(fail("daemon", f"the running goodbot does not answer: {said}", fix))
    environ: Mapping[str, str] = os.environ
    try:
        names = [name for spec in plugins.connectors().values() for name in spec.secrets]
        environ = within(_SECONDS, lambda: SecretStore(home).environment(names))
    except TimeoutError:
        wrong.append(
            fail("tokens", "the keyring does not answer", "unlock it, or set the tokens in the environment")
        )
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
    answer = control.call(home, "status", [], lambda _: None)
    starts = answer is not None and answer["data"].get("server") == "starting"
    return answer["data"] if answer and not starts else None


def _demonstrates(plugins: PluginHost, daemon: Mapping[str, Any] | None) -> bool:
    """Whether the running daemon answers with the demonstration model."""
    try:
        demos = [spec.name for spec in plugins.models().values() if spec.demo]
    except GoodbotError:
        return False
    return daemon is not None and daemon.get("model") in demos
