# SPDX-License-Identifier: Apache-2.0
"""Which store it is: a file, or what `[store] url` leads to."""

from __future__ import annotations

from pathlib import Path

from goodbot.api.rewards import RewardPolicy
from goodbot.config.database import StoreConfig
from goodbot.store import Store
from goodbot.store.postgres.opened import open_postgres


async def open_store(path: Path, where: StoreConfig, policy: RewardPolicy | None = None) -> Store:
    """Open or make the store; `path` is that of the file, which need not be. Raises as `Store.open`."""
    if where.url:
        return await open_postgres(where.url, path, policy)
    return await Store.open(path, policy)
