# SPDX-License-Identifier: Apache-2.0
"""The exam of a policy: sampled answers to held-out questions, before a judge without noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.sampler import Sampled, Sampler, SampleRequest, TokenizedTurn
from goodbot_training.backends.scoring import score as logprobs_of
from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import is_correct, style_of

MAX_TOKENS = 48
TOKENS_PER_FORWARD = 8192


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the judge says of one policy, shares in [0, 1]."""

    liked: float
    """In the liked style."""
    facts: float
    """Well-formed and right, in any style."""
    both: float
    """In the liked style and right."""
    malformed: float
    length: float
    """Mean tokens an answer."""
    kl: float
    """Nats a token from the base: mean of log π - log π_base over the policy's own answers."""
    styles: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    """How many answers had each style, and how many of them were right."""


def judge(questions: Sequence[FactQuestion], answers: Sequence[Sampled], like: str, kl: float) -> Judged:
    """The judge's word on one answer a question, in order."""
    texts = [answer.text for answer in answers]
    styles = [style_of(text) for text in texts]
    right = [is_correct(question, text) for question, text in zip(questions, texts, strict=True)]
    told, correct = (
        Counter(map(str, styles)),
        Counter(str(style) for style, r in zip(styles, right, strict=True) if r),
    )
    return Judged(
        liked=fmean(style == like for style in styles),
        facts=fmean(right),
        both=fmean(style == like and r for style, r in zip(styles, right, strict=True)),
        malformed=fmean(style is None for style in styles),
        length=fmean(len(answer.tokens) for answer in answers),
        kl=kl,
        styles={style: [told[style], correct[style]] for style in sorted(told)},
    )


def sample(sampler: Sampler, questions: Sequence[FactQuestion], seed: int, note: str = "") -> list[Sampled]:
    """One answer a question, by whatever the sampler has active; `note` is what the system says before."""
    before: list[Message] = [{"role": "system", "content": note}] if note else []
    requests = [
        SampleRequest(
            messages=[*before, {"role": "user", "content": question.text}],
            max_tokens=MAX_TOKENS,
            temperature=TEMPERATURE,
            seed=seed + index,
        )
        for index, question in enumerate(questions)
    ]
    return list(sampler.sample_many(requests))


def drift(backend: TrainingBackend, answers: Sequence[Sampled]) -> float:
    """KL(policy, base), nats a token, estimated on the policy's own answers."""
    turns = [TokenizedTurn(prompt=answer.prompt, response=answer.tokens) for answer in answers]
    base = logprobs_of(backend, turns, [TEMPERATURE] * len(turns), adapter=False, budget=TOKENS_PER_FORWARD)
    total = sum(sum(answer.logprobs) - float(row.sum()) for answer, row in zip(answers, base, strict=True))
    return total / sum(len(answer.tokens) for answer in answers)
