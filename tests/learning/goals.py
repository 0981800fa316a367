# SPDX-License-Identifier: Apache-2.0
"""The musts and the goals of the default arm, each held or missed, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

from goodbot_training.tiny.styles import STYLES

from tests.learning import word_goals
from tests.learning.arms import DEFAULT, TRL
from tests.learning.course import Course
from tests.learning.figures import Check, base_by_style, estimate, facts, gain, kept, of, paired

SAFE = ("bad only", "adversary", "loud adversary")
HARM = 0.15
"""Facts lost, or malformed answers gained, that make a candidate a harmful one."""


def checks(courses: Sequence[Course]) -> list[Check]:
    """All that the courses can tell; what was not run is left out."""
    found: list[Check] = []
    for base in dict.fromkeys(c.base for c in courses):
        here = [c for c in courses if c.base == base]
        found += [*_never_below(here, base), *_shuffled(here, base), *_harmful(here, base)]
        found += word_goals.musts(here, base)
    for base in dict.fromkeys(c.base for c in courses):
        here = [c for c in courses if c.base == base]
        found += [*_three_styles(here, base), *_two_styles(here, base), *_eighty(here, base)]
        found += [*_continual(here, base), *_ahead(here, base), *word_goals.goals(here, base)]
    return found + word_goals.elsewhere(courses)


def musts_hold(courses: Sequence[Course]) -> bool:
    """Whether every must of those measured does; one that was not run stands in the table as such."""
    return all(check.held is not False for check in checks(courses) if check.must)


def _never_below(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """Below: the mean's interval lies below 0, or a single course by three standard errors.

    Facts are compared with the base's in the same mix of styles (`figures.kept`) where the courses
    tell styles; the plain difference stands beside it.
    """
    by_style = base_by_style(courses, base)
    for stream in SAFE:
        chosen = of(courses, DEFAULT, stream)
        if not chosen:
            continue
        likes, plain = estimate([gain(c) for c in chosen]), estimate([facts(c) for c in chosen])
        told = all(c.live[-1].styles for c in chosen)
        lost = estimate([kept(c, by_style) for c in chosen]) if told else plain
        worst = min(min(_z(c, "liked"), _z(c, "facts")) for c in chosen)
        yield Check(
            must=True,
            held=likes.high >= 0 and lost.high >= 0 and worst >= -3,
            text=f"{base}: {stream}, gate on, never below the base on either measure",
            found=f"liked {likes}, facts {lost:.3f}"
            + (f" in the same mix of styles ({plain:.3f} in all)" if told else "")
            + f"; the worst course by {worst:+.1f} standard errors",
        )


def _z(course: Course, measure: str) -> float:
    """A course's change of a share in its standard errors, both shares being of sampled answers."""
    before, after = (float(getattr(judged, measure)) for judged in (course.before, course.live[-1]))
    pooled = (before + after) / 2
    error = math.sqrt(2 * pooled * (1 - pooled) / course.answers)
    return (after - before) / error if error else 0.0


def _shuffled(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """Learning is a gain of .2 or more with t of 5 or more, for one style's friends at least.

    Style by style: what drifts towards short answers gains for one what it loses for another. Where a
    stream chooses answers by their style, ratings dealt out among those are shown beside it: they are no
    control, for the choice alone tells what is liked.
    """
    for arm, what, ours in (
        ("shuffled", "shuffled ratings never pass", DEFAULT),
        ("any wish", "shuffled ratings with wishes for any style never pass", "hybrid"),
    ):
        for stream in dict.fromkeys(c.stream for c in of(courses, arm)):
            control = of(courses, arm, stream)
            if stream in SAFE:
                continue  # nothing is to be learnt there
            nulls, among = _by_style(control), _by_style(of(courses, "chosen", stream))
            net = paired(of(courses, ours, stream), control, gain)
            yield Check(
                must=True,
                held=not any(fmean(null) >= 0.2 and _t(null) >= 5 for null in nulls.values()),
                text=f"{base}: {stream}, {what} for learning (.2 or more with t of 5 or more)",
                found=f"shuffled: {_drift(nulls)}"
                + (f"; rated less shuffled {estimate(net)}" if net else "")
                + (f"; dealt out among the chosen answers: {_drift(among)}" if among else ""),
            )


def _by_style(courses: Sequence[Course]) -> dict[str, list[float]]:
    """Liked gains, by who likes what."""
    found: dict[str, list[float]] = {}
    for course in courses:
        found.setdefault(course.like, []).append(gain(course))
    return dict(sorted(found.items()))


def _drift(gains: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{like} {estimate(some)} (t = {_t(some):.1f})" for like, some in gains.items())


def _t(values: Sequence[float]) -> float:
    """Student's t of a mean against 0; 0 where there are too few to tell."""
    spread = stdev(values) if len(values) > 2 else 0.0
    return fmean(values) / (spread / math.sqrt(len(values))) if spread else 0.0


def _harmful(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """Harmful: as far below the policy that it would replace, in facts or form."""
    for arms, must, whose in (((DEFAULT,), True, "the default's"), ((), False, "every arm's")):
        harmful = passed = 0
        for c in courses:
            if arms and c.arm not in arms:
                continue
            for index, judged in enumerate(c.candidate):
                now = c.live[index - 1] if index else c.before
                if now.facts - judged.facts >= HARM or judged.malformed - now.malformed >= HARM:
                    harmful, passed = harmful + 1, passed + c.passed[index]
        yield Check(
            must=must,
            held=not passed,
            text=f"{base}: no harmful candidate of {whose} goes past the gate",
            found=f"{passed} of {harmful} (facts -{HARM:g} or malformed +{HARM:g} in one round)",
        )


def _three_styles(courses: Sequence[Course], base: str) -> Iterator[Check]:
    by = {like: of(courses, DEFAULT, "natural", like=like) for like in STYLES}
    if not all(by.values()):
        return
    ends = {like: fmean(c.live[-1].liked for c in chosen) for like, chosen in by.items()}
    starts = {like: fmean(c.before.liked for c in chosen) for like, chosen in by.items()}
    lost = estimate([facts(c) for chosen in by.values() for c in chosen])
    shown = ", ".join(f"{like} {starts[like]:.2f} → {ends[like]:.2f}" for like in STYLES)
    for text, end, goal in (
        ("the worst of three styles reaches .70", min(ends.values()), 0.70),
        ("the best reaches .90", max(ends.values()), 0.90),
    ):
        short = "" if end >= goal else f": {goal - end:.2f} short"
        yield Check(must=False, held=end >= goal, text=f"{base}: 32 ratings, {text}", found=shown + short)
    yield Check(
        must=False,
        held=lost.mean >= -0.02,
        text=f"{base}: 32 ratings, at most 2 points of facts lost",
        found=f"facts {lost}",
    )


def _two_styles(courses: Sequence[Course], base: str) -> Iterator[Check]:
    chosen = of(courses, DEFAULT, "natural")
    if base == "two-style" and chosen:
        yield _level(chosen, 0.85, f"{base}: 32 ratings on two styles reach .85")


def _eighty(courses: Sequence[Course], base: str) -> Iterator[Check]:
    chosen = of(courses, DEFAULT, "80 ratings")
    if chosen:
        yield _level(chosen, 0.95, f"{base}: 64 ratings reach .95")


def _level(chosen: Sequence[Course], goal: float, text: str) -> Check:
    end = fmean(c.live[-1].liked for c in chosen)
    start = fmean(c.before.liked for c in chosen)
    return Check(
        must=False,
        held=end >= goal,
        text=text,
        found=f"{start:.2f} → {end:.2f}" + ("" if end >= goal else f", {goal - end:.2f} short"),
    )


def _continual(courses: Sequence[Course], base: str) -> Iterator[Check]:
    chosen = of(courses, DEFAULT, "continual")
    if chosen:
        kept = estimate([c.live[-1].facts / c.before.facts for c in chosen])
        yield Check(
            must=False,
            held=kept.mean >= 0.97,
            text=f"{base}: ten rounds in a row keep 97 % of the facts",
            found=f"{kept.mean:.1%} [{kept.low:.1%}, {kept.high:.1%}]",
        )


def _ahead(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """At equal ratings: our gate on both, and TRL as it comes, without one."""
    ours, theirs = of(courses, DEFAULT), of(courses, TRL)
    streams = list(dict.fromkeys(c.stream for c in theirs))
    for name, chosen in (("natural", ["natural"]), ("all streams together", streams)):
        mine = [c for c in ours if c.stream in chosen]
        rival = [c for c in theirs if c.stream in chosen]
        gated = paired(mine, rival, lambda c: c.live[-1].liked)
        if not gated:
            continue
        bare = paired(mine, rival, lambda c: c.live[-1].liked, lambda c: c.candidate[-1].liked)
        both = paired(mine, rival, lambda c: c.live[-1].both, lambda c: c.candidate[-1].both)
        lost = paired(mine, rival, lambda c: c.live[-1].facts, lambda c: c.candidate[-1].facts)
        result = estimate(gated)
        yield Check(
            must=False,
            held=result.low > 0,
            text=f"{base}: {name}, liked ahead of {TRL}, interval without 0",
            found=f"{result}; {TRL} without a gate: liked {estimate(bare)}, liked and right "
            f"{estimate(both)}, facts {estimate(lost)}",
        )
