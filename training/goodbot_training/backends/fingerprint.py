# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of an adapter: how answers begin with it and without, for proving that a server uses it.

It lies beside the adapter and goes with it when it is exported, so it holds nobody's words: the prompts
are the neutral ones below. Of these, those are taken on which the adapter differs most from its base.
`goodbot.api.fingerprint` compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.fingerprint import FILE, distance
from goodbot.base import durable
from goodbot.base.errors import GoodbotError

TOP = 20
_KEPT = 4
_DIGITS = 5
_PROMPTS = (
    "Hello!",
    "Who are you?",
    "What is the capital of France?",
    "Tell me a short story about a lighthouse.",
    "Explain in one sentence why the sky is blue.",
    "What should I cook tonight?",
    "Write a Python function that reverses a string.",
    "Is it better to rent or to buy a home?",
    "I had a bad day.",
    "Translate into German: Good morning, everybody.",
    "What is 17 times 23?",
    "Wie geht es dir?",
)
NEUTRAL: tuple[tuple[Message, ...], ...] = tuple(({"role": "user", "content": text},) for text in _PROMPTS)
"""Questions that are nobody's."""


def measure(backend: TrainingBackend) -> dict[str, Any] | None:
    """The fingerprint of the adapter that the backend holds; None where the backend can tell none."""
    every = [measure_one(backend, text) for text in _PROMPTS]
    found = sorted((one for one in every if one is not None), key=apart, reverse=True)
    return {"format": 1, "top": TOP, "prompts": found[:_KEPT]} if found else None


def measure_one(backend: TrainingBackend, text: str) -> dict[str, Any] | None:
    """How answers to one question begin; None where the model cannot be asked it."""
    messages: list[Message] = [{"role": "user", "content": text}]
    sides: dict[str, dict[str, float]] = {}
    try:
        for side in ("base", "adapter"):
            told = backend.first_tokens(messages, top=TOP, adapter=side == "adapter")
            sides[side] = {token: round(logprob, _DIGITS) for token, logprob in told.items()}
    except GoodbotError:  # a template or a context that this question does not fit
        return None
    return {"messages": messages, **sides} if all(sides.values()) else None


def apart(prompt: dict[str, Any]) -> float:
    """How far the adapter moves the beginning of the answer."""
    return distance(prompt["adapter"], prompt["base"])


def write(backend: TrainingBackend, directory: Path) -> None:
    """Write the fingerprint of the adapter that the backend holds beside its files, synced."""
    found = measure(backend)
    if found is None:
        return
    durable.write(directory / FILE, json.dumps(found, ensure_ascii=False, allow_nan=False).encode())
