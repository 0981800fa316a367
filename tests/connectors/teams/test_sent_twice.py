# SPDX-License-Identifier: Apache-2.0
"""B10: no words of a stored answer stand in a message of Teams that is not recorded."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.events import ChannelKind, MessageEvent
from goodbot.testing.host import RecordingHost
from goodbot_connectors.teams import SPEC

from tests.connectors.copies import SHORT, leaves_no_unknown_words, long
from tests.connectors.teams.peer import TeamsPeer
from tests.support import require

require("botbuilder.core")

from goodbot_connectors.teams.wire import Wire  # noqa: E402  needs the SDK


@pytest.mark.parametrize("replaces", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("room", [ChannelKind.PRIVATE, ChannelKind.SHARED])
@pytest.mark.parametrize("words", [SHORT, long(SPEC.message_limit)], ids=["short", "long"])
async def test_b10_killed_after_any_call_each_copy_with_words_of_the_answer_is_known(
    replaces: bool,
    room: ChannelKind,
    words: str,
    connector: Any,
    host: RecordingHost,
    peer: TeamsPeer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await peer.say("Tell me.", room=room, mention=room is ChannelKind.SHARED)
    [asked] = await host.received(MessageEvent)
    await leaves_no_unknown_words(
        connector,
        asked,
        words,
        calls=(Wire, ("send", "update")),
        sees=lambda: [(one.id, one.text) for one in peer.people["ada"].sees(peer.place(room))],
        monkeypatch=monkeypatch,
        replaces=replaces,
    )
