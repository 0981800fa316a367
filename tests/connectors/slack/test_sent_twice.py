# SPDX-License-Identifier: Apache-2.0
"""B10: which message is a copy of an answer that was sent again, by what Slack says of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack import SPEC
from goodbot_connectors.slack.render import message, texts

from tests.connectors.copies import knows_a_first_copy
from tests.connectors.slack.peer import SlackPeer


@pytest.fixture
async def host(peer: SlackPeer, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    yield host
    await host.close()


@pytest.fixture
async def connector(host: RecordingHost, peer: SlackPeer) -> AsyncIterator[Any]:
    connector = build(SPEC, host, peer)
    await connector.start()
    yield connector
    await connector.stop()


@pytest.mark.parametrize("room", [ChannelKind.PRIVATE, ChannelKind.SHARED])
async def test_b10_the_first_copy_is_known_by_its_words_and_nothing_else_is(
    room: ChannelKind, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    workspace = peer.slack.workspace

    def vanish(ts: str) -> None:
        [message] = [one for one in workspace.messages.values() if one.ts == ts]
        workspace.delete(message)

    await knows_a_first_copy(
        connector,
        host,
        peer,
        "4 < 5 & _so_ on, <!here>.",
        vanish=vanish,
        reads=lambda: [call for call in peer.slack.calls if call.method == "reactions.get"],
        stream=lambda asked: connector.stream(asked.channel, asked.message_id),
        room=room,
    )


def test_of_an_answer_that_is_cut_the_words_prove_nothing() -> None:
    short, long = "a & b", "a" * 3890 + "&&&&"
    assert texts(short) == [message(short)["text"]]
    assert texts(long) == []
