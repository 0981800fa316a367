# SPDX-License-Identifier: Apache-2.0
"""The config file: every name in it is checked against what is installed, with file and line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from goodbot.api.registry import choose_backend, registered, reward_policy
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import ConfigError, GoodbotError, MissingExtraError
from goodbot.cli.doctor.checks import failed, short
from goodbot.inference.servers import choice
from goodbot.learning.training import anchors, remote
from goodbot.learning.training.settings import with_objective


async def config(examined: Examined) -> Sequence[Check]:
    """Names of connectors, backends and rewards, and the sections of plugins."""
    looks = (_training, _serving, _rewards, *_connectors(examined))
    found = [check for look in looks if (check := look(examined))]
    path = examined.config.path
    text = short(path) if path else phrase("doc_no_config")
    return found or [ok("config", text)]


def _training(examined: Examined) -> Check | None:
    settings, where = examined.config, examined.config.where("training")
    try:
        wanted = settings.training.backend
        spec = choose_backend(examined.plugins.backends(), wanted, where)
        own = with_objective(settings, examined.plugins.objectives(), spec)
        own.training_settings(spec.settings)
        remote.allowed(settings, spec)
    except MissingExtraError:
        return None  # the backend's line says it
    except GoodbotError as error:
        return failed("config", error)
    return None


def _serving(examined: Examined) -> Check | None:
    settings = examined.config
    try:
        spec = choice.choose(settings, examined.plugins.servers())
        settings.serving_settings(spec.settings)
    except GoodbotError as error:
        return failed("config", error)
    return warn("serving", why) if (why := choice.objection(spec)) else None


def _rewards(examined: Examined) -> Check | None:
    where = examined.config.where("training")
    try:
        reward_policy(examined.plugins, examined.config.training.reward, where)
        anchors.load(examined.config)
    except GoodbotError as error:
        return failed("config", error)
    return None


def _connectors(examined: Examined) -> list[Callable[[Examined], Check | None]]:
    settings, specs = examined.config, examined.plugins.connectors()

    def look(name: str) -> Check | None:
        try:
            spec = registered(specs, name, "connector", settings.where("connectors"), name)
            settings.connector(name, spec.settings)
        except ConfigError as error:
            return failed("config", error)
        return None

    return [lambda _, name=name: look(name) for name in settings.connectors]


async def plugins(examined: Examined) -> Sequence[Check]:
    """Plugins that could not be loaded, and third-party code that is."""
    checks: list[Check] = []
    loaded: list[str] = []
    for info in examined.plugins.infos():
        if info.state == "failed":
            text = phrase("doc_not_loaded", name=info.name, source=info.distribution, why=info.error)
            own = info.distribution == "goodbot"
            fix = "" if own else phrase("doc_not_loaded_fix")
            checks.append((fail if own else warn)("plugins", text, fix))
        elif info.state == "loaded" and info.distribution != "goodbot":
            loaded.append(info.name)
    names = commas(here(), *loaded)
    text = phrase("doc_plugins", names=names) if loaded else phrase("doc_plugins_own")
    return checks or [ok("plugins", text)]


PROBES = (Probe(name="config", run=config), Probe(name="plugins", run=plugins))
