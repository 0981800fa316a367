# SPDX-License-Identifier: Apache-2.0
"""What is visibly broken in sampled answers: empty, looping, endless, much shorter, all alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

from goodbot.api.sampler import Sampled, TokenizedTurn

if TYPE_CHECKING:
    from goodbot.api.step import Floats

_LOOP_TOKENS = 12  # shorter answers may well repeat themselves
_LOOP_DISTINCT = 0.4
_MIN_PROMPTS = 8  # fewer distinct prompts say nothing about distinct answers
_LIKELIER = math.log(2)


class BaseReads(Protocol):
    """The base's log-probs of these responses."""

    def __call__(self, turns: Sequence[TokenizedTurn], /) -> Sequence[Floats]: ...


def compare_answers(
    before: Sequence[Sampled], after: Sequence[Sampled], base_reads: BaseReads
) -> dict[str, float]:
    """Length, emptiness, loops, endings and variety of the candidate's answers and the base's.

    Both to the same prompts, as far as both were asked.
    """
    after = after[: len(before)]
    metrics = {"compared": float(len(after))}
    for name, answers in (("before", before), ("after", after)):
        metrics[f"length_{name}"] = float(sum(len(answer.turn.response) for answer in answers))
        metrics[f"empty_{name}"] = fmean(not answer.text.strip() for answer in answers)
        metrics[f"looping_{name}"] = fmean(loops(answer.turn.response) for answer in answers)
        metrics[f"unfinished_{name}"] = fmean(answer.finish == "length" for answer in answers)
        first: dict[tuple[int, ...], Sampled] = {}
        for answer in answers:
            first.setdefault(answer.prompt, answer)
        if len(first) >= _MIN_PROMPTS:
            metrics[f"distinct_{name}"] = distinct([*first.values()], base_reads) / len(first)
            metrics["prompts"] = float(len(first))
    return metrics | {"length_ratio": metrics["length_after"] / metrics["length_before"]}


def distinct(answers: Sequence[Sampled], base_reads: BaseReads) -> int:
    """How many of these, one a question, were not given to an earlier question, or are its own all the same.

    Sums of small numbers have few results, so that right answers may well be equal. Such an answer is a
    question's own where the base gives it twice the chance there that it gives it at a question with
    another answer. What is said to any question is as often likelier elsewhere, so those are taken off.
    """
    seen: set[str] = set()
    at_home: list[TokenizedTurn] = []
    elsewhere: list[TokenizedTurn] = []
    for index, answer in enumerate(answers):
        others = (one for one in (*answers[index:], *answers[:index]) if one.text != answer.text)
        if answer.text in seen and (other := next(others, None)):
            at_home.append(answer.turn)
            elsewhere.append(TokenizedTurn(prompt=other.turn.prompt, response=answer.turn.response))
        seen.add(answer.text)
    read = [float(row.sum()) for row in base_reads([*at_home, *elsewhere])] if at_home else []
    pairs = zip(read[: len(at_home)], read[len(at_home) :], strict=True)
    gaps = [here - there for here, there in pairs]
    own = sum(gap > _LIKELIER for gap in gaps) - sum(gap < -_LIKELIER for gap in gaps)
    return len(seen) + max(0, own)


def loops(tokens: Sequence[int]) -> bool:
    """Whether an answer says the same three tokens again and again."""
    triples = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return len(tokens) >= _LOOP_TOKENS and len(set(triples)) < _LOOP_DISTINCT * len(triples)
