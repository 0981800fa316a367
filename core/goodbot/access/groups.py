# SPDX-License-Identifier: Apache-2.0
"""Raters by the platforms' own groups: who is in them, asked for again every few minutes.

Somebody who is taken out of a group must not rate for more than five minutes. So a list is
believed for five minutes, from before it was asked for; when the platform does not tell, nobody is
in the group until it does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from goodbot.access.authorization import Authorization
from goodbot.api.connector import Connector
from goodbot.api.texts import say
from goodbot.base.clock import Clock

logger = logging.getLogger(__name__)

BELIEVED_SECONDS = 300.0
_REFRESH_SECONDS = 240.0
_AGAIN_SECONDS = 15.0
_PATIENCE_SECONDS = 30.0


class RaterGroups:
    """Keeps `Authorization` informed of who is in the groups that the config names."""

    def __init__(
        self,
        connectors: Mapping[str, Connector],
        authorization: Authorization,
        clock: Clock,
        trouble: Callable[[str, str], None],
    ) -> None:
        """`trouble` as `Connectors.trouble`: whose ratings do not count any more would not know why."""
        self._connectors = connectors
        self._authorization = authorization
        self._clock = clock
        self._trouble = trouble
        self._failing: set[tuple[str, str]] = set()

    async def loop(self, name: str) -> None:
        """Keep the groups of one connector, until cancelled."""
        while self._wanted(name):
            whole = await self.refresh(name)
            await self._clock.sleep(_REFRESH_SECONDS if whole else _AGAIN_SECONDS)

    async def refresh(self, name: str) -> bool:
        """Ask for all members now; False when the platform did not tell."""
        told = all([await self._ask(name, group) for group in self._wanted(name)])
        self._trouble(f"{name}.rater_groups", "" if told else say("status_groups"))
        return told

    def _wanted(self, name: str) -> Sequence[str]:
        """The groups that the config names."""
        grants = self._authorization.connectors.get(name)
        return grants.rater_groups if grants and name in self._connectors else ()

    async def _ask(self, name: str, group: str) -> bool:
        until = self._clock.monotonic() + BELIEVED_SECONDS
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                members = await self._connectors[name].members(group)
        except Exception as error:
            if (name, group) not in self._failing:
                logger.warning("%s does not tell who is in %s: %s", name, group, error)
            self._failing.add((name, group))
            return False
        self._failing.discard((name, group))
        self._authorization.set_members(name, group, members, until)
        return True
