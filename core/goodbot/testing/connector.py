# SPDX-License-Identifier: Apache-2.0
"""What every connector must do. Subclass `ConnectorContract` and give it two fixtures.

::

    from goodbot.testing.connector import ConnectorContract

    class TestMyConnector(ConnectorContract):
        @pytest.fixture
        def plugin(self):
            return "my_package.my_connector"  # the module that pluggy gets

        @pytest.fixture
        async def platform(self):
            ...  # a PlatformDriver; `yield` it

The tests need pytest-asyncio (`asyncio_mode = "auto"`). A test of a capability that the spec does
not declare is skipped, and the skip says so.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import logging
import subprocess
import sys
from pathlib import Path
from traceback import format_exception

import pytest

from goodbot.api.connector import API_VERSION, METHODS, Capability, Connector, ConnectorSpec
from goodbot.api.events import MessageEvent
from goodbot.base.errors import FatalConnectorError
from goodbot.base.installed import missing_modules
from goodbot.testing.connector_base import QUIET, build
from goodbot.testing.connector_events import EventsContract
from goodbot.testing.connector_feedback import FeedbackContract
from goodbot.testing.connector_ratings import RatingsContract
from goodbot.testing.connector_replies import RepliesContract
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import PlatformDriver


class ConnectorContract(EventsContract, RatingsContract, FeedbackContract, RepliesContract):
    """The whole suite: the package and its life here, the rest in the parts."""

    def test_the_plugin_module_imports_no_sdk(self, plugin: str, spec: ConnectorSpec) -> None:
        code = f"import sys, {plugin}; print(*[name for name in {spec.requires!r} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "", "a missing extra would be a traceback, not a sentence"

    def test_the_spec_is_sane(self, spec: ConnectorSpec) -> None:
        assert spec.name.isidentifier()
        assert spec.name.islower()
        assert spec.api_version == API_VERSION
        assert spec.message_limit >= 200
        assert dataclasses.is_dataclass(spec.settings)
        settings = spec.settings()  # all settings have defaults
        with pytest.raises(dataclasses.FrozenInstanceError):
            settings.any_name = None
        if missing := missing_modules(spec.requires):
            pytest.skip(f"{missing[0]} is not installed")
        module, _, name = spec.factory.partition(":")
        factory = getattr(importlib.import_module(module), name)
        assert issubclass(factory, Connector)
        assert factory.spec == spec
        for capability in spec.capabilities:
            for method in METHODS.get(capability, ()):
                own = getattr(factory, method) is not getattr(Connector, method)
                assert own, f"{capability.name} is declared, and `{method}` is not overridden"
        answers = factory.routes is not Connector.routes
        assert answers == (Capability.ROUTES in spec.capabilities), "is it to be reached, or not?"

    async def test_start_and_stop_are_idempotent(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        account = connector.account
        assert account
        await connector.start()
        await platform.say("once")
        await host.received(MessageEvent)
        await connector.stop()
        await connector.stop()
        await platform.say("too late")
        await asyncio.sleep(QUIET)
        assert [event.text for event in await host.received(MessageEvent)] == ["once"]
        assert host.failures == []

    async def test_a_missing_secret_is_named(
        self, spec: ConnectorSpec, platform: PlatformDriver, tmp_path: Path
    ) -> None:
        if not spec.secrets:
            pytest.skip(f"{spec.name} needs no secret")
        host = RecordingHost(spec, state_dir=tmp_path)
        connector = build(spec, host, platform)
        with pytest.raises(FatalConnectorError, match="|".join(spec.secrets)):
            await connector.start()
        await connector.stop()
        await host.close()

    async def test_a_wrong_secret_is_named_and_not_shown(
        self, spec: ConnectorSpec, platform: PlatformDriver, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        if not spec.secrets:
            pytest.skip(f"{spec.name} needs no secret")
        caplog.set_level(0)
        host = RecordingHost(spec, state_dir=tmp_path, environ=platform.wrong_environ)
        connector = build(spec, host, platform)
        with pytest.raises(FatalConnectorError, match="|".join(spec.secrets)) as caught:
            await connector.start()
        await connector.stop()
        await host.close()
        # Without the lines of code: the name of this very test has words that a made-up secret may have.
        shown = caplog.text + "".join(format_exception(caught.value, limit=0))
        assert not [name for name, secret in platform.wrong_environ.items() if secret in shown], shown

    async def test_the_program_s_own_log_is_left_as_it_is(
        self,
        spec: ConnectorSpec,
        host: RecordingHost,
        platform: PlatformDriver,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        own = logging.getLogger("goodbot")
        monkeypatch.setattr(own, "level", logging.DEBUG)
        monkeypatch.setattr(own, "filters", [])
        connector = build(spec, host, platform)
        await connector.start()
        await platform.say("hello")
        await host.received(MessageEvent)
        await connector.stop()
        assert (own.level, own.filters, own.disabled) == (logging.DEBUG, [], False)

    async def test_no_secret_is_logged(
        self,
        spec: ConnectorSpec,
        host: RecordingHost,
        platform: PlatformDriver,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(0)
        connector = build(spec, host, platform)
        await connector.start()
        await platform.say("hello")
        await host.received(MessageEvent)
        await connector.stop()
        assert not any(secret in caplog.text for secret in platform.environ.values())
