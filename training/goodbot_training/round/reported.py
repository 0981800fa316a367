# SPDX-License-Identifier: Apache-2.0
"""Answers that other programs report with their tokens: only the words that people have read are learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from goodbot.api.backend import TrainingBackend
from goodbot.base.text import clean

from goodbot_training.job.rated import RatedSample


def as_read(item: RatedSample, backend: TrainingBackend) -> RatedSample:
    """The item by the words that people have read.

    Its tokens are used where they spell just these words and the template ends them, and where the prompt's
    spell what was asked. Else they say nothing certain: a server has stopped at some words, has kept a
    thought or a call apart, or somebody reports other words than were read. Then the item comes back without
    them, to be read anew.
    """
    spelt: Callable[[Sequence[int]], Sequence[str]] | None = getattr(backend, "spelt", None)
    if not (item.reported and item.captured) or spelt is None:  # a backend of a plugin need not tell
        return item
    asked = [_bare(str(message.get("content") or "")) for message in item.messages]
    inner = {clean(one).strip() for one in spelt(item.tokens[:-1])}  # without marks and with them
    just = len(inner) == 1 and clean(spelt(item.tokens)[0]).strip() == item.response.strip()
    if just and any(_holds(_bare(one), asked) for one in spelt(item.prompt_tokens)):
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
