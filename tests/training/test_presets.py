# SPDX-License-Identifier: Apache-2.0
"""Presets by the model's shape, against values worked out by hand; what the owner sets wins."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.model_shape import Architecture, read
from goodbot.base.errors import ConfigError
from goodbot.config import parse
from goodbot.learning.training.settings import training_settings
from goodbot_training.backends.torch import register_backend
from goodbot_training.job.presets import resolve
from goodbot_training.job.settings import PRESETS, TrainingSettings

DENSE: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 128,
    "vocab_size": 512,
    "tie_word_embeddings": True,
}
MIXTURE: dict[str, Any] = {
    **DENSE,
    "model_type": "qwen3_moe",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
D = TrainingSettings()


def settings(shape: Architecture | None = None, **own: Any) -> TrainingSettings:
    return TrainingSettings.from_mapping({**own, **resolve(own, shape).values})


def paced(found: TrainingSettings) -> tuple[float, ...]:
    return (found.learning_rate_scale, found.kl, found.rank, found.alpha)


def test_balanced_on_a_dense_model_is_the_defaults() -> None:
    assert settings(read(DENSE)) == D
    assert settings(None) == D


@pytest.mark.parametrize(
    ("preset", "rate", "kl"), [("careful", 0.5, 2.0), ("balanced", 1.0, 1.0), ("aggressive", 1.5, 0.5)]
)
def test_the_table(preset: str, rate: float, kl: float) -> None:
    base = (D.learning_rate_scale * rate, D.kl * kl, D.rank, D.alpha)
    assert paced(settings(read(DENSE), preset=preset)) == pytest.approx(base)
    mixed = (base[0] / 2, base[1] / 2, 2 * D.rank, 2 * D.alpha)
    assert paced(settings(read(MIXTURE), preset=preset)) == pytest.approx(mixed)


def test_custom_is_the_defaults_whatever_the_model_is() -> None:
    for shape in (read(DENSE), read(MIXTURE), None):
        assert settings(shape, preset="custom") == replace(D, preset="custom")


def test_what_the_owner_sets_wins_even_where_it_is_the_default() -> None:
    found = settings(read(MIXTURE), preset="careful", kl=D.kl, rank=4)
    assert (found.kl, found.rank, found.alpha) == (D.kl, 4, D.alpha)
    assert found.learning_rate_scale == D.learning_rate_scale / 4, "the others are the preset's"
    assert "(yours: kl 1.0, rank 4)" in resolve({"kl": 1.0, "rank": 4}, None).why
    assert "(yours: objective gentle)" in resolve({"objective": "gentle"}, None).why  # a plugin's


def test_the_size_comes_in_by_the_weights_that_a_token_meets() -> None:
    # A layer: q 64·64, k and v 32·64, o 64·64, gate, up and down 128·64; two layers.
    weights = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64)
    rate = 3e-3 * min(1.0, (1e6 / weights) ** 0.45)
    assert f"rate {rate:.1e}, " in resolve({}, read(DENSE)).why
    large = {
        **DENSE,
        "hidden_size": 1024,
        "head_dim": 128,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "vocab_size": 151936,
    }
    # Qwen3-0.6B: 28 layers of 2·2048·1024 + 2·1024·1024 + 3·3072·1024 = 440 million.
    assert abs(3e-3 * (1e6 / 440.4e6) ** 0.45 - 1.94e-4) < 1e-6
    assert resolve({}, read(large)).why == (f"balanced, 0.6B dense: rate 1.9e-04, KL {D.kl:g}, rank {D.rank}")


def test_a_mixture_says_so() -> None:
    why = resolve({}, read(MIXTURE)).why
    assert "mixture of experts" in why
    assert "a token: rate" in why


def test_the_config_file_s_preset_goes_by_the_model_s_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MIXTURE))
    spec = register_backend()
    config = parse('[training.settings]\npreset = "careful"\nsteps = 5\n', home=tmp_path)
    found, why = training_settings(config, spec, {}, tmp_path)
    assert (found.preset, found.steps, found.rank) == ("careful", 5, 2 * D.rank)
    assert why.startswith("careful, ")
    (tmp_path / "config.json").write_text("{}")  # its shape is not known: it counts as dense
    assert training_settings(config, spec, {}, tmp_path)[0].rank == D.rank
    wrong = parse('[training.settings]\npreset = "bold"\n', home=tmp_path)
    with pytest.raises(ConfigError, match=f"have: {', '.join(PRESETS)}"):
        training_settings(wrong, spec, {}, tmp_path)
