# SPDX-License-Identifier: Apache-2.0
"""B10: no words of a stored answer stand in a message of Slack that is unknown, or they make it known."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.connector import SentAnswer
from goodbot.api.events import ChannelKind, ChannelRef, MessageEvent, MessageRef
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack.api import Api
from goodbot_connectors.slack.render import LIMIT

from tests.connectors.copies import SHORT, knows_a_first_copy, leaves_no_unknown_words, long
from tests.connectors.slack.peer import SlackPeer


@pytest.mark.parametrize("replaces", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("room", [ChannelKind.PRIVATE, ChannelKind.SHARED])
@pytest.mark.parametrize("words", [SHORT, long(LIMIT)], ids=["short", "long"])
async def test_b10_killed_after_any_call_each_copy_with_words_of_the_answer_is_known(
    replaces: bool,
    room: ChannelKind,
    words: str,
    connector: Any,
    host: RecordingHost,
    peer: SlackPeer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await peer.say("Tell me.", room=room, mention=room is ChannelKind.SHARED)
    [asked] = await host.received(MessageEvent)
    workspace = peer.slack.workspace
    await leaves_no_unknown_words(
        connector,
        asked,
        words,
        calls=(Api, ("call",)),
        sees=lambda: [
            (one.ts, one.text) for one in workspace.messages.values() if workspace.users[one.user].bot_id
        ],
        monkeypatch=monkeypatch,
        replaces=replaces,
    )


@pytest.mark.parametrize("room", [ChannelKind.PRIVATE, ChannelKind.SHARED])
async def test_b10_the_first_copy_is_known_by_its_words_where_they_came_at_once(
    room: ChannelKind, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    """Where a workspace allows no edits, they are posted before its id is kept."""
    slack = peer.slack
    await knows_a_first_copy(
        connector,
        host,
        peer,
        "4 < 5 & _so_ on, @everyone.",
        vanish=lambda id_: slack.workspace.delete(
            next(one for one in slack.workspace.messages.values() if one.ts == id_)
        ),
        reads=lambda: [call for call in slack.calls if call.method == "reactions.get"],
        stream=lambda asked: connector.stream(asked.channel, asked.message_id),
        room=room,
    )


async def test_b10_a_question_that_is_no_message_of_slacks_has_no_copies(connector: Any) -> None:
    channel = ChannelRef(connector="slack", account=connector.account, id="C1", kind=ChannelKind.PRIVATE)
    ref = MessageRef(channel=channel, id="1700000000.000200")
    last = MessageRef(channel=channel, id="1700000000.000300")
    answer = SentAnswer(turn="t", text="Yes.", question="Ev123", messages=(last,))
    assert await connector.copied(ref, [answer]) == ""
