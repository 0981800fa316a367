# SPDX-License-Identifier: Apache-2.0
"""The poll loop: floods, conflicts, poison, quiet days, and what never gets that far."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from goodbot.api.events import MessageEvent
from goodbot.base.errors import FatalConnectorError, RetriableError
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost, VirtualClock
from goodbot_connectors.telegram import SPEC

from tests.connectors.telegram.peer import TelegramPeer, called

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector


async def test_polling_backs_off_and_goes_on(peer: TelegramPeer, tmp_path: Path) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=clock)
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.say("and then the line is bad")
    await host.received(MessageEvent)
    await peer.fail("getUpdates", 502, "Bad Gateway")
    await peer.fail("getUpdates", 500, "Internal Server Error")
    await peer.fail("getUpdates", 429, "Too Many Requests: retry after 11", retry_after=11)
    await peer.say("this ends a poll that was under way")
    await peer.say("still there?")
    await host.received(MessageEvent, 3)
    await eventually(lambda: called(peer, "getUpdates", 6))
    await connector.stop()
    first, second, third = clock.slept
    assert 1 <= first <= 2
    assert 1 <= second <= 2
    assert 11 <= third <= 12.1, "what Telegram asks for, and a little"
    assert len(host.troubles) >= 2
    assert host.troubles[-1] == "", "one bad answer is no trouble, several are"
    await host.close()


async def test_no_network_at_start_can_be_tried_again(peer: TelegramPeer, host: RecordingHost) -> None:
    await peer.fail("getMe", 502, "Bad Gateway")
    connector = build(SPEC, host, peer)
    with pytest.raises(RetriableError):
        await connector.start()
    await connector.start()
    await peer.say("hello")
    await host.received(MessageEvent)
    await connector.stop()


async def test_reactions_are_asked_for_before_there_is_anything_to_react_to(
    peer: TelegramPeer, host: RecordingHost
) -> None:
    connector = build(SPEC, host, peer)
    await connector.start()
    polls = await peer.calls("getUpdates")
    await connector.stop()
    assert polls
    assert "message_reaction" in polls[0]["allowed_updates"]


@pytest.mark.parametrize(
    ("code", "description", "sentence"),
    [
        (409, "Conflict: terminated by other getUpdates request", "somebody else reads this bot's"),
        (400, "Bad Request: something new", "Telegram refused"),
        (403, "Forbidden: bot was blocked", "Telegram refused"),
    ],
)
async def test_who_is_refused_updates_asks_again_in_a_minute(
    code: int,
    description: str,
    sentence: str,
    peer: TelegramPeer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A second reader may be our own old process, which is about to end."""
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=clock)
    connector = build(SPEC, host, peer)
    await connector.start()
    await called(peer, "getUpdates", 2)
    await peer.fail("getUpdates", code, description)
    await peer.say("wakes the poll")
    await host.received(MessageEvent)
    await eventually(lambda: called(peer, "getUpdates", 4))
    await peer.say("still there?")
    await host.received(MessageEvent, 2)
    await connector.stop()
    await host.close()
    assert host.failures == []
    [pause] = clock.slept
    assert 60 <= pause <= 66
    assert sentence in caplog.text
    trouble, well = host.troubles
    assert sentence in trouble, "`status` says so meanwhile"
    assert well == ""


async def test_a_start_that_is_refused_updates_can_be_tried_again(
    peer: TelegramPeer, host: RecordingHost
) -> None:
    connector = build(SPEC, host, peer)
    await peer.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request")
    with pytest.raises(RetriableError, match="somebody else reads") as told:
        await connector.start()
    assert told.value.retry_after == 60
    await connector.start()
    await connector.stop()


async def test_another_bots_offset_and_chats_mean_nothing_to_this_one(
    peer: TelegramPeer, host: RecordingHost
) -> None:
    """Its ids may be below the other's: the pairing code would be confirmed unread."""
    await host.submit([], cursor=f"77 999999999 {2**41}")
    await host.set("offers", '{"1001":"5 5f1e"}')
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.say("ABCD-EFGH")
    [event] = await host.received(MessageEvent)
    assert event.text == "ABCD-EFGH"
    await connector.stop()
    assert (await host.cursor() or "").startswith("4200001 ")
    assert not await host.get("offers")


async def test_an_update_that_the_library_cannot_read_does_not_block_the_rest(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    secret = {"chat": {"id": "?"}, "text": "private words", "new_field": 1}
    await peer.control("raw", kind="message", payload=secret)
    await peer.say("hello")
    [event] = await host.received(MessageEvent)
    assert event.text == "hello"
    assert await eventually(lambda: _none_pending(peer))
    assert "private words" not in caplog.text


async def _none_pending(peer: TelegramPeer) -> bool:
    return await peer.unacknowledged() == 0


@pytest.mark.parametrize("days", [8, -8])  # passed, or our clock was set back: then nobody knows
@pytest.mark.parametrize("before", [True, False])
async def test_after_quiet_days_ids_may_start_anew(
    before: bool, days: int, peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    await peer.say("long ago")
    [event] = await host.received(MessageEvent)
    await connector.stop()
    _, offset, since = (await host.cursor() or "").split(" ")
    assert int(since) == event.order.time_ms
    await peer.control("renumber", update_id=55)
    clock = VirtualClock(now=event.order.time_ms / 1000 + days * 86400)
    host.clock = clock
    second = build(SPEC, host, peer)
    if before:
        await peer.say("after a holiday")
    await second.start()
    if not before:
        await peer.say("after a holiday")
    events = await host.received(MessageEvent, 2)
    assert events[1].event_id == "55:0"
    assert int(offset) > 55
    await second.stop()


@pytest.mark.parametrize("token", ["", "nonsense", "42:with space", "42:new\nline"])
async def test_what_is_no_token_never_reaches_the_network(
    token: str, peer: TelegramPeer, tmp_path: Path
) -> None:
    environ = {"GOODBOT_TELEGRAM_TOKEN": token}
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=environ)
    with pytest.raises(FatalConnectorError, match="GOODBOT_TELEGRAM_TOKEN"):
        await build(SPEC, host, peer).start()
    assert (await peer.control("calls"))["calls"] == []
