# SPDX-License-Identifier: Apache-2.0
"""Who is of our workspace, asked of Slack where a payload does not prove it, and what they read.

What Slack does not confirm is denied: nobody of another company may be taken for one of ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from weakref import WeakValueDictionary

from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError

from goodbot_connectors.kit.backoff import FloodError
from goodbot_connectors.kit.fields import Json, string, sub
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
_SOON = 1.0
"""Seconds for what somebody reads: a word in another language is better than a late acknowledgement."""
_READS = 86400.0
"""Seconds that it counts: hardly anybody changes it."""
_LONGEST_PAUSE = 60.0


class Members:
    """Remembers for a while who is of our workspace."""

    def __init__(self, clock: Clock, api: Callable[[], Api], me: Callable[[], BotIdentity]) -> None:
        self._clock, self._api, self._me = clock, api, me
        self._known: Recent[str, tuple[float, bool]] = Recent()
        self._languages: Recent[str, tuple[float, str]] = Recent()
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._pause_until = 0.0
        self._refused = ""

    async def ours(self, user: str) -> bool:
        """Whether this is a person of our workspace. Raises RetriableError: then nobody knows."""
        if not user:
            return False
        # A mention comes twice at once: the second one has the answer to the first.
        async with self._asking.setdefault(user, asyncio.Lock()):
            return await self._is_ours(user)

    async def _is_ours(self, user: str) -> bool:
        now = self._clock.monotonic()
        until, known = self._known.get(user, (0.0, False))
        if now < until:
            return known
        try:
            person = await self._told(user, _WAIT)
        except FatalConnectorError:
            raise
        except RefusedError as error:
            self._say(error)
            self._known[user] = (now + _REFUSED, False)  # else each of their reactions costs a call
            return False
        found = string(person, "id") == user and self._me().member(person)
        self._known[user] = (now + _BELIEVED, found)
        return found

    async def language(self, user: str) -> str:
        """What one of ours reads (`pt-BR`); empty where Slack does not say it at once."""
        if not user:
            return ""
        # Of a mention that comes twice the first one that is stored counts.
        async with self._asking.setdefault(user, asyncio.Lock()):
            now = self._clock.monotonic()
            until, known = self._languages.get(user, (0.0, ""))
            if now >= until:
                try:
                    await self._told(user, _SOON)
                except ConnectorError as error:
                    logger.debug("slack: what somebody reads is not known: %s", error)
                    self._languages[user] = (now + _REFUSED, known)
            return self._languages.get(user, (0.0, ""))[1]

    async def _told(self, user: str, seconds: float) -> Json:
        """What Slack tells of somebody. Raises ConnectorError, of a pause and of silence RetriableError."""
        now = self._clock.monotonic()
        if now < self._pause_until:
            raise RetriableError("Slack asks for a pause (users.info)")
        asked = self._api().call("users.info", patient=False, user=user, include_locale="true")
        try:
            async with asyncio.timeout(seconds):
                person = sub(await asked, "user")
        except FloodError as error:
            self._pause_until = now + min(error.retry_after, _LONGEST_PAUSE)
            raise
        except TimeoutError:
            raise RetriableError("Slack does not say in time who somebody is") from None
        if string(person, "id") == user:
            self._languages[user] = (now + _READS, string(person, "locale"))
        return person

    def forget(self, user: str) -> None:
        """Ask again who this is."""
        self._known.pop(user, None)
        self._languages.pop(user, None)

    def _say(self, error: RefusedError) -> None:
        """Once for each reason: without the scope it is so for everybody."""
        if error.code != self._refused:
            self._refused = error.code
            logger.warning("slack: it is not known who is of our workspace: %s", error)
