# SPDX-License-Identifier: Apache-2.0
"""B10: no words of a stored answer stand in a message of Slack that is not recorded."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.events import ChannelKind, MessageEvent
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack.api import Api
from goodbot_connectors.slack.render import LIMIT

from tests.connectors.copies import SHORT, leaves_no_unknown_words, long
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
