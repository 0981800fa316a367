# SPDX-License-Identifier: Apache-2.0
"""The one notice of a shared channel: what is stored there, how long, who rates, how to leave.

Level-triggered: a channel that is on and has no notice gets one as soon as its connector runs,
whoever switched it on. It is recorded after the platform has it, so that a crash in between posts
it once more, never not at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from goodbot.access.authorization import Authorization
from goodbot.api.connector import Connector
from goodbot.api.events import ChannelKind, ChannelRef, Reply
from goodbot.api.texts import say
from goodbot.base.clock import Clock
from goodbot.base.errors import StoreError
from goodbot.config import Config
from goodbot.store import Store, channels

logger = logging.getLogger(__name__)


class Notices:
    """Posts what is due. `post` may be called at any time, from anywhere."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        authorization: Authorization,
        config: Config,
        connectors: Mapping[str, Connector],
        errors: Mapping[str, str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._authorization = authorization
        days = config.privacy.unrated_days
        kept = int(days) if days.is_integer() else days
        self._text = say("group", config.serving.language, days=kept)
        self._connectors = connectors
        self._errors = errors
        self._posting = asyncio.Lock()
        self._complained: set[channels.ChannelRow] = set()

    async def post(self) -> None:
        """Post every notice that is due, where the connector runs. Raises StoreError."""
        async with self._posting:
            for name, connector in self._connectors.items():
                if name in self._errors or not connector.account:
                    continue
                await self._settle(name, connector)
                for channel in await self._store.read(channels.everywhere):
                    if channel.connector == name and channel.noticed_at is None:
                        await self._post(connector, channel)

    async def _settle(self, name: str, connector: Connector) -> None:
        """The config's channels of this connector get their rows."""
        grants = self._authorization.connectors.get(name)
        configured = [
            ChannelRef(connector=name, account=connector.account, id=id_, kind=ChannelKind.SHARED)
            for id_ in (grants.channels if grants else ())
        ]
        now = self._clock.now()
        await self._store.write(lambda db: channels.settle(db, name, connector.account, configured, now))

    async def _post(self, connector: Connector, channel: channels.ChannelRow) -> None:
        where = ChannelRef(
            connector=channel.connector, account=channel.account, id=channel.channel, kind=ChannelKind.SHARED
        )
        try:
            await connector.send(where, Reply(text=self._text, silent=True))
            await self._store.write(lambda db: channels.set_noticed(db, channel, self._clock.now()))
        except StoreError:
            raise
        except Exception as error:
            if channel not in self._complained:  # it is tried again every half minute
                logger.warning(
                    "%s: the notice of %s was not posted: %s", channel.connector, channel.channel, error
                )
                self._complained.add(channel)
