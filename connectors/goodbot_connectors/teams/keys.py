# SPDX-License-Identifier: Apache-2.0
"""The keys that the Bot Framework signs its calls with, as its OpenID metadata names them.

The SDK's own cache blocks the event loop, and never looks for a key again that it does not know
(`_OpenIdMetadata._find` raises before its refresh): this one takes its place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from goodbot.base.clock import Clock
from goodbot.base.errors import RetriableError

from goodbot_connectors.kit.fields import Json, items, string, strings

logger = logging.getLogger(__name__)

METADATA = "https://login.botframework.com/v1/.well-known/openidconfiguration"
_DAY, _HOUR, _PAUSE = 86400.0, 3600.0, 10.0

Fetch = Callable[[str], Awaitable[Json]]
"""GETs the JSON at an address; raises RetriableError."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One of the keys. The names are those that the SDK reads."""

    public_key: Any
    endorsements: Sequence[str]
    """The channels whose calls it may sign: `msteams`, `webchat`."""


class SigningKeys:
    """Read once a day, and when a key is asked for that is new, but then once an hour at most."""

    def __init__(self, url: str, fetch: Fetch, clock: Clock) -> None:
        self.url = url or METADATA
        self._fetch, self._clock = fetch, clock
        self._keys: dict[str, SigningKey] = {}
        self._read: float | None = None
        self._failed: float | None = None
        self._one = asyncio.Lock()

    async def get(self, key_id: str | None) -> SigningKey:
        """The key with an id. Raises PermissionError if there is none, RetriableError if nobody says."""
        async with self._one:
            age = self._age(self._read)
            if age >= _DAY or (key_id not in self._keys and age >= _HOUR):
                await self._refresh()
        if (key := self._keys.get(key_id or "")) is None:
            raise PermissionError("signed with a key that the Bot Framework does not name")
        return key

    async def _refresh(self) -> None:
        if self._age(self._failed) < _PAUSE:
            return self._insist("they could not be read a moment ago")
        try:
            described = await self._fetch(self.url)
            keys = await self._fetch(string(described, "jwks_uri"))
        except RetriableError as error:
            self._failed = self._clock.monotonic()
            return self._insist(str(error))
        read = {string(key, "kid"): _read(key) for key in items(keys, "keys")}
        named = {name: key for name, key in read.items() if name and key}
        if not named:
            self._failed = self._clock.monotonic()
            return self._insist("what is there names none")
        self._keys = named
        self._read, self._failed = self._clock.monotonic(), None

    def _insist(self, why: str) -> None:
        """Old keys are better than none: a call that they sign is still Microsoft's."""
        if not self._keys:
            raise RetriableError(f"the keys of the Bot Framework are not known: {why}")
        logger.warning("teams: the keys of the Bot Framework are old: %s", why)

    def _age(self, since: float | None) -> float:
        return float("inf") if since is None else self._clock.monotonic() - since


def _read(key: Json) -> SigningKey | None:
    try:
        public = jwt.PyJWK(dict(key), "RS256").key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return SigningKey(public, tuple(strings(key, "endorsements")))
