# SPDX-License-Identifier: Apache-2.0
"""Who may call: each forged token is refused over the wire, and leaves nothing in the database."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.connector import Connector
from goodbot.api.events import MessageEvent
from goodbot.base.clock import SystemClock
from goodbot.base.errors import FatalConnectorError
from goodbot.daemon.app import App
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors import teams as plugin
from goodbot_connectors.teams import SPEC
from goodbot_connectors.teams.config import TeamsSettings
from goodbot_fakes.teams import FakeTeams, activities, forgeries

from tests.connectors.teams.conftest import VIRTUAL
from tests.connectors.teams.peer import TeamsPeer
from tests.core.builders import Fake, rows
from tests.end_to_end.beside import goodbot

Json = dict[str, Any]
HOUR = 3600


@pytest.fixture
async def app(peer: TeamsPeer, teams: FakeTeams, tmp_path: Path) -> AsyncIterator[App]:
    """A whole goodbot on a fake model."""
    async with goodbot(
        tmp_path / "bot", plugin, section(peer), peer.environ, fake=Fake(tmp_path / "fake")
    ) as app:
        yield app


def section(peer: TeamsPeer) -> Json:
    """`[connectors.teams]` of Ada's bot."""
    settings = dataclasses.asdict(peer.settings)
    changed = ("app_id", "tenant", "port", "service_urls", "openid_metadata", "token_endpoint")
    found = {name: settings[name] for name in changed}
    return found | {
        "service_urls": list(found["service_urls"]),
        "owners": [peer.people["ada"].id],
        "edit_interval": 0.05,
        "stream_interval": 0.02,
    }


def said(teams: FakeTeams, text: str = "hello") -> Json:
    """What Teams would tell of Ada's message, without telling it."""
    ada = teams.person("Ada")
    message = teams.tenant.post(ada.chat, ada.account, activities.written(text))
    return activities.message(teams.tenant, teams.service_url, message)


async def stored(app: App) -> list[tuple[Any, ...]]:
    """Everything that somebody's words or acts would be found in."""
    found: list[tuple[Any, ...]] = []
    for table in ("events", "inbox", "turns", "messages", "labels"):
        found += await rows(app.store, f"SELECT '{table}', count(*) FROM {table}")
    return found


async def test_no_forged_token_is_let_in_and_none_leaves_a_row(
    teams: FakeTeams, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    before, let_in = await stored(app), list[str]()
    for name, header in forgeries(teams.identity, teams.service_url).items():
        status, body = await teams.post(said(teams, "a secret"), header)
        if status not in (401, 403) or "Traceback" in body:
            let_in.append(f"{name}: {status}")
        assert header.removeprefix("Bearer ") not in caplog.text or len(header) < 20, name
    assert let_in == []
    assert await stored(app) == before
    assert "a secret" not in caplog.text
    status, _ = await teams.post(said(teams), teams.identity.header(teams.service_url))
    assert status == 200
    assert await stored(app) != before


async def test_clocks_may_differ_by_five_minutes_and_no_more(
    teams: FakeTeams, host: RecordingHost, connector: Connector
) -> None:
    now = int(SystemClock().now())
    cases = {
        200: [{"exp": now - 240, "nbf": now - HOUR}, {"nbf": now + 240}],
        401: [{"exp": now - 360, "nbf": now - HOUR}, {"nbf": now + 360}],
    }
    for expected, windows in cases.items():
        for window in windows:
            header = teams.identity.sign(teams.identity.claims(teams.service_url, **window))
            status, _ = await teams.post(said(teams), header)
            assert status == expected, window


@pytest.mark.parametrize("endorsements", [["webchat", "directline"], []])
async def test_a_key_that_does_not_speak_for_teams_is_refused(
    teams: FakeTeams, host: RecordingHost, connector: Connector, endorsements: list[str]
) -> None:
    teams.identity.endorsements = endorsements
    status, _ = await teams.post(said(teams), teams.identity.header(teams.service_url))
    assert status in (401, 403)
    assert host.attempts == []


@pytest.mark.parametrize("field", ["serviceUrl", "channelId"])
async def test_an_activity_from_elsewhere_is_refused_with_a_good_token(
    teams: FakeTeams, host: RecordingHost, connector: Connector, field: str
) -> None:
    """Our answer, and our access token with it, would go to that address."""
    for value in ("https://smba.example/emea/", "http://169.254.169.254/", "", None):
        activity = said(teams) | {field: value}
        status, _ = await teams.post(activity, teams.identity.header(value or teams.service_url))
        assert status in (400, 401, 403), value
    assert host.attempts == []
    assert teams.called("send") == []


async def test_another_organisation_s_people_are_strangers(
    teams: FakeTeams, host: RecordingHost, connector: Connector
) -> None:
    activity, other = said(teams), "0d5e5f0e-0000-4000-8000-0000000000ff"
    activity["channelData"]["tenant"]["id"] = activity["conversation"]["tenantId"] = other
    status, _ = await teams.post(activity, teams.identity.header(teams.service_url))
    assert status in (200, 403)
    assert host.events == []


@VIRTUAL
async def test_new_keys_are_asked_for_when_one_is_met_but_not_again_and_again(
    teams: FakeTeams, host: RecordingHost, connector: Connector, peer: TeamsPeer
) -> None:
    assert isinstance(teams.clock, VirtualClock)
    await peer.say("with the first key")
    await host.received(MessageEvent)
    teams.clock.advance(2 * HOUR)
    teams.identity.rotate()
    await peer.say("with the second")
    await host.received(MessageEvent, 2)
    fetched = teams.identity.fetched
    for _ in range(5):
        header = teams.identity.sign(teams.identity.claims(teams.service_url), kid="key-0")
        status, _ = await teams.post(said(teams), header)
        assert status in (401, 403)
    assert teams.identity.fetched == fetched, "strangers cannot make us ask"


async def test_without_an_app_id_it_does_not_start(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost
) -> None:
    """The SDK would switch every check off."""
    peer.settings = TeamsSettings(port=peer.settings.port)
    with pytest.raises(FatalConnectorError, match="app_id"):
        await build(SPEC, host, peer).start()
    with pytest.raises(ValueError, match="insecure_local"):
        TeamsSettings(app_id="6b00d807", insecure_local=True)


async def test_an_access_token_that_is_no_good_any_more_is_asked_for_again(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    from goodbot.api.events import Reply

    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    teams.identity.revoke()
    await connector.send(asked.channel, Reply(text="Hi."))
    assert [post.text for post in await peer.posts()] == ["Hi."]
