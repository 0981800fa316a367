# SPDX-License-Identifier: Apache-2.0
"""What the real model says by transformers alone, and what tokens weigh by each filter's definition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.real.taught import Turn
from tests.support import require

Array = Any


def load(model: Path) -> Any:
    """The model in fp32, as transformers has it."""
    torch, transformers = require("torch"), require("transformers")
    return transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()


def logits(causal: Any, prompt: Sequence[int], tokens: Sequence[int]) -> Array:
    """Of each of the tokens, what stands before it seen: `(tokens, vocabulary)`."""
    torch = require("torch")
    with torch.no_grad():
        found = causal(torch.tensor([[*prompt, *tokens]])).logits[0]
    return found[len(prompt) - 1 : -1].double().numpy()


def own_logprobs(causal: Any, turn: Turn) -> Array:
    """log π of the tokens of an answer, at its temperature."""
    heated = _normal(logits(causal, turn.prompt, turn.tokens) / turn.temperature)
    return heated[np.arange(len(turn.tokens)), turn.tokens]


def drawn_logprobs(causal: Any, turn: Turn) -> Array:
    """log q of them: of what its filters left, and -inf for what they took out."""
    every = logits(causal, turn.prompt, turn.tokens)
    found: list[float] = []
    for at, (row, token) in enumerate(zip(every, turn.tokens, strict=True)):
        found.append(float(left(row, [*turn.prompt, *turn.tokens[:at]], turn)[token]))
    return np.asarray(found)


def left(row: Array, said: Sequence[int], turn: Turn) -> Array:
    """log q of the whole vocabulary: penalty, temperature, top_k, top_p, min_p, one after the other."""
    row, filters = row.copy(), turn.filters
    seen = sorted(set(said))
    penalty = filters.get("repetition_penalty", 1.0)
    row[seen] = np.where(row[seen] > 0, row[seen] / penalty, row[seen] * penalty)
    chances = np.exp(_normal(row / turn.temperature))
    order = np.argsort(-chances, kind="stable")
    kept = order[: int(filters.get("top_k", 0)) or None]
    mass = chances[kept] / chances[kept].sum()
    kept = kept[np.cumsum(mass) - mass < filters.get("top_p", 1.0)]
    kept = kept[chances[kept] >= filters.get("min_p", 0.0) * chances[order[0]]]
    found = np.full(len(row), -np.inf)
    found[kept] = np.log(chances[kept] / chances[kept].sum())
    return found


def _normal(rows: Array) -> Array:
    best = rows.max(axis=-1, keepdims=True)
    return rows - best - np.log(np.exp(rows - best).sum(axis=-1, keepdims=True))
