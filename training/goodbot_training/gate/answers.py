"""What is visibly broken in sampled answers: empty, looping, endless, much shorter, all alike."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from goodbot.backend import Sampled

_LOOP_TOKENS = 12  # shorter answers may well repeat themselves
_LOOP_DISTINCT = 0.4
_MIN_PROMPTS = 8  # fewer distinct prompts say nothing about distinct answers


def compare_answers(before: Sequence[Sampled], after: Sequence[Sampled]) -> dict[str, float]:
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
        first: dict[tuple[int, ...], str] = {}
        for answer in answers:
            first.setdefault(answer.prompt, answer.text)
        if len(first) >= _MIN_PROMPTS:
            metrics[f"distinct_{name}"] = len(set(first.values())) / len(first)
            metrics["prompts"] = float(len(first))
    return metrics | {"length_ratio": metrics["length_after"] / metrics["length_before"]}


def loops(tokens: Sequence[int]) -> bool:
    """Whether an answer says the same three tokens again and again."""
    triples = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return len(tokens) >= _LOOP_TOKENS and len(set(triples)) < _LOOP_DISTINCT * len(triples)
