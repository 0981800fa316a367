# SPDX-License-Identifier: Apache-2.0
"""The plugin host: the only module that touches pluggy's hook caller. One a running goodbot."""

from __future__ import annotations

import argparse
import importlib.metadata
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pluggy

from goodbot.api import hookspecs
from goodbot.api.backend import BackendSpec
from goodbot.api.connector import API_VERSION, ConnectorSpec
from goodbot.api.content_filter import ContentFilterSpec
from goodbot.api.events import RatingEvent, Receipt
from goodbot.api.export import ExportForm
from goodbot.api.feature import FeatureSpec
from goodbot.api.judge import JUDGE, JudgeSpec
from goodbot.api.model import ModelSpec
from goodbot.api.objective import ObjectiveSpec
from goodbot.api.registry import config_error
from goodbot.api.report import ReportSpec
from goodbot.api.rewards import RewardPolicy
from goodbot.api.server import ServerSpec
from goodbot.api.tracker import TrackerSpec
from goodbot.api.turns import Turn
from goodbot.base.errors import ConfigError, unexpected
from goodbot.base.suggest import Offered, instead
from goodbot.base.worded import Worded
from goodbot.config.toml import Where

logger = logging.getLogger(__name__)

GROUP = "goodbot"
"""The entry-point group that plugins are found in."""

_Spec = TypeVar("_Spec", bound=Any)


@dataclass(frozen=True, kw_only=True)
class PluginInfo:
    """One plugin that was found. `state` is `loaded`, `off` (not named in config) or `failed`."""

    name: str
    distribution: str
    version: str
    state: str
    error: str = ""


class PluginHost:
    """A typed facade over one `pluggy.PluginManager`.

    Plugins of goodbot's own distribution are always loaded; a third party's only when the config
    names it under `[plugins] enable`, since a plugin is trusted code.
    """

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._infos: list[PluginInfo] = []

    def load_entry_points(self, enable: Iterable[str] = (), where: Where | None = None) -> None:
        """Load what is installed, one by one; a broken plugin is reported and the rest runs.

        Raises ConfigError when `enable` names a plugin that is not installed; `where` is the
        section that it stands in.
        """
        wanted = set(enable)
        found: set[str] = set()
        for point in sorted(importlib.metadata.entry_points(group=GROUP), key=_rank):
            dist = point.dist
            owner, version = (dist.name, dist.version) if dist else ("unknown", "")
            if point.name in found:
                self._report(point.name, owner, version, "failed", "another plugin has this name")
                continue
            found.add(point.name)
            if owner != "goodbot" and point.name not in wanted:
                self._report(point.name, owner, version, "off")
                continue
            try:
                self._register(point.load(), point.name)
            except Exception as error:
                logger.exception("plugin %s was not loaded", point.name)
                self._report(point.name, owner, version, "failed", unexpected(error))
            else:
                self._report(point.name, owner, version, "loaded")
        if missing := sorted(wanted - found):
            known = instead(missing[0], found - wanted)
            absent = "[plugins] enable names {name}, which is not installed; {known}"
            raise config_error(where, "enable", Worded(absent, name=repr(missing[0]), known=known))

    def register(self, plugin: object, name: str) -> None:
        """Add one plugin object by hand, as tests and programs do that embed goodbot."""
        self._register(plugin, name)
        self._report(name, "", "", "loaded")

    def attach(self, part: object) -> None:
        """Let a part of goodbot itself hear the hooks, too; it is not listed as a plugin."""
        self._manager.register(part)

    def _register(self, plugin: object, name: str) -> None:
        self._manager.register(plugin, name)
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError:
            self._manager.unregister(plugin)
            raise

    def _report(self, name: str, owner: str, version: str, state: str, error: str = "") -> None:
        self._infos.append(
            PluginInfo(name=name, distribution=owner, version=version, state=state, error=error)
        )

    def infos(self) -> tuple[PluginInfo, ...]:
        """Every plugin that was found, loaded or not."""
        return tuple(self._infos)

    def connectors(self) -> Offered[ConnectorSpec]:
        """Connectors by name. Raises ConfigError for two of one name or another API version."""
        specs = self._collect("register_connector", ConnectorSpec)
        for spec in specs.values():
            if spec.name == JUDGE:
                raise ConfigError("no connector may be named “judge”: judges are called so among raters")
            if spec.api_version != API_VERSION:
                other = (
                    "connector {name} is written for plugin API {version}, this goodbot has {own}: install a "
                    "matching version of it"
                )
                name = repr(spec.name)
                raise ConfigError(Worded(other, name=name, version=spec.api_version, own=API_VERSION))
        return specs

    def backends(self) -> dict[str, BackendSpec]:
        """Backends by name."""
        return self._collect("register_backend", BackendSpec)

    def servers(self) -> dict[str, ServerSpec]:
        """Model servers by name."""
        return self._collect("register_server", ServerSpec)

    def reward_policies(self) -> dict[str, RewardPolicy]:
        """Reward policies by name."""
        return self._collect("register_reward_policy", RewardPolicy)

    def objectives(self) -> dict[str, ObjectiveSpec]:
        """Objectives of plugins by name; a backend has others of its own."""
        return self._collect("register_objective", ObjectiveSpec)

    def models(self) -> dict[str, ModelSpec]:
        """Models that plugins ship, by name."""
        return self._collect("register_model", ModelSpec)

    def trackers(self) -> dict[str, TrackerSpec]:
        """Experiment trackers by name."""
        return self._collect("register_tracker", TrackerSpec)

    def judges(self) -> dict[str, JudgeSpec]:
        """Judges of the next state by name."""
        return self._collect("register_judge", JudgeSpec)

    def filters(self) -> Offered[ContentFilterSpec]:
        """Filters of what a training takes, by name."""
        return self._collect("register_filter", ContentFilterSpec)

    def export_forms(self) -> dict[str, ExportForm]:
        """Forms of exported answers by name."""
        return self._collect("register_export_form", ExportForm)

    def features(self) -> dict[str, FeatureSpec]:
        """What may run beside the bot, by name."""
        return self._collect("register_feature", FeatureSpec)

    def reports(self) -> dict[str, ReportSpec]:
        """Parts of `goodbot report` by name."""
        return self._collect("register_report", ReportSpec)

    def probes(self) -> list[tuple[str, Callable[[], object]]]:
        """Who offers probes of `goodbot doctor`: each plugin's name, and its hook, not yet called."""
        found = self._manager.hook.register_probe.get_hookimpls()
        return [(one.plugin_name, cast("Callable[[], object]", one.function)) for one in found]

    def add_commands(self, subparsers: argparse._SubParsersAction[Any]) -> None:
        """Let plugins add their commands to the program."""
        self._manager.hook.register_commands(subparsers=subparsers)

    def _collect(self, hook: str, kind: type[_Spec]) -> Offered[_Spec]:
        specs = Offered[_Spec](info.name for info in self._infos if info.state == "off")
        for result in getattr(self._manager.hook, hook)():
            several = isinstance(result, (list, tuple))
            for spec in cast("Iterable[object]", result) if several else (result,):
                if not isinstance(spec, kind):
                    raise ConfigError(
                        f"a plugin's {hook} returned {type(spec).__name__}, not {kind.__name__}"
                    )
                if spec.name in specs:
                    raise ConfigError(f"two plugins register a {kind.__name__} named {spec.name!r}")
                specs[spec.name] = spec
        return specs

    async def on_turn(self, turn: Turn) -> None:
        """See `hookspecs.on_turn`."""
        await self._observe("on_turn", turn=turn)

    async def on_rating(self, event: RatingEvent, receipt: Receipt) -> None:
        """See `hookspecs.on_rating`."""
        await self._observe("on_rating", event=event, receipt=receipt)

    async def on_answer(self, connector: str, outcome: str, seconds: float, turn: str) -> None:
        """Tell plugins what came of a message: see `hookspecs.on_answer`."""
        told: dict[str, object] = {"connector": connector, "outcome": outcome, "seconds": seconds}
        await self._observe("on_answer", **told, turn=turn)

    async def on_training_started(self, run: int, items: int, rewards: Sequence[float]) -> None:
        """Tell plugins of a run that begins: see `hookspecs.on_training_started`."""
        await self._observe("on_training_started", run=run, items=items, rewards=rewards)

    async def on_training_progress(self, run: int, progress: Mapping[str, Any]) -> None:
        """See `hookspecs.on_training_progress`."""
        await self._observe("on_training_progress", run=run, progress=progress)

    async def on_training_interrupted(self, run: int) -> None:
        """See `hookspecs.on_training_interrupted`."""
        await self._observe("on_training_interrupted", run=run)

    async def on_training_finished(self, run: int, state: str, reason: str) -> None:
        """Tell plugins of the end of a run: see `hookspecs.on_training_finished`."""
        await self._observe("on_training_finished", run=run, state=state, reason=reason)

    async def on_adapter_activated(self, version: int, previous: int) -> None:
        """See `hookspecs.on_adapter_activated`."""
        await self._observe("on_adapter_activated", version=version, previous=previous)

    async def on_forgotten(self, people: Sequence[str]) -> None:
        """See `hookspecs.on_forgotten`."""
        await self._observe("on_forgotten", people=people)

    def observed(self, hook: str) -> bool:
        """Whether any plugin wants to be told of this."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    async def _observe(self, hook: str, **arguments: object) -> None:
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            accepted = {name: arguments[name] for name in implementation.argnames}
            try:
                result = implementation.function(**accepted)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                logger.exception("plugin %s failed in %s", implementation.plugin_name, hook)

    def veto_capture(self, turn: Turn) -> str | None:
        """The first objection to learning from a turn, or None."""
        return self._veto("veto_capture", turn=turn)

    def veto_training(self, items: int) -> str | None:
        """The first objection to a training run, or None."""
        return self._veto("veto_training", items=items)

    def veto_activation(self, version: int, metrics: Mapping[str, Any]) -> str | None:
        """The first objection to an adapter, or None."""
        return self._veto("veto_activation", version=version, metrics=metrics)

    def _veto(self, hook: str, **arguments: object) -> str | None:
        """A veto that fails counts as a refusal: a broken guard must not open the gate."""
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            accepted = {name: arguments[name] for name in implementation.argnames}
            try:
                result = implementation.function(**accepted)
            except Exception:
                logger.exception("plugin %s failed in %s", implementation.plugin_name, hook)
                return f"the plugin {implementation.plugin_name} failed while it was asked"
            if inspect.iscoroutine(result):
                result.close()
                name = implementation.plugin_name
                return f"the plugin {name} answers later, and a veto must answer at once"
            if result:
                return str(result)
        return None


def _rank(point: importlib.metadata.EntryPoint) -> tuple[str, bool]:
    """By name; of two of one name goodbot's own comes first."""
    return point.name, point.dist is None or point.dist.name != "goodbot"
