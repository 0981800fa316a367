# SPDX-License-Identifier: Apache-2.0
"""Small builders of training values."""

from __future__ import annotations

from typing import Any

import numpy as np
from goodbot.api.sampler import TokenizedTurn
from goodbot_training.job.rollout import Rollout


def make_rollout(index: int = 0, *, length: int = 3, reward: float = 1.0, **changes: Any) -> Rollout:
    """A rollout of `length` response tokens."""
    values: dict[str, Any] = {
        "id": f"turn-{index}",
        "turn": TokenizedTurn(prompt=(1, 2), response=tuple(range(3, 3 + length))),
        "temperature": 0.8,
        "reward": reward,
        "weight": 1.0,
        "split": "train",
        "sampling_logprobs": np.full(length, -1.0 - index, np.float32),
        "reference_logprobs": np.full(length, -2.0 - index, np.float32),
        "off_policy": False,
    }
    return Rollout(**(values | changes))


def raw_item(index: int = 0, **changes: Any) -> dict[str, Any]:
    """An item as the protocol has it, not captured."""
    return {
        "id": f"turn-{index}",
        "messages": [{"role": "user", "content": "Hi"}],
        "response": "Hello.",
        "prompt_tokens": [],
        "tokens": [],
        "logprobs": [],
        "temperature": 0.8,
        "version": 0,
        "reward": 1.0,
        "weight": 1.0,
        "split": "train",
        **changes,
    }


def raw_job(**changes: Any) -> dict[str, Any]:
    """A whole job as the protocol has it."""
    return {
        "protocol": 1,
        "run": 7,
        "model": "model",
        "parent": None,
        "output": "out",
        "seed": 3,
        "settings": {},
        "baseline": {"mean": 0.25, "weight": 0.5},
        "behaviour": {"3": "v3"},
        "items": [raw_item()],
        "anchors": [],
        **changes,
    }
