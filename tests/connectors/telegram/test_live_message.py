# SPDX-License-Identifier: Apache-2.0
"""The message that shows a training: posted once, edited, and in the end the verdict."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from goodbot.conversation.notifications.live import LiveMessage
from goodbot.testing import VirtualClock

from tests.connectors.telegram.peer import TelegramPeer, called, channel
from tests.connectors.telegram.schema import check_call
from tests.support import patience

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector


async def test_a_training_is_one_message(peer: TelegramPeer, connector: TelegramConnector) -> None:
    clock, ended = VirtualClock(waits=True), asyncio.Event()
    progress: dict[str, Any] = {"phase": "train", "step": 0, "steps": 4, "eta": 90.0}
    message = await LiveMessage.post(connector, channel(), clock, "Learning from 40 ratings")
    assert message is not None
    run = asyncio.create_task(ended.wait())
    following = asyncio.create_task(message.follow(run, lambda: progress))
    for step in (1, 2):
        progress |= {"step": step}
        async with asyncio.timeout(patience(10)):
            while f" {step}/4 " not in (await peer.posts())[0].text:
                clock.advance(1.0)
    [post] = await peer.posts()
    assert post.text == "Learning from 40 ratings\nlearning ██████······ 2/4 · 90 s left"
    ended.set()
    await following
    clock.advance(5.0)
    assert await message.end("v1 is live.")
    assert [post.text for post in await peer.posts()] == ["v1 is live."]
    for call in await called(peer, "editMessageText", 3):
        check_call("editMessageText", call)
