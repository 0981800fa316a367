# SPDX-License-Identifier: Apache-2.0
"""Which answers have the buttons that ask for a rating: all, or one in five."""

from __future__ import annotations

from collections.abc import Mapping

import aiosqlite

from goodbot.api.actions import STAR_ROW, thumbs
from goodbot.api.connector import Connector
from goodbot.api.events import Button, ChannelKind
from goodbot.api.turns import Turn
from goodbot.learning.core import Core
from goodbot.store import rating_requests

_EVERY = 5
"""One of so many answers asks, in a private chat or a channel. Which one is no matter: to choose those of
which a rating should teach most has taught less than chance (`tests.learning.asking`)."""


class RatingRequests:
    """Decides for each answer when it is stored: after a crash it has the same buttons."""

    def __init__(self, core: Core, connectors: Mapping[str, Connector]) -> None:
        self._store, self._connectors = core.store, connectors
        self._fewer = core.config.serving.buttons == "fewer"
        self._stars = core.config.serving.stars
        self._may_rate = core.authorization.may_rate

    async def decide(self, db: aiosqlite.Connection, turn: Turn) -> None:
        """Part of the transaction that has stored an answer."""
        if self._fewer and self._seen(turn):
            await rating_requests.decide(db, turn.id, turn.channel, _EVERY)

    async def buttons(self, turn: Turn, language: str) -> tuple[Button, ...]:
        """What is under an answer; nothing where it does not ask, or nobody who may press sees it."""
        if not self._seen(turn) or (
            self._fewer and not await self._store.read(lambda db: rating_requests.asks(db, turn.id))
        ):
            return ()
        return STAR_ROW if self._stars else thumbs(language)

    def _seen(self, turn: Turn) -> bool:
        """Whether somebody who may press sees buttons there."""
        if turn.channel.kind is ChannelKind.PRIVATE:
            return self._may_rate(turn.talker)
        return self._connectors[turn.channel.connector].group_buttons
