# SPDX-License-Identifier: Apache-2.0
"""The objective against hand-made figures, a numerical gradient, and itself in other namespaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from goodbot.base.errors import TrainingError
from goodbot_training.job.settings import OBJECTIVES
from goodbot_training.job.types import TrainingSettings
from goodbot_training.objectives import NAMES, make_objective
from goodbot_training.objectives.mispo import VARIANTS as MADE
from goodbot_training.objectives.mispo import MisPo

from tests.support import require
from tests.training.oracle import VARIANTS, arrays, objective

N = 20.0


def numerical_gradient(variant: str) -> Any:
    """d loss / d policy_logprobs by central differences, with the coefficients held still.

    They are detached: what a finite difference of the whole loss would see through them must
    not be in the gradient.
    """
    loss, data = objective(variant), arrays()
    log_ratio = (data["policy_logprobs"] - data["sampling_logprobs"]) * data["mask"]
    fixed, _ = loss.coefficients(np, log_ratio, data["reference_logprobs"], data["advantages"], data["mask"])
    held = loss.held(np, data["advantages"])

    def surrogate(policy: Any) -> float:
        gain = (fixed * data["advantages"][:, None] * policy).sum()
        difference = (data["reference_logprobs"] - policy) * data["mask"]
        kl = (held * (np.exp(difference) - difference - 1)).sum()
        return float((loss.kl * kl - gain) / N)

    gradient, step = np.zeros_like(data["policy_logprobs"]), 1e-6
    for index in np.ndindex(*gradient.shape):
        up, down = data["policy_logprobs"].copy(), data["policy_logprobs"].copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (surrogate(up) - surrogate(down)) / (2 * step)
    assert surrogate(data["policy_logprobs"]) == pytest.approx(float(loss(np, **data, normalizer=N)[0]))
    return gradient


@pytest.mark.parametrize("variant", VARIANTS)
def test_torch_agrees_with_the_oracle(variant: str) -> None:
    torch = require("torch")
    data = {name: torch.tensor(array) for name, array in arrays(np.float32).items()}
    data["policy_logprobs"].requires_grad_()
    value, statistics = objective(variant)(torch, **data, normalizer=N)
    value.backward()
    expected, counts = objective(variant)(np, **arrays(), normalizer=N)
    assert value.item() == pytest.approx(float(expected), rel=1e-4)
    for name, count in counts.items():
        assert float(statistics[name]) == pytest.approx(float(count), rel=1e-4), name
        assert not statistics[name].requires_grad
    np.testing.assert_allclose(
        data["policy_logprobs"].grad.numpy(), numerical_gradient(variant), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_mlx_agrees_with_the_oracle(variant: str) -> None:
    mx = require("mlx.core")
    data = {name: mx.array(array) for name, array in arrays(np.float32).items()}
    policy = data.pop("policy_logprobs")

    def loss(logprobs: Any) -> Any:
        return objective(variant)(mx, logprobs, **data, normalizer=N)

    (value, statistics), gradient = mx.value_and_grad(loss)(policy)
    expected, counts = objective(variant)(np, **arrays(), normalizer=N)
    assert value.item() == pytest.approx(float(expected), rel=1e-4)
    for name, count in counts.items():
        assert statistics[name].item() == pytest.approx(float(count), rel=1e-4), name
    np.testing.assert_allclose(np.array(gradient), numerical_gradient(variant), rtol=1e-4, atol=1e-6)


def test_on_policy_and_without_kl_it_is_plain_reinforce() -> None:
    data = arrays() | {"policy_logprobs": arrays()["sampling_logprobs"]}
    for variant in set(VARIANTS) - {"tapered"}:
        loss, statistics = objective(variant, kl=0.0)(np, **data, normalizer=N)
        plain = -(data["policy_logprobs"] * data["advantages"][:, None]).sum() / N
        assert loss == pytest.approx(plain)
        assert statistics["tokens_accepted"] == data["mask"].sum()
        assert statistics["trajectories_accepted"] == 4


def test_the_filter_masks_and_the_scale_scales() -> None:
    """One rollout of two tokens; x = 0.5 and 2, so ρ̄ = 1. Then x = 1.5 twice, so ρ̄ = 1.5."""
    mask, advantage = np.ones((1, 2)), np.ones(1)
    apart, high = np.log([[0.5, 2.0]]), np.log([[1.5, 1.5]])
    low, far = np.log([[0.4, 0.4]]), np.log([[3.0, 0.1]])
    table = {
        "filter": ([[0, 0]], [[0, 0]], [[0, 0]], [[0, 0]]),
        "scale": (
            [[0.7, 1.4]],
            [[1.4 * 1.25 / 1.5] * 2],
            [[0.7 * 0.4 / 0.8] * 2],
            [[1.4 * 0.3**0.5 / 0.8, 0.7 * 0.3**0.5 / 0.8]],
        ),
    }
    for variant, expected in table.items():
        for log_ratio, coefficients in zip((apart, high, low, far), expected, strict=True):
            got, _ = objective(variant).coefficients(np, log_ratio, log_ratio, advantage, mask)
            np.testing.assert_allclose(got, coefficients, err_msg=variant)
    inside = np.log([[1.2, 0.9]])
    got, _ = objective("filter").coefficients(np, inside, inside, advantage, mask)
    assert got.tolist() == [[1, 1]]
    got, _ = objective("scale").coefficients(np, inside, inside, advantage, mask)
    np.testing.assert_allclose(got, [[1.2, 0.9]])


def test_a_bad_answer_tapers_off_and_spares_what_was_sure() -> None:
    """Two tokens, of which the base is sure of a quarter and of all; then x = 0.5 and 4."""
    reference, mask = np.log([[0.25, 1.0], [0.25, 0.5]]), np.ones((2, 2))
    bad, good = -np.ones(2), np.ones(2)
    taper = objective("tapered").coefficients
    still = np.zeros((2, 2))
    np.testing.assert_allclose(taper(np, still, reference, bad, mask)[0], [[0.75, 0], [0.75, 0.5]])
    moved = np.log([[0.5, 4.0], [0.5, 1.5]])
    expected = [[0.5 * 0.75, 0], [0.5 * 0.75, 0.75 * 0.5]]  # Π x: .5 and 2, cut to 1; .5 and .75
    np.testing.assert_allclose(taper(np, moved, reference, bad, mask)[0], expected)
    np.testing.assert_allclose(taper(np, moved, reference, good, mask)[0], mask)


def test_what_the_policy_has_given_up_is_pushed_no_further() -> None:
    """A thousand nats below the sampler, nothing of it is left, and nothing overflows."""
    reference, mask = np.full((1, 3), -1.0), np.ones((1, 3))
    for gap in (-1000.0, 1000.0):
        with np.errstate(invalid="raise"):
            got, _ = objective("tapered").coefficients(
                np, np.full((1, 3), gap / 3), reference, -np.ones(1), mask
            )
        np.testing.assert_allclose(got, (1 - np.exp(reference)) * (gap > 0), atol=1e-12)


def test_tapered_holds_only_good_answers_to_the_base() -> None:
    data = arrays() | {"advantages": np.array([1.0, -1.0, 0.5, -0.2])}
    assert objective("tapered").held(np, data["advantages"]).tolist() == [[1], [0], [1], [0]]
    assert objective("scale").held(np, data["advantages"]).tolist() == [[1]] * 4
    free, _ = objective("tapered", kl=0.0)(np, **data, normalizer=N)
    held, _ = objective("tapered", kl=0.1)(np, **data, normalizer=N)
    good = data["advantages"] > 0
    gap = (data["reference_logprobs"] - data["policy_logprobs"])[good] * data["mask"][good]
    assert held - free == pytest.approx(0.1 * (np.exp(gap) - gap - 1).sum() / N)


def test_a_bad_answers_token_that_has_vanished_is_still_a_number() -> None:
    torch = require("torch")
    data = {name: torch.tensor(array) for name, array in arrays(np.float32).items()}
    bad = int(data["advantages"].argmin())
    data["policy_logprobs"][bad, 0] = -200.0
    data["policy_logprobs"].requires_grad_()
    value, statistics = objective("tapered")(torch, **data, normalizer=N)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(data["policy_logprobs"].grad).all()
    assert all(torch.isfinite(statistic).all() for statistic in statistics.values())


def test_padding_counts_for_nothing() -> None:
    data = arrays()
    garbage = {
        name: np.where(data["mask"] > 0, data[name], -7.0)
        for name in ("sampling_logprobs", "reference_logprobs")
    }
    for variant in VARIANTS:
        clean = objective(variant)(np, **data, normalizer=N)
        dirty = objective(variant)(np, **(data | garbage), normalizer=N)
        assert clean == dirty


def test_parts_of_a_batch_add_up() -> None:
    data = arrays()
    for variant in VARIANTS:
        whole, counts = objective(variant)(np, **data, normalizer=N)
        halves = [
            objective(variant)(np, **{k: v[part] for k, v in data.items()}, normalizer=N)
            for part in (slice(0, 1), slice(1, 4))
        ]
        assert whole == pytest.approx(sum(value for value, _ in halves))
        for name in counts:
            assert counts[name] == pytest.approx(sum(found[name] for _, found in halves))


def test_a_longer_answer_weighs_more_not_the_same() -> None:
    """The normaliser is constant: twice the tokens, twice the gain."""
    mask, ones = np.ones((1, 3)), np.ones((1, 3))
    one = {"policy_logprobs": -ones, "sampling_logprobs": -ones, "reference_logprobs": -ones}
    short, _ = objective("scale")(np, **one, advantages=np.ones(1), mask=mask, normalizer=N)
    two = {name: np.tile(array, 2) for name, array in one.items()}
    long, _ = objective("scale")(np, **two, advantages=np.ones(1), mask=np.tile(mask, 2), normalizer=N)
    assert long == pytest.approx(2 * short)


def test_settings_choose_the_variant_and_its_bands() -> None:
    for name, variant in MADE.items():
        made = make_objective(TrainingSettings(objective=name)).loss
        assert isinstance(made, MisPo)
        assert made.variant == name
        assert (made.trajectory_low, made.trajectory_high) == variant.band
    assert TrainingSettings().objective == "tapered"
    narrow = make_objective(TrainingSettings(trajectory_low=0.9, trajectory_high=1.1)).loss
    assert isinstance(narrow, MisPo)
    assert narrow.trajectory_low == 0.9
    with pytest.raises(TrainingError, match="magic"):
        TrainingSettings.from_mapping({"objective": "magic"})
    assert sorted(OBJECTIVES) == sorted(NAMES)
