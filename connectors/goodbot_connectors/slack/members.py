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
        self._pause_until = self._languages_from = 0.0
        self._refused = ""

    async def ours(self, user: str) -> bool:
        """Whether this is a person of our workspace. Raises RetriableError: then nobody knows."""
        if not user:
            return False
        try:
            # A mention comes twice at once: the second one has the answer to the first.
            async with asyncio.timeout(_WAIT), self._asking.setdefault(user, asyncio.Lock()):
                return await self._is_ours(user)
        except TimeoutError:
            raise RetriableError("Slack does not say in time who somebody is") from None

    async def _is_ours(self, user: str) -> bool:
        now = self._clock.monotonic()
        until, known = self._known.get(user, (0.0, False))
        if now < until:
            return known
        try:
            person = await self._told(user)
        except FloodError as error:
            self._pause_until = now + min(error.retry_after, _LONGEST_PAUSE)
            raise
        except FatalConnectorError:
            raise
        except RefusedError as error:
            self._say(error)
            self._known[user] = (now + _REFUSED, False)  # else each of their reactions costs a call
            return False
        found = string(person, "id") == user and self._me().member(person)
        self._known[user] = (now + _BELIEVED, found)
        return found

    def reads(self, user: str) -> str:
        """What one of ours reads (`pt-BR`), as it was told last; empty: it was not."""
        return self._languages.get(user, (0.0, ""))[1]

    def is_to_ask(self, user: str) -> bool:
        """Whether `language` asks about this person now."""
        since = max(self._languages.get(user, (0.0, ""))[0], self._languages_from)
        return bool(user) and self._clock.monotonic() >= since

    async def language(self, user: str) -> str:
        """What one of ours reads, asked of Slack where that is long ago; empty: it does not say it."""
        if not user:
            return ""
        async with self._asking.setdefault(user, asyncio.Lock()):
            now, known = self._clock.monotonic(), self.reads(user)
            if self.is_to_ask(user):
                self._languages[user] = (now + _REFUSED, known)
                try:
                    await self._told(user)
                except FloodError as error:  # whose colleague somebody is may still be asked
                    self._languages_from = now + max(error.retry_after, _REFUSED)
                except RefusedError as error:
                    if error.code == "missing_scope":  # then neither is told of anybody
                        self._languages_from = now + _READS
                        self._say(error)
                except ConnectorError as error:
                    logger.debug("slack: what somebody reads is not known: %s", error)
            return self.reads(user)

    async def _told(self, user: str) -> Json:
        """What Slack tells of somebody. Raises ConnectorError, of a pause and of silence RetriableError."""
        now = self._clock.monotonic()
        if now < self._pause_until:
            raise RetriableError("Slack asks for a pause (users.info)")
        asked = self._api().call("users.info", patient=False, user=user, include_locale="true")
        try:
            async with asyncio.timeout(_WAIT):
                person = sub(await asked, "user")
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
