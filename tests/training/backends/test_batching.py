# SPDX-License-Identifier: Apache-2.0
"""Answers that come and go between steps: as if each were alone, whoever else is being written."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import SampleRequest
from goodbot.base.errors import AdapterError, ServerError
from goodbot_training.backends import answers, decoding
from goodbot_training.backends.batching import Batching

from tests.support import require

CLASSES = {"torch": "TorchBackend", "mlx": "MlxBackend"}
BY_STEPS = pytest.mark.parametrize("backend", ["torch"], indirect=True)
"""How `batching` goes about it; `test_mlx_batching` tells it of mlx-lm."""


@pytest.fixture(scope="module", params=CLASSES)
def backend(request: pytest.FixtureRequest, random_model: Path) -> Any:
    require({"torch": "peft", "mlx": "mlx_lm"}[request.param])
    module = importlib.import_module(f"goodbot_training.backends.{request.param}.trainer")
    loaded = getattr(module, CLASSES[request.param])()
    loaded.load(random_model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
    return loaded


def ask(index: int, **changes: Any) -> SampleRequest:
    """Questions of different lengths with answers of different lengths."""
    messages = [{"role": "user", "content": "word " * (1 + 5 * index)}]
    request = SampleRequest(messages=messages, max_tokens=8 + 3 * index, seed=index, temperature=1)
    return replace(request, **changes)


def by(sampler: Any, version: int, request: SampleRequest) -> Any:
    """What this version answers when it is alone."""
    sampler.activate(version)
    answer = sampler.sample(request)
    sampler.activate(0)
    return answer


def rest(sampler: Any) -> Iterator[tuple[Any, Any]]:
    while sampler.writes():
        yield from sampler.step()


def same(found: Any, expected: Any) -> None:
    assert (found.tokens, found.text, found.finish, found.prompt) == (
        expected.tokens,
        expected.text,
        expected.finish,
        expected.prompt,
    )
    np.testing.assert_allclose(found.logprobs, expected.logprobs, atol=1e-4)


@pytest.mark.parametrize("able", [("mixes", "pads"), ("mixes",), ()])
def test_all_that_are_known_beforehand_are_each_as_alone(
    sampler: Any, monkeypatch: pytest.MonkeyPatch, able: tuple[str, ...]
) -> None:
    """Of all lengths, some asked twice, by whatever the model's cache can."""
    for ability in ("mixes", "pads"):
        if sampler._batching.abilities is not None:
            monkeypatch.setattr(sampler._batching.abilities, ability, ability in able)
    asked = [ask(index) for index in (3, 0, 12, 3, 1, 0)]
    asked = [replace(one, seed=seed) for seed, one in enumerate(asked)]
    for version in (0, 2):
        sampler.activate(version)
        for found, request in zip(sampler.sample_many(asked), asked, strict=True):
            same(found, sampler.sample(request))
    sampler.activate(0)


@pytest.mark.parametrize("mixes", [True, False])
def test_each_answer_is_what_it_would_be_alone(sampler: Any, mixes: bool) -> None:
    """Those that begin later join those under way; versions stand side by side."""
    if not mixes:
        keep_versions_apart(sampler)
    asked = {(index, index % 3): ask(index) for index in range(7)}
    alone = {key: by(sampler, key[1], request) for key, request in asked.items()}
    assert len({answer.tokens for answer in alone.values()}) == 7
    found: dict[Any, Any] = {}
    for key, request in asked.items():
        sampler.start(key, request, key[1])
        found.update(sampler.step())
    assert len(batches(sampler)) == (1 if mixes else 3), "passes a step"
    found.update(rest(sampler))
    assert found.keys() == alone.keys()
    for key, expected in alone.items():
        same(found[key], expected)


def test_an_answer_ends_on_the_version_that_it_began_with(sampler: Any) -> None:
    request = ask(2)
    expected = by(sampler, 1, request)
    sampler.start("answer", request, 1)
    found: dict[Any, Any] = {}
    for version in (2, 0, 2, 1, 0):
        sampler.activate(version)
        found.update(sampler.step())
    found.update(rest(sampler))
    same(found["answer"], expected)


def test_what_is_asked_of_the_active_version_meanwhile_is_answered_by_it(sampler: Any) -> None:
    request = ask(1)
    expected = sampler.sample(request)
    sampler.start("other", ask(3), 2)
    sampler.step()
    same(sampler.sample(request), expected)
    assert [key for key, _ in rest(sampler)] == ["other"]


@BY_STEPS
def test_a_version_that_is_swapped_in_costs_no_second_pass(sampler: Any, backend: Any) -> None:
    """Nor does one that leaves; a probe of a third disturbs neither."""
    asked = {0: ask(3), 1: ask(2), 2: ask(4)}
    alone = {version: by(sampler, version, request) for version, request in asked.items()}
    first = sampler.first_tokens(asked[2].messages, version=2, top=5)
    sampler.start(0, asked[0], 0)
    sampler.step()
    sampler.start(1, asked[1], 1)
    found = dict(sampler.step())
    assert sampler.first_tokens(asked[2].messages, version=2, top=5) == pytest.approx(first, abs=1e-4)
    sampler.start(2, asked[2], 2)
    found.update(sampler.step())
    passes = count_passes(sampler)
    found.update(sampler.step())
    assert passes == [3]
    found.update(rest(sampler))
    for version, expected in alone.items():
        same(found[version], expected)
    assert backend._model.row_adapters.now is None


@BY_STEPS
def test_prompts_that_come_together_are_read_together(sampler: Any) -> None:
    asked = [ask(index) for index in (1, 2, 2, 3, 1)]
    alone = [by(sampler, index % 3, request) for index, request in enumerate(asked)]
    sampler.start("ready", ask(0), 0)  # what the model's caches can is tried with the first ones
    sampler.start("set", ask(1), 1)
    found = dict(sampler.step())
    passes = count_passes(sampler)
    for index, request in enumerate(asked):
        sampler.start(index, request, index % 3)
    found.update(sampler.step())
    assert passes == [5, 7], "prompts, and then a token for all"
    found.update(rest(sampler))
    for index, expected in enumerate(alone):
        same(found[index], expected)


@BY_STEPS
def test_prompts_that_cannot_be_read_together_are_read_alone(
    sampler: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [sampler.sample(ask(index)) for index in range(3)]
    assert sampler._batching.abilities.pads

    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(type(backend._model.decoder()), "begin", refuse)
    for index in range(3):
        sampler.start(index, ask(index), 0)
    found = dict(rest(sampler))
    for index in range(3):
        same(found[index], expected[index])


def test_pieces_of_each_add_up_to_its_text(sampler: Any) -> None:
    pieces: dict[int, list[str]] = {index: [] for index in range(3)}
    for index, own in pieces.items():
        sampler.start(
            index, ask(index, max_tokens=90, temperature=3.0), 0, lambda text, own=own: not own.append(text)
        )
    for index, answer in rest(sampler):
        assert "".join(pieces[index]) == answer.text
        assert len(pieces[index]) == len(answer.tokens)
        same(answer, sampler.sample(ask(index, max_tokens=90, temperature=3.0)))


def test_a_long_prompt_stalls_nobody(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read a part at a time; meanwhile the others get a token at every step."""
    monkeypatch.setattr(module(sampler), "PART", 16)
    long = ask(14, max_tokens=4)
    expected = sampler.sample(long)
    assert len(expected.prompt) > 5 * 16
    told: list[str] = []
    sampler.start("short", ask(0, max_tokens=40, temperature=3.0), 0, lambda text: not told.append(text))
    while not told:
        sampler.step()
    before = len(told)
    sampler.start("long", long, 0)
    ends = dict(end for _ in range(5) for end in sampler.step())
    assert "long" not in ends
    assert len(told) == before + 5 or "short" in ends
    same(dict(rest(sampler))["long"], expected)


def test_a_question_that_follows_reads_only_what_is_new(
    sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask(3, conversation="c", max_tokens=6)
    sampler.start("first", first, 1)
    answer = dict(rest(sampler))["first"]
    follow_up = replace(
        first,
        seed=9,
        messages=[
            *first.messages,
            {"role": "assistant", "content": answer.text},
            {"role": "user", "content": "And then?"},
        ],
    )
    expected = {version: by(sampler, version, follow_up) for version in (0, 1)}
    read = counted(sampler, monkeypatch)
    others = replace(follow_up, conversation="d"), replace(follow_up, conversation="")
    for number, (version, request) in enumerate([(0, follow_up), (1, others[0]), (1, others[1])]):
        sampler.start(number, request, version)
        same(dict(rest(sampler))[number], expected[version])
        assert read.pop() == len(expected[0].prompt), "of another version or conversation"
    sampler.start("again", follow_up, 1)
    same(dict(rest(sampler))["again"], expected[1])
    assert read.pop() <= len(expected[0].prompt) - len(answer.prompt)


def test_an_adapter_that_is_loaded_anew_finds_no_old_cache(sampler: Any, directories: list[Path]) -> None:
    request = ask(3, conversation="c", max_tokens=6)
    sampler.start("before", request, 1)
    sampler.step()
    sampler.load_adapter(1, directories[1])  # also what is under way leaves none
    assert [key for key, _ in rest(sampler)] == ["before"]
    expected = by(sampler, 2, request)
    sampler.start("after", request, 1)
    same(dict(rest(sampler))["after"], expected)


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(sampler: Any) -> None:
    kept = sampler._batching._prefixes
    for name in "abcd":
        sampler.start(name, ask(4, conversation=name, max_tokens=10), 0)
        [(_, answer)] = rest(sampler)
        kept._most = most = int(2.9 * len(answer.prompt))
        assert len(answer.prompt) <= len(kept) <= most
    assert [conversation for _, conversation in kept._rows] == ["c", "d"]
    sampler.start("huge", ask(13, conversation="huge", max_tokens=2), 0)
    [(_, answer)] = rest(sampler)
    assert len(answer.prompt) > most
    assert [conversation for _, conversation in kept._rows] == ["c", "d"]


def test_a_cancelled_answer_ends_at_once_and_the_others_go_on(sampler: Any) -> None:
    expected = sampler.sample(ask(2))
    told: list[str] = []
    sampler.start(1, ask(1, max_tokens=300), 0, lambda text: not told.append(text))
    sampler.start(2, ask(2, max_tokens=14), 0)
    while not told:
        sampler.step()
    sampler.start("waiting", ask(3), 0)
    for key in (1, "waiting", "unknown"):
        sampler.cancel(key)
    ends = dict(sampler.step())
    assert {key: end.finish for key, end in ends.items()} == {1: "cancelled", "waiting": "cancelled"}
    assert len(ends[1].tokens) == len(told) == 1
    assert not ends["waiting"].tokens
    same(dict(rest(sampler))[2], expected)


@BY_STEPS
def test_newcomers_do_not_hold_up_the_others(sampler: Any) -> None:
    for index in range(4):  # one comes at every step
        sampler.start(index, ask(index, max_tokens=14), 0)
        sampler.step()
    written = [len(one.row.tokens) for one in sampler._batching._under_way()]
    assert written == [3, 3, 2, 2]  # every other step writes on all
    for index, answer in rest(sampler):
        same(answer, sampler.sample(ask(index, max_tokens=14)))


def test_a_version_that_is_writing_is_not_unloaded(sampler: Any) -> None:
    sampler.start("answer", ask(1), 1)
    with pytest.raises(AdapterError, match="writing"):
        sampler.unload_adapter(1)
    list(rest(sampler))
    sampler.unload_adapter(1)
    with pytest.raises(AdapterError, match="not loaded"):
        sampler.start("answer", ask(1), 1)


def test_more_than_fit_wait_their_turn(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "ROWS", 2)
    for index in range(5):
        sampler.start(index, ask(index), 0)
    found: dict[Any, Any] = {}
    while sampler.writes():
        found.update(sampler.step())
        assert len(sampler._batching._written()) <= 2
    for index in range(5):
        same(found[index], sampler.sample(ask(index)))


@BY_STEPS
def test_a_model_whose_caches_cannot_be_joined_answers_all_the_same(
    sampler: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, other: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(type(backend._model.decoder()), "join", refuse)
    for index in range(3):
        sampler.start(index, ask(index), index)
    found = dict(rest(sampler))
    assert not sampler._batching.abilities.mixes
    for index in range(3):
        same(found[index], by(sampler, index, ask(index)))


def test_what_breaks_one_answer_breaks_no_other(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sampler.sample(ask(2))
    row = decoding.Row.add

    def add(self: Any, token: int, logprob: float, *rest: Any) -> None:
        row(self, token, float("nan") if self.request.seed == 1 else logprob, *rest)

    monkeypatch.setattr(decoding.Row, "add", add)
    for index in (1, 2):
        sampler.start(index, ask(index), 0)
    ends = dict(rest(sampler))
    assert isinstance(ends[1], ServerError)
    same(ends[2], expected)


@BY_STEPS
def test_a_pass_that_fails_ends_its_own_version_only(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each has a pass of its own."""
    sampler._batching._mixes_versions = False
    expected = sampler.sample(ask(2))
    place = Batching.__dict__["_write"]

    def write(self: Any, batch: Any) -> None:
        if batch.versions == [1]:
            monkeypatch.setattr(batch, "steps", None)
        place(self, batch)

    monkeypatch.setattr(Batching, "_write", write)
    for key, index, version in (("bad", 1, 1), ("good", 2, 0)):
        sampler.start(key, ask(index), version)
    ends = dict(rest(sampler))
    assert isinstance(ends["bad"], TypeError)
    same(ends["good"], expected)


@BY_STEPS
@pytest.mark.parametrize("way", ["join", "select", "split"])
def test_want_of_memory_for_a_cache_ends_its_own_version_only(
    sampler: Any, backend: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    assert sampler._batching.abilities.pads
    sampler._batching._mixes_versions = False
    expected = by(sampler, 1, ask(2))

    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(type(backend._model.decoder()), way, refuse)
    ends: dict[Any, Any] = {}
    for index in (0, 1):
        sampler.start(index, ask(index, conversation=f"c{index}"), 0)
        ends.update(sampler.step())
    sampler.start("good", ask(2), 1)
    ends.update(rest(sampler))
    assert isinstance(ends[1], MemoryError)
    assert isinstance(ends[0], MemoryError) == (way == "join")
    same(ends["good"], expected)


def module(sampler: Any) -> Any:
    """Where its answers are batched."""
    return importlib.import_module(type(sampler._batching).__module__)


def batches(sampler: Any) -> list[Any]:
    of = sampler._batching
    return of._batches if isinstance(of, Batching) else of._writers


def keep_versions_apart(sampler: Any) -> None:
    of = sampler._batching
    if isinstance(of, Batching):
        of._mixes_versions = False
    else:
        of._joins[True] = False


def count_passes(sampler: Any) -> list[int]:
    """The rows of each pass that draws tokens, from now on."""
    passes: list[int] = []
    batching_ = sampler._batching
    draw = batching_._draw

    def drawn(steps: Any, inputs: Any, answers: Any) -> None:
        passes.append(len(inputs))
        draw(steps, inputs, answers)

    batching_._draw = drawn
    return passes


def counted(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens of a prompt each answer from now on has to read."""
    read: list[int] = []
    of = sampler._batching
    if isinstance(of, Batching):
        take = of._read_part

        def read_part(answer: Any, most: int) -> int:
            read.append(take(answer, most))
            return read[-1]

        monkeypatch.setattr(of, "_read_part", read_part)
    else:
        writer = module(sampler).BatchDecoder
        insert = writer.insert

        def inserted(self: Any, line: Any, prompt: Any, most: int, known: Any = None) -> None:
            read.append(len(prompt) - (known[0] if known else 0))
            insert(self, line, prompt, most, known)

        monkeypatch.setattr(writer, "insert", inserted)
    return read
