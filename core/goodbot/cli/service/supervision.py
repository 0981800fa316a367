# SPDX-License-Identifier: Apache-2.0
"""What a supervisor is shown of a running goodbot: sd_notify, and `/healthz` and `/readyz`.

It holds the process's one HTTP server, where connectors may answer too. It outlives the App: while
one is replaced by the next, the process still answers that it is alive.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from goodbot.base.clock import Clock, SystemClock
from goodbot.base.tasks import end_tasks
from goodbot.cli.service.notify import Notifier
from goodbot.config import HttpConfig
from goodbot.daemon.http import readiness
from goodbot.daemon.http.http import Http, PartsSeen

if TYPE_CHECKING:
    from goodbot.daemon.app import App


class Supervision:
    """One a process. `start`, then `up` whenever an App is ready, `stop` at the end."""

    def __init__(
        self,
        http: HttpConfig,
        *,
        home: Path | None = None,
        notifier: Notifier | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`home` as in `Http`."""
        self.http = Http(http, self._parts, home)
        self._notifier = notifier or Notifier.from_environment()
        self._clock = clock or SystemClock()
        self._app: App | None = None
        self._feeding: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to answer: alive, not ready yet. Raises ConfigError when the port cannot be had."""
        self._notifier.status("starting")
        await self.http.start()

    def begun(self, app: App) -> None:
        """Ratings are taken, platforms are connected to, and the model comes up; `up` follows."""
        self._app = app

    def up(self, app: App, status: str) -> None:
        """People are answered. `status` is one line about it."""
        self._app = app
        self._notifier.ready(status)
        if self._feeding is None:
            feeding = self._notifier.feed(self._clock, self._alive)
            self._feeding = asyncio.create_task(feeding, name="watchdog")

    def restarting(self, status: str = "restarting") -> None:
        """This App ends and another one takes its place; `up` follows."""
        self._app = None
        self._notifier.reloading(self._clock, status)

    def stopping(self) -> None:
        """The last App ends."""
        self._app = None
        self._notifier.stopping()

    async def stop(self) -> None:
        """Answer no more; idempotent."""
        if self._feeding is not None:
            await end_tasks(self._feeding)
            self._feeding = None
        await self.http.stop()

    async def _alive(self) -> bool:
        """A writer that is stuck must not look alive; loading a model has no writer yet."""
        return self._app is None or await readiness.store_answers(self._app)

    async def _parts(self) -> PartsSeen:
        return await readiness.seen(self._app) if self._app else PartsSeen()
