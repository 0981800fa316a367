# SPDX-License-Identifier: Apache-2.0
"""Once a week, privately: how each version was rated and chosen. Nothing where nobody did either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from goodbot.access.direct_message import Courier
from goodbot.api.notice import Notice
from goodbot.api.texts import say
from goodbot.base.clock import Clock
from goodbot.learning.evaluation import report
from goodbot.store import Store, acceptance, comparisons
from goodbot.store.acceptance import Acceptance
from goodbot.store.comparisons import Sum
from goodbot.store.training_pool import Pool


class Week:
    """Tells owners of the week before, the first time that it looks in a new one."""

    def __init__(
        self, *, store: Store, courier: Courier, clock: Clock, pool: Pool, owners: Callable[[], Sequence[str]]
    ) -> None:
        self._store = store
        self._courier = courier
        self._clock = clock
        self._pool = pool
        self._owners = owners
        self._known: tuple[str, Sequence[Acceptance], Sequence[Sum]] = ("", (), ())
        """The last week that was looked at, and what there is to tell of it."""

    async def look(self) -> None:
        """Tell each owner who has not heard yet."""
        monday = _monday(self._clock.now())
        week = f"{monday - timedelta(days=7):%G-W%V}"
        if self._known[0] != week:
            self._known = (week, *await self._of(monday))
        _, rated, chosen = self._known
        for owner in self._owners() if rated or chosen else ():
            language = self._courier.readers.language(owner)
            told = [report.accepted(one, language) for one in rated]
            lines = [say("week", language), *told, *report.chosen(chosen, language)]
            await self._courier.tell(Notice(key=f"week {week} {owner}", person=owner, text="\n".join(lines)))

    async def _of(self, monday: datetime) -> tuple[Sequence[Acceptance], Sequence[Sum]]:
        since, until = (monday - timedelta(days=7)).timestamp(), monday.timestamp()
        rated = await self._store.read(
            lambda db: acceptance.by_version(db, self._pool, since=since, until=until)
        )
        chosen = await self._store.read(lambda db: comparisons.sums(db, self._pool, since=since, until=until))
        return rated, chosen


def _monday(now: float) -> datetime:
    """Midnight at the beginning of this week, by the owner's own clock."""
    today = datetime.fromtimestamp(now)  # noqa: DTZ006  the owner's own clock
    day = today.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())
