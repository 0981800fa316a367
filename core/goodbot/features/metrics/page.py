# SPDX-License-Identifier: Apache-2.0
"""The figures themselves, and who is shown them.

Labels are names of platforms, of parts and of outcomes: never what people wrote, who they are, or where.
What is counted here begins with 0 at each start; the rest is read from goodbot whenever somebody asks.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from aiohttp import hdrs, web

from goodbot.api.events import RatingEvent, RatingKind, Receipt
from goodbot.api.feature import Feature, FeatureHost, Figures
from goodbot.api.hookspecs import hookimpl
from goodbot.api.turns import Turn
from goodbot.base.busy import GUARDS
from goodbot.base.errors import ConfigError, GoodbotError
from goodbot.features.metrics.exposition import (
    CONTENT_TYPE,
    CounterFamily,
    GaugeFamily,
    HistogramFamily,
    text,
)
from goodbot.features.metrics.plugin import TOKEN

_SHORTEST = 16
"""Characters of the token."""
_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_SIGNS = ("good", "bad", "neutral", "taken_back", "words", "outcome")
_VERDICTS = ("activated", "refused", "failed", "superseded")
_UP = "Whether a part works."
_LEVELS = {logging.WARNING: "warning", logging.ERROR: "error", logging.CRITICAL: "error"}


class Metrics(Feature):
    """Counts what the hooks tell, and answers at `/metrics`."""

    def __init__(self, host: FeatureHost, settings: Any) -> None:
        super().__init__(host, settings)
        if len(host.secrets.get(TOKEN).reveal()) < _SHORTEST:
            raise ConfigError(f"{TOKEN} is too short: take {_SHORTEST} characters or more, at random")
        self._answers = CounterFamily(
            name="goodbot_answers_total",
            help="Messages and presses for another answer, by what came of them.",
            labels=("platform", "outcome"),
        )
        self._seconds = HistogramFamily(
            name="goodbot_answer_seconds",
            help="How long an answer that was sent took.",
            label="platform",
            bounds=_SECONDS,
        )
        self._captured = CounterFamily(
            name="goodbot_captured_answers_total",
            help="Answers that other programs have given and brought in.",
            labels=("platform",),
        )
        self._ratings = _counter("goodbot_ratings_total", "What people said of answers.", "sign", _SIGNS)
        self._rounds = _counter("goodbot_rounds_total", "Trainings that ended.", "verdict", _VERDICTS)
        self._log = _counter("goodbot_log_lines_total", "Lines of the log.", "level", ("warning", "error"))

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [web.get("/metrics", self._asked)]

    async def run(self) -> None:
        """Count lines of the log for as long as goodbot runs."""
        counting = _Counting(self._log)
        logging.getLogger().addHandler(counting)
        try:
            await asyncio.Event().wait()
        finally:
            logging.getLogger().removeHandler(counting)

    @hookimpl
    def on_answer(self, connector: str, outcome: str, seconds: float) -> None:
        self._answers.add(connector, outcome)
        if outcome == "sent":
            self._seconds.add(connector, seconds)

    @hookimpl
    def on_turn(self, turn: Turn) -> None:
        if turn.origin == "captured":
            self._captured.add(turn.channel.connector)

    @hookimpl
    def on_rating(self, event: RatingEvent, receipt: Receipt) -> None:
        del receipt
        self._ratings.add(_sign(event))

    @hookimpl
    def on_training_finished(self, state: str) -> None:
        self._rounds.add(state)

    async def _asked(self, request: web.Request) -> web.Response:
        """The figures, to whoever has the token.

        Whose address it is says nothing: behind a proxy on this machine everybody comes from here.
        """
        kind, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        token = self.host.secrets.get(TOKEN).reveal()
        known = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
        if kind.lower() != "bearer" or not known:
            headers = {**GUARDS, hdrs.WWW_AUTHENTICATE: "Bearer"}
            return web.Response(status=401, text="This needs a token.\n", headers=headers)
        counted = (self._answers, self._seconds, self._captured, self._ratings, self._rounds, self._log)
        try:
            read = list(_read(await self.host.figures()))
        except GoodbotError:  # the store: then this is what has to be known
            read = [_by("goodbot_up", _UP, "part", {"store": 0})]
        page = text([*counted, *read])
        return web.Response(body=page.encode(), headers={**GUARDS, hdrs.CONTENT_TYPE: CONTENT_TYPE})


class _Counting(logging.Handler):
    """Counts lines, and looks at nothing else of them."""

    def __init__(self, counter: CounterFamily) -> None:
        super().__init__(logging.WARNING)
        self._counter = counter

    def emit(self, record: logging.LogRecord) -> None:
        if level := _LEVELS.get(record.levelno):
            self._counter.add(level)


def _sign(event: RatingEvent) -> str:
    if event.kind is RatingKind.RETRACT:
        return "taken_back"
    if event.kind in (RatingKind.OUTCOME, RatingKind.JUDGE):
        return "outcome"
    if event.kind is not RatingKind.RATE or event.value is None:
        return "words"
    return "good" if event.value > 0 else "bad" if event.value < 0 else "neutral"


def _counter(name: str, help: str, label: str, values: Sequence[str]) -> CounterFamily:
    """One that says 0 of what has not been yet: a rate is known from the first one on."""
    return CounterFamily(name=name, help=help, labels=(label,), values={(value,): 0 for value in values})


def _read(f: Figures) -> Iterator[GaugeFamily]:
    """What goodbot says of itself now."""
    yield _by("goodbot_up", _UP, "part", {n: float(v) for n, v in f.parts.items()})
    yield _one("goodbot_start_time_seconds", "When goodbot started.", f.started_at)
    yield _one("goodbot_version_live", "The version that answers; 0 is the base model.", f.version)
    liked = {"liked": f.good, "not_liked": f.rated - f.good}
    yield _by("goodbot_version_live_answers", "Rated answers of that version.", "rating", liked)
    share = {(): f.good / f.rated} if f.rated else {}
    yield GaugeFamily(name="goodbot_version_live_liked_ratio", help="Its liked share.", values=share)
    yield _one("goodbot_ratings_waiting", "Rated answers that wait for the next training.", f.ratings)
    yield _one("goodbot_ratings_needed", "For so many it waits.", f.needed)
    yield _one("goodbot_training", "Whether a training goes on.", f.training)
    yield _one("goodbot_paused", "Whether training, or goodbot, is switched off.", f.paused)
    waiting = {"answers": f.inbox, "database": f.commits}
    yield _by("goodbot_queue_length", "What waits to be answered, or to be stored.", "queue", waiting)
    yield _grown("goodbot_model_restarts_total", "Restarts of the model's process.", "", {"": f.restarts})
    refused = {str(status): f.refused.get(status, 0) for status in (429, 503)}
    yield _grown("goodbot_refused_requests_total", "Requests told to come again later.", "status", refused)
    yield _one("goodbot_disk_free_bytes", "Free on the disk of the state directory.", f.disk_free)
    yield _one("goodbot_disk_reserve_bytes", "With less free only ratings are kept.", f.disk_reserve)
    yield _one("goodbot_database_bytes", "The database with its log.", f.database)


def _one(name: str, help: str, number: float) -> GaugeFamily:
    return GaugeFamily(name=name, help=help, values={(): float(number)})


def _by(name: str, help: str, label: str, values: dict[str, float] | dict[str, int]) -> GaugeFamily:
    return GaugeFamily(name=name, help=help, labels=(label,), values={(one,): n for one, n in values.items()})


def _grown(name: str, help: str, label: str, values: dict[str, int]) -> CounterFamily:
    numbers = {(one,) if label else (): float(n) for one, n in values.items()}
    return CounterFamily(name=name, help=help, labels=(label,) if label else (), values=numbers)
