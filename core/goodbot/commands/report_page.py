# SPDX-License-Identifier: Apache-2.0
"""The report for a page, for owners alone: made in the background, one at a time, kept for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from goodbot.access.authorization import person
from goodbot.api.commands import Grant
from goodbot.api.events import UserRef
from goodbot.api.report import ReportSeen, ReportTold
from goodbot.api.sentences import sentence
from goodbot.api.texts import reworded, say
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.commands import fixed_questions
from goodbot.commands.overview import in_private, reads
from goodbot.commands.report import made, most
from goodbot.store import inspection

if TYPE_CHECKING:
    from goodbot.commands.services import Services

logger = logging.getLogger(__name__)

KEPT_SECONDS = 15 * 60
"""It shows what was found when it was made; once anybody is forgotten it is not shown any more."""


class ReportDesk:
    """Makes one at a time, and shows it to whoever asked: what one owner may read is not another's."""

    def __init__(
        self, services: Services, spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    ) -> None:
        """`spawn` runs it, and ends it with the connector."""
        self._services = services
        self._spawn = spawn
        self._of_whom = ""
        self._at: float | None = None
        self._parts: Sequence[ReportTold] = ()
        self._forgettings = 0
        """So many had been when it was begun."""
        self._task: asyncio.Task[None] | None = None
        self._done = self._of = 0
        self._asking, self._trouble = False, ""

    async def seen(self, user: UserRef, *, anew: bool, ask: bool) -> ReportSeen:
        """What there is; with `anew`, another one is begun, and with `ask` the version asked first.

        Raises UsageError.
        """
        services = self._services
        if not services.authorization.may(user, Grant.ADMINISTER):
            raise UsageError(say("see_report", reads(services, user)))
        await self._let_go()
        mine = self._of_whom == person(user)
        of = await most(services) if anew else 0
        making = self._task is not None and not self._task.done()
        if anew and not making:
            self._asking, self._trouble = ask, ""
            self._count(0, 0 if ask else of)
            self._task = self._spawn(self._make(user, of), "a report")
            making = True
        return ReportSeen(
            at=self._at if mine else None,
            parts=self._parts if mine else (),
            making=making,
            asking=making and self._asking,
            done=self._done,
            of=self._of,
            trouble=self._trouble,
        )

    async def _let_go(self) -> None:
        """Of one that is too old, or that may hold words of somebody who is forgotten since."""
        if self._at is None:
            return
        now = await self._services.store.read(inspection.forgettings)
        if self._services.clock.now() - self._at > KEPT_SECONDS or now != self._forgettings:
            self._at, self._parts = None, ()

    async def _make(self, user: UserRef, of: int) -> None:
        services = self._services
        try:
            before = await services.store.read(inspection.forgettings)
            if self._asking:
                await fixed_questions.ask(services, self._count)
                self._asking = False
            call, specs = in_private(services, user, "report"), services.plugins.reports()
            parts = await made(call, specs, lambda done: self._count(done, of))
        except GoodbotError as error:
            self._trouble = sentence(reworded(error, user.language), user.language)
        except Exception:
            logger.exception("a report has failed")
            self._trouble = sentence(say("report_failed", user.language), user.language)
        else:
            self._at, self._parts, self._of_whom = services.clock.now(), parts, person(user)
            self._forgettings = before

    def _count(self, done: int, of: int) -> None:
        self._done, self._of = done, of
