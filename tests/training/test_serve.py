# SPDX-License-Identifier: Apache-2.0
"""What happens between two steps of a model that is serving, and what does not."""

from __future__ import annotations

import io
import json
import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.sampler import Sampled
from goodbot.base.errors import AdapterError
from goodbot_training.process.reading import AdapterReading
from goodbot_training.process.serve import Serving
from goodbot_training.process.worker import Lines, failure

from tests.support import patience

SECONDS = 30


class Fake:
    """A sampler whose answers take as many steps as they may have tokens. It writes down what it does."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.left: dict[Any, int] = {}
        self.told: dict[Any, Callable[[str], bool]] = {}
        self.asked, self.stepped = threading.Event(), threading.Semaphore(0)

    def start(self, key: Any, request: Any, version: int, on_text: Any) -> None:
        assert self.asked.wait(patience(SECONDS))
        self.left[key], self.told[key] = request.max_tokens, on_text

    def step(self) -> list[tuple[Any, Sampled]]:
        self.done.append("step")
        self.stepped.release()
        for key in self.left:
            self.left[key] -= 1
            self.told[key]("word ")
        ended = [key for key, left in self.left.items() if not left]
        for key in ended:
            del self.left[key]
        return [(key, Sampled(prompt=(), tokens=(), logprobs=(), text="", finish="length")) for key in ended]

    def first_tokens(self, *_: object, **__: object) -> dict[str, float]:
        self.done.append("first_tokens")
        return {}


class Reading(Fake):
    """With files that take as long to read as three steps; an answer goes on until they are kept."""

    def step(self) -> list[tuple[Any, Sampled]]:
        if not any(one.startswith("keep") for one in self.done):
            self.left = {key: left + 1 for key, left in self.left.items()}
        return super().step()

    def read_adapter(self, directory: Path) -> str:
        for _ in range(3):
            assert self.stepped.acquire(timeout=patience(SECONDS))
        if directory.name == "bad":
            raise ValueError("no adapter")
        return directory.name

    def keep_adapter(self, version: int, adapter: str) -> None:
        self.done.append(f"keep {adapter} as {version}")


class Dropping(Fake):
    """One that reads what it has dropped again; that takes as long as three steps."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped: dict[int, Path] = {}

    def start(self, key: Any, request: Any, version: int, on_text: Any) -> None:
        assert version not in self.dropped
        super().start(key, request, version, on_text)
        self.done.append(f"start by {version}")

    def lacking_adapter(self, version: int) -> Path | None:
        return self.dropped.get(version)

    def read_adapter(self, directory: Path) -> str:
        for _ in range(3):
            assert self.stepped.acquire(timeout=patience(SECONDS))
        if directory.name == "bad":
            raise AdapterError("its files went away")
        return directory.name

    def keep_adapter(self, version: int, adapter: str) -> None:
        self.done.append(f"keep {adapter} as {version}")
        self.dropped.pop(version, None)

    def note_adapter(self, version: int, directory: Path) -> None:
        self.done.append(f"note {directory.name} as {version}")
        self.dropped[version] = directory

    def unload_adapter(self, version: int) -> None:
        self.done.append(f"unload {version}")
        self.dropped.pop(version, None)

    def activate(self, version: int) -> None:
        assert version not in self.dropped
        self.done.append(f"activate {version}")


class Thinking(Fake):
    """One that thinks for two steps before it says anything."""

    def step(self) -> list[tuple[Any, Sampled]]:
        thinks = self.done.count("step") < 2
        told, self.told = self.told, {key: lambda _: True for key in self.told} if thinks else self.told
        ended = super().step()
        self.told = told
        return ended

    def thoughts(self) -> list[tuple[Any, str]]:
        return [(key, f"{self.done.count('step')}") for key in self.left if self.done.count("step") < 3]


class Brief(Fake):
    """One that thinks within the step in which it begins to answer, and ends."""

    def __init__(self, *, says: bool) -> None:
        super().__init__()
        self.says, self.untold = says, list[tuple[Any, str]]()

    def step(self) -> list[tuple[Any, Sampled]]:
        self.untold += [(key, "Hm.") for key in self.left]
        if not self.says:
            self.told = {key: lambda _: True for key in self.told}
        return super().step()

    def thoughts(self) -> list[tuple[Any, str]]:
        told, self.untold = self.untold, []
        return told


class Told:
    """What is told, and in how many goes."""

    def __init__(self) -> None:
        self.goes: list[list[dict[str, Any]]] = []
        self.answered = threading.Semaphore(0)

    def emit(self, *events: dict[str, Any]) -> None:
        if events:
            self.goes.append([*events])
        for event in events:
            if event["event"] not in ("text", "thought"):
                self.answered.release()

    offer = emit

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for go in self.goes for event in go]


def run(sampler: Any, *requests: dict[str, Any], answers: int | None = None) -> Told:
    """All is asked before the first step, and stdin stays open until all is answered, or so much."""
    told = Told()

    def stdin() -> Iterator[bytes]:
        for id_, request in enumerate(requests):
            yield json.dumps({"id": id_, **request}).encode()
        sampler.asked.set()
        for _ in range(len(requests) if answers is None else answers):
            assert told.answered.acquire(timeout=patience(SECONDS))

    Serving(told, sampler, failure).run(stdin())  # pyright: ignore[reportArgumentType]
    return told


def generate(tokens: int) -> dict[str, Any]:
    return {"op": "generate", "messages": [{"role": "user", "content": "?"}], "max_tokens": tokens}


PROBE = {"op": "first_tokens", "messages": [{"role": "user", "content": "?"}], "version": 0}


def test_probes_take_turns_with_the_answers() -> None:
    sampler = Fake()
    run(sampler, generate(9), PROBE, PROBE, PROBE)
    assert sampler.done[:6] == ["first_tokens", "step"] * 3


def test_those_who_write_in_one_step_are_told_in_one_go() -> None:
    told = run(Fake(), generate(2), generate(2), generate(3))
    assert [[(event["id"], event["event"]) for event in go] for go in told.goes] == [
        *([(id_, "text")] for id_ in range(3)),  # a first token at once
        [(0, "text"), (1, "text"), (2, "text"), (0, "done"), (1, "done")],
        [(2, "text"), (2, "done")],
    ]


def test_what_is_thought_is_told_while_it_is() -> None:
    told = run(Thinking(), generate(4))
    assert [(event["event"], event["text"]) for event in told.events] == [
        ("thought", "1"),
        ("thought", "2"),
        ("text", "word "),
        ("text", "word "),
        ("done", ""),
    ]


@pytest.mark.parametrize("says", [True, False])
def test_the_last_of_a_thought_comes_before_what_is_said_of_it_and_before_the_end(*, says: bool) -> None:
    told = run(Brief(says=says), generate(1))
    said = [("text", "word ")] if says else []
    assert [(event["event"], event["text"]) for event in told.events] == [
        ("thought", "Hm."),
        *said,
        ("done", ""),
    ]


def test_reading_an_adapter_holds_up_nobody() -> None:
    sampler = Reading()
    told = run(sampler, generate(2), {"op": "load", "version": 1, "path": "/good"})
    assert [event for event in told.events if event["id"] == 1] == [{"id": 1, "event": "ok"}]
    place = sampler.done.index("keep good as 1")
    assert sampler.done[:place] == ["step"] * place
    assert place >= 3


def test_an_adapter_that_cannot_be_read_is_told() -> None:
    sampler = Reading()
    sampler.stepped.release(3)
    told = run(sampler, {"op": "load", "version": 1, "path": "/bad"})
    [answer] = told.events
    assert (answer["event"], answer["kind"]) == ("error", "error")


LATER = {"op": "load", "version": 1, "path": "/good", "later": True}


def test_who_asks_for_a_dropped_version_waits_and_holds_up_nobody() -> None:
    """Its files are read once, for all who ask meanwhile."""
    sampler = Dropping()
    by_it = {**generate(1), "version": 1}
    told = run(sampler, generate(9), LATER, by_it, {"op": "activate", "version": 1}, by_it, PROBE)
    place = sampler.done.index("keep good as 1")
    assert sampler.done[:place].count("step") >= 3
    assert "first_tokens" in sampler.done[:place], "of another version"
    after = ["keep good as 1", "start by 1", "activate 1", "step", "start by 1"]
    assert sampler.done[place:][:5] == after
    assert sampler.done.count("keep good as 1") == 1
    ends = {event["id"]: event["event"] for event in told.events if event["event"] != "text"}
    assert ends == {0: "done", 1: "ok", 2: "done", 3: "ok", 4: "done", 5: "ok"}
    assert [event["version"] for event in told.events if event["id"] == 2 and event["event"] == "done"] == [1]


def test_one_that_cannot_be_read_again_is_told_and_not_loaded_any_more() -> None:
    sampler = Dropping()
    by_it = {**generate(1), "version": 1}
    told = run(sampler, generate(9), {**LATER, "path": "/bad"}, by_it, {**PROBE, "version": 1})
    assert "unload 1" in sampler.done
    errors = {event["id"]: event for event in told.events if event["event"] == "error"}
    assert errors.keys() == {2, 3}
    for event in errors.values():
        assert (event["kind"], event["reason"]) == ("adapter", "its files went away")


def test_one_that_is_loaded_anew_meanwhile_stays_what_was_loaded() -> None:
    sampler = Dropping()
    by_it = {**generate(1), "version": 1}
    told = run(sampler, generate(9), {**LATER, "path": "/bad"}, by_it, LATER)
    assert "unload 1" not in sampler.done
    assert sampler.done.index("keep good as 1") < sampler.done.index("start by 1")
    assert not [event for event in told.events if event["event"] == "error"]


def test_who_waits_for_a_dropped_version_can_leave() -> None:
    sampler = Dropping()
    by_it = {**generate(1), "version": 1}
    told = run(sampler, generate(9), LATER, by_it, {"op": "cancel", "target": 2}, answers=3)
    [event] = [event for event in told.events if event["id"] == 2]
    assert (event["event"], event["finish"], event["version"]) == ("done", "cancelled", 1)
    assert "start by 1" not in sampler.done


def test_who_waits_for_a_dropped_version_is_answered_before_it_is_unloaded() -> None:
    sampler = Dropping()
    by_it, unload = {**generate(1), "version": 1}, {"op": "unload", "version": 1}
    told = run(sampler, generate(9), LATER, by_it, unload, by_it)
    assert sampler.done.index("start by 1") < sampler.done.index("unload 1")
    ends = {event["id"]: event["event"] for event in told.events if event["event"] != "text"}
    assert ends == {0: "done", 1: "ok", 2: "done", 3: "ok", 4: "error"}


def test_one_that_is_loaded_anew_before_it_was_unloaded_stays() -> None:
    sampler = Dropping()
    by_it, unload = {**generate(1), "version": 1}, {"op": "unload", "version": 1}
    told = run(sampler, generate(9), LATER, by_it, unload, LATER, by_it)
    assert "unload 1" not in sampler.done
    ends = {event["id"]: event["event"] for event in told.events if event["event"] != "text"}
    assert ends == {0: "done", 1: "ok", 2: "done", 3: "ok", 4: "ok", 5: "done"}


def test_one_that_cannot_be_read_again_is_unloaded_all_the_same() -> None:
    sampler = Dropping()
    by_it, unload = {**generate(1), "version": 1}, {"op": "unload", "version": 1}
    told = run(sampler, generate(9), {**LATER, "path": "/bad"}, by_it, unload)
    ends = {event["id"]: event["event"] for event in told.events if event["event"] != "text"}
    assert ends == {0: "done", 1: "ok", 2: "error", 3: "ok"}


def test_those_who_waited_for_one_version_take_turns_with_the_answers() -> None:
    sampler = Dropping()
    probe = {**PROBE, "version": 1}
    run(sampler, generate(9), LATER, {**generate(9), "version": 1}, probe, probe, probe)
    place = sampler.done.index("start by 1")
    assert sampler.done[place + 1 :][:6] == ["first_tokens", "step"] * 3


def test_a_new_version_is_read_before_those_that_were_dropped() -> None:
    order: list[str] = []
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    class Slow(Dropping):
        def read_adapter(self, directory: Path) -> str:
            assert self.asked.wait(patience(SECONDS))
            order.append(directory.name)
            return directory.name

    sampler = Slow()
    reading = AdapterReading(sampler, found.put)
    for version in (1, 2, 3):
        sampler.note_adapter(version, Path(f"dropped-{version}"))
        assert reading.waits(version, {"op": "generate", "id": version})
    reading.read(sampler, Path("new"), {"id": 4, "version": 4})
    sampler.asked.set()
    for _ in range(4):
        found.get(timeout=patience(SECONDS))
    assert order.index("new") <= 1, "one may have been begun"
    order.remove("new")
    assert order == ["dropped-1", "dropped-2", "dropped-3"]


def test_who_reads_slowly_holds_up_nobody_and_misses_nothing() -> None:
    """A pipe takes some 64 KB."""
    reading, writing = os.pipe()
    lines = Lines(io.FileIO(writing, "wb"))
    events = [{"event": "text", "text": f"{number}" * 20_000} for number in range(20)]
    for event in events:
        lines.offer(event)  # it would never return if it waited
    found: list[Any] = []

    def read() -> None:
        with open(reading) as stream:
            found.extend(map(json.loads, stream))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    lines.emit({"event": "done"})
    lines._out.close()
    reader.join(patience(SECONDS))
    assert found == [*events, {"event": "done"}]
