# SPDX-License-Identifier: Apache-2.0
"""`BackendContract`: what every training backend must do, as a suite to subclass.

    from goodbot.testing.backend import BackendContract

    class TestMine(BackendContract):
        @pytest.fixture(scope="class")
        @classmethod
        def backend_factory(cls):
            return MyBackend

        @pytest.fixture(scope="class")
        @classmethod
        def model_dir(cls, tmp_path_factory):
            ...  # a small chat model; random weights will do

The suite loads the model several times, so keep it tiny.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goodbot.api.backend import OptimizerSettings, TrainingBackend, TrainingBatch
from goodbot.api.sampler import SampleRequest, TokenizedTurn
from goodbot.base.errors import AdapterError, GoodbotError, TrainingError
from goodbot.testing.backend_answers import AnswerTests
from goodbot.testing.backend_base import FILES, LORA, MESSAGES, TEXTS, files, poisoned, policy_gradient
from goodbot.testing.backend_checkpoints import CheckpointTests


class BackendContract(CheckpointTests, AnswerTests):
    """Subclass it and override `backend_factory` and `model_dir`."""

    # -- tokens and log-probs

    def test_the_prompt_does_not_depend_on_the_response(self, turns: list[TokenizedTurn]) -> None:
        assert turns[0].prompt == turns[1].prompt
        assert turns[0].prompt
        assert turns[0].response != turns[1].response
        assert turns[0].response[-1] == turns[1].response[-1], "both end with the end token"

    def test_logprobs_have_one_number_a_response_token(
        self, backend: TrainingBackend, turns: list[TokenizedTurn]
    ) -> None:
        rows = backend.logprobs(turns, temperature=[0.8, 0.8], adapter=True)
        assert [row.shape for row in rows] == [(len(turn.response),) for turn in turns]
        assert all(row.dtype == np.float32 and (row <= 0).all() for row in rows)

    def test_padding_changes_nothing(self, backend: TrainingBackend, turns: list[TokenizedTurn]) -> None:
        together = backend.logprobs(turns, temperature=[1.0, 0.5], adapter=True)
        alone = backend.logprobs(turns[:1], temperature=[1.0], adapter=True)
        np.testing.assert_allclose(together[0], alone[0], atol=1e-4)

    def test_temperature_divides_the_logits(
        self, backend: TrainingBackend, turns: list[TokenizedTurn]
    ) -> None:
        one, hot = (backend.logprobs(turns[:1], temperature=[t], adapter=False)[0] for t in (1.0, 1e4))
        assert np.ptp(hot) < 1e-2, "at a huge temperature every token is as likely"
        assert np.ptp(one) > np.ptp(hot)

    def test_foreign_token_ids_are_bad_data(self, backend: TrainingBackend) -> None:
        turn = TokenizedTurn(prompt=(1,), response=(1 << 30,))
        with pytest.raises(TrainingError) as caught:
            backend.logprobs([turn], temperature=[1.0], adapter=True)
        assert caught.value.kind == "data"

    def test_a_directory_that_is_no_model_is_refused_with_a_sentence(
        self, backend_factory: Callable[[], TrainingBackend], tmp_path: Path
    ) -> None:
        with pytest.raises(TrainingError, match="not a model"):
            backend_factory().load(tmp_path, lora=LORA)

    # -- the adapter

    def test_a_fresh_adapter_has_no_effect(
        self, backend: TrainingBackend, turns: list[TokenizedTurn]
    ) -> None:
        self.same(self.scores(backend, turns), self.scores(backend, turns, adapter=False))

    def test_training_follows_the_advantage(
        self, backend: TrainingBackend, turns: list[TokenizedTurn]
    ) -> None:
        before = self.scores(backend, turns)
        steps = self.trained(backend, turns, [1.0, -1.0])
        after = self.scores(backend, turns)
        assert len(steps) == 3
        assert not any(step.skipped for step in steps)
        assert all(step.grad_norm > 0 for step in steps)
        assert after[0].sum() > before[0].sum()
        assert after[1].sum() < before[1].sum()

    def test_without_the_adapter_the_base_speaks(
        self, backend: TrainingBackend, turns: list[TokenizedTurn]
    ) -> None:
        base = self.scores(backend, turns, adapter=False)
        self.trained(backend, turns, [1.0, -1.0])
        self.same(base, self.scores(backend, turns, adapter=False))

    def test_a_batch_without_advantages_is_skipped(
        self, backend: TrainingBackend, turns: list[TokenizedTurn], tmp_path: Path
    ) -> None:
        self.trained(backend, turns, [1.0, -1.0])
        backend.save_adapter(tmp_path / "before")
        steps = self.trained(backend, turns, [0.0, 0.0])
        backend.save_adapter(tmp_path / "after")
        assert all(step.skipped for step in steps)
        assert files(tmp_path / "before") == files(tmp_path / "after"), "bitwise unchanged"

    def test_steps_are_lazy(self, backend: TrainingBackend, turns: list[TokenizedTurn]) -> None:
        asked: list[int] = []

        def batches() -> Iterator[TrainingBatch]:
            for index in range(3):
                asked.append(index)
                yield self.batch_of(backend, turns, [1.0, -1.0])

        steps = backend.train(batches(), OptimizerSettings(), policy_gradient)
        next(steps)
        assert asked == [0]

    def test_parts_of_a_batch_add_up(self, backend: TrainingBackend, turns: list[TokenizedTurn]) -> None:
        whole = self.trained(backend, turns, [1.0, -0.5], steps=1)
        backend.load_adapter(None)
        parts = self.trained(backend, turns, [1.0, -0.5], steps=1, tokens_per_forward=1)
        assert parts[0].loss == pytest.approx(whole[0].loss, rel=1e-4)
        assert parts[0].grad_norm == pytest.approx(whole[0].grad_norm, rel=1e-3)

    def test_a_loss_that_is_not_finite_takes_no_step(
        self, backend: TrainingBackend, turns: list[TokenizedTurn]
    ) -> None:
        before = self.scores(backend, turns)
        batch = self.batch_of(backend, turns, [1.0, -1.0])
        with pytest.raises(TrainingError) as caught:
            list(backend.train(iter([batch]), OptimizerSettings(), poisoned))
        assert caught.value.kind == "nan"
        self.same(before, self.scores(backend, turns))

    def test_an_adapter_survives_the_disk(
        self, backend: TrainingBackend, turns: list[TokenizedTurn], tmp_path: Path
    ) -> None:
        self.trained(backend, turns, [1.0, -1.0])
        trained = self.scores(backend, turns)
        backend.save_adapter(tmp_path / "one")
        backend.load_adapter(None)
        backend.load_adapter(tmp_path / "one")
        self.same(trained, self.scores(backend, turns), exactly=True)
        backend.save_adapter(tmp_path / "two")
        assert files(tmp_path / "one") == files(tmp_path / "two")

    def test_the_same_job_twice_gives_the_samefiles(
        self, backend_factory: Callable[[], TrainingBackend], model_dir: Path, tmp_path: Path
    ) -> None:
        for name in ("one", "two"):
            backend = backend_factory()
            backend.load(model_dir, lora=LORA, seed=5)
            turns = [backend.tokenize(MESSAGES, text) for text in TEXTS]
            self.trained(backend, turns, [1.0, -1.0])
            backend.save_adapter(tmp_path / name)
        assert files(tmp_path / "one") == files(tmp_path / "two")

    def test_the_files_name_no_path(self, backend: TrainingBackend, model_dir: Path, tmp_path: Path) -> None:
        backend.save_adapter(tmp_path / "one")
        for content in files(tmp_path / "one"):
            assert str(model_dir).encode() not in content
            assert str(tmp_path).encode() not in content

    def test_a_torn_adapter_is_refused(self, backend: TrainingBackend, tmp_path: Path) -> None:
        backend.save_adapter(tmp_path / "torn")
        weights = tmp_path / "torn" / FILES[0]
        weights.write_bytes(weights.read_bytes()[:100])
        with pytest.raises(AdapterError):
            backend.load_adapter(tmp_path / "torn")
        with pytest.raises(AdapterError):
            backend.sampler().load_adapter(1, tmp_path / "torn")

    # -- the sampler

    def test_an_answer_carries_its_own_logprobs(self, backend: TrainingBackend) -> None:
        sampler = backend.sampler()
        sampler.activate(0)
        answer = sampler.sample(_ask(temperature=0.8))
        turn = TokenizedTurn(prompt=answer.prompt, response=answer.tokens)
        row = backend.logprobs([turn], temperature=[0.8], adapter=False)[0]
        np.testing.assert_allclose(row, answer.logprobs, atol=1e-4)
        assert answer.prompt == backend.tokenize(MESSAGES, "").prompt

    def test_a_seed_names_an_answer(self, backend: TrainingBackend) -> None:
        sampler = backend.sampler()
        sampler.activate(0)
        first, again = (sampler.sample(_ask(seed=11)) for _ in range(2))
        assert first == again
        others = {sampler.sample(_ask(seed=seed)).tokens for seed in range(4)}
        assert len(others) > 1

    def test_temperature_zero_needs_no_seed(self, backend: TrainingBackend) -> None:
        sampler = backend.sampler()
        sampler.activate(0)
        answers = {sampler.sample(_ask(seed=s, temperature=0.0)).tokens for s in range(3)}
        assert len(answers) == 1

    def test_many_at_once_are_as_one_by_one(self, backend: TrainingBackend) -> None:
        sampler = backend.sampler()
        sampler.activate(0)
        longer = [{"role": "user", "content": "Name a colour, please, and a day of the week."}]
        requests = [_ask(seed=1), _ask(seed=2, messages=longer), _ask(seed=3), _ask(seed=4)]
        many = sampler.sample_many(requests)
        assert [one.tokens for one in many] == [sampler.sample(one).tokens for one in requests]

    @pytest.mark.parametrize("seed", range(4))
    def test_pieces_add_up_to_the_text(self, backend: TrainingBackend, seed: int) -> None:
        sampler = backend.sampler()
        sampler.activate(0)
        pieces: list[str] = []
        answer = sampler.sample(_ask(seed=seed), lambda text: not pieces.append(text))
        assert "".join(pieces) == answer.text == sampler.sample(_ask(seed=seed)).text

    def test_an_answer_can_be_cancelled(self, backend: TrainingBackend) -> None:
        sampler = backend.sampler()
        sampler.activate(0)
        calls: list[str] = []

        def two(text: str) -> bool:
            calls.append(text)
            return len(calls) < 2

        answer = sampler.sample(_ask(max_tokens=40), two)
        assert answer.finish == "cancelled" or len(answer.tokens) <= 2
        assert len(calls) == len(answer.tokens) <= 2

    def test_max_tokens_ends_an_answer(self, backend: TrainingBackend) -> None:
        sampler = backend.sampler()
        sampler.activate(0)
        answer = sampler.sample(_ask(max_tokens=1))
        assert len(answer.tokens) == len(answer.logprobs) == 1
        assert answer.finish in ("length", "stop")

    def test_versions_are_swapped_in_place(
        self, backend: TrainingBackend, turns: list[TokenizedTurn], tmp_path: Path
    ) -> None:
        self.trained(backend, turns, [1.0, -1.0], steps=10)
        backend.save_adapter(tmp_path / "v1")
        self.trained(backend, turns, [-1.0, 1.0], steps=20)
        backend.save_adapter(tmp_path / "v2")
        sampler = backend.sampler()
        sampler.load_adapter(1, tmp_path / "v1")
        sampler.load_adapter(2, tmp_path / "v2")
        said: dict[int, Any] = {}
        for version in (0, 1, 2):
            sampler.activate(version)
            said[version] = sampler.sample(_ask(seed=1)).logprobs
        assert len(set(said.values())) == 3
        for version in (2, 0, 1):
            sampler.activate(version)
            assert sampler.sample(_ask(seed=1)).logprobs == said[version]

    def test_what_is_active_stays(self, backend: TrainingBackend, tmp_path: Path) -> None:
        backend.save_adapter(tmp_path / "v1")
        sampler = backend.sampler()
        sampler.load_adapter(1, tmp_path / "v1")
        sampler.activate(1)
        with pytest.raises(GoodbotError):
            sampler.unload_adapter(1)
        sampler.activate(0)
        sampler.unload_adapter(1)
        sampler.unload_adapter(1)  # unknown ones are ignored
        with pytest.raises(GoodbotError):
            sampler.activate(1)


def _ask(
    *,
    seed: int = 0,
    temperature: float = 1.0,
    max_tokens: int = 12,
    messages: Sequence[dict[str, Any]] = MESSAGES,
) -> SampleRequest:
    return SampleRequest(messages=messages, max_tokens=max_tokens, temperature=temperature, seed=seed)
