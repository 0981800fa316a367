# SPDX-License-Identifier: Apache-2.0
"""What runs beside the bot: it hears what happens, and its failure is its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.feature import Feature, FeatureHost, FeatureSpec
from goodbot.api.plugins import PluginHost
from goodbot.api.setup import CheckState
from goodbot.api.texts import reworded
from goodbot.base.errors import ConfigError, MissingExtraError, unexpected
from goodbot.cli.backup.authority import tokens
from goodbot.cli.doctor import daemon
from goodbot.testing import VirtualClock

from tests.core.builders import open_bot, until
from tests.core.cli.doctor.examining import examined


@dataclass(frozen=True, kw_only=True, slots=True)
class LampSettings:
    """How a lamp burns."""

    fails: bool = False


class Lamp(Feature):
    """Keeps what it hears."""

    heard: list[tuple[str, str]]
    works: asyncio.Event

    def __init__(self, host: FeatureHost, settings: Any) -> None:
        super().__init__(host, settings)
        LAMPS.append(self)
        self.heard, self.works = [], asyncio.Event()

    async def run(self) -> None:
        self.works.set()
        if self.settings.fails:
            raise ValueError("planted")
        try:
            await asyncio.Event().wait()
        finally:
            self.works.clear()

    @hookimpl
    def on_answer(self, connector: str, outcome: str, seconds: float) -> None:
        assert 0 <= seconds < 600
        self.heard.append((connector, outcome))


LAMPS: list[Lamp] = []
HALF = FeatureSpec(
    name="half", factory="half_a_lamp:Lamp", settings=LampSettings, requires=("half_there",), extra="otel"
)
SPEC = FeatureSpec(name="lamp", factory=f"{__name__}:Lamp", settings=LampSettings, secrets=("LAMP_KEY",))


class HalfPlugin:
    """Registers one that needs more than there is."""

    @hookimpl
    def register_feature(self) -> FeatureSpec:
        return HALF


class LampPlugin:
    """Registers the lamp."""

    @hookimpl
    def register_feature(self) -> FeatureSpec:
        return SPEC


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMP_KEY", "a key")
    monkeypatch.setenv("OTHER_KEY", "not for lamps")
    LAMPS.clear()


def bot(home: Path, clock: VirtualClock | None = None, **lamp: Any) -> Any:
    return open_bot(home, extra=(LampPlugin(),), clock=clock, sections={"features": {"lamp": lamp}})


async def test_it_hears_works_as_long_as_goodbot_runs_and_has_its_own_secrets(tmp_path: Path) -> None:
    async with bot(tmp_path) as one:
        [lamp] = LAMPS
        await until(lamp.works.is_set)
        await one.say("Hello?")
        one.fake.set(generate="die")
        await one.say("Hello again?")
        await until(lambda: lamp.heard == [("loopback", "sent"), ("loopback", "no_model")])
        assert lamp.host.secrets.get("LAMP_KEY").reveal() == "a key"
        with pytest.raises(KeyError):
            lamp.host.secrets.get("OTHER_KEY")
        assert (await lamp.host.figures()).parts["store"]
    assert not lamp.works.is_set()


async def test_without_its_section_it_is_not_even_made(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(LampPlugin(),)):
        assert LAMPS == []


async def test_26_11_one_that_fails_is_told_and_started_again_ever_more_slowly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One exception ended it for good, and `status` did not know."""
    clock = VirtualClock(waits=True)
    async with bot(tmp_path, clock=clock, fails=True) as one:
        await until(lambda: "the feature lamp" in caplog.text)
        assert (await one.say("Hello?")).text
        told = "lamp: it has failed and is started again: ValueError: planted"
        assert told in await one.command("status")
        assert reworded(one.app.connectors.troubles["lamp"], "de").startswith("es ist gescheitert und")
        [lamp], looks = LAMPS, (await one.status())["connectors"]
        checked = await daemon.daemon(examined(tmp_path, "[features.lamp]\n", daemon={"connectors": looks}))
        assert [check.state for check in checked if check.part == "lamp"] == [CheckState.FAIL]
        for pause in (1, 2, 4):
            lamp.works.clear()
            clock.advance(pause - 0.5)
            await asyncio.sleep(0.01)
            assert not lamp.works.is_set()
            clock.advance(0.5)
            await until(lamp.works.is_set)
        assert told in await one.command("status"), "it is no better while it fails again and again"
        lamp.settings = LampSettings()
        lamp.works.clear()
        clock.advance(8)
        await until(lamp.works.is_set)
        assert told in await one.command("status"), "for a minute it might fail again"
        clock.advance(60)
        await until(lambda: "lamp" not in one.app.connectors.troubles)
        assert "lamp" not in await one.command("status")


async def test_26_11_of_several_failures_at_once_the_first_is_named() -> None:
    assert unexpected(ExceptionGroup("two", [KeyError("id"), ValueError("x")])) == "KeyError: 'id'"


@pytest.mark.parametrize(("features", "said"), [({"lamb": {}}, "lamp"), ({"lamp": {"fail": True}}, "fails")])
async def test_a_mistake_in_the_config_ends_the_start_with_what_was_meant(
    tmp_path: Path, features: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        async with open_bot(tmp_path, extra=(LampPlugin(),), sections={"features": features}):
            pass


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("from half_there.rest import Lamp", MissingExtraError),
        ("from half_there import Lamp", MissingExtraError),
        ("import a_slip_of_its_own", ModuleNotFoundError),
    ],
)
async def test_one_whose_packages_are_there_in_part_says_what_to_install(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    error: type[Exception],
) -> None:
    folder = tmp_path_factory.mktemp("packages")
    (folder / "half_there").mkdir()
    (folder / "half_there/__init__.py").touch()
    (folder / "half_a_lamp.py").write_text(line, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(error):
        async with open_bot(tmp_path, extra=(HalfPlugin(),), sections={"features": {"half": {}}}):
            pass


async def test_without_its_secret_it_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMP_KEY")
    with pytest.raises(ConfigError, match="LAMP_KEY"):
        async with bot(tmp_path):
            pass


def test_a_restore_asks_before_its_secret_goes_elsewhere() -> None:
    host = PluginHost()
    host.register(LampPlugin(), "lamp")
    assert tokens(host)["features", "lamp"] == ("LAMP_KEY",)
