# SPDX-License-Identifier: Apache-2.0
"""A small learning benchmark in the suite: one seed, one control. The whole one is `benchmark.py`."""

from __future__ import annotations

from goodbot.api.backend import TrainingBackend
from goodbot.base.installed import missing_modules

from tests.learning.trial import run_trial
from tests.support import missing


def _backend() -> TrainingBackend:
    """torch if it is there, which is the faster one on a CPU; else mlx."""
    if not missing_modules(("torch", "transformers", "peft")):
        from goodbot_training.backends.torch.trainer import TorchBackend

        return TorchBackend()
    if not missing_modules(("mlx", "mlx_lm")):
        from goodbot_training.backends.mlx.trainer import MlxBackend

        return MlxBackend()
    missing("neither torch nor mlx is installed")
    raise AssertionError("unreachable")


def test_forty_ratings_teach_the_liked_style_and_shuffled_ones_do_not() -> None:
    rated = run_trial(_backend(), seed=0, like="friendly", answers=240)
    shuffled = run_trial(_backend(), seed=0, like="friendly", deal=1, answers=240)

    assert rated.passed, rated.reason
    assert rated.liked_gain - shuffled.liked_gain >= 0.2, (rated, shuffled)
    assert rated.facts_change >= -0.04, rated
    assert rated.before.facts >= 0.95, "the base itself must know its facts"
