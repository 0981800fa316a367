# SPDX-License-Identifier: Apache-2.0
"""What OpenTelemetry is told of answers, ratings and trainings; that no words leave, and nobody waits."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from goodbot.base import redact
from goodbot.features.otel import attributes, plugin
from goodbot.features.otel.plugin import OtelSettings
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, open_bot, until
from tests.core.webhooks.receiving import Laid

WORDS = "my daughter's name is Wilhelmina"
KEY = "ghp_" + "C4naryPq7" * 4
ROOM = "#room"

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")

from goodbot.features.otel import sending  # noqa: E402  the extra brings what it imports
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter  # noqa: E402
from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402


class Kept:
    """What the library's own exporters in memory were given."""

    def __init__(self) -> None:
        self.of_spans, self.of_events = InMemorySpanExporter(), InMemoryLogRecordExporter()
        self.of_spans.shutdown = self.of_events.shutdown = lambda: None  # they outlive one goodbot

    @property
    def spans(self) -> list[Any]:
        return [*self.of_spans.get_finished_spans()]

    @property
    def events(self) -> list[Any]:
        return [one.log_record for one in self.of_events.get_finished_logs()]

    def text(self) -> str:
        told = [*self.spans, *self.of_events.get_finished_logs()]
        return "\n".join(one.to_json() for one in told)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    made = Kept()
    monkeypatch.setattr(sending, "exporters", lambda settings: (made.of_spans, made.of_events))
    return made


@contextlib.asynccontextmanager
async def told(home: Path, **settings: Any) -> AsyncGenerator[Bot]:
    async with open_bot(home, extra=(plugin,), sections={"features": {"otel": settings}}) as bot:
        await bot.command("enable", channel=ROOM)
        yield bot


async def test_an_answer_is_one_span_in_the_names_of_the_conventions(tmp_path: Path, kept: Kept) -> None:
    async with told(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await until(lambda: kept.spans)
        [span] = kept.spans
        said = dict(span.attributes)
        model = bot.app.model.name
        assert span.name == f"chat {model}"
        assert said["gen_ai.operation.name"] == "chat"
        assert said["gen_ai.provider.name"] == "goodbot"
        assert said["gen_ai.request.model"] == model
        assert said["gen_ai.response.id"] == answer.turn
        assert said["gen_ai.usage.output_tokens"] > 0
        assert (said["goodbot.platform"], said["goodbot.outcome"]) == ("loopback", "sent")
        assert said["goodbot.version"] == 0
        assert span.end_time >= span.start_time > 0
        assert span.status.is_ok


async def test_what_came_to_nothing_is_an_error_without_words(tmp_path: Path, kept: Kept) -> None:
    async with told(tmp_path) as bot:
        bot.fake.set(generate="die")
        await bot.say(WORDS)
        await until(lambda: kept.spans)
        [span] = kept.spans
        assert span.attributes["error.type"] == "no_model"
        assert not span.status.is_ok
        assert "gen_ai.response.id" not in span.attributes


async def test_a_rating_is_an_event_of_its_answers_span_also_after_a_restart(
    tmp_path: Path, kept: Kept
) -> None:
    async with told(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        await until(lambda: kept.events)
    async with told(tmp_path) as bot:
        await bot.command("bad", reply_to=answer.message.id)
        await until(lambda: len(kept.events) == 2)
    [span], (first, second) = kept.spans, kept.events
    assert {one.event_name for one in (first, second)} == {"gen_ai.evaluation.result"}
    for event, value, label in ((first, 1.0, "good"), (second, -1.0, "bad")):
        assert (event.trace_id, event.span_id) == (span.context.trace_id, span.context.span_id)
        assert event.attributes["gen_ai.evaluation.name"] == "rating"
        assert event.attributes["gen_ai.evaluation.score.value"] == value
        assert event.attributes["gen_ai.evaluation.score.label"] == label
        assert event.attributes["gen_ai.response.id"] == answer.turn


@pytest.mark.parametrize("content", [False, True])
async def test_words_leave_only_where_the_owner_says_so_and_never_private_ones(
    tmp_path: Path, kept: Kept, content: bool
) -> None:
    async with told(tmp_path, content=content) as bot:
        await bot.say(f"{WORDS} in private")
        answer = await bot.say(f"{WORDS} {KEY}", user="rater", channel=ROOM)
        await bot.react(answer, "👎")
        await bot.command("reason", WORDS, reply_to=answer.message.id, channel=ROOM)
        await until(lambda: len(kept.spans) == 2 and len(kept.events) == 2)
        text = kept.text()
        assert ("Wilhelmina" in text) == content
        assert "in private" not in text
        assert KEY not in text
        assert [one for one in ("rater", ROOM, str(tmp_path)) if one in text] == []
        private, shared = kept.spans
        assert "gen_ai.input.messages" not in private.attributes
        if content:
            [asked] = json.loads(shared.attributes["gen_ai.input.messages"])
            assert asked == {"role": "user", "parts": [{"type": "text", "content": f"{WORDS} ***"}]}
            [said] = json.loads(shared.attributes["gen_ai.output.messages"])
            assert (said["role"], said["finish_reason"]) == ("assistant", "stop")
            assert kept.events[1].attributes["gen_ai.evaluation.explanation"] == WORDS


async def test_a_training_is_a_span_with_its_loss_verdict_and_phases(tmp_path: Path, kept: Kept) -> None:
    async with told(tmp_path) as bot:
        await bot.rated(8)
        outcome = await bot.train()
        await until(lambda: any(span.name.startswith("train ") for span in kept.spans))
        features = bot.app.manager.features
        one = features._made["otel"]  # what a real trainer tells beside
        one.on_training_started(77, 32)
        one.on_training_progress(77, {"phase": "load", "step": 0, "steps": 1})
        one.on_training_progress(77, {"phase": "train", "step": 3, "steps": 4, "loss": 0.5, "eta": 1.0})
        one.on_training_interrupted(77)
        one.on_training_progress(77, {"phase": "train", "step": 4, "steps": 4, "loss": 0.25})
        one.on_training_finished(77, "refused", "the liked share fell")
        await until(lambda: any(span.name == "train 77" for span in kept.spans))
    spans = {span.name: span for span in kept.spans}
    said = spans[f"train {outcome.run}"].attributes
    assert (said["goodbot.training.verdict"], said["goodbot.training.answers"]) == ("activated", 8)
    whole = spans["train 77"]
    assert whole.attributes["goodbot.training.verdict"] == "refused"
    assert whole.attributes["goodbot.training.reason"] == "the liked share fell"
    assert whole.attributes["goodbot.training.loss"] == 0.25
    assert whole.attributes["goodbot.training.steps"] == 4
    assert whole.attributes["goodbot.training.interruptions"] == 1
    within = [span for span in kept.spans if span.parent and span.parent.span_id == whole.context.span_id]
    assert [span.name for span in within] == ["load", "train"]
    assert {span.context.trace_id for span in within} == {whole.context.trace_id}
    assert len({span.context.span_id for span in (*within, whole)}) == 3


@contextlib.asynccontextmanager
async def collector() -> AsyncGenerator[tuple[str, dict[str, list[bytes]]]]:
    """One on this machine that takes OTLP over HTTP: its address, and what came by path."""
    came: dict[str, list[bytes]] = {"/v1/traces": [], "/v1/logs": []}

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        packed = request.headers.get("Content-Encoding") == "gzip"
        came[request.path].append(gzip.decompress(body) if packed else body)
        return web.Response(body=b"", content_type="application/x-protobuf")

    app = web.Application()
    app.router.add_post("/v1/{kind}", take)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", came
    finally:
        await runner.cleanup()


async def test_a_collector_gets_it_as_otlp(tmp_path: Path) -> None:
    async with collector() as (address, came), told(tmp_path, endpoint=address) as bot:
        answer = await bot.say(WORDS)
        await bot.react(answer, "👎")
        await until(lambda: came["/v1/traces"] and came["/v1/logs"])
    spans = ExportTraceServiceRequest.FromString(came["/v1/traces"][0]).resource_spans[0]
    events = ExportLogsServiceRequest.FromString(came["/v1/logs"][0]).resource_logs[0]
    named = {one.key: one.value.string_value for one in spans.resource.attributes}
    assert named["service.name"] == "goodbot"
    [span], [event] = spans.scope_spans[0].spans, events.scope_logs[0].log_records
    assert span.name.startswith("chat ")
    assert (event.trace_id, event.span_id) == (span.trace_id, span.span_id)
    assert event.event_name == "gen_ai.evaluation.result"
    assert b"Wilhelmina" not in b"".join(came["/v1/traces"] + came["/v1/logs"])


# -- a collector that is not there


class Collector:
    """Takes nothing so often, then all."""

    def __init__(self, refuses: int = 0) -> None:
        self.got: list[Any] = []
        self.refuses, self.asked = refuses, 0

    def export(self, batch: Sequence[Any], /) -> SpanExportResult:
        self.asked += 1
        if self.asked <= self.refuses:
            return SpanExportResult.FAILURE
        self.got += batch
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """There is nothing to end."""


@contextlib.asynccontextmanager
async def leaving(host: Laid, to: Collector) -> AsyncGenerator[sending.SendQueue]:
    lent: Any = host
    made = sending.SendQueue("spans", lent, OtelSettings())
    task = asyncio.create_task(made.run(to))
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_is_not_taken_is_tried_again_and_said_in_one_wording(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host, to = Laid(), Collector(refuses=3)
    async with leaving(host, to) as made:
        made.add("one")
        for number, pause in enumerate((1.0, 2.0, 4.0), start=1):
            await until(lambda n=number: to.asked == n and len(host.clock.slept) == n)
            assert "spans" in host.troubles
            assert host.clock.slept[-1] == pause
            host.clock.advance(pause)
        await until(lambda: to.got == ["one"])
        await until(lambda: host.troubles == {})
    lines = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(lines) == 3
    assert len(set(lines)) == 1, "of the same words the log has one line a minute"


async def test_of_what_was_not_taken_nothing_goes_once_it_is_let_go() -> None:
    host, to = Laid(), Collector(refuses=1)
    async with leaving(host, to) as made:
        for number in range(sending.MOST):  # some leave, some wait
            made.add(number)
        await until(lambda: to.asked == 1 and len(host.clock.slept) == 1)
        made.clear()
        made.add("later")
        host.clock.advance(1.0)
        await until(lambda: to.got)
        assert to.got == ["later"]
        await until(lambda: host.troubles == {})


@pytest.mark.parametrize("content", [False, True])
async def test_words_that_wait_go_when_somebody_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bool
) -> None:
    down = (Collector(refuses=1 << 30), Collector(refuses=1 << 30))
    monkeypatch.setattr(sending, "exporters", lambda settings: down)
    async with told(tmp_path, content=content) as bot:
        await bot.react(await bot.say(WORDS, user="rater", channel=ROOM), "👎", user="rater")
        made = bot.app.manager.features._made["otel"]
        waits = made._spans, made._events
        await until(lambda: all(one._leaving for one in waits))
        for said in ("me", "me yes"):
            await bot.command("forget", said, user="rater")
        left = [[*one._leaving, *one._waiting] for one in waits]
        assert [bool(one) for one in left] == [not content] * 2, "numbers may wait on"


async def test_what_a_collector_never_takes_is_dropped_and_the_next_goes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host, to = Laid(), Collector(refuses=10)
    host.clock = VirtualClock()
    async with leaving(host, to) as made:
        made.add("malformed")
        await until(lambda: to.asked == 10)
        made.add("sound")
        await until(lambda: to.got)
        assert to.got == ["sound"]
        await until(lambda: host.troubles == {})
    assert "1 spans were dropped while nothing was taken" in caplog.text


async def test_so_much_waits_and_of_more_the_oldest_goes(caplog: pytest.LogCaptureFixture) -> None:
    host, to = Laid(), Collector()
    async with leaving(host, to) as made:
        for number in range(sending.MOST + 5):  # before the task has begun
            made.add(number)
        await until(lambda: len(to.got) == sending.MOST)
    assert to.got == [*range(5, sending.MOST + 5)]
    assert "5 spans were dropped" in caplog.text


async def test_a_collector_that_hangs_keeps_no_answer_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, hangs = threading.Event(), Collector()
    asked = threading.Event()

    def export(batch: Sequence[Any], /) -> SpanExportResult:
        asked.set()
        go.wait()
        return Collector.export(hangs, batch)

    monkeypatch.setattr(hangs, "export", export)
    monkeypatch.setattr(sending, "exporters", lambda settings: (hangs, Collector()))
    try:
        async with told(tmp_path) as bot:
            await bot.say("Hello?")
            await until(asked.is_set)
            assert [(await bot.say(f"And {n}?")).text for n in range(3)]
            assert hangs.got == []
            go.set()
            await until(lambda: len(hangs.got) == 4)
    finally:
        go.set()


async def test_where_nobody_listens_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "exporters", lambda settings: (Collector(refuses=1 << 30), Collector()))
    async with told(tmp_path) as bot:
        await bot.say("Hello?")

        async def said() -> bool:
            return "otel.spans: 127.0.0.1:4318 takes no spans" in await bot.command("status")

        await until(said)


@pytest.mark.parametrize(
    ("endpoint", "wrong"),
    [
        ("collector:4318", "must be an address"),
        ("ftp://localhost", "must be an address"),
        ("http://collector.example:4318", "local = true"),
        ("https://me:secret@collector.example", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("https://collector.example/?key=x", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("http://localhost:port", "is no address"),
    ],
)
def test_an_endpoint_that_cannot_be_meant_is_refused(endpoint: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        OtelSettings(endpoint=endpoint)


def test_one_of_the_own_network_is_allowed_by_name() -> None:
    assert OtelSettings(endpoint="http://collector.lan:4318", local=True).endpoint
    assert OtelSettings(endpoint="https://collector.example/otlp").endpoint
    assert OtelSettings().content is False


def test_no_more_is_looked_through_for_keys_than_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, whole = list[int](), redact.redact

    def counted(text: str) -> str:
        looked.append(len(text))
        return whole(text)

    monkeypatch.setattr(redact, "redact", counted)
    before = "é " * 3990
    told = attributes.masked(f"{before}{KEY}{' é' * 50_000}")
    assert (told.startswith(f"{before}***"), len(told), len(looked)) == (True, 8000, 1)
    assert looked[0] <= 9000
