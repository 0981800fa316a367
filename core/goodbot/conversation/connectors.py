# SPDX-License-Identifier: Apache-2.0
"""The connectors that run: what is known of each, and what people are told through them."""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Mapping

from goodbot.api.connector import Connector
from goodbot.api.events import CommandEvent, Event, PressEvent, RatingEvent, Receipt
from goodbot.base.errors import boundary
from goodbot.base.platform_time import PlatformTime

logger = logging.getLogger(__name__)

CONNECTING = "connecting"
"""What stands in `errors` while a connector starts for the first time."""


class Connectors:
    """Who can be reached now; kept by `goodbot.daemon.connectors`."""

    def __init__(self) -> None:
        self.running: dict[str, Connector] = {}
        self.errors: dict[str, str] = {}
        """Why a connector did not start, or has stopped; `CONNECTING` until its first start has ended."""
        self.retrying: set[str] = set()
        """Whose start has failed for now, and is tried again by itself."""
        self.troubles: dict[str, str] = {}
        """Why one that runs, a part of it (`slack.rater_groups`) or a feature does not work at the moment."""
        self.problems: Mapping[str, str] = ChainMap(self.errors, self.troubles)
        self.time = PlatformTime()

    def trouble(self, name: str, text: str) -> None:
        """Say once in the log and until it is taken back (`""`) in `troubles` why this does not work."""
        if text == self.troubles.get(name, ""):
            return
        place = name.partition(".")[0]
        ids = {"connector": place} if place in self.running else {}
        if text:
            self.troubles[name] = text
            logger.warning("%s: %s", name, text, extra=ids)
        else:
            del self.troubles[name]
            logger.info("%s works again", name, extra=ids)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        """Let the connector tell that person what became of their rating or command."""
        connector = self.running.get(event.user.connector)
        if connector is not None and (
            receipt.text or isinstance(event, (RatingEvent, CommandEvent, PressEvent))
        ):
            with boundary(logger, "acknowledging on %s", event.user.connector):
                await connector.acknowledge(event, receipt)
