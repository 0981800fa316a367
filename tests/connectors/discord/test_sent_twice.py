# SPDX-License-Identifier: Apache-2.0
"""B10: which message is a copy of an answer that was sent again, by what Discord says of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import THUMBS
from goodbot.api.connector import SentAnswer
from goodbot.api.events import MessageEvent, Reply
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC
from goodbot_fakes.discord import FakeDiscord

from tests.connectors.discord.peer import DiscordPeer

TURN = "5f1e0c7a9b3d2468"
WORDS = "4 < 5 & _so_ on, @everyone."


@pytest.fixture
def peer(discord: FakeDiscord) -> DiscordPeer:
    return DiscordPeer(discord)


@pytest.fixture
async def host(peer: DiscordPeer, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    peer.host = host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    yield host
    await host.close()


@pytest.fixture
async def connector(host: RecordingHost, peer: DiscordPeer) -> AsyncIterator[Any]:
    connector = build(SPEC, host, peer)
    await connector.start()
    yield connector
    await connector.stop()


async def test_b10_the_first_copy_is_known_by_its_words_and_nothing_else_is(
    connector: Any, host: RecordingHost, peer: DiscordPeer
) -> None:
    await peer.say("What is 2 + 2?")
    [asked] = await host.received(MessageEvent)
    place = asked.channel

    async def said(text: str) -> Any:
        stream = connector.stream(place)  # Discord has forgotten the nonce of the question by then
        [ref] = await stream.finish(Reply(text=text, turn=TURN, buttons=THUMBS))
        return ref

    first = await said(WORDS)
    [status] = await connector.send(place, Reply(text="It runs.", turn=TURN, buttons=THUMBS))
    await peer.say(WORDS)
    hers = (await host.received(MessageEvent, 2))[-1]
    last, after = await said(WORDS), await said(WORDS)
    answer = SentAnswer(turn=TURN, text=WORDS, question=asked.message_id, messages=(last,))
    assert await connector.copied(first, [answer]) == TURN
    for later in ("", first.id):  # a copy stands behind the question
        assert await connector.copied(first, [replace(answer, question=later)]) == ""
    for ref in (status, replace(first, id=hers.message_id), after):
        assert await connector.copied(ref, [answer]) == ""
    other = replace(answer, turn="another")
    assert await connector.copied(first, [answer, other]) == "", "nothing says of which of the two"
    assert await connector.copied(first, [replace(answer, text="Else."), other]) == "another"
