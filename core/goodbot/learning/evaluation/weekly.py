# SPDX-License-Identifier: Apache-2.0
"""Once a week, privately: how each version was rated and chosen. Nothing where nobody did either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from goodbot.access.direct_message import Courier
from goodbot.api.notice import Notice
from goodbot.base.clock import Clock
from goodbot.learning.evaluation import report
from goodbot.store import Store, acceptance, comparisons
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
        self._known = ("", "")
        """The last week that was looked at, and what there is to tell of it."""

    async def look(self) -> None:
        """Tell each owner who has not heard yet."""
        monday = _monday(self._clock.now())
        week = f"{monday - timedelta(days=7):%G-W%V}"
        if self._known[0] != week:
            self._known = (week, await self._text(monday))
        text = self._known[1]
        for owner in self._owners() if text else ():
            await self._courier.tell(Notice(key=f"week {week} {owner}", person=owner, text=text))

    async def _text(self, monday: datetime) -> str:
        since, until = (monday - timedelta(days=7)).timestamp(), monday.timestamp()
        rated = await self._store.read(
            lambda db: acceptance.by_version(db, self._pool, since=since, until=until)
        )
        chosen = await self._store.read(lambda db: comparisons.sums(db, self._pool, since=since, until=until))
        told = [*map(report.accepted, rated), *report.chosen(chosen)]
        return "\n".join(["Last week:", *told]) if told else ""


def _monday(now: float) -> datetime:
    """Midnight at the beginning of this week, by the owner's own clock."""
    today = datetime.fromtimestamp(now)  # noqa: DTZ006  the owner's own clock
    day = today.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())
