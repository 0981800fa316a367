# SPDX-License-Identifier: Apache-2.0
"""The base models that the arms teach: the shipped one, and others made once by the same recipe.

    python -m tests.learning.bases    makes those anew that lie in `models/`, 17 CPU-minutes

They lie there under a hash of their recipe, for another machine may make other ones. One of another recipe
is made in a cache directory, and appears there only when it is whole.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from goodbot_training.tiny import model_path
from goodbot_training.tiny.styles import STYLES

MODELS = Path(__file__).parent / "models"
CACHE = Path(os.environ.get("GOODBOT_BENCH_CACHE", "build/learning-bases"))
SEED = 0
STEPS = 1250
MAX_BYTES = 8_000_000


@dataclass(frozen=True, kw_only=True)
class Base:
    """A model to teach. Without `shape` and with all styles it is the shipped one."""

    name: str
    about: str
    styles: tuple[str, ...] = STYLES
    shape: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of a `LlamaConfig`; empty: the shipped architecture."""
    steps: int = STEPS

    @property
    def shipped(self) -> bool:
        return not self.shape and self.styles == STYLES

    def path(self, cache: Path = CACHE) -> Path:
        """Where it lies, made or not."""
        if self.shipped:
            return model_path()
        recipe = json.dumps(asdict(self) | {"about": "", "seed": SEED}, sort_keys=True)
        name = f"{self.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
        return MODELS / name if (MODELS / name).exists() else cache / name

    def obtain(self, say: Callable[[str], None] = print, cache: Path = CACHE) -> Path:
        """Its directory; pretrained there first if it is not made yet."""
        path = self.path(cache)
        if not (path / "config.json").exists():
            cache.mkdir(parents=True, exist_ok=True)
            partial_path = Path(tempfile.mkdtemp(prefix=f".{self.name}-", dir=cache))
            try:
                _make(self, partial_path, say)
                os.replace(partial_path, path)
            finally:
                shutil.rmtree(partial_path, ignore_errors=True)
        return path


BASES = {
    base.name: base
    for base in (
        Base(name="tiny", about="the shipped model: Qwen3, 4 layers of 128, 4 heads on 2, head tied, 0.98M"),
        Base(
            name="llama",
            about="Llama, 6 layers of 128, 8 heads on 2, no query or key norm, head apart, 1.2M",
            shape={
                "hidden_size": 128,
                "intermediate_size": 256,
                "num_hidden_layers": 6,
                "num_attention_heads": 8,
                "num_key_value_heads": 2,
                "head_dim": 16,
                "tie_word_embeddings": False,
            },
            steps=2400,  # at 1250 it knows 84 % of the facts, the shipped one 98 %
        ),
        Base(
            name="two-style",
            about="the shipped architecture, pretrained on terse and friendly answers only",
            styles=("terse", "friendly"),
        ),
    )
}


def _make(base: Base, directory: Path, say: Callable[[str], None]) -> None:
    """Pretrain it as the shipped model was, with the shipped tokenizer."""
    import torch
    from goodbot_training.tiny.export import export_config, export_tokenizer, export_weights
    from goodbot_training.tiny.train import ROPE_THETA, config, train
    from tokenizers import Tokenizer
    from transformers import LlamaConfig

    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(model_path() / "tokenizer.json"))
    architecture = config(tokenizer)
    if base.shape:
        architecture = LlamaConfig(
            vocab_size=architecture.vocab_size,
            max_position_embeddings=architecture.max_position_embeddings,
            rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
            bos_token_id=None,
            eos_token_id=architecture.eos_token_id,
            pad_token_id=architecture.pad_token_id,
            **base.shape,
        )
    model = train(
        tokenizer,
        SEED,
        lambda line: say(f"{base.name}: {line}"),
        steps=base.steps,
        architecture=architecture,
        styles=base.styles,
    )
    export_weights(model, directory, MAX_BYTES)
    export_config(model, directory)
    export_tokenizer(tokenizer, directory)
    (directory / "README.md").write_text(f"{base.about}\n", encoding="utf-8")


if __name__ == "__main__":
    for old in MODELS.glob("*-*"):
        shutil.rmtree(old)
    for base in BASES.values():
        base.obtain(cache=MODELS)
