# SPDX-License-Identifier: Apache-2.0
"""A few things to remember over a restart: a small dictionary in one of the host's values."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any, cast

from goodbot.api.connector import ConnectorHost
from goodbot.base.errors import StoreError

logger = logging.getLogger(__name__)


class StateTexts(Mapping[str, str]):
    """Texts by name, the newest `most` of them. Read at once, written through to the host.

    All of it is convenience: what cannot be stored is known until the next restart.
    """

    def __init__(self, host: ConnectorHost, name: str, most: int = 200) -> None:
        self._host, self._name, self._most = host, name, most
        self._values: dict[str, str] = {}

    async def load(self) -> None:
        """Read what an earlier process has kept."""
        stored = json.loads(await self._host.get(self._name) or "{}")
        if isinstance(stored, dict):
            pairs = cast("dict[str, Any]", stored).items()
            self._values = {key: value for key, value in pairs if isinstance(value, str)}

    async def put(self, key: str, value: str) -> None:
        """Keep a text; returns after the commit, or, while the disk fails, without one."""
        if self._values.get(key) == value:
            return
        self._values.pop(key, None)
        self._values[key] = value
        for old in list(self._values)[: -self._most]:
            del self._values[old]
        await self._save()

    async def drop(self, key: str) -> None:
        """Forget one."""
        if self._values.pop(key, None) is not None:
            await self._save()

    async def forget(self, word: str) -> None:
        """Drop what has `word` in its key or text. Raises StoreError, and then nothing is dropped."""
        before = self._values
        self._values = {k: v for k, v in before.items() if word not in _words(k, v)}
        if len(self._values) == len(before):
            return
        try:
            await self._store()
        except StoreError:
            self._values = {**before, **self._values}
            raise

    async def _store(self) -> None:
        await self._host.set(self._name, json.dumps(self._values, separators=(",", ":")))

    async def _save(self) -> None:
        try:
            await self._store()
        except StoreError as error:
            logger.warning("%s were not stored: %s", self._name, error)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _words(key: str, text: str) -> list[str]:
    return f"{key} {text}".replace(":", " ").split()
