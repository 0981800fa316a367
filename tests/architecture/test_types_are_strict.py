# SPDX-License-Identifier: Apache-2.0
"""pyright is strict everywhere but in the boundary modules listed here, whose SDK ships no types."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]

BOUNDARY = {
    "training/goodbot_training/backends/adapters.py": "safetensors",
    "training/goodbot_training/backends/chat.py": "transformers",
    "training/goodbot_training/backends/marks.py": "tokenizers",
    "training/goodbot_training/backends/mlx/batching.py": "mlx",
    "training/goodbot_training/backends/mlx/model.py": "mlx",
    "training/goodbot_training/backends/mlx/sampler.py": "mlx",
    "training/goodbot_training/backends/mlx/still.py": "mlx",
    "training/goodbot_training/backends/mlx/targets.py": "mlx, mlx_lm",
    "training/goodbot_training/backends/mlx/trainer.py": "mlx",
    "training/goodbot_training/backends/mlx/batch_decoder.py": "mlx, mlx_lm",
    "training/goodbot_training/backends/ray/driver.py": "ray",
    "training/goodbot_training/backends/ray/worker.py": "ray",
    "training/goodbot_training/backends/state.py": "safetensors",
    "training/goodbot_training/backends/sums.py": "numpy",
    "training/goodbot_training/backends/torch/cache.py": "torch, transformers",
    "training/goodbot_training/backends/torch/model.py": "torch, transformers, peft",
    "training/goodbot_training/backends/torch/prepacked.py": "torch",
    "training/goodbot_training/backends/torch/sampler.py": "torch",
    "training/goodbot_training/backends/torch/sharing.py": "torch",
    "training/goodbot_training/backends/torch/slopes.py": "torch",
    "training/goodbot_training/backends/torch/still.py": "torch",
    "training/goodbot_training/backends/torch/targets.py": "torch, transformers, peft",
    "training/goodbot_training/backends/mlx/logprobs.py": "mlx",
    "training/goodbot_training/backends/torch/loading.py": "torch",
    "training/goodbot_training/backends/torch/logprobs.py": "torch",
    "training/goodbot_training/backends/torch/lora.py": "torch",
    "training/goodbot_training/backends/torch/trainer.py": "torch",
    "training/goodbot_training/formats/mlx.py": "safetensors",
    # What makes the shipped model, run by developers only.
    "training/goodbot_training/tiny/__main__.py": "torch",
    "training/goodbot_training/tiny/export.py": "safetensors",
    "training/goodbot_training/tiny/muon.py": "torch",
    "training/goodbot_training/tiny/packing.py": "torch",
    "training/goodbot_training/tiny/sample.py": "torch",
    "training/goodbot_training/tiny/tokens.py": "tokenizers",
    "training/goodbot_training/tiny/train.py": "torch",
}


def test_only_the_listed_modules_are_checked_at_standard() -> None:
    relaxed = {
        str(path.relative_to(ROOT))
        for folder in ("core", "connectors", "training", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if "# pyright: " + "standard" in path.read_text(encoding="utf-8")
    }
    assert relaxed == set(BOUNDARY)
