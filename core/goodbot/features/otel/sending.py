# SPDX-License-Identifier: Apache-2.0
"""What waits to be sent, and how it leaves: in a thread, in order, and never in anybody's way.

Telemetry is worth less than an answer: so much waits at most, and where the collector takes nothing for long,
what is oldest is dropped. How much that was is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from goodbot.api.feature import FeatureHost
from goodbot.base.clock import growing
from goodbot.base.errors import unexpected
from goodbot.features.otel.plugin import OtelSettings

logger = logging.getLogger(__name__)

MOST = 2000
"""So much waits at most, of spans and of events."""
_BATCH = 200
_TRIES = 10
"""Then a batch is dropped: it may be what the collector refuses."""
_LONGEST = 60.0
"""Seconds between two tries."""
_SECONDS = 5.0
"""A request takes no longer, with what the library tries again by itself."""


class Exporter(Protocol):
    """What sends; both of the library's own do."""

    def export(self, batch: Sequence[Any], /) -> Any:
        """Send it, and return once it was taken, or was not."""
        ...

    def shutdown(self) -> None:
        """Give up what is being tried."""
        ...


def exporters(settings: OtelSettings) -> tuple[Exporter, Exporter]:
    """What sends spans, and what sends events. Neither follows a redirect."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # here one line tells of it, not three
    base = settings.endpoint.rstrip("/")
    return (
        OTLPSpanExporter(endpoint=f"{base}/v1/traces", timeout=_SECONDS),
        OTLPLogExporter(endpoint=f"{base}/v1/logs", timeout=_SECONDS),
    )


class SendQueue:
    """What waits of one kind."""

    def __init__(self, kind: str, host: FeatureHost, settings: OtelSettings) -> None:
        self._kind, self._host = kind, host
        self._where = urlsplit(settings.endpoint).netloc
        self._waiting: deque[Any] = deque(maxlen=MOST)
        self._leaving: list[Any] = []
        self._news = asyncio.Event()
        self._dropped = 0

    def add(self, one: Any) -> None:
        """Send it soon; returns at once."""
        self._dropped += len(self._waiting) == MOST
        self._waiting.append(one)
        self._news.set()

    def clear(self) -> None:
        """Send nothing of what waits, nor again what was not taken."""
        self._waiting.clear()
        self._leaving.clear()

    async def run(self, exporter: Exporter) -> None:
        """Send what comes, until cancelled."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    self._leaving = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                    await self._leave(exporter)
                    self._leaving.clear()
        finally:
            exporter.shutdown()

    async def _leave(self, exporter: Exporter) -> None:
        for tries in range(_TRIES):
            why = await _sent(exporter, [*self._leaving])
            if not why:
                break
            text = f"{self._where} takes no {self._kind}: {why}"
            logger.warning("%s", text)
            self._host.trouble(self._kind, text + self._lost())
            await self._host.clock.sleep(growing(tries, most=_LONGEST))
            if not self._leaving:
                return
        else:
            self._dropped += len(self._leaving)
            return
        self._host.trouble(self._kind, "")
        if self._dropped:
            logger.warning("%d %s were dropped while nothing was taken", self._dropped, self._kind)
            self._dropped = 0

    def _lost(self) -> str:
        return f"; {self._dropped} were dropped" if self._dropped else ""


async def _sent(exporter: Exporter, batch: Sequence[Any]) -> str:
    """Empty once it was taken, else why not."""
    try:
        result = await asyncio.to_thread(exporter.export, batch)
    except Exception as error:  # the library's; what it raises stops nothing of ours
        return unexpected(error)
    return "" if result.name == "SUCCESS" else "no answer, or a refusal"
