# SPDX-License-Identifier: Apache-2.0
"""What is this platform's own: redactions, encrypted rooms, gaps, words from strangers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Connector,
    MessageEvent,
    MessageRef,
    OpenTurn,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.testing import RecordingHost

from goodbot_matrixlike import SPEC, normalize
from goodbot_matrixlike.connector import REFUSAL, MatrixlikeConnector
from tests.homeserver import BOT, ROOM, Homeserver, running


@pytest.fixture
async def platform() -> AsyncIterator[Homeserver]:
    async with running() as homeserver:
        yield homeserver


@pytest.fixture
async def host(tmp_path: Path, platform: Homeserver) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=platform.environ)
    yield host
    await host.close()
    assert host.failures == []


@pytest.fixture
async def connector(host: RecordingHost, platform: Homeserver) -> AsyncIterator[Connector]:
    connector = MatrixlikeConnector(host, platform.settings)
    await connector.start()
    yield connector
    await connector.stop()


async def answered(
    connector: Connector, host: RecordingHost, platform: Homeserver
) -> tuple[MessageEvent, MessageRef]:
    await platform.say("hello")
    [asked] = await host.received(MessageEvent)
    [ref] = await connector.send(asked.channel, Reply(text="Hi!", reply_to=asked.message_id))
    return asked, ref


async def test_a_redaction_names_only_the_reaction(
    connector: Connector, host: RecordingHost, platform: Homeserver
) -> None:
    _, ref = await answered(connector, host, platform)
    await platform.react(ref, new="👍🏽")
    [rate] = await host.received(RatingEvent)
    await platform.react(ref, old="👍🏽")
    _, back = await host.received(RatingEvent, 2)
    assert (back.kind, back.retracts) == (RatingKind.RETRACT, rate.event_id)
    assert (back.message_id, back.source, back.turn) == ("", "", "")


async def test_an_encrypted_room_is_refused_once_even_over_a_restart(
    host: RecordingHost, platform: Homeserver
) -> None:
    for _ in range(2):
        connector = MatrixlikeConnector(host, platform.settings)
        await connector.start()
        for _ in range(2):
            await platform.say("a secret", room=ChannelKind.ENCRYPTED)
            while await platform.unacknowledged():
                await asyncio.sleep(0.01)
        await connector.stop()
    assert [post.text for post in await platform.posts(ChannelKind.ENCRYPTED)] == [REFUSAL]
    assert host.events == []


async def test_a_room_that_is_encrypted_later_is_refused_from_then_on(
    connector: Connector, host: RecordingHost, platform: Homeserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = ROOM[ChannelKind.SHARED]
    await platform.say("hello", room=ChannelKind.SHARED, mention=True)
    await host.received(MessageEvent)
    monkeypatch.setitem(ROOM, ChannelKind.ENCRYPTED, room)
    platform.add(room, "@ada:test", "m.room.encryption", {"algorithm": "m.megolm.v1"})
    await platform.say("not for you", room=ChannelKind.SHARED, mention=True)
    while REFUSAL not in [post.text for post in await platform.posts(ChannelKind.SHARED)]:
        await asyncio.sleep(0.01)
    assert len(host.events) == 1


async def test_reconcile_finds_what_a_gap_has_swallowed(
    connector: Connector, host: RecordingHost, platform: Homeserver
) -> None:
    _, ref = await answered(connector, host, platform)
    turn = OpenTurn(turn="1", messages=(ref,))
    await platform.react(ref, new="👍")
    [rate] = await host.received(RatingEvent)
    assert [event.event_id for event in await connector.reconcile([turn])] == [rate.event_id]
    platform.redact(ref.channel.id, "@ada:test", rate.event_id, quietly=True)
    [back] = await connector.reconcile([turn])
    assert isinstance(back, RatingEvent)
    assert (back.kind, back.retracts, back.user) == (RatingKind.RETRACT, rate.event_id, rate.user)
    assert back.event_id != rate.event_id
    assert await connector.reconcile([turn]) == []


async def test_commands_are_typed_and_answered(
    connector: Connector, host: RecordingHost, platform: Homeserver
) -> None:
    id_ = await platform.say("!rl rollback base")
    [event] = await host.received(CommandEvent)
    assert (event.name, event.args, event.message_id) == ("rollback", "base", id_)
    receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text="Done.")
    await connector.acknowledge(event, receipt)
    assert [post.text for post in await platform.posts()] == ["Done."]


async def test_it_goes_on_when_the_homeserver_comes_back(
    connector: Connector, host: RecordingHost, platform: Homeserver
) -> None:
    platform.down = True
    await platform.say("are you there?")
    await asyncio.sleep(0.1)
    platform.down = False
    await host.received(MessageEvent)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        {"type": "m.reaction", "content": None},
        {"type": "m.reaction", "content": {"m.relates_to": {"rel_type": "m.annotation", "key": 1}}},
        {"type": "m.room.message", "content": {"msgtype": "m.text", "body": ["x"]}},
        {"type": "m.room.message", "content": {"msgtype": "m.image", "body": "cat.png"}},
        {"type": "m.room.message", "content": {"msgtype": "m.notice", "body": "beep"}},
        {
            "type": "m.room.message",
            "content": {
                "msgtype": "m.text",
                "body": "* edited",
                "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"},
            },
        },
        {"type": "m.room.redaction"},
        {"type": "org.example.unheard_of", "content": {}},
    ],
)
def test_anything_else_is_passed_over(raw: Any) -> None:
    channel = ChannelRef(
        connector="matrixlike", account=BOT, id="!r:test", kind=ChannelKind.PRIVATE
    )
    if raw:
        raw = {"event_id": "$1", "sender": "@ada:test", "origin_server_ts": 1, **raw}
    assert normalize.event(raw, channel) is None
