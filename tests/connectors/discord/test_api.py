# SPDX-License-Identifier: Apache-2.0
"""REST calls: discord.py's counting of limits with our own patience, and errors that say what to do."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.config.secrets import Secret
from goodbot.testing.clock import VirtualClock
from goodbot_connectors.discord.config import TOKEN as NAME
from goodbot_connectors.kit.backoff import FloodError
from goodbot_fakes.discord import TOKEN, WRONG_TOKEN, Channel, FakeDiscord, RateLimits

from tests.support import require

require("discord")

from goodbot_connectors.discord.api import Api, RefusedError  # noqa: E402  needs discord.py

SEND = ("POST", "/channels/{channel_id}/messages")
ROUTE = " ".join(SEND)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord(limits=RateLimits()) as discord:
        yield discord


@pytest.fixture
def lab(discord: FakeDiscord) -> Channel:
    return discord.channel("lab", discord.guild("The lab", [discord.person("ada")]))


@pytest.fixture
async def api(discord: FakeDiscord, clock: VirtualClock) -> AsyncIterator[Api]:
    api = Api(Secret(TOKEN), clock, discord.api)
    await api.open()
    yield api
    await api.close()


async def send(api: Api, channel: Channel, **options: Any) -> None:
    await api.call(*SEND, body={"content": "x"}, channel_id=channel.id, **options)


async def test_what_a_bucket_holds_is_used_up_before_anybody_waits(
    api: Api, discord: FakeDiscord, lab: Channel, clock: VirtualClock
) -> None:
    for _ in range(5):
        await send(api, lab)
    assert clock.slept == []
    with pytest.raises(FloodError) as caught:
        await send(api, lab, patient=False)
    assert 0 < caught.value.retry_after <= 5
    assert len(discord.called(*SEND)) == 5, "Discord was not even asked"
    other = discord.channel("other", discord.world.guilds[lab.guild_id])
    await send(api, other, patient=False)


async def test_a_pause_is_obeyed_by_our_own_clock_and_a_long_one_is_not_waited_for(
    api: Api, discord: FakeDiscord, lab: Channel, clock: VirtualClock
) -> None:
    discord.faults.rate_limit(ROUTE, seconds=7, times=1)
    await send(api, lab)
    [pause] = clock.slept
    assert 7 <= pause <= 7.7
    discord.faults.rate_limit(ROUTE, seconds=600, times=1)
    with pytest.raises(FloodError) as caught:
        await send(api, lab)
    assert caught.value.retry_after == 600
    assert len(clock.slept) == 1


async def test_cloudflare_s_429_is_a_pause_too(api: Api, discord: FakeDiscord, lab: Channel) -> None:
    discord.faults.break_down(ROUTE, status=429)
    with pytest.raises(FloodError):
        await send(api, lab, patient=False)


async def test_errors_are_told_apart(api: Api, discord: FakeDiscord, lab: Channel) -> None:
    discord.faults.refuse(ROUTE, 403, 50013, "Missing Permissions")
    with pytest.raises(RefusedError, match="goodbot manifest discord") as caught:
        await send(api, lab)
    assert caught.value.code == 50013
    discord.faults.refuse(ROUTE, 404, 10003, "Unknown Channel")
    with pytest.raises(RefusedError, match="10003"):
        await send(api, lab)
    discord.faults.break_down(ROUTE, status=503)
    with pytest.raises(RetriableError, match="503"):
        await send(api, lab)
    discord.faults.refuse(ROUTE, 401, 0, "401: Unauthorized")
    with pytest.raises(FatalConnectorError, match=NAME):
        await send(api, lab)
    discord.cut()
    with pytest.raises(RetriableError, match="cannot be reached"):
        await send(api, lab)


async def test_an_interaction_that_is_over_blames_no_bot_token(api: Api, discord: FakeDiscord) -> None:
    path = "/webhooks/{webhook_id}/{webhook_token}"
    discord.faults.refuse(f"POST {path}", 401, 50027, "Invalid Webhook Token")
    ids = {"webhook_id": discord.application.id, "webhook_token": "over"}
    with pytest.raises(RefusedError, match="50027"):
        await api.call("POST", path, body={"content": "x"}, **ids)


async def test_neither_errors_nor_the_log_show_a_token_or_an_address(
    api: Api, discord: FakeDiscord, lab: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    secret = "the-token-of-an-interaction"
    ids = {"webhook_id": discord.application.id, "webhook_token": secret}
    discord.faults.rate_limit("*", seconds=1, times=1)
    with pytest.raises(ConnectorError) as caught:
        await api.call(
            "POST",
            "/webhooks/{webhook_id}/{webhook_token}",
            body={"content": "private words"},
            patient=False,
            **ids,
        )
    logging.getLogger("discord.http").error("%s responded", f"https://discord.com/{secret}")
    wrong = Api(Secret(WRONG_TOKEN), VirtualClock(), discord.api)
    with pytest.raises(FatalConnectorError):
        await wrong.open()
    await wrong.close()
    shown = caplog.text + repr(caught.value) + str(caught.value.__cause__)
    for hidden in (secret, TOKEN, WRONG_TOKEN, "private words"):
        assert hidden not in shown
