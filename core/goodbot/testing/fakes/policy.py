"""What a model file with adapters says: a distribution for each next token, the same each time."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

WORDS = (
    " the", " a", " Paris", " city", " of", " light", " and", " is", " it", " I", " you", " think",
    " so", " well", " yes", " no", " maybe", " now", ".", ",", "!", " über", " 東京", " ☕",
)  # fmt: skip
END = "<|im_end|>"
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
        self, messages: object, *, temperature: float, seed: int, most: int
    ) -> Iterator[Token]:
        """The tokens of an answer; it ends after the one that ends it, or after `most` (-1: any number)."""
        chance = random.Random(f"{seed}|{json.dumps(messages)}")  # noqa: S311  a fake
        said: list[str] = []
        while most < 0 or len(said) < most:
            told = self.logprobs(messages, said)
            if temperature <= 0:
                text = next(iter(told))
            else:
                weights = [math.exp(logprob / temperature) for logprob in told.values()]
                [text] = chance.choices([*told], weights)
            said.append(text)
            yield Token(text=text, logprob=told[text], top=told)
            if text == END:
                return


def _draw(weights: str, place: str, width: float) -> dict[str, float]:
    chance = random.Random(f"{weights}|{place}")  # noqa: S311  a fake
    return {word: chance.gauss(0.0, width) for word in WORDS}


def _length(place: str) -> int:
    return 30 + hashlib.sha256(place.partition("|")[0].encode()).digest()[0] % 30
