# SPDX-License-Identifier: Apache-2.0
"""What the tiny model says by NumPy: what a server that serves it must tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.core.inference.servers import tiny
from tests.support import require

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def logprobs(ids: list[int], adapter: Path | None, temperature: float) -> np.ndarray:
    """`(len(ids), vocabulary)`: what the tiny model itself expects after each of `ids`, by NumPy."""
    return normal(logits(ids, adapter) / temperature)


def logits(ids: list[int], adapter: Path | None) -> np.ndarray:
    """The same before a softmax."""
    from goodbot_training.backends import adapters
    from goodbot_training.formats import proof, reference
    from goodbot_training.formats.checkpoint import Checkpoint

    base = Checkpoint(tiny.model())
    decoder = reference.decoder(base.config)
    assert decoder is not None
    weights = adapters.read_adapter(adapter) if adapter else None
    return reference.logits(decoder, proof.merged(base, weights), np.array(ids))


def normal(logits: np.ndarray) -> np.ndarray:
    """Log-probs of logits."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def prompt(messages: list[dict[str, str]] = QUESTION) -> list[int]:
    """The ids of a conversation in the model's template."""
    transformers = require("transformers")
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(tiny.model())
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return tokenizer(text, add_special_tokens=False).input_ids
