# SPDX-License-Identifier: Apache-2.0
"""The plugin host: what is found and loaded, what is kept apart, who may say no."""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from goodbot import (
    BackendSpec,
    Capability,
    ChannelKind,
    ChannelRef,
    ConnectorSpec,
    OrderKey,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    RewardPolicy,
    UserRef,
    hookimpl,
)
from goodbot.api.model import ModelSpec
from goodbot.api.plugins import PluginHost
from goodbot.api.registry import choose_backend, reward_policy
from goodbot.api.server import AdapterFormat, ServerSpec
from goodbot.api.turns import Turn
from goodbot.base.errors import ConfigError, MissingExtraError
from goodbot.base.installed import missing_modules
from goodbot.config import Config, ServingConfig, parse
from goodbot.daemon.connectors import configured_grants
from goodbot.inference.servers.choice import choose
from goodbot.learning.tracking.observer import Tracking
from goodbot.learning.training.settings import with_objective


@dataclass(frozen=True, kw_only=True)
class Settings:
    color: str = "blue"


CONNECTOR = ConnectorSpec(
    name="pigeon", factory="pigeon:Pigeon", capabilities=Capability.NONE, settings=Settings
)
BACKEND = BackendSpec(
    name="abacus", factory="a:B", requires=("sys",), extra="abacus", settings=Settings, priority=1
)
PLACE = ChannelRef(connector="pigeon", account="1", id="roof", kind=ChannelKind.PRIVATE)
ADA = UserRef(connector="pigeon", account="1", id="ada")
TURN = Turn(
    id="t",
    channel=PLACE,
    talker=ADA,
    messages=[{"role": "user", "content": "?"}],
    response="!",
    version=0,
    model="m",
    temperature=1.0,
    created_at=0.0,
)
RATING = RatingEvent(
    event_id="e", order=OrderKey(1), user=ADA, channel=PLACE, kind=RatingKind.RATE, value=1.0
)
RECEIPT = Receipt(event_id="e", outcome=Outcome.ACCEPTED)


def host(*plugins: object) -> PluginHost:
    made = PluginHost()
    for number, plugin in enumerate(plugins):
        made.register(plugin, f"plugin-{number}")
    return made


SERVER = ServerSpec(name="abacus", factory="m:C", settings=Settings, adapters=AdapterFormat.PEFT)


def plugin(**functions: Callable[..., Any]) -> object:
    """An object with these functions as hook implementations."""
    made = types.SimpleNamespace()
    for name, function in functions.items():
        setattr(made, name, hookimpl(function))
    return made


class Installed:
    """What `importlib.metadata` is made to say is installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, code: str, *, owner: str = "goodbot", entry: str = "") -> None:
        """A module with this code, and a distribution that names it as a plugin."""
        (self._folder / f"{name}_module.py").write_text(f"from goodbot import *\n{code}\n")
        info = self._folder / f"{owner.replace('-', '_')}_{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {owner}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[goodbot]\n{entry or name} = {name}_module\n")

    def load(self, *enable: str) -> dict[str, tuple[str, str]]:
        """State and error of each plugin by name."""
        made = PluginHost()
        made.load_entry_points(enable)
        self.host = made
        return {info.name: (info.state, info.error) for info in made.infos()}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def entry_points(*, group: str) -> list[importlib.metadata.EntryPoint]:
        found = importlib.metadata.distributions(path=[str(tmp_path)])
        return [point for dist in found for point in dist.entry_points if point.group == group]

    monkeypatch.setattr("goodbot.api.plugins.importlib.metadata.entry_points", entry_points)
    yield Installed(tmp_path)
    for name in set(sys.modules) - before:
        if name.endswith("_module"):
            del sys.modules[name]


class TestLoading:
    def test_one_bad_plugin_is_reported_and_the_rest_runs(
        self, installed: Installed, caplog: pytest.LogCaptureFixture
    ) -> None:
        installed.add("bad", "raise RuntimeError('no such moon')")
        installed.add("good", "@hookimpl\ndef register_reward_policy(): return RewardPolicy('x', None)")
        states = installed.load()
        assert states == {"bad": ("failed", "RuntimeError: no such moon"), "good": ("loaded", "")}
        assert "plugin bad was not loaded" in caplog.text

    def test_a_name_that_a_switched_off_plugin_has_is_said(self, installed: Installed) -> None:
        installed.add("gentle", "", owner="someone")
        installed.load()
        with pytest.raises(
            ConfigError, match=r"'gentle' is installed and off: .* enable = ..gentle.."
        ) as told:
            reward_policy(installed.host, "gentle")
        config = parse('[training.settings]\nobjective = "gentle"\n', home=Path("/h"))
        backend = replace(BACKEND, objectives=("tapered",))
        with pytest.raises(ConfigError) as objective:
            with_objective(config, installed.host.objectives(), backend)
        assert str(objective.value).partition("; ")[2] == str(told.value).partition("; ")[2]

    def test_one_that_fails_without_a_word_is_told_by_its_kind(self, installed: Installed) -> None:
        installed.add("bad", "raise MemoryError")
        assert installed.load() == {"bad": ("failed", "MemoryError")}

    def test_an_unknown_hook_is_a_failure_of_its_plugin(self, installed: Installed) -> None:
        installed.add("typo", "@hookimpl\ndef on_ratign(event): pass")
        installed.add("other", "@hookimpl\ndef on_rating(event): pass")
        states = installed.load()
        assert states["typo"][0] == "failed"
        assert "on_ratign" in states["typo"][1]
        assert states["other"] == ("loaded", "")

    def test_an_unknown_argument_is_a_failure_of_its_plugin(self, installed: Installed) -> None:
        installed.add("wrong", "@hookimpl\ndef on_rating(rating): pass")
        assert installed.load()["wrong"][0] == "failed"

    async def test_a_failed_plugin_leaves_nothing_behind(self, installed: Installed) -> None:
        installed.add(
            "half",
            "seen = []\n@hookimpl\ndef on_turn(turn): seen.append(turn)\n@hookimpl\ndef on_nothing(): pass",
        )
        assert installed.load()["half"][0] == "failed"
        await installed.host.on_turn(TURN)
        assert sys.modules["half_module"].seen == []

    def test_a_third_party_is_off_until_the_config_names_it(self, installed: Installed) -> None:
        installed.add("mine", "raise SystemExit('this code must not run')", owner="somebody")
        installed.add("yours", "", owner="somebody-else")
        assert installed.load("yours") == {"mine": ("off", ""), "yours": ("loaded", "")}

    def test_an_unknown_name_tells_of_what_is_installed_and_off(self, installed: Installed) -> None:
        installed.add("rewards", "", owner="somebody")
        installed.load()
        plugins, config = installed.host, Config(home=Path("/nowhere"))
        wanted = r"is named 'mine'; .* off may have it: `\[plugins\] enable = \[\"rewards\"\]`"
        with pytest.raises(ConfigError, match=wanted):
            reward_policy(plugins, "mine")
        with pytest.raises(ConfigError, match=wanted):
            choose_backend(plugins.backends(), "mine")
        with pytest.raises(ConfigError, match=wanted):
            choose(replace(config, serving=ServingConfig(server="mine")), plugins.servers())
        with pytest.raises(ConfigError, match=wanted):
            Tracking(replace(config, tracking={"mine": {}}), plugins.trackers(), {})
        with pytest.raises(ConfigError, match=wanted):
            configured_grants(replace(config, connectors={"mine": {}}), plugins.connectors())
        installed.load("rewards")
        with pytest.raises(ConfigError) as error:
            reward_policy(installed.host, "mine")
        assert "off" not in str(error.value)

    def test_enabling_what_is_not_installed_is_an_error(self, installed: Installed) -> None:
        with pytest.raises(ConfigError, match=r"enable names 'ghost', which is not installed"):
            installed.load("ghost")

    def test_nobody_takes_the_place_of_another(self, installed: Installed) -> None:
        installed.add("first", "", entry="same")
        installed.add("second", "", owner="somebody", entry="same")
        made = PluginHost()
        made.load_entry_points(["same"])
        states = {info.distribution: (info.state, info.error) for info in made.infos()}
        assert states == {"goodbot": ("loaded", ""), "somebody": ("failed", "another plugin has this name")}

    def test_what_is_installed_here_loads(self) -> None:
        made = PluginHost()
        made.load_entry_points()
        ours = [info for info in made.infos() if info.distribution == "goodbot"]
        assert {(info.state, info.error) for info in ours} == {("loaded", "")}
        assert {"mlx", "torch"} <= set(made.backends())
        assert {"telegram", "terminal"} <= set(made.connectors())
        assert "binary" in made.reward_policies()
        assert made.models()["tiny"].demo


class TestRegistering:
    def test_each_kind_is_found_by_name(self) -> None:
        policy = RewardPolicy(name="kind", fn=lambda ratings: 1.0)
        model = ModelSpec(name="m", path=Path())
        made = host(
            plugin(
                register_connector=lambda: CONNECTOR,
                register_backend=lambda: BACKEND,
                register_server=lambda: SERVER,
                register_reward_policy=lambda: policy,
                register_model=lambda: model,
            )
        )
        assert made.servers()["abacus"] == SERVER
        assert made.connectors() == {"pigeon": CONNECTOR}
        assert made.backends() == {"abacus": BACKEND}
        assert made.reward_policies() == {"kind": policy}
        assert made.models() == {"m": model}

    def test_one_plugin_may_offer_several(self) -> None:
        both = [CONNECTOR, replace(CONNECTOR, name="owl")]
        made = host(plugin(register_connector=lambda: both))
        assert set(made.connectors()) == {"pigeon", "owl"}

    def test_two_of_one_name_are_an_error(self) -> None:
        made = host(*[plugin(register_connector=lambda: CONNECTOR) for _ in range(2)])
        with pytest.raises(ConfigError, match="two plugins register a ConnectorSpec named 'pigeon'"):
            made.connectors()

    def test_something_else_is_an_error(self) -> None:
        made = host(plugin(register_backend=lambda: "abacus"))
        with pytest.raises(ConfigError, match="register_backend returned str, not BackendSpec"):
            made.backends()

    def test_another_api_version_is_an_error(self) -> None:
        made = host(plugin(register_connector=lambda: replace(CONNECTOR, api_version=99)))
        with pytest.raises(ConfigError, match="'pigeon' is written for plugin API 99"):
            made.connectors()

    def test_a_command_is_added_to_the_program(self) -> None:
        def register_commands(subparsers: argparse._SubParsersAction[Any]) -> None:
            subparsers.add_parser("coo").set_defaults(run="pigeon:coo")

        parser = argparse.ArgumentParser()
        host(plugin(register_commands=register_commands)).add_commands(parser.add_subparsers())
        assert parser.parse_args(["coo"]).run == "pigeon:coo"


class TestBackends:
    def test_auto_takes_the_installed_one_of_the_highest_priority(self) -> None:
        better = replace(BACKEND, name="better", priority=5)
        absent = replace(BACKEND, name="absent", priority=9, requires=("no_such_module_here",))
        specs = {spec.name: spec for spec in (BACKEND, better, absent)}
        assert choose_backend(specs, "auto") is better
        assert choose_backend(specs, "abacus") is BACKEND
        with pytest.raises(MissingExtraError, match="the page of its plugin says how"):
            choose_backend(specs, "absent")
        with pytest.raises(ConfigError, match="'cuda'; there are: abacus, absent, better"):
            choose_backend(specs, "cuda")
        with pytest.raises(MissingExtraError):
            choose_backend({"absent": absent}, "auto")

    def test_missing_modules_are_found_without_an_import(self) -> None:
        assert missing_modules(("sys", "no_such_module_here.part")) == ("no_such_module_here.part",)


OBSERVATIONS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("on_turn", {"turn": TURN}),
    ("on_rating", {"event": RATING, "receipt": RECEIPT}),
    ("on_training_started", {"run": 1, "items": 40, "rewards": [0.5]}),
    ("on_training_progress", {"run": 1, "progress": {"step": 3}}),
    ("on_training_interrupted", {"run": 1}),
    ("on_training_finished", {"run": 1, "state": "activated", "reason": "It is better."}),
    ("on_adapter_activated", {"version": 2, "previous": 1}),
    ("on_forgotten", {"people": ["slack:U1"]}),
)


class Observer:
    """Sees everything."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Mapping[str, Any]]] = []

    @hookimpl
    def on_turn(self, turn: Turn) -> None:
        self.seen.append(("on_turn", {"turn": turn}))

    @hookimpl
    def on_rating(self, event: RatingEvent, receipt: Receipt) -> None:
        self.seen.append(("on_rating", {"event": event, "receipt": receipt}))

    @hookimpl
    def on_training_started(self, run: int, items: int, rewards: Sequence[float]) -> None:
        self.seen.append(("on_training_started", {"run": run, "items": items, "rewards": rewards}))

    @hookimpl
    async def on_training_progress(self, run: int, progress: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        self.seen.append(("on_training_progress", {"run": run, "progress": progress}))

    @hookimpl
    def on_training_interrupted(self, run: int) -> None:
        self.seen.append(("on_training_interrupted", {"run": run}))

    @hookimpl
    async def on_training_finished(self, run: int, state: str, reason: str) -> None:
        await asyncio.sleep(0)
        self.seen.append(("on_training_finished", {"run": run, "state": state, "reason": reason}))

    @hookimpl
    async def on_adapter_activated(self, version: int, previous: int) -> None:
        await asyncio.sleep(0)
        self.seen.append(("on_adapter_activated", {"version": version, "previous": previous}))

    @hookimpl
    def on_forgotten(self, people: Sequence[str]) -> None:
        self.seen.append(("on_forgotten", {"people": people}))


@pytest.mark.parametrize(("hook", "arguments"), OBSERVATIONS, ids=lambda value: str(value)[:24])
async def test_every_observer_sees_it_and_none_breaks_the_host(
    hook: str, arguments: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def failing() -> None:
        raise RuntimeError("out of corn")

    async def failing_later() -> None:
        raise RuntimeError("out of hay")

    first, last = Observer(), Observer()
    failures = [plugin(**{hook: function}) for function in (failing, failing_later)]
    made = host(first, *failures, last)
    await getattr(made, hook)(**arguments)
    assert first.seen == last.seen == [(hook, dict(arguments))]
    assert f"plugin plugin-1 failed in {hook}" in caplog.text
    assert f"plugin plugin-2 failed in {hook}" in caplog.text


async def test_an_observer_asks_only_for_what_it_needs() -> None:
    seen: list[str] = []
    made = host(plugin(on_training_finished=lambda state: seen.append(state)))
    await made.on_training_finished(1, "refused", "It is worse.")
    assert seen == ["refused"]


async def test_cancelling_passes_through_an_observer() -> None:
    async def waiting() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(host(plugin(on_turn=waiting)).on_turn(TURN))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


VETOES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("veto_capture", {"turn": TURN}),
    ("veto_training", {"items": 40}),
    ("veto_activation", {"version": 2, "metrics": {"margin": 0.1}}),
)


@pytest.mark.parametrize(("hook", "arguments"), VETOES, ids=lambda value: str(value)[:24])
class TestVetoes:
    def test_without_an_objection_it_goes_on(self, hook: str, arguments: dict[str, Any]) -> None:
        made = host(plugin(**{hook: lambda: None}), plugin(**{hook: lambda: ""}))
        assert getattr(made, hook)(**arguments) is None

    def test_one_objection_is_enough(self, hook: str, arguments: dict[str, Any]) -> None:
        made = host(plugin(**{hook: lambda: "not on Sundays"}), plugin(**{hook: lambda: None}))
        assert getattr(made, hook)(**arguments) == "not on Sundays"

    def test_a_guard_that_fails_refuses(self, hook: str, arguments: dict[str, Any]) -> None:
        def broken() -> str:
            raise RuntimeError

        made = host(plugin(**{hook: broken}))
        assert getattr(made, hook)(**arguments) == "the plugin plugin-0 failed while it was asked"

    def test_a_guard_that_answers_later_refuses(self, hook: str, arguments: dict[str, Any]) -> None:
        async def later() -> None:
            return None

        made = host(plugin(**{hook: later}))
        reason = getattr(made, hook)(**arguments)
        assert reason == "the plugin plugin-0 answers later, and a veto must answer at once"


def test_the_core_s_own_servers_are_a_plugin_like_others() -> None:
    """Whoever has installed goodbot anew after `pyproject.toml` changed finds them."""
    assert PluginHost().servers() == {}
    made = PluginHost()
    made.load_entry_points()
    assert {"embedded", "vllm", "ollama"} <= set(made.servers())
