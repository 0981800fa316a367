# SPDX-License-Identifier: Apache-2.0
"""What people do beyond the contract: presses, commands, groups and their rules."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from goodbot.api.events import (
    Button,
    ChannelKind,
    CommandEvent,
    MessageEvent,
    Outcome,
    RatingEvent,
    Receipt,
    Reply,
)
from goodbot.testing.connector_base import QUIET
from goodbot.testing.host import RecordingHost

from tests.connectors.telegram.peer import GROUP, USERS, TelegramPeer, called, channel

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector

FORWARDED = {"type": "hidden_user", "sender_user_name": "x", "date": 1}
PHOTO = {"file_id": "AgAC", "file_unique_id": "AQAD", "width": 90, "height": 67}


async def test_button_data_is_never_trusted(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    """A client can send any data; what is no rating is answered and forgotten."""
    buttons = (Button(action="good", label="👍"),)
    [ref] = await connector.send(channel(), Reply(text="4", turn="abc", buttons=buttons))
    for data in ("off:abc", "good:", "", "good"):
        await peer.press_data(ref, data)
    await called(peer, "answerCallbackQuery", 4)
    assert await peer.notices() == ["", "", "", ""]
    assert not [event for event in host.events if isinstance(event, RatingEvent)]


async def test_commands_are_answered_where_they_were_given(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    command_id = await peer.say("/rl status", room=ChannelKind.SHARED, user="bob")
    [event] = await host.received(CommandEvent)
    assert (event.name, event.user.id) == ("status", str(USERS["bob"]))
    receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text="All is well.")
    await connector.acknowledge(event, receipt)
    [sent] = await peer.calls("sendMessage")
    assert sent["chat_id"] == GROUP
    assert sent["reply_parameters"]["message_id"] == int(command_id)
    assert sent["disable_notification"] is True


async def test_a_reaction_gets_no_message(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    [ref] = await connector.send(channel(ChannelKind.SHARED), Reply(text="4"))
    await peer.react(ref, new="👍")
    [event] = await host.received(RatingEvent)
    receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text="Good.")
    await connector.acknowledge(event, receipt)
    await asyncio.sleep(QUIET)
    assert len(await peer.posts(ChannelKind.SHARED)) == 1


async def test_without_being_administrator_a_group_has_no_reactions(
    peer: TelegramPeer, host: RecordingHost, connector: TelegramConnector
) -> None:
    """Telegram's rule, and the reason why the setup guide asks for it."""
    await peer.chats(admin=False)
    await peer.say("nothing for a bot", room=ChannelKind.SHARED)
    await peer.say("hello", room=ChannelKind.SHARED, mention=True)
    [event] = await host.received(MessageEvent)
    [ref] = await connector.send(event.channel, Reply(text="4"))
    await peer.react(ref, new="👍")
    await peer.say("/rl good", room=ChannelKind.SHARED)
    await host.received(CommandEvent)
    assert not [event for event in host.events if isinstance(event, RatingEvent)]


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ({"forward_origin": FORWARDED}, MessageEvent),
        ({"via_bot": {"id": 7, "is_bot": True, "first_name": "Gif"}}, None),
        ({"sender_chat": {"id": GROUP, "type": "supergroup", "title": "The lab"}}, None),
        ({"is_automatic_forward": True}, None),
        ({"photo": [PHOTO]}, CommandEvent),
    ],
)
async def test_only_fresh_words_of_a_person_are_commands(
    peer: TelegramPeer,
    host: RecordingHost,
    connector: TelegramConnector,
    extra: dict[str, object],
    kind: type | None,
) -> None:
    await peer.say("/rl off", extra=extra)
    await peer.say("last")
    await host.wait(lambda: any(getattr(e, "text", "") == "last" for e in host.events))
    assert [type(event) for event in host.events[:-1]] == ([kind] if kind else [])
