# SPDX-License-Identifier: Apache-2.0
"""The verdict, a pure function of the figures: codes with those that decide, and nothing that claims more.

Words are made of them where somebody reads them (`goodbot.api.sentences`): `harm_` is what speaks against a
candidate, `check_` what else is said of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodbot.api.sentences import Reason, because, words

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
    """Whether a candidate may be served; `said` is why, with the deciding figures."""

    passed: bool
    said: tuple[Reason, ...]
    metrics: Metrics

    @property
    def reason(self) -> str:
        """The same in a sentence or two of English."""
        return words(*self.said)

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
        kept = because("check_kept" if weaker.passed else "check_not_kept", share=float(share))
        at = "check_full" if before == 1 else "check_part"
        full = [because(at, strength=float(before), what=one) for one in self.said]
        return Verdict(passed=weaker.passed, said=(kept, *weaker.said, *full), metrics=weaker.metrics)


def decide(metrics: Metrics, settings: TrainingSettings) -> Verdict:
    """The verdict on `measure`'s figures; a figure that could not be taken vetoes nothing."""
    for objection in _objections(metrics, settings):
        return Verdict(passed=False, said=(objection,), metrics=metrics)
    return Verdict(passed=True, said=_claims(metrics), metrics=metrics)


def foreign_allowed(settings: TrainingSettings, usual: float) -> int:
    """How many answers may hold something foreign to the base, beyond its own, which are `usual`.

    A part of all that may be sampled, and no less than what chance does: two counts of a mean of
    `usual` differ by √(2 · usual), one standard deviation. Where the base's own answers hold nothing
    rare, as a small model's, chance has no part in it.
    """
    share = math.floor(settings.gate_max_foreign * settings.gate_anchors + 1e-9)
    return max(_FOREIGN_AT_LEAST - 1, share, math.floor(_DEVIATIONS * math.sqrt(2 * usual)))


def _objections(m: Metrics, settings: TrainingSettings) -> list[Reason]:
    """What speaks against the candidate, the clearest sign first."""
    for name in ("finite", "fits", "changed", "speaks"):
        if not m.get(name, 1.0):
            return [because(f"harm_{name}")]
    found: list[Reason] = []
    if m.get("margin_high", 0.0) < 0:
        found.append(because("harm_margin", **_interval(m, "margin", HARM_LEVEL), count=round(m["held_out"])))
    elif m.get("told", 0) >= ENOUGH and m["told_high"] < 0:
        found.append(because("harm_taught", **_told(m)))
    return found + (_damage(m, settings) if "anchors" in m else [])


def _damage(m: Metrics, settings: TrainingSettings) -> list[Reason]:
    """What is broken in the sampled answers."""
    found: list[Reason] = []
    for name in ("empty", "looping", "unfinished"):
        if m[f"{name}_after"] > m[f"{name}_before"] + settings.gate_max_degenerate:
            found.append(because(f"harm_{name}", **_counts(m, name, "compared")))
    allowed = foreign_allowed(settings, m["foreign_before"])
    if m["foreign"] - m["foreign_before"] > allowed:
        found.append(
            because(
                "harm_knowledge",
                foreign=round(m["foreign"]),
                anchors=round(m["anchors"]),
                before=round(m["foreign_before"]),
                allowed=allowed,
            )
        )
    if m["retained"] < settings.gate_min_retained:
        found.append(
            because(
                "harm_language",
                sure=round(m["sure"]),
                lost=round(m["sure"] * (1 - m["retained"])),
                allowed=math.floor(m["sure"] * (1 - settings.gate_min_retained) + 1e-9),
            )
        )
    for name, key, answers, limit in (
        ("anchor_loss_change", "harm_expects", "compared", settings.gate_max_anchor_loss),
        ("drift", "harm_drift", "anchors", settings.gate_max_drift),
    ):
        if m[name] > limit:
            found.append(because(key, by=_digits(m[name]), count=round(m[answers]), limit=float(limit)))
    high, base = settings.gate_max_length_ratio, m["length_before"]
    if not high**-2 <= m["length_ratio"] <= high:
        found.append(
            because(
                "harm_long" if m["length_ratio"] > high else "harm_short",
                tokens=round(m["length_after"]),
                count=round(m["compared"]),
                before=round(base),
                least=math.ceil(base / high**2),
                most=math.floor(base * high),
            )
        )
    if m.get("distinct_after", 1.0) < settings.gate_min_distinct * m.get("distinct_before", 1.0):
        found.append(because("harm_same", **_counts(m, "distinct", "prompts")))
    return found


def _claims(m: Metrics) -> tuple[Reason, Reason]:
    """What may be said for it: no harm, and better only beyond doubt."""
    sound = because("check_unasked")
    if "anchors" in m:
        anchors, foreign = round(m["anchors"]), round(m["foreign"])
        sound = because("check_sound", anchors=anchors)
        if foreign:
            sound = because("check_unusual", anchors=anchors, foreign=foreign)
    told = m.get("told", 0)
    if not told:
        return sound, because("check_none_kept")
    if told < ENOUGH:
        return sound, because("check_few", count=round(told))
    return sound, because("check_better" if m["told_low"] > 0 else "check_unclear", **_told(m))


def _told(m: Metrics) -> dict[str, Any]:
    """What is told of the ratings that were kept over all rounds."""
    return {**_interval(m, "told", CLAIM_LEVEL), "count": round(m["told"]), "rounds": round(m["told_rounds"])}


def _interval(m: Metrics, name: str, level: float) -> dict[str, Any]:
    return {"level": level, **{end: _digits(m[f"{name}_{end}"]) for end in ("change", "low", "high")}}


def _counts(m: Metrics, name: str, among: str) -> dict[str, Any]:
    """`13 of 64`, and of the base: a count says how little it rests on."""
    of = round(m[among])
    return {"count": round(m[f"{name}_after"] * of), "before": round(m[f"{name}_before"] * of), "of": of}


def _digits(figure: float) -> float:
    """As many as anybody reads."""
    return round(float(figure), 4)
