# SPDX-License-Identifier: Apache-2.0
"""What a round's child tells that outlives it: how far it is, what it goes without, which notes retire."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from goodbot.base.errors import boundary
from goodbot.store import Store, distilled, progress, quarantined, shifts

logger = logging.getLogger(__name__)


async def keep(store: Store, run: int, event: Mapping[str, Any], now: float) -> None:
    """Store what one of its events says. Raises StoreError where the run is not to go on without that."""
    if event["event"] == "checkpoint":
        step, steps = int(event["step"]), int(event["steps"])
        with boundary(logger, "the progress of run %d was not stored", run):
            await store.write(lambda db: progress.gets_on(db, run, step, steps))
    elif event["event"] == "learnt":
        with boundary(logger, "what run %d has learnt was not stored", run):
            await store.write(lambda db: shifts.keep(db, run, event))
    elif event["event"] == "quarantine":
        found = {str(turn["id"]): str(turn["reason"]) for turn in event["turns"]}
        await store.write(lambda db: quarantined.add(db, run, "nan", found, now))
        logger.warning("run %d goes without %s", run, ", ".join(found), extra={"run": run})
    elif event["event"] == "notes":
        retired = [int(one["id"]) for one in event["notes"] if one["retired"]]
        with boundary(logger, "which notes run %d has learnt was not stored", run):
            await store.write(lambda db: distilled.retire(db, run, retired))
