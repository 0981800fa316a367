# SPDX-License-Identifier: Apache-2.0
"""What a model file with adapters says: a distribution for each next token, the same each time."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WORDS = (
    " the",
    " a",
    " Paris",
    " city",
    " of",
    " light",
    " and",
    " is",
    " it",
    " I",
    " you",
    " think",
    " so",
    " well",
    " yes",
    " no",
    " maybe",
    " now",
    ".",
    ",",
    "!",
    " über",
    " 東京",
    " ☕",
)
END = "<|im_end|>"
Cut = Callable[[Mapping[str, float]], Mapping[str, float]]
_ADAPTED = 1.5
"""How far an adapter moves a logit, in standard deviations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """One drawn token, and the likeliest ones at its place, at temperature 1 (as llama-server tells them)."""

    text: str
    logprob: float
    top: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Policy:
    """The weights: digests of the model file and of the adapters on it."""

    model: str
    adapters: tuple[str, ...] = ()

    def logprobs(self, messages: object, said: Sequence[str] = ()) -> dict[str, float]:
        """At temperature 1, of each token that may come next, the likeliest first."""
        place = f"{json.dumps(messages, sort_keys=True)}|{len(said)}|{said[-1] if said else ''}"
        logits = _draw(self.model, place, 1.0)
        for adapter in self.adapters:
            moved = _draw(adapter, place, _ADAPTED)
            logits = {token: logit + moved[token] for token, logit in logits.items()}
        logits[END] = 20.0 if len(said) >= _length(place) else -20.0
        total = math.log(sum(map(math.exp, logits.values())))
        ranked = sorted(logits.items(), key=lambda pair: -pair[1])
        return {token: logit - total for token, logit in ranked}

    def answer(
        self, messages: object, *, temperature: float, seed: int, most: int, cut: Cut | None = None
    ) -> Iterator[Token]:
        """The tokens of an answer; it ends after the one that ends it, or after `most` (-1: any number).

        `cut` says what is left of a distribution at that temperature.
        """
        chance = random.Random(f"{seed}|{json.dumps(messages)}")  # noqa: S311  a fake
        said: list[str] = []
        while most < 0 or len(said) < most:
            told = self.logprobs(messages, said)
            if temperature <= 0:
                text = next(iter(told))
            else:
                left = told if cut is None else cut(at_temperature(told, temperature))
                heat = temperature if cut is None else 1.0
                weights = [math.exp(logprob / heat) for logprob in left.values()]
                [text] = chance.choices([*left], weights)
            said.append(text)
            yield Token(text=text, logprob=told[text], top=told)
            if text == END:
                return


def at_temperature(logprobs: Mapping[str, float], temperature: float) -> dict[str, float]:
    """A distribution that is given at temperature 1, at another one."""
    scaled = {token: logprob / temperature for token, logprob in logprobs.items()}
    total = math.log(sum(map(math.exp, scaled.values())))
    return {token: logprob - total for token, logprob in scaled.items()}


def cutting(fields: Mapping[str, Any]) -> Cut:
    """What the fields `top_k`, `top_p` and `min_p` leave of a distribution, the likeliest first."""
    top_k, top_p, min_p = fields.get("top_k") or 0, fields.get("top_p", 1.0), fields.get("min_p", 0)

    def cut(told: Mapping[str, float]) -> dict[str, float]:
        ranked = sorted(told.items(), key=lambda pair: -pair[1])
        left = at_temperature(dict(ranked[:top_k] if top_k > 0 else ranked), 1.0)
        kept: dict[str, float] = {}
        mass, best = 0.0, max(left.values())
        for token, logprob in left.items():
            if kept and (mass >= top_p or math.exp(logprob - best) < min_p):
                break
            kept[token] = logprob
            mass += math.exp(logprob)
        return at_temperature(kept, 1.0)

    return cut


def _draw(weights: str, place: str, width: float) -> dict[str, float]:
    chance = random.Random(f"{weights}|{place}")  # noqa: S311  a fake
    return {word: chance.gauss(0.0, width) for word in WORDS}


def _length(place: str) -> int:
    return 30 + hashlib.sha256(place.partition("|")[0].encode()).digest()[0] % 30
