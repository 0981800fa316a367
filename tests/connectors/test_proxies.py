# SPDX-License-Identifier: Apache-2.0
"""Platforms through the proxy of the environment: each by the same rule, and this machine by none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.api.events import MessageEvent
from goodbot.api.setup import ConnectorSetup
from goodbot.base.clock import SystemClock
from goodbot.base.errors import ConnectorError, FatalConnectorError
from goodbot.config.secrets import Secret, Secrets
from goodbot.testing.connector_base import build, load_spec
from goodbot.testing.host import RecordingHost
from goodbot_connectors.kit.dates import Dates
from goodbot_fakes.discord import FakeDiscord
from goodbot_fakes.slack import FakeSlack
from goodbot_fakes.teams import FakeTeams
from goodbot_fakes.telegram import FakeTelegram

from tests.connectors import proxying
from tests.connectors.proxying import Proxy
from tests.support import patience, require

GUID = "11111111-1111-1111-1111-11111111111"
SECRETS = {
    "telegram": {"GOODBOT_TELEGRAM_TOKEN": "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawAA"},
    "slack": {
        "GOODBOT_SLACK_BOT_TOKEN": "xoxb-1111111111-2222222222-aaaaaaaaaaaaaaaaaaaaaaaa",
        "GOODBOT_SLACK_APP_TOKEN": "xapp-1-A0AAAAAAA-1111111111-" + "a" * 64,
    },
    "discord": {"GOODBOT_DISCORD_TOKEN": "MTE3MjAwMDAwMDAwMDAwMDAw.GaBcDe." + "a" * 38},
    "teams": {"GOODBOT_TEAMS_APP_PASSWORD": "x" * 40},
}
SETTINGS: Mapping[str, dict[str, Any]] = {"teams": {"app_id": f"{GUID}1", "tenant": f"{GUID}2"}}
HOSTS = {
    "telegram": "api.telegram.org",
    "slack": "slack.com",
    "discord": "discord.com",
    "teams": "login.microsoftonline.com",
}
PLATFORMS = pytest.mark.parametrize("name", list(SECRETS))


def setup_of(name: str) -> ConnectorSetup:
    require(proxying.PLATFORMS[name])
    spec = load_spec(f"goodbot_connectors.{name}")
    module, _, made = spec.setup.partition(":")
    settings = spec.settings(**SETTINGS.get(name, {}))
    return getattr(import_module(module), made)(Secrets(spec.secrets, SECRETS[name]), settings)


@PLATFORMS
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
async def test_a_platform_is_asked_through_the_proxy_with_its_credentials(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = setup_of(name)
    async with proxying.proxy(monkeypatch, variable) as proxy:
        with pytest.raises(ConnectorError) as told:
            await setup.identify()
    assert proxy.asked[0] == f"CONNECT {HOSTS[name]}:443"
    assert proxying.PASSWORD not in str(told.value)


@PLATFORMS
@pytest.mark.parametrize("url", ["socks5://ada:hush@127.0.0.1:9", "ftp://ada:hush@127.0.0.1:9"])
async def test_what_is_no_http_proxy_is_told_in_a_sentence(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = setup_of(name)
    async with proxying.proxy(monkeypatch):
        monkeypatch.setenv("ALL_PROXY", url)
        with pytest.raises(FatalConnectorError, match="set HTTPS_PROXY to http://") as told:
            await setup.identify()
    assert "hush" not in str(told.value)


@PLATFORMS
async def test_no_proxy_names_what_is_reached_directly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that does not exist, for nothing may leave this machine."""
    setup = setup_of(name)
    addresses = setup.addresses()
    from goodbot.base.proxies import proxy_url

    async with proxying.proxy(monkeypatch, "HTTPS_PROXY") as proxy:
        assert [proxy_url(address) for address in addresses] == [proxy.url] * len(addresses)
        monkeypatch.setenv(
            "NO_PROXY",
            "telegram.org, .slack.com,slack.com discord.com,discord.gg,"
            ".microsoftonline.com,botframework.com:443,*.trafficmanager.net",
        )
        assert [proxy_url(address) for address in addresses] == [None] * len(addresses)


@pytest.fixture
async def proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxy]:
    async with proxying.proxy(monkeypatch, "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY") as proxy:
        yield proxy


def named(url: str, name: str) -> str:
    """An address of this machine by a name that only the proxy knows."""
    return url.replace("127.0.0.1", name, 1)


async def hears(plugin: str, driver: Any, tmp_path: Path) -> None:
    """Start the connector, and take a message in."""
    spec = load_spec(plugin)
    host = RecordingHost(spec, state_dir=tmp_path, environ=driver.environ)
    connector = build(spec, host, driver)
    async with asyncio.timeout(patience(60)):
        await connector.start()
        try:
            await driver.say("hello")
            [event] = await host.received(MessageEvent)
            assert event.text == "hello"
        finally:
            await connector.stop()
            await host.close()


@pytest.mark.parametrize("by_name", [True, False])
async def test_slack_works_through_the_proxy_and_never_asks_it_for_this_machine(
    proxy: Proxy, tmp_path: Path, by_name: bool
) -> None:
    require("slack_bolt")
    from tests.connectors.slack.peer import SlackPeer

    async with FakeSlack() as slack:
        if by_name:
            slack.url = named(slack.url, "slack.test")
        await hears("goodbot_connectors.slack", SlackPeer(slack), tmp_path)
    asked = [line.partition("?")[0] for line in proxy.asked]
    api, link = (f"GET {slack.url}/api/auth.test", f"GET {slack.url}/link/".replace("GET http", "GET ws"))
    assert ({api, link} <= set(asked)) if by_name else (asked == []), asked
    assert not proxy.refused


@pytest.mark.parametrize("by_name", [True, False])
async def test_discord_works_through_the_proxy_and_never_asks_it_for_this_machine(
    proxy: Proxy, tmp_path: Path, by_name: bool
) -> None:
    require("discord")
    from dataclasses import replace

    from tests.connectors.discord.peer import DiscordPeer

    async with FakeDiscord() as discord:
        peer = DiscordPeer(discord)
        if by_name:
            peer.settings = replace(
                peer.settings,
                api_base=named(discord.api, "discord.test"),
                gateway=named(discord.gateway_url, "discord.test"),
            )
        await hears("goodbot_connectors.discord", peer, tmp_path)
    if not by_name:
        assert proxy.asked == []
        return
    assert proxy.asked[0] == f"GET {named(discord.api, 'discord.test')}/users/@me"
    gateway = named(discord.gateway_url, "discord.test")
    assert any(line.startswith(f"GET {gateway}?") for line in proxy.asked), proxy.asked


@pytest.mark.parametrize("by_name", [True, False])
async def test_telegram_works_through_the_proxy_and_never_asks_it_for_this_machine(
    proxy: Proxy, tmp_path: Path, by_name: bool
) -> None:
    require("telegram")
    from dataclasses import replace

    from tests.connectors.telegram.fake import Driver

    async with FakeTelegram() as fake:
        driver = Driver(fake)
        if by_name:
            base = named(driver.settings.api_base, "telegram.test")
            driver.settings = replace(driver.settings, api_base=base)
        await hears("goodbot_connectors.telegram", driver, tmp_path)
    assert bool(proxy.asked) == by_name


async def test_the_sockets_of_slack_and_discord_go_through_a_tunnel(proxy: Proxy) -> None:
    require("discord")
    from goodbot_connectors.discord.api import Api
    from goodbot_connectors.discord.config import TOKEN

    async with FakeDiscord() as discord:
        api = Api(Secret(SECRETS["discord"][TOKEN]), SystemClock(), discord.api)
        with pytest.raises(FatalConnectorError):
            await api.open()  # the fake knows another token; now there is a session
        assert proxy.asked == []
        with pytest.raises(aiohttp.ClientHttpProxyError):
            await api.http.ws_connect("wss://gateway.discord.gg/?v=10")
        await api.close()
    assert proxy.asked == ["CONNECT gateway.discord.gg:443"]


async def test_teams_goes_through_the_proxy_for_tokens_keys_and_answers(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("botbuilder.core")
    from goodbot_connectors.teams.config import TeamsSettings
    from goodbot_connectors.teams.keys import METADATA
    from goodbot_connectors.teams.references import Reference
    from goodbot_connectors.teams.wire import Wire, fetch

    async with aiohttp.ClientSession() as session:
        with pytest.raises(ConnectorError):
            await fetch(session, METADATA)
    async with FakeTeams() as teams:
        settings = TeamsSettings(
            app_id=f"{GUID}1", tenant=teams.tenant.id, token_endpoint=teams.token_endpoint
        )
        wire = Wire(settings, Secret("x" * 40), SystemClock(), lambda _: None, Dates(SystemClock()))
        wire._token._token, wire._token._until = "t", 1e18  # type: ignore[union-attr]
        place = Reference(
            service_url="https://smba.trafficmanager.net/emea/",
            conversation="19:1",
            kind="channel",
            tenant="t",
            bot="b",
        )
        with pytest.raises(ConnectorError):
            await wire.send(place, {"type": "message", "text": "4"})
        await wire.close()
    assert proxy.asked == ["CONNECT login.botframework.com:443", "CONNECT smba.trafficmanager.net:443"]
