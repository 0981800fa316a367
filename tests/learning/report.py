# SPDX-License-Identifier: Apache-2.0
"""The report of the learning benchmark: the choice, the musts and goals, and a table a stream."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from tests.learning import curves, worded
from tests.learning.arms import ARMS, DEFAULT, TRL
from tests.learning.bases import BASES
from tests.learning.course import Course
from tests.learning.exam import Judged
from tests.learning.figures import estimate, facts, gain, of, paired, reached
from tests.learning.goals import checks
from tests.learning.shipped import headed
from tests.learning.streams import STREAMS

VARIANTS = tuple(
    dict.fromkeys(("filter", "scale", "sign_aware", DEFAULT))
)  # of MIS-PO, whichever is the default
OTHERS = ("reinforce", "sft_good", "kto", "bco", "reinforceclaw", TRL)
FACTS_MAY_FALL = 0.03
SIZES = {"20 ratings": 20, "natural": 40, "80 ratings": 80}
PACKAGES = ("torch", "transformers", "peft", "trl", "numpy")


def text(courses: Sequence[Course]) -> str:
    """The whole report as Markdown."""
    parts = [_header(courses), _choice(courses), _requirements(courses)]
    if words := worded.text(courses):
        parts.insert(1, words)
    for base in [name for name in BASES if any(c.base == name for c in courses)]:
        here = [c for c in courses if c.base == base]
        parts.append(f"## Base: {base}\n\n{BASES[base].about[0].upper()}{BASES[base].about[1:]}.")
        parts += [_table(name, here) for name in STREAMS if any(c.stream == name for c in here)]
        parts += [part for part in (_ratings_needed(here),) if part]
    return "\n\n".join(parts) + "\n"


def write(courses: Sequence[Course], directory: Path, name: str = "study", *, fresh: bool = True) -> None:
    """`NAME.md`, and for each base `continual-BASE.svg` and `arms-BASE.svg`.

    `fresh`: all of that was measured just now.
    """
    page = directory / f"{name}.md"
    page.write_text(headed(text(courses), None if fresh else page), encoding="utf-8")
    for base in dict.fromkeys(c.base for c in courses):
        here = [c for c in courses if c.base == base]
        for kind, stream, draw in (
            ("continual", "continual", curves.rounds),
            ("arms", "natural", curves.arms),
        ):
            chosen = [c for c in here if c.stream == stream]
            if chosen:
                path = directory / f"{kind}-{base}.svg"
                path.write_text(draw(chosen), encoding="utf-8")


def _header(courses: Sequence[Course]) -> str:
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    arms = "\n".join(f"* **{arm.name}**: {arm.about}" for arm in ARMS.values() if of(courses, arm.name))
    return (
        "# The learning benchmark\n\n"
        f"{_seeds(courses)} seeds; {max(c.answers for c in courses)} judged answers "
        "to held-out questions a policy; 40 ratings a round unless the stream says otherwise, a "
        "fifth of them held out. *Live* is what answers after the last round, with the gate on; "
        "*candidate* what was trained in it, refused or not. Intervals are 95 %, by a bootstrap "
        "over seeds and styles, paired where two arms are compared. KL: nats a token from the "
        "base, on the answers to the exam. CPU seconds: of a round, gate included.\n\n"
        f"Python {platform.python_version()}, {versions}, {platform.system()} {platform.machine()}. "
        f"Made by `make bench-learning`. goodbot as it is installed: `{DEFAULT}`. The variants of "
        "MIS-PO take its steps (attention at a part of the rate, damped), the other objectives AdamW's "
        "as they are; their learning rates were chosen on other seeds of the shipped model "
        "(`tests/learning/sweep.py`). Ratings are dealt out over answers as they come: where a stream "
        "chose answers by their style, the choice alone tells of it, and ratings dealt out among those "
        "(arm `chosen`) are no control.\n\n"
        f"{arms}"
    )


def _seeds(courses: Sequence[Course]) -> str:
    """How many, and on which streams more."""
    counts = {
        stream: len({c.seed for c in courses if c.stream == stream})
        for stream in STREAMS
        if any(c.stream == stream for c in courses)
    }
    least = min(counts.values())
    more = [f"{n} on the {stream}" for stream, n in counts.items() if n > least]
    return f"{least} ({', '.join(more)})" if more else str(least)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _choice(courses: Sequence[Course]) -> str:
    """The rule of `study`, applied; and what other objectives would come to by it."""
    variants, others = _by_rule(courses, VARIANTS), _by_rule(courses, OTHERS)
    kept = [one for one in variants if one.lost >= -FACTS_MAY_FALL]
    best = max(kept, key=lambda one: one.worst) if kept else None
    installed = next((one for one in variants if one.arm == DEFAULT), best)
    ahead = [
        f"**{one.arm}**"
        for one in others
        if one.lost >= -FACTS_MAY_FALL and (installed is None or one.worst > installed.worst)
    ]
    return "\n".join(
        [
            "## Which variant\n",
            *_HEAD,
            *(one.row for one in variants),
            "",
            f"By the rule: **{best.arm if best else 'none keeps the facts'}**.\n",
            "What is no variant of MIS-PO, by the same rule (on fewer streams the worst is less bad):\n",
            *_HEAD,
            *(one.row for one in others),
            "",
            f"Keeping the facts, and ahead of `{DEFAULT}` on the worst stream: {', '.join(ahead) or 'none'}.",
        ]
    )


_HEAD = ("| objective | worst stream | gain there | most facts lost | streams |", "|---|---|---|---|---|")


class _Ruled(NamedTuple):
    """What the rule looks at, of one arm."""

    arm: str
    worst: float
    lost: float
    row: str


def _by_rule(courses: Sequence[Course], arms: Sequence[str]) -> list[_Ruled]:
    """Those of `arms` that ran."""
    found: list[_Ruled] = []
    for arm in arms:
        by: dict[tuple[str, str], list[Course]] = {}
        for course in of(courses, arm):
            by.setdefault((course.base, course.stream), []).append(course)
        losses = {place: fmean(facts(c) for c in chosen) for place, chosen in by.items()}
        gains = {
            place: fmean(gain(c) for c in chosen)
            for place, chosen in by.items()
            if place[1] != "bad only"  # nothing good to learn from
        }
        if not gains:
            continue
        worst, lost = min(gains, key=lambda p: gains[p]), min(losses, key=lambda p: losses[p])
        row = (
            f"| {arm} | {worst[0]}, {worst[1]} | {gains[worst]:+.3f} "
            f"| {losses[lost]:+.3f} ({lost[0]}, {lost[1]}) | {len(by)} |"
        )
        found.append(_Ruled(arm, gains[worst], losses[lost], row))
    return found


_VERDICT = {True: "held", False: "**missed**", None: "not measured"}


def _requirements(courses: Sequence[Course]) -> str:
    rows = ["## Musts and goals\n", "| | | what | found |", "|---|---|---|---|"]
    for check in checks(courses):
        rows.append(
            f"| {'must' if check.must else 'goal'} | {_VERDICT[check.held]} | {check.text} | {check.found} |"
        )
    return "\n".join(rows)


def _table(stream: str, courses: Sequence[Course]) -> str:
    about = STREAMS[stream].about
    rows = [
        f"### {stream.capitalize()}\n",
        f"{about[0].upper()}{about[1:]}.\n",
        f"| arm | liked, live | against {DEFAULT} | against {TRL} | liked and right | facts "
        "| malformed | length | KL | tokens, answers accepted | candidate: liked | facts "
        "| passed | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for arm in ARMS:
        chosen = of(courses, arm, stream)
        if not chosen:
            continue
        against = [
            str(estimate(differences))
            if (differences := paired(chosen, of(courses, other, stream), lambda c: c.live[-1].liked))
            and arm != other
            else ""
            for other in (DEFAULT, TRL)
        ]
        end, last = [c.live[-1] for c in chosen], [c.candidate[-1] for c in chosen if c.candidate]
        passed = [one for c in chosen for one in c.passed]
        cells = [
            arm,
            f"{fmean(c.before.liked for c in chosen):.2f} → {_mean(end, lambda j: j.liked)} "
            f"{_interval([j.liked for j in end])}",
            *against,
            _mean(end, lambda j: j.both),
            f"{fmean(c.before.facts for c in chosen):.3f} → {_mean(end, lambda j: j.facts, 3)}",
            _mean(end, lambda j: j.malformed),
            _mean(end, lambda j: j.length, 1),
            _mean(end, lambda j: j.kl),
            f"{_accepted(c.token_acceptance for c in chosen)}, "
            f"{_accepted(c.trajectory_acceptance for c in chosen)}"
            if last
            else "",
            _mean(last, lambda j: j.liked),
            _mean(last, lambda j: j.facts, 3),
            f"{sum(passed)}/{len(passed)}" if passed else "",
            f"{sum(c.cpu_seconds for c in chosen) / len(passed):.1f}" if passed else "",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _mean(judged: Sequence[Judged], what: Callable[[Judged], float], places: int = 2) -> str:
    return f"{fmean(what(j) for j in judged):.{places}f}" if judged else ""


def _accepted(rounds: Iterable[Sequence[float]]) -> str:
    values = [one for course in rounds for one in course]
    return f"{fmean(values):.2f}" if values else ""


def _interval(values: Sequence[float]) -> str:
    found = estimate(values)
    return f"[{found.low:.2f}, {found.high:.2f}]"


def _ratings_needed(courses: Sequence[Course]) -> str:
    """Nine in ten answers liked: by one round of several sizes, and by rounds in a row."""
    rows = [
        "### Ratings until nine in ten answers are liked\n",
        "One round: by straight lines through the means at those sizes. In a row: the median "
        "course, 40 ratings a round.\n",
        f"| arm | {' | '.join(f'liked after {size}' for size in SIZES.values())} | one round | in a row |",
        "|---|---|---|---|---|---|",
    ]
    for arm in ARMS:
        by_size = {size: of(courses, arm, stream) for stream, size in SIZES.items()}
        # The sizes were rated by two of the styles' friends only.
        likes = {c.like for c in by_size[80]}
        means = {
            size: fmean(c.live[-1].liked for c in chosen if c.like in likes)
            for size, chosen in by_size.items()
            if any(c.like in likes for c in chosen)
        }
        row = of(courses, arm, "continual")
        if arm == "frozen" or not (len(means) > 1 or row):
            continue
        start = fmean(c.before.liked for c in courses if c.arm == arm)
        one = reached([(0, start), *sorted(means.items())]) if means else None
        many = [
            reached([(0, c.before.liked), *((40 * (i + 1), j.liked) for i, j in enumerate(c.live))])
            for c in row
        ]
        middle = median(n if n is not None else float("inf") for n in many) if many else None
        cells = [f"{means[size]:.2f}" if size in means else "" for size in SIZES.values()]
        cells.append(f"{one:.0f}" if one else f"> {max(means)}" if means else "")
        cells.append("" if middle is None else "> 400" if middle > 400 else f"{middle:.0f}")
        rows.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(rows) if len(rows) > 4 else ""
