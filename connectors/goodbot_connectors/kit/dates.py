# SPDX-License-Identifier: Apache-2.0
"""The `Date` of a platform's answers: what its clock shows, and that against ours."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from goodbot.api.setup import Check, warn
from goodbot.api.texts.terminal import phrase, rephrased
from goodbot.base.clock import Clock
from goodbot.base.platform_time import APART, SET_CLOCK


class Dates:
    """What the answers say, each told on as it comes."""

    def __init__(self, clock: Clock, tell: Callable[[float], None] = lambda _: None) -> None:
        self._clock, self._tell = clock, tell
        self._ahead = 0.0
        self._told: tuple[float, float] | None = None
        """What its clock showed last, and our monotonic one then."""

    def now(self) -> float:
        """What the platform's clock shows, in seconds since the epoch; ours until it was told.

        For what is compared with the platform's times: ours may be another, and be set.
        """
        if self._told is None:
            return self._clock.now()
        told, heard = self._told
        return told + self._clock.monotonic() - heard

    def now_ms(self) -> int:
        """The same in milliseconds."""
        return int(self.now() * 1000)

    def take(self, date: str) -> None:
        """A `Date` as HTTP has it; one that cannot be read says nothing."""
        try:
            told = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        self._ahead = self._clock.now() - told
        self._told = told, self._clock.monotonic()
        self._tell(told)

    def trace(self) -> aiohttp.TraceConfig:
        """For a session of aiohttp's: the date of each answer, but not of one that was kept on its way."""

        async def answered(
            session: aiohttp.ClientSession, context: Any, end: aiohttp.TraceRequestEndParams
        ) -> None:
            if "Age" not in end.response.headers:
                self.take(end.response.headers.get("Date", ""))

        found = aiohttp.TraceConfig()
        found.on_request_end.append(answered)
        return found

    def checks(self, title: str) -> list[Check]:
        """What the doctor says of it: nothing where they agree."""
        if abs(self._ahead) <= APART:
            return []
        key = "clock_ahead" if self._ahead > 0 else "clock_behind"
        text = phrase(key, seconds=f"{abs(self._ahead):.0f}", title=title)
        return [warn("clock", text, rephrased(SET_CLOCK))]
