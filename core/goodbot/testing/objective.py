# SPDX-License-Identifier: Apache-2.0
"""What every objective must do. Subclass `ObjectiveContract` and give it one fixture.

::

    from goodbot.testing import ObjectiveContract

    class TestMine(ObjectiveContract):
        @pytest.fixture
        def factory(self):
            return my_plugin.objective  # what `ObjectiveSpec.factory` names

NumPy is needed; PyTorch and MLX are tried where they are installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

ROWS, TOKENS = 4, 6
CLOSE = 1e-4
"""Largest difference between the frameworks, relative or absolute."""


class ObjectiveContract:
    """The loss is finite, the same in every framework, leads the right way, and sees what it may."""

    adds_up: ClassVar[bool] = True
    """False for one that compares the answers of a batch with each other, as KTO's does."""

    @pytest.fixture
    def factory(self) -> Callable[[Any], Any]:
        """Makes the objective of the training settings."""
        raise NotImplementedError("override the fixture `factory`")

    @pytest.fixture
    def objective(self, factory: Callable[[Any], Any]) -> Any:
        settings = importlib.import_module("goodbot_training.job.settings")
        return factory(settings.TrainingSettings())

    @pytest.fixture
    def arrays(self, objective: Any) -> dict[str, Any]:
        """A batch of four answers, `(4, 6)`; the last one is shorter, and one advantage is 0.

        Where the objective takes words, the last two have some.
        """
        np = pytest.importorskip("numpy")
        random = np.random.default_rng(0)
        policy = -random.exponential(1.0, (ROWS, TOKENS))
        mask = np.ones((ROWS, TOKENS))
        mask[-1, TOKENS // 2 :] = 0.0
        words = random.normal(0.0, 1.0, policy.shape) * mask
        words[: ROWS // 2] = 0.0
        return {
            **({"hindsight": words} if objective.hindsight else {}),
            "policy_logprobs": policy,
            "sampling_logprobs": policy + random.normal(0.0, 0.2, policy.shape),
            "reference_logprobs": policy + random.normal(0.0, 0.2, policy.shape),
            "advantages": np.array([0.8, -0.9, 0.0, 0.4]),
            "mask": mask,
        }

    def test_the_advantages_are_finite_and_one_an_answer(self, objective: Any) -> None:
        types = importlib.import_module("goodbot_training.job.types")
        advantages, after = objective.advantages(types.Baseline(), [1.0, -1.0, 0.5], [1.0, 1.0, 0.0])
        assert len(advantages) == 3
        assert all(abs(one) < float("inf") for one in advantages)
        assert advantages[2] == 0, "an answer of weight 0 teaches nothing"
        assert isinstance(after, types.Baseline)

    def test_the_loss_is_finite_and_says_what_it_must(
        self, objective: Any, arrays: Mapping[str, Any]
    ) -> None:
        np = pytest.importorskip("numpy")
        loss, statistics = objective(np, **arrays, normalizer=10.0)
        assert np.isfinite(float(loss))
        assert set(statistics) >= {"kl", "tokens_accepted", "trajectories_accepted"}
        assert all(np.isfinite(float(value)) for value in statistics.values())

    def test_what_is_masked_is_not_seen(self, objective: Any, arrays: dict[str, Any]) -> None:
        np = pytest.importorskip("numpy")
        before, _ = objective(np, **arrays, normalizer=10.0)
        for name in ("policy_logprobs", "sampling_logprobs", "reference_logprobs"):
            arrays[name] = np.where(arrays["mask"] > 0, arrays[name], -7.0)
        after, _ = objective(np, **arrays, normalizer=10.0)
        assert float(after) == pytest.approx(float(before), rel=1e-9)

    def test_the_normalizer_divides(self, objective: Any, arrays: Mapping[str, Any]) -> None:
        np = pytest.importorskip("numpy")
        one, _ = objective(np, **arrays, normalizer=5.0)
        half, _ = objective(np, **arrays, normalizer=10.0)
        assert float(half) == pytest.approx(float(one) / 2)

    def test_parts_of_a_batch_add_up(self, objective: Any, arrays: Mapping[str, Any]) -> None:
        np = pytest.importorskip("numpy")
        whole, said = objective(np, **arrays, normalizer=10.0)
        rows = ({name: array[one : one + 1] for name, array in arrays.items()} for one in range(ROWS))
        parts = [objective(np, **row, normalizer=10.0) for row in rows]
        if self.adds_up:
            assert sum(float(loss) for loss, _ in parts) == pytest.approx(float(whole))
        for name, value in said.items():
            total = sum(float(statistics[name]) for _, statistics in parts)
            assert total == pytest.approx(float(value)), f"{name} is a sum over the batch"

    def test_a_step_makes_good_answers_likelier_and_bad_ones_less(
        self, objective: Any, arrays: dict[str, Any]
    ) -> None:
        slope = self._slope(objective, arrays)["policy_logprobs"].grad.sum(dim=1).tolist()
        assert slope[0] < 0 < slope[1], "down the slope the good answer becomes likelier, the bad one less"

    def test_words_push_each_token_as_they_say(self, objective: Any, arrays: dict[str, Any]) -> None:
        if not objective.hindsight:
            return
        arrays["advantages"][2:] = 0.0
        tensors = self._slope(objective, arrays)
        slope, said = tensors["policy_logprobs"].grad[2:], tensors["hindsight"][2:]
        assert (slope.sign() == -said.sign()).all(), "what the words are for becomes likelier"

    def test_torch_agrees_and_its_gradient_is_finite(self, objective: Any, arrays: Mapping[str, Any]) -> None:
        np, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}
        tensors["policy_logprobs"].requires_grad_()
        loss, _ = objective(torch, **tensors, normalizer=10.0)
        assert float(loss.detach()) == pytest.approx(
            float(self._plain(objective, arrays)), rel=CLOSE, abs=CLOSE
        )
        loss.backward()
        gradient = tensors["policy_logprobs"].grad.numpy()
        assert np.isfinite(gradient).all()
        assert (gradient[arrays["mask"] == 0] == 0).all()

    def test_mlx_agrees_and_its_gradient_is_finite(self, objective: Any, arrays: Mapping[str, Any]) -> None:
        np, mx = pytest.importorskip("numpy"), pytest.importorskip("mlx.core")
        given = {name: mx.array(array.astype(np.float32)) for name, array in arrays.items()}
        policy = given.pop("policy_logprobs")

        def loss_of(policy: Any) -> Any:
            return objective(mx, policy_logprobs=policy, **given, normalizer=10.0)[0]

        loss, gradient = mx.value_and_grad(loss_of)(policy)
        assert float(loss) == pytest.approx(float(self._plain(objective, arrays)), rel=CLOSE, abs=CLOSE)
        assert np.isfinite(np.array(gradient)).all()

    def _slope(self, objective: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The tensors of a first step, from the base, with the gradient of the policy."""
        torch = pytest.importorskip("torch")
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}
        for name in ("sampling_logprobs", "reference_logprobs"):
            tensors[name] = tensors["policy_logprobs"].clone()
        tensors["policy_logprobs"].requires_grad_()
        objective(torch, **tensors, normalizer=10.0)[0].backward()
        return tensors

    def _plain(self, objective: Any, arrays: Mapping[str, Any]) -> Any:
        np = pytest.importorskip("numpy")
        return objective(np, **arrays, normalizer=10.0)[0]
