# SPDX-License-Identifier: Apache-2.0
"""A dispatcher by itself, for processes that tests kill and for benchmarks: nothing follows from a commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goodbot.access.admission import Admission
from goodbot.access.authorization import Authorization
from goodbot.access.limits import Quotas
from goodbot.access.readers import Readers
from goodbot.api.plugins import PluginHost
from goodbot.base.clock import SystemClock
from goodbot.config import Grants, ServingConfig
from goodbot.conversation.captures import Capturing
from goodbot.conversation.follow_ups import FollowUps, FollowUpTasks
from goodbot.conversation.ingest import Dispatcher
from goodbot.conversation.intake import EventIntake
from goodbot.conversation.notes import Notes
from goodbot.conversation.notifications import RoundCounter
from goodbot.conversation.ratings import Ratings
from goodbot.learning.training.round_size import RoundSize
from goodbot.store import Store
from goodbot.store.training_pool import Pool


def dispatcher(store: Store, grants: Mapping[str, Grants], pool: Pool, min_ratings: int = 40) -> Dispatcher:
    async def nothing(*args: object) -> None: ...

    clock, plugins = SystemClock(), PluginHost()
    authorization = Authorization(dict(grants))
    admission = Admission(authorization, Quotas(ServingConfig(), Path("/"), clock), clock)
    parts: dict[str, Any] = {"authorization": authorization, "clock": clock, "admission": admission}
    parts["notes"] = Notes(pool=pool, clock=clock, where="never")
    intake = EventIntake(
        store=store,
        ratings=Ratings(progress=RoundCounter(RoundSize(pool=pool, usual=min_ratings)), pool=pool, **parts),
        capturing=Capturing(
            plugins=plugins, pool=pool, authorization=authorization, clock=clock, admission=admission
        ),
        at_once=nothing,
        **parts,
    )
    return Dispatcher(
        store=store,
        authorization=authorization,
        plugins=plugins,
        clock=clock,
        readers=Readers("en"),
        intake=intake,
        follow_ups=FollowUps(
            answer=nothing,
            put_back=nothing,
            acknowledge=nothing,
            ask=nothing,
            rated=lambda: None,
            talked=lambda: None,
            tell=nothing,
        ),
        tasks=FollowUpTasks(),
    )
