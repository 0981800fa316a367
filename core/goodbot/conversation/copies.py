# SPDX-License-Identifier: Apache-2.0
"""Copies of an answer that were sent without our hearing of it: found when somebody rates one.

Killed, or cut off, between the platform's taking a message and our record of it, we send the answer
again. A rating of the first copy waits until the platform itself says what stands there.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging

import aiosqlite

from goodbot.api.events import ChannelRef, MessageRef
from goodbot.base.errors import boundary
from goodbot.conversation.connectors import Connectors
from goodbot.conversation.generate import Generator
from goodbot.learning.core import Core
from goodbot.store import messages, retries, turns

logger = logging.getLogger(__name__)


class Copies:
    """Asks connectors of messages that we do not know."""

    def __init__(self, core: Core, *, generator: Generator, connectors: Connectors) -> None:
        self._store, self._label = core.store, core.model.label
        self._generator, self._connectors = generator, connectors
        self._one_at_a_time = asyncio.Lock()

    async def look(self, channel: ChannelRef) -> None:
        """Find out of which answers the messages are that were rated there and that we do not know."""
        connector = self._connectors.running.get(channel.connector)
        if connector is None:
            return
        async with self._one_at_a_time:
            known = await self._store.read(lambda db: messages.sent_again(db, channel))
            rated = await self._store.read(lambda db: messages.unknown(db, channel)) if known else []
            answers = [dataclasses.replace(one, text=f"{self._label}{one.text}") for one in known]
            for id_ in rated:
                message = MessageRef(channel=channel, id=id_)
                with boundary(logger, "copies on %s", channel.connector):
                    if turn := await connector.copied(message, answers):
                        await self._adopt(turn, message)

    async def _adopt(self, turn: str, copy: MessageRef) -> None:
        """Record that this message carries the turn, too, with what was said of it there."""

        async def operation(db: aiosqlite.Connection) -> None:
            known = await retries.standing(db, turn)
            if known and await turns.by_message(db, copy.channel, copy.id) is None:
                await self._generator.attach(db, turn, (*known, copy))

        await self._store.write(operation)
        self._generator.rated()
