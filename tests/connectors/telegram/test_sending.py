# SPDX-License-Identifier: Apache-2.0
"""What goes out: the Bot API's own types on both sides, floods, streams, throttling."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from goodbot.api.events import (
    Button,
    ChannelKind,
    MessageEvent,
    MessageRef,
    Outcome,
    RatingEvent,
    Receipt,
    Reply,
)
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost, VirtualClock
from goodbot_connectors.telegram import SPEC

from tests.connectors.telegram.peer import USERS, TelegramPeer, called, channel
from tests.connectors.telegram.schema import check_call, check_type

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector


async def test_all_that_is_sent_is_what_the_bot_api_takes(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    await peer.say("hello @the_good_bot", room=ChannelKind.SHARED)
    [event] = await host.received(MessageEvent)
    stream = connector.stream(event.channel, event.message_id)
    await called(peer, "sendChatAction")
    await stream.append("```python\nprint(1)")
    buttons = (Button(action="good", label="👍"), Button(action="bad", label="👎"))
    reply = Reply(text="```python\nprint(1)\n```\nDone.", turn="abc", buttons=buttons)
    await stream.finish(reply)
    [ref] = await connector.send(channel(), reply)
    await peer.press(ref, "good")
    [press] = await host.received(RatingEvent)
    done = Receipt(event_id=press.event_id, outcome=Outcome.ACCEPTED, text="Good.")
    await connector.acknowledge(press, done)
    seen = (await peer.control("calls"))["calls"]
    for call in seen:
        check_call(call["method"], call["params"])
    assert {call["method"] for call in seen} == {
        "getMe",
        "getMyCommands",
        "setMyCommands",
        "getUpdates",
        "sendChatAction",
        "sendMessage",
        "editMessageText",
        "answerCallbackQuery",
    }
    polls = [call["params"] for call in seen if call["method"] == "getUpdates"]
    assert polls[0]["allowed_updates"] == ["message", "message_reaction", "callback_query"]


async def test_the_peer_answers_as_telegram_does(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    """Our stand-in is only worth something while it sends what Telegram would."""
    host.hold()
    await peer.say("hi")
    buttons = (Button(action="good", label="g"),)
    reply = Reply(text="```\nx\n```", turn="t", buttons=buttons)
    [ref] = await connector.send(channel(), reply)
    await peer.react(ref, new="👍")
    await peer.press(ref, "good")
    await peer.say("why", reply_to=ref.id)
    for post in (await peer.control("posts", chat_id=USERS["ada"]))["posts"]:
        check_type("Message", post)
    check_type("User", peer.bot)
    updates = (await peer.control("updates"))["updates"]
    assert len(updates) == 4
    for update in updates:
        check_type("Update", update)


async def test_a_flood_wait_is_obeyed(peer: TelegramPeer, tmp_path: Path) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=clock)
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.fail("sendMessage", 429, "Too Many Requests: retry after 7", retry_after=7)
    await connector.send(channel(), Reply(text="patience"))
    [pause] = clock.slept
    assert 7 <= pause <= 7.7, "what Telegram asks for, and a little"
    assert len(await peer.posts()) == 1
    await peer.fail("sendMessage", 429, "Too Many Requests: retry after 900", retry_after=900)
    with pytest.raises(RetriableError) as caught:
        await connector.send(channel(), Reply(text="too long to sit it out here"))
    assert caught.value.retry_after == 900
    await connector.stop()
    await host.close()


async def test_a_flood_while_streaming_only_skips_edits(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    stream = connector.stream(channel())
    await stream.append("one")
    await asyncio.sleep(0.25)
    await peer.fail("editMessageText", 429, "Too Many Requests: retry after 30", retry_after=30)
    await stream.append(" two")
    await asyncio.sleep(0.25)
    await stream.append(" three")
    assert len(await peer.calls("editMessageText")) == 1, "30 seconds of silence"
    await stream.finish(Reply(text="one two three"))
    assert [post.text for post in await peer.posts()] == ["one two three"]


async def test_a_blocked_bot_fails_for_this_chat_only(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    await peer.fail("sendMessage", 403, "Forbidden: bot was blocked by the user")
    with pytest.raises(ConnectorError, match="blocked by the user") as caught:
        await connector.send(channel(), Reply(text="hello?"))
    assert not isinstance(caught.value, (FatalConnectorError, RetriableError))
    await connector.send(channel(), Reply(text="hello!"))


async def test_typing_is_shown_until_there_is_something_to_read(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    stream = connector.stream(channel())
    [action] = await called(peer, "sendChatAction")
    assert action == {"chat_id": USERS["ada"], "action": "typing"}
    await stream.append("Here")
    [post] = await eventually(peer.posts)
    assert post.text == "Here"
    await stream.cancel("No more.")
    assert [post.text for post in await peer.posts()] == ["No more."]


async def test_edits_are_throttled(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    stream = connector.stream(channel())
    began = time.monotonic()
    for _ in range(40):
        await stream.append("word ")
        await asyncio.sleep(0.01)
    edits = len(await peer.calls("editMessageText"))
    took = time.monotonic() - began
    assert 1 <= edits <= 3 + took / 0.2, "one in 0.2 s, of the 0.4 s or more that this took"
    await stream.finish(Reply(text="word " * 40))
    assert len(await peer.posts()) == 1


async def test_a_cancelled_long_stream_leaves_one_message(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    stream = connector.stream(channel())
    await stream.append("word " * 1700)
    assert len(await peer.posts()) == 3
    await stream.cancel("My model is not running.")
    assert [post.text for post in await peer.posts()] == ["My model is not running."]


async def test_edit_of_a_message_that_is_gone_fails_for_this_call_only(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    with pytest.raises(ConnectorError, match="not found"):
        await connector.edit(MessageRef(channel=channel(), id="999"), Reply(text="x"))


async def test_after_stop_a_send_can_be_tried_again(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    await connector.stop()
    with pytest.raises(RetriableError, match="not started"):
        await connector.send(channel(), Reply(text="x"))
