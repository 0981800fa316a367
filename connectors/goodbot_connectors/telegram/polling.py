# SPDX-License-Identifier: Apache-2.0
"""Long polling: nothing to open to the internet.

The loop is our own. python-telegram-bot's `Updater` asks for the next updates, and thereby
confirms the last ones to Telegram, as soon as they are in its memory; here the offset moves only
after `host.submit` has committed, so that a crash in between gets the same updates again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from goodbot.api.connector import ConnectorHost
from goodbot.base.clock import ago, growing
from goodbot.base.errors import RetriableError, StoreError

from goodbot_connectors.kit.backoff import jittered, spread
from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.client import REFUSED_PAUSE
from goodbot_connectors.telegram.intake import Cursor, Intake, Taken, next_offset

logger = logging.getLogger(__name__)

_BACKOFF_MOST = 60.0
_QUIET = 5 * 86400.0
"""After a week without updates Telegram may choose the next update id anew, below our offset
(core.telegram.org/bots/api#update). It keeps updates for a day, so that asking without an offset
after some quiet days repeats nothing."""


_HELD = 0.5
"""Seconds that a poll without updates takes at least where the server holds it, as Telegram does."""
_UNHELD_MOST = 5.0
_SURE = 6
"""Polls that were not held, from which on it is said."""
_UNHELD = (
    "the Telegram server does not hold a poll until something new comes: it is asked every "
    f"{_UNHELD_MOST:g} s at most, and messages may come so late; look at api_base"
)


class Polling:
    """Asks for updates, one request at a time."""

    def __init__(
        self,
        host: ConnectorHost,
        api: Api,
        intake: Intake,
        follow_up: Callable[[Taken], None],
        timeout: int,
        cursor: Cursor,
    ) -> None:
        self._host, self._api, self._intake, self._follow_up = host, api, intake, follow_up
        self._timeout, self._offset = timeout, cursor.offset
        self._last_update = cursor.since_ms / 1000
        self._unheld = 0
        """Polls that were answered at once and with nothing new, since one was held."""
        self._pauses = 0
        """How often it has paused for that since something new came."""

    async def first(self) -> None:
        """Say which updates we want before anybody can react to what we send.

        They stay unconfirmed; the loop gets them again.
        """
        await self._api.updates(self._from(), 0)

    async def run(self) -> None:
        """Until the host stops."""
        failures = 0
        while not self._host.stopping.is_set():
            try:
                await self._poll()
                failures = 0
                self._host.trouble(_UNHELD if self._unheld >= _SURE else "")
                if self._pauses:
                    await self._host.clock.sleep(growing(self._pauses, first=0.1, most=_UNHELD_MOST))
            except (RetriableError, StoreError) as error:
                # Nothing was confirmed: the next poll gets the same updates again.
                pause = spread(growing(failures, most=_BACKOFF_MOST))
                if isinstance(error, RetriableError):
                    pause = max(pause, jittered(error.retry_after))
                failures += 1
                lasting = failures > 1 or pause >= REFUSED_PAUSE
                if isinstance(error, RetriableError) and lasting:
                    self._host.trouble(str(error))
                logger.warning("telegram: %s; trying again in %.1f s", error, pause)
                await self._host.clock.sleep(pause)

    async def _poll(self) -> None:
        """One poll. The offset, whose use confirms the last one, moves after the commit."""
        began = time.monotonic()
        asked = self._from()
        updates = await self._api.updates(asked, self._timeout)
        offset = next_offset(updates)
        if offset is None or (asked is not None and offset <= asked):  # what is before that is stored
            held = offset is None and time.monotonic() - began >= _HELD
            self._unheld, self._pauses = (0, 0) if held else (self._unheld + 1, self._pauses + 1)
            return
        self._pauses = 0
        taken = await self._intake.take(updates, offset)
        self._offset = offset
        self._last_update = self._host.clock.now()
        self._follow_up(taken)

    def _from(self) -> int | None:
        """The offset to ask from; None after quiet days."""
        quiet = ago(self._last_update, self._host.clock.now()) > _QUIET
        return None if quiet else self._offset
