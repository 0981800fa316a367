# SPDX-License-Identifier: Apache-2.0
"""Answers that begin while others are being written, and how an answer may begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goodbot.api.backend import OptimizesForInference, TrainingBackend
from goodbot.api.sampler import Sampler, SampleRequest, ThinksAloud, TokenizedTurn
from goodbot.base.errors import GoodbotError
from goodbot.testing.backend_base import LORA, MESSAGES, TEXTS, BackendGround

LONGER = [{"role": "user", "content": "Name a colour, please, and a day of the week."}]
TOP = 8


class AnswerTests(BackendGround):
    """start, step, cancel, writes, first_tokens."""

    @pytest.fixture
    def sampler(self, backend: TrainingBackend, turns: list[TokenizedTurn], tmp_path: Path) -> Sampler:
        """With version 1, which is not the base; the base is active."""
        self.trained(backend, turns, [1.0, -1.0], steps=10)
        backend.save_adapter(tmp_path / "v1")
        sampler = backend.sampler()
        sampler.load_adapter(1, tmp_path / "v1")
        sampler.activate(0)
        return sampler

    def test_who_asks_while_others_are_answered_gets_what_one_alone_would(self, sampler: Sampler) -> None:
        """Of the version that each names, whichever is active meanwhile."""
        alone: dict[Any, Any] = {}
        for version in (1, 0):
            sampler.activate(version)
            alone |= {(seed, version): sampler.sample(_ask(seed)) for seed in range(3)}
        found: dict[Any, Any] = {}
        for seed, version in alone:
            sampler.start((seed, version), _ask(seed), version)
            sampler.activate(1 - version)
            found.update(sampler.step())
        while sampler.writes():
            found.update(sampler.step())
        assert {key: answer.tokens for key, answer in found.items()} == {
            key: answer.tokens for key, answer in alone.items()
        }
        for key, answer in alone.items():
            np.testing.assert_allclose(found[key].logprobs, answer.logprobs, atol=1e-4)

    def test_what_is_thought_may_be_asked_for_within_a_step(self, sampler: Sampler) -> None:
        """By an answer's `on_text`: it changes no answer. See `ThinksAloud`."""

        def asks(_: str) -> bool:
            if isinstance(sampler, ThinksAloud):
                sampler.thoughts()
            return True

        alone = {seed: sampler.sample(_ask(seed)).tokens for seed in range(3)}
        found: dict[Any, Any] = {}
        for seed in alone:
            sampler.start(seed, _ask(seed), 0, asks)
        while sampler.writes():
            found.update(sampler.step())
        assert {key: answer.tokens for key, answer in found.items()} == alone

    def test_an_answer_that_is_not_wanted_any_more_ends_at_the_next_step(self, sampler: Sampler) -> None:
        sampler.start("one", _ask(1, max_tokens=200, temperature=3.0), 0)
        assert sampler.writes()
        assert sampler.writes(0)
        assert not sampler.writes(1)
        sampler.cancel("one")
        [(key, answer)] = sampler.step()
        assert key == "one"
        assert not isinstance(answer, Exception)
        assert answer.finish == "cancelled"
        assert not sampler.writes()
        assert not sampler.step()

    def test_what_is_not_loaded_begins_no_answer(self, sampler: Sampler) -> None:
        with pytest.raises(GoodbotError):
            sampler.start("one", _ask(1), 7)
        with pytest.raises(GoodbotError):
            sampler.first_tokens(MESSAGES, version=7, top=TOP)
        assert not sampler.writes()

    def test_a_follow_up_in_a_conversation_is_answered_as_if_nothing_were_kept(
        self, sampler: Sampler
    ) -> None:
        def answered(request: SampleRequest) -> Any:
            sampler.start("one", request, 1)
            ends: list[Any] = []
            while sampler.writes():
                ends += sampler.step()
            return ends[0][1]

        first = answered(_ask(2, conversation="c"))
        messages = [
            *LONGER,
            {"role": "assistant", "content": first.text},
            {"role": "user", "content": "Why?"},
        ]
        again, anew = (answered(_ask(3, messages=messages, conversation=name)) for name in ("c", ""))
        assert again.tokens == anew.tokens
        np.testing.assert_allclose(again.logprobs, anew.logprobs, atol=1e-4)

    def test_who_only_answers_gets_the_same(
        self,
        backend_factory: Callable[[], TrainingBackend],
        model_dir: Path,
        sampler: Sampler,
        tmp_path: Path,
    ) -> None:
        """`optimize_for_inference`, where a backend has it, before adapters are loaded and after."""
        backend = backend_factory()
        if not isinstance(backend, OptimizesForInference):
            pytest.skip("this backend has one way to answer")
        backend.load(model_dir, lora=LORA, seed=3)
        turn = backend.tokenize(MESSAGES, TEXTS[0])
        [scores] = backend.logprobs([turn], temperature=[1.0], adapter=False)
        backend.optimize_for_inference()
        [again] = backend.logprobs([turn], temperature=[1.0], adapter=False)
        np.testing.assert_allclose(again, scores, atol=1e-4)
        optimized = backend.sampler()
        optimized.load_adapter(1, tmp_path / "v1")
        for version in (1, 0):
            for each in (sampler, optimized):
                each.activate(version)
            expected, found = sampler.sample(_ask(1)), optimized.sample(_ask(1))
            assert found.tokens == expected.tokens
            np.testing.assert_allclose(found.logprobs, expected.logprobs, atol=1e-4)

    def test_how_an_answer_may_begin(self, backend: TrainingBackend) -> None:
        told = backend.first_tokens(MESSAGES, top=TOP, adapter=False)
        if not told:
            return
        assert len(told) <= TOP
        values = list(told.values())
        assert values == sorted(values, reverse=True)
        assert sum(map(math.exp, values)) <= 1.0 + 1e-4
        sampler = backend.sampler()
        sampler.activate(0)
        greedy = sampler.sample(SampleRequest(messages=MESSAGES, max_tokens=1, temperature=0.0))
        assert values[0] == pytest.approx(greedy.logprobs[0], abs=1e-4)

    def test_an_adapter_changes_how_an_answer_may_begin(
        self, backend: TrainingBackend, sampler: Sampler
    ) -> None:
        base, adapted = (
            backend.first_tokens(MESSAGES, top=TOP, adapter=adapter) for adapter in (False, True)
        )
        if not base:
            return
        assert base != adapted
        for version, expected in ((1, adapted), (0, base), (1, adapted)):
            told = sampler.first_tokens(MESSAGES, version=version, top=TOP)
            assert told == pytest.approx(expected, abs=1e-4)


def _ask(seed: int, **changes: Any) -> SampleRequest:
    messages = LONGER if seed % 2 else MESSAGES
    defaults: dict[str, Any] = {"messages": messages, "max_tokens": 6 + seed, "temperature": 1.0}
    return SampleRequest(seed=seed, **(defaults | changes))
