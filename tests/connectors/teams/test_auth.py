# SPDX-License-Identifier: Apache-2.0
"""Who is let in, with what token, and to whom a token of ours is sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.api.events import MessageEvent, Reply
from goodbot.base.errors import FatalConnectorError, RetriableError
from goodbot.testing.clock import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.teams import SPEC
from goodbot_connectors.teams.config import TeamsSettings
from goodbot_connectors.teams.tokens import ServiceUrls
from goodbot_fakes.teams import APP_ID, FakeTeams, activities, forgeries
from yarl import URL

from tests.connectors.teams.peer import TeamsPeer
from tests.support import free_port, patience, require

require("botbuilder.core")

from goodbot_connectors.teams.connector import TeamsConnector  # noqa: E402  needs the SDK
from goodbot_connectors.teams.keys import SigningKeys  # noqa: E402

Json = dict[str, Any]


def hello(teams: FakeTeams, **other: Any) -> Json:
    """A message from Ada that has not been delivered yet."""
    ada = teams.person("Ada")
    told = teams.tenant.post(ada.chat, ada.account, activities.written("hello", mentioned=None))
    return {**activities.message(teams.tenant, teams.service_url, told), **other}


def refused(host: RecordingHost) -> bool:
    return host.attempts == [] and host.events == []


# Calls of Teams

FORGERIES = (
    "no header",
    "no token",
    "another scheme",
    "a word",
    "three parts of nothing",
    "two tokens",
    "another issuer",
    "the emulator's issuer",
    "a skill's token",
    "no issuer",
    "another audience",
    "no audience",
    "an empty audience",
    "expired ten minutes ago",
    "no expiry",
    "good in ten minutes",
    "another service",
    "no service",
    "an unknown key",
    "no key",
    "another key of the same name",
    "no signature",
    "another body",
    "no algorithm",
    "a shared secret",
)


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forged_call_is_refused(
    name: str, teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    header = forgeries(teams.identity, teams.service_url)[name]
    status, body = await teams.post(hello(teams), header)
    assert (status, body) == (401, "")
    assert refused(host)


def test_every_forgery_that_the_fake_knows_is_tried(teams: FakeTeams) -> None:
    assert set(FORGERIES) == set(forgeries(teams.identity, teams.service_url))


async def test_teamss_own_call_is_let_in(teams: FakeTeams, connector: Any, host: RecordingHost) -> None:
    status, _ = await teams.post(hello(teams), teams.identity.header(teams.service_url))
    assert status == 200
    assert len(host.events) == 1


@pytest.mark.parametrize(
    ("seconds", "status"),
    [({"exp": -240}, 200), ({"exp": -360}, 401), ({"nbf": 240}, 200), ({"nbf": 360}, 401)],
    ids=["ended 4 minutes ago", "ended 6 minutes ago", "begins in 4 minutes", "begins in 6 minutes"],
)
async def test_clocks_may_differ_by_five_minutes(
    seconds: dict[str, int], status: int, teams: FakeTeams, connector: Any
) -> None:
    now = int(teams.clock.now())
    claims = teams.identity.claims(teams.service_url)
    claims |= {name: now + value for name, value in seconds.items()}
    assert (await teams.post(hello(teams), teams.identity.sign(claims)))[0] == status


async def test_a_token_without_a_beginning_is_refused(
    teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    claims = teams.identity.claims(teams.service_url)
    del claims["nbf"]
    assert (await teams.post(hello(teams), teams.identity.sign(claims)))[0] == 401
    assert refused(host)


@pytest.mark.parametrize("endorsements", [[], ["webchat", "skype"]], ids=["none", "of others"])
async def test_a_key_that_is_not_endorsed_for_teams_is_none(
    endorsements: list[str], teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    teams.identity.endorsements = endorsements
    header = teams.identity.header(teams.service_url)
    assert (await teams.post(hello(teams), header))[0] == 401
    assert refused(host)


@pytest.mark.parametrize(
    "changed",
    [
        {"serviceUrl": None},
        {"serviceUrl": ""},
        {"serviceUrl": "https://smba.example/emea/"},
        {"channelId": "webchat"},
        {"channelId": "emulator"},
        {"channelId": None},
    ],
    ids=str,
)
async def test_a_good_token_for_another_activity_is_refused(
    changed: Json, teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    """Also where the token names the same service: a stranger's host is never called back."""
    for url in {teams.service_url, changed.get("serviceUrl") or teams.service_url}:
        status, _ = await teams.post(hello(teams, **changed), teams.identity.header(url))
        assert status == 401
    assert refused(host)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"nonsense", b"[" * 100_000, b'{"type": 1}'])
async def test_what_is_no_activity_is_a_bad_request(
    body: bytes, teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    headers = {"Authorization": teams.identity.header(teams.service_url), "Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(teams.endpoint, data=body, headers=headers) as answer,
    ):
        assert answer.status == 400
    assert refused(host)


@pytest.mark.parametrize("token", ["", "Bearer x.y.z"])
async def test_nothing_of_a_call_is_read_before_its_token(
    token: str, teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    """The answer comes though the body never does."""
    url = URL(teams.endpoint)
    assert url.host
    assert url.port
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = (f"POST {url.path} HTTP/1.1", f"Host: {url.host}", "Content-Type: application/json")
    head += ("Content-Length: 1000000", *([f"Authorization: {token}"] if token else []), "", "")
    writer.write("\r\n".join(head).encode())
    try:
        async with asyncio.timeout(patience(10)):
            assert (await reader.readline()).split()[1] == b"401"
    finally:
        writer.close()
    assert refused(host)


@pytest.mark.parametrize("body", [b"nonsense", b'{"type":"message","x":[' + b"1," * 260_000 + b"1]}"])
async def test_what_is_no_activity_is_refused_for_its_token_where_it_has_none(
    body: bytes, teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    status = {}
    for header in ("", teams.identity.header(teams.service_url)):
        headers = {"Content-Type": "application/json", **({"Authorization": header} if header else {})}
        async with (
            aiohttp.ClientSession() as http,
            http.post(teams.endpoint, data=body, headers=headers) as answer,
        ):
            status[bool(header)] = answer.status
    assert status == {False: 401, True: 400}, "and no more values are taken than anywhere else"
    assert refused(host)


async def test_only_json_is_read_and_only_at_one_path(teams: FakeTeams, connector: Any) -> None:
    async with aiohttp.ClientSession() as http:
        async with http.post(teams.endpoint, data="{}", headers={"Content-Type": "text/plain"}) as a:
            assert a.status == 415
        async with http.get(teams.endpoint) as b:
            assert b.status == 405
        async with http.post(f"{teams.endpoint}/more", json={}) as c:
            assert c.status == 404
            assert "aiohttp" not in str(c.headers)


async def test_refusals_do_not_fill_the_log(
    teams: FakeTeams, connector: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(20):
        await teams.post(hello(teams), "Bearer x.y.z")
    assert sum("refused" in record.message for record in caplog.records) == 1


async def test_another_tenant_gets_in_and_is_not_heard(
    teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    stranger = hello(teams)
    stranger["channelData"]["tenant"]["id"] = "0d5e5f0e-0000-4000-8000-00000000000c"
    status, _ = await teams.post(stranger, teams.identity.header(teams.service_url))
    assert status == 200
    assert refused(host)


# The keys


class Microsoft:
    """What is at the addresses of the OpenID documents, and how often it was read."""

    def __init__(self, clock: VirtualClock) -> None:
        self.teams = FakeTeams()
        self.reads = 0
        self.down = False
        self.empty = False
        self.keys = SigningKeys("https://keys.example/openid", self._fetch, clock)

    async def _fetch(self, url: str) -> Json:
        await asyncio.sleep(0)
        if self.down:
            raise RetriableError("nobody is there")
        if url.endswith("openid"):
            return {"jwks_uri": "https://keys.example/keys"}
        self.reads += 1
        return {} if self.empty else self.teams.identity.keys()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


async def test_keys_are_read_once_for_many_and_again_after_a_day(clock: VirtualClock) -> None:
    microsoft = Microsoft(clock)
    await asyncio.gather(*(microsoft.keys.get("key-1") for _ in range(5)))
    clock.advance(86_000)
    await microsoft.keys.get("key-1")
    assert microsoft.reads == 1
    clock.advance(500)
    await microsoft.keys.get("key-1")
    assert microsoft.reads == 2


async def test_a_new_key_is_looked_for_once_an_hour(clock: VirtualClock) -> None:
    microsoft = Microsoft(clock)
    await microsoft.keys.get("key-1")
    microsoft.teams.identity.rotate()
    for _ in range(3):
        with pytest.raises(PermissionError):
            await microsoft.keys.get("key-2")
    assert microsoft.reads == 1
    clock.advance(3600)
    await microsoft.keys.get("key-2")
    assert microsoft.reads == 2
    with pytest.raises(PermissionError):
        await microsoft.keys.get("key-1")


async def test_old_keys_do_while_microsoft_is_down_and_without_any_nobody_is_let_in(
    clock: VirtualClock,
) -> None:
    microsoft = Microsoft(clock)
    microsoft.down = True
    with pytest.raises(RetriableError):
        await microsoft.keys.get("key-1")
    microsoft.down = False
    clock.advance(11)
    await microsoft.keys.get("key-1")
    microsoft.down = True
    clock.advance(100_000)
    assert await microsoft.keys.get("key-1")


async def test_a_key_that_is_none_or_has_no_name_is_left_out(clock: VirtualClock) -> None:
    [good] = FakeTeams().identity.keys()["keys"]
    unnamed = {name: value for name, value in good.items() if name != "kid"}

    async def fetch(url: str) -> Json:
        broken = [{"kid": "a", "kty": "RSA"}, {"kid": "b"}, "c", {"kid": "d", "kty": "oct", "k": "A"}]
        return {"jwks_uri": "x", "keys": [*broken, unnamed, good]}

    keys = SigningKeys("https://keys.example/openid", fetch, clock)
    for name in ("a", "b", "c", "d", "", None):
        with pytest.raises(PermissionError):
            await keys.get(name)
    assert await keys.get(good["kid"])


async def test_an_answer_that_names_no_keys_takes_none_away(clock: VirtualClock) -> None:
    microsoft = Microsoft(clock)
    await microsoft.keys.get("key-1")
    microsoft.empty = True
    clock.advance(100_000)
    assert await microsoft.keys.get("key-1")
    microsoft.empty = False
    microsoft.teams.identity.rotate()
    clock.advance(11)
    assert await microsoft.keys.get("key-2"), "it is tried again soon"


async def test_while_the_keys_are_not_known_teams_is_asked_to_come_again(
    teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    teams.faults.network_is_down = True
    header = teams.identity.header(teams.service_url)
    assert (await teams.post(hello(teams), header))[0] == 503
    assert refused(host)
    assert "keys" in host.troubles[-1], "`goodbot status` says so"


# Our own token


async def test_a_token_that_is_not_taken_any_more_is_replaced(
    teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    teams.person("Ada").says("hello")
    [asked] = await host.received(MessageEvent)
    teams.identity.revoke()
    await connector.send(asked.channel, Reply(text="Here I am."))
    assert [m.text for m in teams.person("Ada").sees()] == ["Here I am."]


async def test_a_secret_that_has_run_out_is_told_until_a_token_comes_again(
    teams: FakeTeams, connector: Any, host: RecordingHost
) -> None:
    teams.person("Ada").says("hello")
    [asked] = await host.received(MessageEvent)
    password, teams.identity.password = teams.identity.password, "another one"
    teams.identity.revoke()
    with pytest.raises(FatalConnectorError):
        await connector.send(asked.channel, Reply(text="Here I am."))
    teams.person("Ada").says("are you there?")
    await host.received(MessageEvent, 2)
    await teams.settled()
    assert "GOODBOT_TEAMS_APP_PASSWORD" in host.troubles[-1], "`goodbot status` says so"
    teams.identity.password = password
    await connector.send(asked.channel, Reply(text="Here I am."))
    assert host.troubles[-1] == ""


async def test_no_token_goes_to_a_host_that_is_none_of_teamss(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, tmp_path: Path
) -> None:
    """Not even where the address was stored by an earlier goodbot with other settings."""
    first = TeamsConnector(host, peer.settings)
    await first.start()
    teams.person("Ada").says("hello")
    [asked] = await host.received(MessageEvent)
    await first.stop()
    known = {**vars(peer.settings), "service_urls": (), "port": free_port()}
    second = TeamsConnector(host, TeamsSettings(**known))
    await second.start()
    with pytest.raises(Exception, match="none of Teams's"):
        await second.send(asked.channel, Reply(text="A secret."))
    await second.stop()
    assert not teams.calls


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://smba.trafficmanager.net/emea/", True),
        ("https://smba.trafficmanager.net:443/teams/", True),
        ("https://smba.infra.gov.teams.microsoft.us/gov/", True),
        ("http://smba.trafficmanager.net/emea/", False),
        ("https://smba.trafficmanager.net:8443/", False),
        ("https://smba.trafficmanager.net.evil.example/", False),
        ("https://evil.example/smba.trafficmanager.net/", False),
        ("https://smba.trafficmanager.net@evil.example/", False),
        ("https://user@smba.trafficmanager.net/", False),
        ("https://own.example/bot/", True),
        ("https://own.example:444/bot/", False),
        ("http://own.example/", False),
        ("https://[half", False),
        ("", False),
        ("smba.trafficmanager.net", False),
        ("http://127.0.0.1:3978/", False),
    ],
)
def test_addresses_are_known_by_scheme_host_and_port(url: str, allowed: bool) -> None:
    settings = TeamsSettings(app_id=APP_ID, service_urls=("https://own.example/",))
    assert ServiceUrls(settings).allows(url) is allowed


# Without authentication


async def test_without_an_app_id_it_does_not_start(host: RecordingHost, peer: TeamsPeer) -> None:
    connector = TeamsConnector(host, TeamsSettings(port=free_port()))
    with pytest.raises(FatalConnectorError, match="app_id"):
        await connector.start()
    await connector.stop()


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Any]:
    """One call to a connector that believes everybody on this machine."""

    async def made(activity: Json, **headers: str) -> tuple[int, list[Any]]:
        host = RecordingHost(SPEC, state_dir=tmp_path)
        connector = TeamsConnector(host, TeamsSettings(insecure_local=True, port=0))
        await connector.start()
        try:
            url = f"http://127.0.0.1:{connector.port}/api/messages"
            async with (
                aiohttp.ClientSession() as http,
                http.post(url, json=activity, headers=headers) as answer,
            ):
                return answer.status, host.events
        finally:
            await connector.stop()
            await host.close()

    return made


async def test_the_playground_is_believed(teams: FakeTeams, call: Callable[..., Any]) -> None:
    status, events = await call(hello(teams))
    assert (status, len(events)) == (200, 1)


@pytest.mark.parametrize(
    ("changed", "headers", "status"),
    [
        ({"serviceUrl": "https://smba.trafficmanager.net/emea/"}, {}, 401),
        ({"serviceUrl": "http://127.0.0.1.evil.example/"}, {}, 401),
        ({}, {"Host": "goodbot.example"}, 403),
        ({}, {"Host": "evil.example:3978"}, 403),
        ({}, {"X-Forwarded-For": "203.0.113.7"}, 403),
    ],
    ids=["Teams itself", "a stranger", "a tunnel", "a page of a browser", "a proxy's own Host"],
)
async def test_without_authentication_nothing_leaves_or_enters_this_machine(
    changed: Json, headers: dict[str, str], status: int, teams: FakeTeams, call: Callable[..., Any]
) -> None:
    assert await call(hello(teams, **changed), **headers) == (status, [])
