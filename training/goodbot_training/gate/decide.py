# SPDX-License-Identifier: Apache-2.0
"""The verdict, a pure function of the figures, in one sentence that claims no more than they do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from goodbot.api.sentences import clause, sentence

from goodbot_training.job.types import TrainingSettings

Metrics = Mapping[str, float]

ENOUGH = 60
"""Held-out ratings; with fewer the gate says nothing about better."""
CLAIM_LEVEL = 0.99
"""Of the interval that must exclude 0 before it says better."""
HARM_LEVEL = 0.95
"""Of the interval of one round that must lie below 0 before that round is refused for it."""
_FOREIGN_AT_LEAST = 3  # one or two answers are chance, however few were asked for
_DEVIATIONS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a candidate may be served; `reason` is a sentence or two with the deciding figures."""

    passed: bool
    reason: str
    metrics: Metrics

    def too_strong(self, settings: TrainingSettings) -> bool:
        """Whether less of the same might pass: it answers, and to what it answers something is wrong.

        At half of the strength about half of the loss is left. What has lost more than twice what is
        allowed and seems sound at half has lost what the round's own questions do not show.
        """
        m = self.metrics
        if self.passed or not settings.gate_retry or "foreign" not in m:
            return False
        more = (m["foreign"] - m["foreign_before"]) / max(m["anchors"], 1.0)
        allowed = foreign_allowed(settings, m["foreign_before"]) / settings.gate_anchors
        return settings.gate_retry * more <= allowed

    def again(self, weaker: Verdict, share: float, before: float = 1.0) -> Verdict:
        """The verdict on a weaker candidate, told with this one.

        `share` and `before` are of the strength that was learnt: what it has now and what it had.
        """
        full = "full strength" if before == 1 else f"{before:.0%}"
        kept = "is kept" if weaker.passed else "is too much, too"
        what = clause(self.reason, small=True)
        return Verdict(
            passed=weaker.passed,
            reason=f"{share:.0%} of the change {kept}. {weaker.reason} At {full} {what}.",
            metrics=weaker.metrics,
        )


def decide(metrics: Metrics, settings: TrainingSettings) -> Verdict:
    """The verdict on `measure`'s figures; a figure that could not be taken vetoes nothing."""
    for objection in _objections(metrics, settings):
        return Verdict(passed=False, reason=sentence(objection), metrics=metrics)
    return Verdict(passed=True, reason=_claims(metrics), metrics=metrics)


def foreign_allowed(settings: TrainingSettings, usual: float) -> int:
    """How many answers may hold something foreign to the base, beyond its own, which are `usual`.

    A part of all that may be sampled, and no less than what chance does: two counts of a mean of
    `usual` differ by √(2 · usual), one standard deviation. Where the base's own answers hold nothing
    rare, as a small model's, chance has no part in it.
    """
    share = math.floor(settings.gate_max_foreign * settings.gate_anchors + 1e-9)
    return max(_FOREIGN_AT_LEAST - 1, share, math.floor(_DEVIATIONS * math.sqrt(2 * usual)))


def _objections(m: Metrics, settings: TrainingSettings) -> list[str]:
    """What speaks against the candidate, the clearest sign first."""
    for name, words in (
        ("finite", "the adapter holds numbers that are not finite."),
        ("fits", "the adapter was made for another model: its shapes or its base's name differ."),
        ("changed", "there was nothing to learn, since all ratings of this round say what was expected."),
        ("speaks", "its answers come out as numbers that are not finite."),
    ):
        if not m.get(name, 1.0):
            return [words]
    found: list[str] = []
    if m.get("margin_high", 0.0) < 0:
        found.append(
            f"it tells good from bad answers worse than the version before it: "
            f"{_interval(m, 'margin', HARM_LEVEL)} on {m['held_out']:.0f} ratings kept for the check."
        )
    elif m.get("told", 0) >= ENOUGH and m["told_high"] < 0:
        found.append(f"what it was taught makes it worse: {_told(m)}.")
    return found + (_damage(m, settings) if "anchors" in m else [])


def _damage(m: Metrics, settings: TrainingSettings) -> list[str]:
    """What is broken in the sampled answers."""
    found: list[str] = []
    for name, words in (
        ("empty", "are empty"),
        ("looping", "repeat themselves"),
        ("unfinished", "come to no end"),
    ):
        if m[f"{name}_after"] > m[f"{name}_before"] + settings.gate_max_degenerate:
            found.append(
                f"{_of(m, f'{name}_after')} of its answers {words} (the base: {_of(m, f'{name}_before')})."
            )
    allowed = foreign_allowed(settings, m["foreign_before"])
    if m["foreign"] - m["foreign_before"] > allowed:
        found.append(
            f"it has lost knowledge: {m['foreign']:.0f} of {m['anchors']:.0f} test answers are unusual for "
            f"this model (before: {m['foreign_before']:.0f}, allowed: {allowed} more)."
        )
    if m["retained"] < settings.gate_min_retained:
        found.append(
            f"it has lost language: of {m['sure']:.0f} words that the base model is sure of, it does not "
            f"expect {m['sure'] * (1 - m['retained']):.0f} any more "
            f"(allowed: {math.floor(m['sure'] * (1 - settings.gate_min_retained) + 1e-9)})."
        )
    for name, words, answers, limit in (
        (
            "anchor_loss_change",
            "it expects the base model's own answers less than before: by",
            "compared",
            settings.gate_max_anchor_loss,
        ),
        ("drift", "its answers are too far from the base model's:", "anchors", settings.gate_max_drift),
    ):
        if m[name] > limit:
            found.append(f"{words} {m[name]:.2f} over {m[answers]:.0f} answers (allowed: {limit:g}).")
    high, base = settings.gate_max_length_ratio, m["length_before"]
    if not high**-2 <= m["length_ratio"] <= high:
        found.append(
            f"its answers are too {'long' if m['length_ratio'] > high else 'short'}: "
            f"{m['length_after']:.0f} tokens in {m['compared']:.0f}, the base's {base:.0f} "
            f"(allowed: {math.ceil(base / high**2)} to {math.floor(base * high)})."
        )
    if m.get("distinct_after", 1.0) < settings.gate_min_distinct * m.get("distinct_before", 1.0):
        found.append(
            f"it gives the same answer to different questions: {_of(m, 'distinct_after', 'prompts')} "
            f"are different (the base: {_of(m, 'distinct_before', 'prompts')})."
        )
    return found


def _claims(m: Metrics) -> str:
    """What may be said for it: no harm, and better only beyond doubt."""
    sound = "No test answers were asked for."
    if "anchors" in m:
        unusual = f" ({m['foreign']:.0f} unusual for this model)" if m["foreign"] else ""
        sound = f"No harm found in {m['anchors']:.0f} test answers{unusual}."
    told = m.get("told", 0)
    if not told:
        return f"{sound} No good and bad ratings were kept to tell whether it is better."
    if told < ENOUGH:
        return f"{sound} {told:.0f} ratings kept for the check are too few to tell whether it is better."
    if m["told_low"] > 0:
        return f"{sound} It tells good from bad answers better: {_told(m)}."
    return f"{sound} It is not clear whether it is better: {_told(m)}."


def _told(m: Metrics) -> str:
    rounds = f" of {m['told_rounds']:.0f} rounds" if m["told_rounds"] > 1 else ""
    return f"{_interval(m, 'told', CLAIM_LEVEL)} on {m['told']:.0f} ratings kept for the check{rounds}"


def _interval(m: Metrics, name: str, level: float) -> str:
    return (
        f"{m[f'{name}_change']:+.2f} ({level:.0%} interval "
        f"{m[f'{name}_low']:+.2f} to {m[f'{name}_high']:+.2f})"
    )


def _of(m: Metrics, name: str, among: str = "compared") -> str:
    """`13 of 64`: a count says how little it rests on."""
    return f"{m[name] * m[among]:.0f} of {m[among]:.0f}"
