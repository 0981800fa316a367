# SPDX-License-Identifier: Apache-2.0
"""Who is of our workspace, asked of Slack where a payload does not prove it.

What Slack does not confirm is denied: nobody of another company may be taken for one of ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from goodbot.base.clock import Clock
from goodbot.base.errors import FatalConnectorError, RetriableError

from goodbot_connectors.kit.backoff import FloodError
from goodbot_connectors.kit.fields import string, sub
from goodbot_connectors.kit.lru import Recent
from goodbot_connectors.slack.api import Api, RefusedError
from goodbot_connectors.slack.identity import BotIdentity

logger = logging.getLogger(__name__)

_BELIEVED = 900.0
"""Seconds that an answer counts: somebody may join or leave."""
_REFUSED = 60.0
"""Seconds that it counts where Slack does not say who somebody is."""
_WAIT = 2.0
"""Seconds for an answer: Slack wants its acknowledgement within three."""
_LONGEST_PAUSE = 60.0


class Members:
    """Remembers for a while who is of our workspace."""

    def __init__(self, clock: Clock, api: Callable[[], Api], me: Callable[[], BotIdentity]) -> None:
        self._clock, self._api, self._me = clock, api, me
        self._known: Recent[str, tuple[float, bool]] = Recent()
        self._pause_until = 0.0
        self._refused = ""

    async def ours(self, user: str) -> bool:
        """Whether this is a person of our workspace. Raises RetriableError: then nobody knows."""
        if not user:
            return False
        now = self._clock.monotonic()
        until, known = self._known.get(user, (0.0, False))
        if now < until:
            return known
        if now < self._pause_until:
            raise RetriableError("Slack asks for a pause (users.info)")
        try:
            async with asyncio.timeout(_WAIT):
                told = await self._api().call("users.info", patient=False, user=user)
        except FloodError as error:
            self._pause_until = now + min(error.retry_after, _LONGEST_PAUSE)
            raise
        except TimeoutError:
            raise RetriableError("Slack does not say in time who somebody is") from None
        except FatalConnectorError:
            raise
        except RefusedError as error:
            self._say(error)
            self._known[user] = (now + _REFUSED, False)  # else each of their reactions costs a call
            return False
        person = sub(told, "user")
        found = string(person, "id") == user and self._me().member(person)
        self._known[user] = (now + _BELIEVED, found)
        return found

    def forget(self, user: str) -> None:
        """Ask again who this is."""
        self._known.pop(user, None)

    def _say(self, error: RefusedError) -> None:
        """Once for each reason: without the scope it is so for everybody."""
        if error.code != self._refused:
            self._refused = error.code
            logger.warning("slack: it is not known who is of our workspace: %s", error)
