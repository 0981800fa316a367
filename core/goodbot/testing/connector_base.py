# SPDX-License-Identifier: Apache-2.0
"""The ground that the connector suite stands on: fixtures, and looks at the far side."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest

from goodbot.api.connector import Capability, Connector, ConnectorSpec
from goodbot.api.events import Button, ChannelKind, MessageEvent
from goodbot.testing.host import RecordingHost
from goodbot.testing.patience import patience
from goodbot.testing.platform import PlatformDriver

T = TypeVar("T")

GOOD = Button(action="good", label="👍 Good")
BAD = Button(action="bad", label="👎 Bad")
QUIET = 0.4
"""Seconds after which we believe that nothing more comes."""


async def eventually(look: Callable[[], Awaitable[T]], seconds: float = 10.0) -> T:
    """The first truthy thing that `look` sees."""
    async with asyncio.timeout(patience(seconds)):
        while not (seen := await look()):
            await asyncio.sleep(0.02)
    return seen


def load_spec(plugin: str) -> ConnectorSpec:
    """The spec that a plugin module registers."""
    spec = importlib.import_module(plugin).register_connector()
    assert isinstance(spec, ConnectorSpec)
    return spec


def build(spec: ConnectorSpec, host: RecordingHost, platform: PlatformDriver) -> Connector:
    """A connector as the host builds it, with what it answers over HTTP."""
    module, _, name = spec.factory.partition(":")
    connector = getattr(importlib.import_module(module), name)(host, platform.settings)
    assert isinstance(connector, Connector)
    host.mount(connector)
    return connector


def words(text: str) -> str:
    """Text without white space and invisible joiners, for comparisons across a platform."""
    return "".join(c for c in text if not c.isspace() and c not in "\u200b\u2060")


class ConnectorFixtures:
    """What the tests of the suite get; `plugin` and `platform` are the connector's to give."""

    mentions: ClassVar[tuple[str, ...]] = ("@everyone", "@channel", "@bob")
    """Words of an answer that would notify somebody there; none of them may."""

    @pytest.fixture
    def plugin(self) -> str:
        """The module that registers the connector."""
        raise NotImplementedError("override the fixture `plugin`")

    @pytest.fixture
    async def platform(self) -> PlatformDriver:
        """The far side."""
        raise NotImplementedError("override the fixture `platform`")

    @pytest.fixture
    def spec(self, plugin: str) -> ConnectorSpec:
        return load_spec(plugin)

    @pytest.fixture
    async def host(
        self, spec: ConnectorSpec, platform: PlatformDriver, tmp_path: Path
    ) -> AsyncIterator[RecordingHost]:
        host = RecordingHost(spec, state_dir=tmp_path, environ=platform.environ)
        yield host
        await host.close()

    @pytest.fixture
    async def connector(
        self, spec: ConnectorSpec, host: RecordingHost, platform: PlatformDriver
    ) -> AsyncIterator[Connector]:
        """Started, and stopped afterwards."""
        connector = build(spec, host, platform)
        await connector.start()
        yield connector
        await connector.stop()

    def need(self, spec: ConnectorSpec, capability: Capability) -> None:
        """Skip, with the reason, what the connector does not claim to do."""
        if capability not in spec.capabilities:
            pytest.skip(f"{spec.name} declares no {capability.name}")

    def need_room(self, platform: PlatformDriver, kind: ChannelKind) -> None:
        """Skip, with the reason, what needs a room of a kind that this platform does not have."""
        if kind not in platform.rooms:
            pytest.skip(f"this platform has no {kind} rooms")

    async def asked(self, host: RecordingHost, platform: PlatformDriver) -> MessageEvent:
        """Ask a first question in private, which opens the chat, and return its event."""
        await platform.say("hello")
        [event] = await host.received(MessageEvent)
        return event
