"""The publish gate: a veto, not a proof.

A candidate that breaks something visible is refused: numbers that are not finite, held-out ratings
that it understands worse than the policy it would replace, lost language, and answers that are
empty, endless, looping or all alike. What passes is not thereby better. `measure` makes the
figures, `decide` is a pure function of them. Learning a style is no damage: a style that goes from
a third of the answers to nine tenths costs at most about half a nat a token on the base's own
answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import TYPE_CHECKING

from goodbot.backend import Sampled, SampleRequest, TokenizedTurn, TrainingBackend
from goodbot.errors import AdapterError
from goodbot.events import Message

from goodbot_training.rollouts import Rollout, score
from goodbot_training.types import TrainingSettings

if TYPE_CHECKING:
    from goodbot.backend import Floats

Metrics = Mapping[str, float]
_LOOP_TOKENS = 12  # shorter answers may well repeat themselves
_LOOP_DISTINCT = 0.4
_MIN_PROMPTS = 8  # fewer distinct prompts say nothing about distinct answers


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a candidate may be served; `reason` is one sentence with the deciding figures."""

    passed: bool
    reason: str
    metrics: Metrics


def decide(metrics: Metrics, settings: TrainingSettings) -> Verdict:
    """The verdict on `measure`'s figures; a figure that could not be taken vetoes nothing."""

    def refuse(sentence: str) -> Verdict:
        return Verdict(passed=False, reason=sentence[0].upper() + sentence[1:], metrics=metrics)

    m = metrics
    if not m.get("finite", 1.0):
        return refuse("the adapter holds numbers that are not finite.")
    if not m.get("changed", 1.0):
        return refuse(
            "there was nothing to learn, since all ratings of this round say what was expected."
        )
    change, allowed = m.get("margin_change"), m.get("margin_allowed", 0.0)
    if change is not None and change < -allowed:
        return refuse(
            f"it tells good from bad answers worse than the current policy on {m['held_out']:.0f} "
            f"held-out ratings ({change:+.2f} nats a token, allowed -{allowed:.2f})."
        )
    if "anchors" in m:
        for sentence in _damage(m, settings):
            return refuse(sentence)
    return Verdict(passed=True, reason=_praise(m), metrics=metrics)


def _damage(m: Metrics, settings: TrainingSettings) -> list[str]:
    """What is visibly broken in the sampled answers, the clearest sign first."""
    found: list[str] = []
    for name, words in (
        ("empty", "empty"),
        ("looping", "repeating themselves"),
        ("unfinished", "without an end"),
    ):
        before, after = m[f"{name}_before"], m[f"{name}_after"]
        if after > before + settings.gate_max_degenerate:
            found.append(f"{after:.0%} of its answers are {words} (the base: {before:.0%}).")
    if m["anchor_loss_change"] > settings.gate_max_anchor_loss:
        found.append(
            f"it has lost language: its loss on the base's own answers rose by "
            f"{m['anchor_loss_change']:.2f} nats a token "
            f"(allowed {settings.gate_max_anchor_loss:g})."
        )
    if m["drift"] > settings.gate_max_drift:
        found.append(
            f"it has drifted {m['drift']:.2f} nats a token from the base "
            f"(allowed {settings.gate_max_drift:g})."
        )
    ratio, high = m["length_ratio"], settings.gate_max_length_ratio
    if not high**-2 <= ratio <= high:
        found.append(
            f"its answers are {ratio:.2f} times as long as the base's "
            f"(allowed {high**-2:.2f} to {high:g})."
        )
    if m.get("distinct_after", 1.0) < settings.gate_min_distinct * m.get("distinct_before", 1.0):
        found.append(
            f"it gives the same answer to different questions ({m['distinct_after']:.0%} distinct, "
            f"the base: {m['distinct_before']:.0%})."
        )
    return found


def _praise(m: Metrics) -> str:
    change = m.get("margin_change")
    if change is None:
        first = "No held-out ratings to compare on"
    elif change > 0:
        first = (
            f"It tells good from bad answers better than before on {m['held_out']:.0f} held-out "
            f"ratings ({change:+.2f} nats a token)"
        )
    else:
        first = (
            f"It tells good from bad answers about as well as before on {m['held_out']:.0f} "
            f"held-out ratings ({change:+.2f} nats a token)"
        )
    if "anchors" not in m:
        return first + "; no answers were sampled."
    return (
        f"{first}, and {m['anchors']:.0f} sampled answers are sound "
        f"(loss {m['anchor_loss_change']:+.2f}, drift {m['drift']:.2f} nats a token, "
        f"length {m['length_ratio']:.2f} times the base's)."
    )


def measure(
    backend: TrainingBackend,
    candidate: Path,
    *,
    held_out: Sequence[Rollout],
    parent_logprobs: Sequence[Floats],
    anchors: Sequence[Sequence[Message]],
    settings: TrainingSettings,
    temperature: float,
) -> dict[str, float]:
    """The candidate's figures. `candidate` is its directory; the backend holds it in place.

    `parent_logprobs` are those of `held_out` under the current policy. `anchors` are conversations;
    they are repeated under other seeds until there are `settings.gate_anchors`.
    """
    sampler = backend.sampler()
    try:
        sampler.load_adapter(1, candidate)  # what will be served, as it lies on the disk
    except AdapterError:
        return {"finite": 0.0}
    metrics = {"finite": 1.0}
    budget = settings.tokens_per_forward
    now = score(
        backend,
        [rollout.turn for rollout in held_out],
        [rollout.temperature for rollout in held_out],
        adapter=True,
        budget=budget,
    )
    metrics |= margin(held_out, parent_logprobs, now, tolerance=settings.gate_margin_tolerance)
    if not settings.gate_anchors or not anchors:
        return metrics
    requests = [
        SampleRequest(
            messages=anchors[index % len(anchors)],
            max_tokens=settings.gate_max_tokens,
            temperature=temperature,
            seed=index,  # the same numbers for base and candidate: what differs is the policy
        )
        for index in range(settings.gate_anchors)
    ]
    sampler.activate(0)
    before = sampler.sample_many(requests)
    sampler.activate(1)
    after = sampler.sample_many(requests)
    metrics |= compare_answers(before, after)
    metrics["anchor_loss_change"] = _distance(backend, before, temperature, budget, sign=-1.0)
    metrics["drift"] = _distance(backend, after, temperature, budget, sign=1.0)
    return metrics


def margin(
    held_out: Sequence[Rollout],
    before: Sequence[Floats],
    after: Sequence[Floats],
    *,
    tolerance: float,
) -> dict[str, float]:
    """How the good-minus-bad margin of the mean token log-prob changed, nats a token.

    With ratings of one sign only, the change of that side. What may be lost is the tolerance and
    one standard error: a handful of noisy ratings must not veto by chance.
    """
    sides: dict[bool, list[float]] = {True: [], False: []}
    for rollout, old, new in zip(held_out, before, after, strict=True):
        if rollout.reward and rollout.weight:
            sides[rollout.reward > 0].append(float((new - old).mean()))
    signed = [(1.0 if good else -1.0, values) for good, values in sides.items() if values]
    if not signed:
        return {"held_out": 0.0}
    change = sum(sign * fmean(values) for sign, values in signed)
    error = math.sqrt(sum(variance(v) / len(v) for _, v in signed if len(v) > 1))
    return {
        "held_out": float(sum(len(values) for _, values in signed)),
        "margin_change": change,
        "margin_allowed": tolerance + error,
    }


def compare_answers(before: Sequence[Sampled], after: Sequence[Sampled]) -> dict[str, float]:
    """Length, emptiness, loops, endings and variety of the candidate's answers and the base's."""
    metrics = {"anchors": float(len(after))}
    metrics["length_ratio"] = fmean(len(a.tokens) for a in after) / fmean(
        len(b.tokens) for b in before
    )
    for name, answers in (("before", before), ("after", after)):
        metrics[f"empty_{name}"] = fmean(not answer.text.strip() for answer in answers)
        metrics[f"looping_{name}"] = fmean(loops(answer.tokens) for answer in answers)
        metrics[f"unfinished_{name}"] = fmean(answer.finish == "length" for answer in answers)
        first: dict[tuple[int, ...], str] = {}
        for answer in answers:
            first.setdefault(answer.prompt, answer.text)
        if len(first) >= _MIN_PROMPTS:
            metrics[f"distinct_{name}"] = len(set(first.values())) / len(first)
    return metrics


def loops(tokens: Sequence[int]) -> bool:
    """Whether an answer says the same three tokens again and again."""
    triples = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return len(tokens) >= _LOOP_TOKENS and len(set(triples)) < _LOOP_DISTINCT * len(triples)


def _distance(
    backend: TrainingBackend,
    answers: Sequence[Sampled],
    temperature: float,
    budget: int,
    *,
    sign: float,
) -> float:
    """sign · mean token (log π_candidate - log π_base) over answers: an estimate of a KL
    divergence.
    """
    turns = [TokenizedTurn(prompt=answer.prompt, response=answer.tokens) for answer in answers]
    temperatures = [temperature or 1.0] * len(turns)
    base, candidate = (
        score(backend, turns, temperatures, adapter=adapter, budget=budget)
        for adapter in (False, True)
    )
    total = sum(float((c - b).sum()) for c, b in zip(candidate, base, strict=True))
    return sign * total / sum(len(turn.response) for turn in turns)
