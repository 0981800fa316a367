# SPDX-License-Identifier: Apache-2.0
"""The yardstick itself: its logits are those of transformers, whichever way GGUF orders the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from goodbot.base.errors import AdapterError
from goodbot_training.formats import gguf_adapter, gguf_model, mlx, proof, reference
from goodbot_training.formats.checkpoint import Checkpoint

from tests.support import require
from tests.training.formats import models

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


@pytest.fixture(params=FAMILIES, scope="module")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """A model's directory, itself, and an adapter on it."""
    require("transformers"), require("torch")
    directory = tmp_path_factory.mktemp(request.param)
    model = models.make(request.param, directory)
    base = Checkpoint(directory)
    return base, model, models.adapter(base)


def test_numpy_answers_as_transformers_does(found: tuple) -> None:
    base, model, weights = found
    decoder = reference.decoder(base.config)
    assert decoder is not None
    for adapter in (None, weights):
        ours = reference.logits(decoder, proof.merged(base, adapter), np.array(models.IDS))
        assert np.abs(ours - models.logits(model, adapter)).max() < 1e-4


def test_a_gguf_adapter_on_a_gguf_model_answers_as_transformers_does(found: tuple, tmp_path: Path) -> None:
    """All from the two files: numbers, names, order of rows, scale, and the rotary embedding."""
    require("gguf")
    base, model, weights = found
    gguf_model.write(tmp_path / "m.gguf", base, None, dtype="F32", name="m", end=2, done=lambda _: None)
    gguf_adapter.write(tmp_path / "a.gguf", weights, base, "a")
    decoder, plain = gguf_model.as_llama_cpp(tmp_path / "m.gguf", base)
    _, tuned = gguf_adapter.as_llama_cpp(decoder, tmp_path / "a.gguf", base)
    for source, adapter in ((plain, None), (tuned, weights)):
        ours = reference.logits(decoder, source, np.array(models.IDS))
        assert np.abs(ours - models.logits(model, adapter)).max() < 1e-3


def test_mlx_lm_loads_an_mlx_adapter_and_answers_the_same(found: tuple, tmp_path: Path) -> None:
    require("mlx_lm")
    import mlx.core as mx
    from mlx_lm.tuner.utils import load_adapters
    from mlx_lm.utils import load_model

    base, model, weights = found
    mlx.write(tmp_path / "a", weights, base)
    causal = load_model(base.directory)[0]
    causal.set_dtype(mx.float32)
    load_adapters(causal, str(tmp_path / "a"))
    ours = np.array(causal(mx.array([models.IDS]))[0])
    assert np.abs(ours - models.logits(model, weights)).max() < 1e-3


@pytest.mark.parametrize("changed", [("num_attention_heads", 2), ("rms_norm_eps", 0.1)])
def test_a_wrong_number_is_noticed(found: tuple, changed: tuple) -> None:
    base, model, _ = found
    decoder = reference.decoder({**base.config, "head_dim": 8, changed[0]: changed[1]})
    assert decoder is not None
    try:
        ours = reference.logits(decoder, proof.merged(base, None), np.array(models.IDS))
    except ValueError:
        return
    assert np.abs(ours - models.logits(model)).max() > 1e-3


def test_rows_in_the_order_of_another_family_are_noticed(
    found: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("gguf")
    base, _, weights = found
    from goodbot_training.formats.gguf_names import Dialect

    monkeypatch.setattr(Dialect, "ordered", lambda self, tensor, rows: rows[::-1].copy())
    monkeypatch.setattr(Dialect, "restored", lambda self, tensor, rows: rows[::-1].copy())
    with pytest.raises(AdapterError, match="does not give what was trained"):
        gguf_adapter.write(tmp_path / "a.gguf", weights, base, "a")
