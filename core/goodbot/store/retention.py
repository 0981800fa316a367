# SPDX-License-Identifier: Apache-2.0
"""What is deleted by itself, and when."""

from __future__ import annotations

import asyncio
import logging

from goodbot.store import Store, backup, codes, inbox, joining, ledger, messages, refusals, settings, turns

logger = logging.getLogger(__name__)

_DAY = 86400.0
_UNRESOLVED_SECONDS = 3600.0
_REDELIVERY_SECONDS = 3 * _DAY
"""No platform delivers an event again after so long (Telegram keeps them for a day)."""
_COPY_SECONDS = 30 * _DAY
"""How long the copy is kept that was made before an upgrade: it still has what is deleted since."""


async def expire(store: Store, now: float, *, unrated_days: float) -> None:
    """Delete what is too old at `now`: unrated answers, receipts, codes, copies. Raises StoreError."""
    limit = now - unrated_days * _DAY
    expired = await store.write(lambda db: turns.expire(db, limit))
    await store.write(lambda db: ledger.forget_unresolved(db, now - _UNRESOLVED_SECONDS))
    keep = max(_REDELIVERY_SECONDS, unrated_days * _DAY)
    await store.write(lambda db: inbox.expire(db, now - keep))
    await store.write(lambda db: refusals.expire(db, now - _REDELIVERY_SECONDS))
    await store.write(lambda db: codes.expire(db, now))
    await store.write(settings.forget_strangers)
    await store.write(lambda db: joining.expire(db, now))
    await asyncio.to_thread(backup.expire, store.path, now - _COPY_SECONDS)
    if expired:
        await store.write(messages.forget_gone)
        logger.info("%d unrated answers expired", expired)
