# SPDX-License-Identifier: Apache-2.0
"""What mlx-lm's `BatchGenerator` writes, with what rides along with its rows; and what goes wrong there."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import LoraSettings

from tests.support import require
from tests.training.backends.test_batching import ask, by, keep_versions_apart, rest, same


@pytest.fixture(scope="module")
def backend(random_model: Path) -> Any:
    require("mlx_lm")
    from goodbot_training.backends.mlx.trainer import MlxBackend

    loaded = MlxBackend()
    loaded.load(random_model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
    return loaded


@pytest.fixture
def passes(backend: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shape of each pass of a writer."""
    from goodbot_training.backends.mlx.batch_decoder import BatchDecoder

    shapes: list[tuple[int, ...]] = []
    compute = BatchDecoder._pass

    def counted(self: Any, inputs: Any, cache: Any) -> Any:
        shapes.append(inputs.shape)
        return compute(self, inputs, cache)

    monkeypatch.setattr(BatchDecoder, "_pass", counted)
    return shapes


def until_told(sampler: Any, *asked: tuple[Any, Any, int]) -> dict[Any, Any]:
    """Begin these, and write until each has its first token."""
    waiting, found = {key for key, _, _ in asked}, dict[Any, Any]()
    for key, request, version in asked:
        sampler.start(key, request, version, lambda _, key=key: waiting.discard(key) is None)
    while waiting:
        found.update(sampler.step())
    return found


def test_versions_share_a_pass_and_a_newcomer_holds_up_nobody(sampler: Any, passes: list[Any]) -> None:
    asked = {index: ask(index + 2, max_tokens=20) for index in range(3)}
    alone = {index: by(sampler, index, request) for index, request in asked.items()}
    found = until_told(sampler, (0, asked[0], 0), (1, asked[1], 1))
    written = [len(answer.row.tokens) for answer in sampler._batching._written()]
    found |= until_told(sampler, (2, asked[2], 2))
    now = [len(answer.row.tokens) for answer in sampler._batching._written()]
    assert [later - before for later, before in zip(now, written, strict=False)] == [3, 3]
    passes.clear()
    found.update(sampler.step())
    assert passes == [(3, 1)]
    found.update(rest(sampler))
    for index, expected in alone.items():
        same(found[index], expected)


def test_a_token_is_computed_ahead_by_the_weights_of_its_own_version(sampler: Any) -> None:
    keep_versions_apart(sampler)
    asked = {version: ask(2, max_tokens=12) for version in range(3)}
    alone = {version: by(sampler, version, request) for version, request in asked.items()}
    found = until_told(sampler, *((version, asked[version], version) for version in asked))
    assert len(sampler._batching._writers) == 3
    while sampler.writes():
        found.update(sampler.step())
        sampler.activate(1)  # between any two steps, other weights lie there
    for version, expected in alone.items():
        same(found[version], expected)


def test_prompts_that_come_together_are_read_together(sampler: Any, passes: list[Any]) -> None:
    asked = [ask(index) for index in (1, 2, 2, 3, 1)]
    alone = [by(sampler, index % 3, request) for index, request in enumerate(asked)]
    found = until_told(sampler, ("ready", ask(0, max_tokens=30), 0), ("set", ask(1), 1))
    passes.clear()
    for index, request in enumerate(asked):
        sampler.start(index, request, index % 3)
    found.update(sampler.step())
    longest = max(len(answer.prompt) for answer in alone)
    assert passes == [(2, 1), (5, longest - 1)]
    found.update(rest(sampler))
    for index, expected in enumerate(alone):
        same(found[index], expected)


def test_of_prompts_that_fail_together_each_is_read_alone(
    sampler: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And who was being written goes on where it was."""
    expected = [sampler.sample(ask(index)) for index in range(3)]
    before = sampler.sample(ask(3, max_tokens=40))
    found = until_told(sampler, ("before", ask(3, max_tokens=40), 0), ("tries", ask(0), 0))
    causal: Any = type(backend._model.causal)
    compute = causal.__call__

    def refuse(self: Any, inputs: Any, cache: Any = None) -> Any:
        if min(inputs.shape) > 1 or inputs.shape[1] == len(expected[2].prompt) - 1:
            raise MemoryError
        return compute(self, inputs, cache=cache)

    monkeypatch.setattr(causal, "__call__", refuse)
    for index in range(3):
        sampler.start(index, ask(index), 0)
    found.update(rest(sampler))
    same(found["before"], before)
    for index in range(2):
        same(found[index], expected[index])
    assert isinstance(found[2], MemoryError)


def test_of_a_batch_only_what_is_kept_of_conversations_stays(sampler: Any) -> None:
    """Arrays are lazy: a part that nobody has asked for yet holds the whole that it is a part of."""
    import mlx.core as mx

    held: list[int] = []
    for index in range(6):
        sampler.start(index, ask(index, conversation=f"c{index}"), 0)
        sampler.step()
        if not index:
            gc.collect()
            held.append(mx.get_active_memory())
    list(rest(sampler))
    gc.collect()
    mx.synchronize()
    kept = [steps.layers for _, steps in sampler._batching._prefixes._rows.values()]
    assert len(kept) > 3
    own = sum(layer.nbytes for layers in kept for layer in layers)
    assert mx.get_active_memory() - held[0] < 2 * own


@pytest.mark.parametrize("way", ["extend", "filter", "extract"])
def test_want_of_memory_for_a_cache_ends_its_own_version_only(
    sampler: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    from mlx_lm.models.cache import BatchKVCache

    expected = by(sampler, 1, ask(2))
    keep_versions_apart(sampler)
    until_told(sampler, ("tries", ask(0, max_tokens=2), 0), ("too", ask(0, max_tokens=2), 0))
    list(rest(sampler))
    real = getattr(BatchKVCache, way)

    def refuse(self: Any, *given: Any) -> Any:
        if any(line.version == 0 for line in under_way()):
            raise MemoryError
        return real(self, *given)

    def under_way() -> list[Any]:
        return [one for one in sampler._batching._written() if one.row.tokens]

    monkeypatch.setattr(BatchKVCache, way, refuse)
    ends: dict[Any, Any] = {}
    for index in (0, 1):
        sampler.start(index, ask(index, conversation=f"c{index}"), 0)
        for _ in range(4):
            ends.update(sampler.step())
    ends.update(rest(sampler))
    sampler.start("good", ask(2), 1)
    ends.update(rest(sampler))
    assert isinstance(ends[0], MemoryError)
    same(ends["good"], expected)


def test_a_pass_that_fails_ends_its_own_version_only(
    sampler: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goodbot_training.backends.mlx.batch_decoder import BatchDecoder

    keep_versions_apart(sampler)
    expected = sampler.sample(ask(2))
    compute = BatchDecoder._pass

    def refuse(self: Any, inputs: Any, cache: Any) -> Any:
        if cache[-1].lines[0].version == 1:
            raise TypeError
        return compute(self, inputs, cache)

    monkeypatch.setattr(BatchDecoder, "_pass", refuse)
    for key, index, version in (("bad", 1, 1), ("good", 2, 0)):
        sampler.start(key, ask(index), version)
    ends = dict(rest(sampler))
    assert isinstance(ends["bad"], TypeError)
    same(ends["good"], expected)


def test_a_model_whose_caches_cannot_be_joined_answers_all_the_same(
    sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor even be a batch of one."""
    from mlx_lm.models.cache import KVCache

    monkeypatch.delattr(KVCache, "merge")
    for index in range(3):
        sampler.start(index, ask(index), index)
    sampler.step()
    assert len(sampler._batching._writers) == 3
    found = dict(rest(sampler))
    for index in range(3):
        same(found[index], by(sampler, index, ask(index)))
