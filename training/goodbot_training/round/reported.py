# SPDX-License-Identifier: Apache-2.0
"""Answers that other programs report with their tokens: only what people have read is learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from goodbot.api.backend import TrainingBackend
from goodbot.base.text import clean

from goodbot_training.job.rated import RatedSample


def as_read(item: RatedSample, backend: TrainingBackend) -> RatedSample | None:
    """The item by the words that people have read; None where its tokens spell others.

    Tokens may go on behind the words, as with a stop sequence, and a prompt may be written in another
    way. Then they say nothing certain: the item comes back without them, to be read anew.
    """
    spelt: Callable[[Sequence[int]], Sequence[str]] | None = getattr(backend, "spelt", None)
    if not (item.reported and item.captured) or spelt is None:  # a backend of a plugin need not tell
        return item
    words, found = _bare(item.response), [_bare(one) for one in spelt(item.tokens)]
    if not any(one.startswith(words) for one in found):
        return None
    asked = [_bare(str(message.get("content") or "")) for message in item.messages]
    if words in found and any(_holds(_bare(one), asked) for one in spelt(item.prompt_tokens)):
        return item
    return replace(item, prompt_tokens=(), tokens=(), logprobs=(), lifts=())


def _holds(prompt: str, asked: Sequence[str]) -> bool:
    """Whether these stand in it, one behind the other."""
    at = 0
    for words in asked:
        if (at := prompt.find(words, at)) < 0:
            return False
        at += len(words)
    return True


def _bare(text: str) -> str:
    """Without white space, and without what stands for bytes that are no character."""
    return "".join(clean(text).replace("\ufffd", "").split())
