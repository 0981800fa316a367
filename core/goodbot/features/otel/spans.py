# SPDX-License-Identifier: Apache-2.0
"""What is told of an answer, a rating and a training, in the names of OpenTelemetry's conventions for GenAI.

An answer's span has ids that are made of the answer's own: so a rating that comes a week later, or after a
restart, still belongs to it. Nobody who asked or rated is told of, and no words without `content`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.context import Context
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from goodbot import __version__
from goodbot.api.events import ChannelKind, RatingEvent, RatingKind, Receipt
from goodbot.api.feature import Feature, FeatureHost
from goodbot.api.hookspecs import hookimpl
from goodbot.api.turns import Turn
from goodbot.features.otel import attributes, sending
from goodbot.features.otel.sending import SendQueue

_KNOWN = 200
"""So many answers at most wait for the word of what came of them."""
_SCOPE = "goodbot"


@dataclass(kw_only=True, slots=True)
class _Training:
    """A training under way: its phases, each with when it began, and what its steps have told."""

    began: float
    answers: int = 0
    interruptions: int = 0
    phases: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    numbers: dict[str, float] = field(default_factory=dict[str, float])


class _Ids(IdGenerator):
    """Those that the next span gets."""

    def __init__(self) -> None:
        self.trace, self.span = 1, 1

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


class _Ended(SpanProcessor):
    """Hands on what has ended."""

    def __init__(self, to: SendQueue) -> None:
        self._to = to

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del span, parent_context

    def on_end(self, span: ReadableSpan) -> None:
        self._to.add(span)


class Spans(Feature):
    """Hears the hooks, and lays down what is to be sent."""

    def __init__(self, host: FeatureHost, settings: Any) -> None:
        super().__init__(host, settings)
        self._spans = SendQueue("spans", host, settings)
        self._events = SendQueue("events", host, settings)
        self._resource = Resource({"service.name": _SCOPE, "service.version": __version__})
        self._ids = _Ids()
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=self._resource, id_generator=self._ids, shutdown_on_exit=False
        )
        provider.add_span_processor(_Ended(self._spans))
        self._tracer = provider.get_tracer(_SCOPE, __version__)
        self._turns: dict[str, Turn] = {}
        self._trainings: dict[int, _Training] = {}

    async def run(self) -> None:
        """Send, until cancelled."""
        of_spans, of_events = sending.exporters(self.settings)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._spans.run(of_spans), name="otel spans")
            tasks.create_task(self._events.run(of_events), name="otel events")

    @hookimpl
    def on_turn(self, turn: Turn) -> None:
        if turn.origin == "captured":  # another program has given it; how long that took nobody knows
            self._answer(turn, turn.channel.connector, "sent", turn.id, turn.created_at, turn.created_at)
            return
        self._turns[turn.id] = turn
        if len(self._turns) > _KNOWN:
            del self._turns[next(iter(self._turns))]

    @hookimpl
    def on_answer(self, connector: str, outcome: str, seconds: float, turn: str) -> None:
        now = self.host.clock.now()
        self._answer(self._turns.pop(turn, None), connector, outcome, turn, now - seconds, now)

    @hookimpl
    def on_rating(self, event: RatingEvent, receipt: Receipt) -> None:
        turn = receipt.turn or event.turn
        if not turn:
            return  # the answer that it is about is not known yet
        about: dict[str, Any] = {
            "gen_ai.evaluation.name": "outcome" if event.kind is RatingKind.OUTCOME else "rating",
            "gen_ai.evaluation.score.label": attributes.label(event),
            "gen_ai.response.id": turn,
            "goodbot.platform": event.user.connector,
        }
        if event.value is not None:
            about["gen_ai.evaluation.score.value"] = float(event.value)
        if event.text and self._words_of(event.channel.kind):
            about["gen_ai.evaluation.explanation"] = attributes.masked(event.text)
        at = _ns(self.host.clock.now())
        record = LogRecord(
            timestamp=at,
            observed_timestamp=at,
            context=trace.set_span_in_context(NonRecordingSpan(_context(turn)), Context()),
            event_name="gen_ai.evaluation.result",
            attributes=about,
        )
        scope = InstrumentationScope(_SCOPE, __version__)
        self._events.add(
            ReadableLogRecord(log_record=record, resource=self._resource, instrumentation_scope=scope)
        )

    @hookimpl
    def on_forgotten(self) -> None:
        """What waits may hold words of theirs, or an answer that repeats them."""
        if self.settings.content:
            self._turns.clear()
            self._spans.clear()
            self._events.clear()

    @hookimpl
    def on_training_started(self, run: int, items: int) -> None:
        self._trainings[run] = _Training(began=self.host.clock.now(), answers=items)

    @hookimpl
    def on_training_progress(self, run: int, progress: Mapping[str, Any]) -> None:
        one, phase = self._training(run), str(progress.get("phase"))
        if not one.phases or one.phases[-1][0] != phase:
            one.phases.append((phase, self.host.clock.now()))
        numbers = {name: progress[name] for name in ("loss", "kl", "grad_norm") if name in progress}
        one.numbers |= {name: float(number) for name, number in numbers.items()}
        if phase == "train":
            one.numbers |= {"steps": float(progress.get("step") or 0)}

    @hookimpl
    def on_training_interrupted(self, run: int) -> None:
        self._training(run).interruptions += 1

    @hookimpl
    def on_training_finished(self, run: int, state: str, reason: str) -> None:
        one, now = self._training(run), self.host.clock.now()
        del self._trainings[run]
        said: dict[str, Any] = {
            "gen_ai.operation.name": "train",
            "gen_ai.provider.name": _SCOPE,
            "goodbot.training": run,
            "goodbot.training.answers": one.answers,
            "goodbot.training.interruptions": one.interruptions,
            "goodbot.training.verdict": state,
            **{f"goodbot.training.{name}": number for name, number in one.numbers.items()},
        }
        if state == "refused":  # of what has failed it may hold what others wrote
            said["goodbot.training.reason"] = reason
        whole = _context(f"training {run} {one.began!r}")
        self._span(f"train {run}", whole, said, one.began, now, failed=state if state == "failed" else "")
        ends = [*(began for _, began in one.phases[1:]), now]
        for number, ((phase, began), ended) in enumerate(zip(one.phases, ends, strict=True)):
            own = SpanContext(whole.trace_id, _id(f"{whole.span_id} {number}", 8), is_remote=False)
            self._span(phase, own, {"goodbot.training": run}, began, ended, within=whole)

    def _training(self, run: int) -> _Training:
        """What is known of it; it may have begun before goodbot did."""
        return self._trainings.setdefault(run, _Training(began=self.host.clock.now()))

    def _answer(
        self, turn: Turn | None, connector: str, outcome: str, id_: str, began: float, ended: float
    ) -> None:
        said: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _SCOPE,
            "goodbot.platform": connector,
            "goodbot.outcome": outcome,
        }
        name = "chat"
        if turn is not None:
            said |= attributes.of_turn(turn)
            name = f"chat {said['gen_ai.request.model']}"
            if self._words_of(turn.channel.kind):
                said |= attributes.words(turn)
        failed = "" if outcome == "sent" else outcome
        self._span(name, _context(id_), said, began, ended, failed=failed, kind=SpanKind.CLIENT)

    def _words_of(self, kind: ChannelKind) -> bool:
        return self.settings.content and kind is ChannelKind.SHARED

    def _span(
        self,
        name: str,
        own: SpanContext,
        said: Mapping[str, Any],
        began: float,
        ended: float,
        *,
        within: SpanContext | None = None,
        failed: str = "",
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._ids.trace, self._ids.span = own.trace_id, own.span_id
        parent = trace.set_span_in_context(NonRecordingSpan(within), Context()) if within else Context()
        kept = {**said, "error.type": failed} if failed else dict(said)
        span = self._tracer.start_span(
            name, context=parent, kind=kind, attributes=kept, start_time=_ns(began)
        )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_ns(max(began, ended)))


def _context(of: str) -> SpanContext:
    """The ids of the span of an answer, or of something else that has a name."""
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(_id(f"trace {of}", 16), _id(f"span {of}", 8), is_remote=False, trace_flags=flags)


def _id(of: str, size: int) -> int:
    """Never 0: that is none."""
    return int.from_bytes(hashlib.sha256(of.encode()).digest()[:size], "big") or 1


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
