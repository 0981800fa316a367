# SPDX-License-Identifier: Apache-2.0
"""How a running goodbot is, in numbers, for features that show or send them."""

from __future__ import annotations

import shutil
from collections import Counter

from goodbot.api.feature import Figures
from goodbot.base.busy import TurnedAway
from goodbot.base.full_disk import RESERVE
from goodbot.commands.services import Services
from goodbot.daemon.http.readiness import OK, parts
from goodbot.store import acceptance, inbox, settings


async def figures(s: Services) -> Figures:
    """All of them, as they are now. Raises StoreError."""
    active = await s.registry.active()
    liked = await s.store.read(lambda db: acceptance.of(db, s.pool, active))
    switches = [await s.store.read(lambda db, n=name: settings.switch(db, n)) for name in ("off", "paused")]
    return Figures(
        parts={name: state == OK for name, state in (await parts(s)).items()},
        started_at=s.started_at,
        version=active,
        good=liked.good,
        rated=liked.rated,
        ratings=(await s.scheduler.standing()).available,
        needed=await s.scheduler.needed(),
        training=s.scheduler.training,
        paused=any(switches),
        restarts=max(0, s.registry.lives - 1),
        refused=Counter({503: TurnedAway.total}) + TurnedAway.answered,
        inbox=await s.store.read(inbox.waiting),
        commits=s.store.waiting,
        database=s.store.size,
        disk_free=shutil.disk_usage(s.config.home).free,
        disk_reserve=RESERVE,
    )
