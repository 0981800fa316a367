# SPDX-License-Identifier: Apache-2.0
"""B10: which message is a copy of an answer that was sent again, by what Discord says of it."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.events import ChannelKind
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord.stream import MESSAGE

from tests.connectors.copies import knows_a_first_copy
from tests.connectors.discord.peer import DiscordPeer


@pytest.mark.parametrize("room", [ChannelKind.PRIVATE, ChannelKind.SHARED])
async def test_b10_the_first_copy_is_known_by_its_words_and_nothing_else_is(
    room: ChannelKind, connector: Any, host: RecordingHost, peer: DiscordPeer
) -> None:
    world = peer.discord.world
    await knows_a_first_copy(
        connector,
        host,
        peer,
        "4 < 5 & _so_ on, @everyone.",
        vanish=lambda id_: world.delete(world.messages[id_]),
        reads=lambda: peer.discord.called("GET", MESSAGE),
        stream=lambda asked: connector.stream(asked.channel),  # the question's nonce is forgotten by then
        room=room,
    )
