# SPDX-License-Identifier: Apache-2.0
"""The page about first rounds: what passes the gate, what is lost, and what the gate's count tells of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

import numpy as np
from goodbot.base.intervals import wilson
from goodbot_training.job.settings import TrainingSettings

from tests.learning.course import HELD_OUT_EVERY
from tests.learning.first_rounds import (
    BEFORE,
    LIKES,
    MIXES,
    SEEDS,
    STRENGTHS,
    Found,
    kept_rounds,
    page_of,
    stored,
)
from tests.learning.gone_past import AGAIN, counted, known
from tests.learning.rare import GATE, UNDER
from tests.learning.shipped import headed
from tests.learning.streams import RATINGS
from tests.learning.study import stored as courses

WHOLE, HALF = (str(strength) for strength in STRENGTHS)


def write(ratings: int = RATINGS, *, fresh: bool = False) -> None:
    """Make the page anew from what is kept; `fresh`: all of that was measured just now."""
    page = page_of(ratings)
    known = text(list(stored(kept_rounds(ratings))))
    page.write_text(headed(known, None if fresh else page), encoding="utf-8")


def text(found: Sequence[Found]) -> str:
    """The whole page."""
    bases = list(dict.fromkeys(one.key.base for one in found))
    parts = [_about(found), _by_mix(found, bases), _beside_before(found, bases), _tells(found)]
    return "\n".join([part for part in parts if part] + [_harm(), _UNKNOWN])


def _about(found: Sequence[Found]) -> str:
    whole = [one.at[WHOLE] for one in found]
    passed = sum(now.passed for now in whole)
    low, high = wilson(passed, len(whole))
    count = found[0].key.size
    held_out = count // HELD_OUT_EVERY
    command = "" if count == RATINGS else f" --ratings {count}"
    liked = [fmean(100 * now.liked for now in side) for side in ([one.before for one in found], whole)]
    return f"""\
# First rounds of honest ratings before the gate

Made by `python -m tests.learning.first_rounds{command} --kept --write`. \
{len(found)} first rounds: each base, six
mixes of questions, seeds {_seeds()}, a rater who likes {" or ".join(LIKES)} answers. {count}
ratings each \
({count - held_out} to learn from, {held_out} held out), \
one in ten wrong on the demo's mix and none on the others;
trained as installed. *Own* are the 256 prompts that the gate samples, which are the round's own; *held out*
are 240 questions whose facts were never rated. Points are changes against the base.

Two of the gate's rules were re-enacted on saved answers, 256 of the base and 256 of the candidate: the count
of foreign answers, portion by portion as the gate looks, and the same answer to different questions
(*alike*). Its veto by held-out ratings was on in each round and refused none. Its limits on
length, endings, loops, lost language, loss and drift were not looked at.

**{passed} of {len(whole)} pass whole ({100 * passed / len(whole):.0f} %, 95 % interval {100 * low:.0f} to \
{100 * high:.0f}).** {sum(not now.known for now in whole)} are refused for
foreign answers, {sum(now.alike for now in whole)} for answers that are alike.
Liked are {liked[0]:.1f} % of the base's answers to the held-out questions, \
and {liked[1]:.1f} % after the round.
At half of the strength, which is what a round tries next, {_halved(found)} of those pass.
{_refused(found)}
The gate was set on 216 other rounds (seeds 200 to 205), and once more with those of seeds 300 and 301 in
view; how far a round goes was chosen with some of those. None of these here was.
"""


def _seeds() -> str:
    *first, last = map(str, SEEDS)
    return f"{', '.join(first)} and {last}"


def _refused(found: Sequence[Found]) -> str:
    """What those have lost that are refused, beside the others."""
    sides = ([one for one in found if one.at[WHOLE].passed is so] for so in (False, True))
    lost = [
        tuple(
            fmean(100 * (getattr(one.before, name) - getattr(one.at[WHOLE], name)) for one in side)
            for name in ("right", "held_out")
        )
        for side in sides
        if side
    ]
    if len(lost) < 2:
        return ""
    (own, held_out), (others, theirs) = lost
    return (
        f"Those that are refused whole have lost {own:.1f} points on the round's own questions and "
        f"{held_out:.1f} on held-out ones,\nthose that pass {others:.1f} and {theirs:.1f}.\n"
    )


def _by_mix(found: Sequence[Found], bases: Sequence[str]) -> str:
    lines = [
        "## By what was asked",
        "",
        "What is refused is tried at ½. The last three are points of right answers.",
        "",
        "| base | questions | pass | foreign | alike | at ½ | own | held out | worst held out |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for base in bases:
        rows = [one for one in found if one.key.base == base]
        lines += [_mix_line(base, mix, _only(rows, mix)) for mix in MIXES if _only(rows, mix)]
        lines.append(_mix_line(f"**{base}**", "all", rows))
    return "\n".join([*lines, ""])


def _only(rows: Iterable[Found], mix: str) -> list[Found]:
    return [one for one in rows if one.key.ratings == mix]


def _mix_line(base: str, mix: str, rows: Sequence[Found]) -> str:
    whole = [one.at[WHOLE] for one in rows]
    own = [100 * (one.at[WHOLE].right - one.before.right) for one in rows]
    held_out = [100 * (one.at[WHOLE].held_out - one.before.held_out) for one in rows]
    cells = [
        base,
        mix,
        f"{sum(now.passed for now in whole)} of {len(rows)}",
        str(sum(not now.known for now in whole)),
        str(sum(now.alike for now in whole)),
        str(_halved(rows)),
        f"{fmean(own):+.1f}",
        f"{fmean(held_out):+.1f}",
        f"{min(held_out):+.1f}",
    ]
    return _row(cells)


def _beside_before(found: Sequence[Found], bases: Sequence[str]) -> str:
    """The rounds that were taken before, too: what has changed on the same ratings."""
    earlier = {one.key: one for one in stored(BEFORE)}
    passed = sum(one.at[WHOLE].passed for one in earlier.values())
    # The same ratings only where the model is the same: the shipped one has been made anew since.
    both = [one for one in found if one.key in earlier and one.before == earlier[one.key].before]
    if not both:
        return ""
    lines = [
        "## Part of the way at a higher rate",
        "",
        f"Before, a round went all of the way at the usual rate (`strength = 1`). Of {len(earlier)} such "
        "rounds, of seeds",
        f"300 to 302, {passed} passed whole (a third of them are of the model that was shipped then).",
        f"{len(both)} were taken both ways, on the same ratings and",
        "before the same gate (*more*: foreign answers of 256 beyond the base's own; the others in points;",
        "± is the standard error of the difference, round by round).",
        "",
        "| base | strength | pass | more | own | held out | liked (held out) |",
        "|---|---|---|---|---|---|---|",
    ]
    for base in (*bases, ""):
        rows = [one for one in both if base in ("", one.key.base)]
        if len(rows) < 2:
            continue
        old = [earlier[one.key] for one in rows]
        name = base or "**all**"
        lines.append(_side(name, "1", old))
        lines.append(_side(name, f"{TrainingSettings().strength:g}", rows))
        differences = zip(_figures(rows), _figures(old), strict=True)
        cells = [
            f"{fmean(by):+.1f} ± {stdev(by) / len(by) ** 0.5:.1f}"
            for by in ([now - was for now, was in zip(*pair, strict=True)] for pair in differences)
        ]
        lines.append(_row([name, "difference", "", *cells]))
    return "\n".join([*lines, ""])


def _figures(rows: Sequence[Found]) -> list[list[float]]:
    """Of each round: foreign answers beyond the base's, right answers gained, own and held out, and liked."""
    return [
        [float(one.at[WHOLE].under[GATE] - one.before.under[GATE]) for one in rows],
        [100 * (one.at[WHOLE].right - one.before.right) for one in rows],
        [100 * (one.at[WHOLE].held_out - one.before.held_out) for one in rows],
        [100 * one.at[WHOLE].liked for one in rows],
    ]


def _side(base: str, strength: str, rows: Sequence[Found]) -> str:
    more, own, held_out, liked = map(fmean, _figures(rows))
    passed = sum(one.at[WHOLE].passed for one in rows)
    figures = [f"{more:.1f}", f"{own:+.1f}", f"{held_out:+.1f}", f"{liked:.1f}"]
    return _row([base, strength, f"{passed} of {len(rows)}", *figures])


def _halved(rows: Iterable[Found]) -> int:
    """How many pass at half of what was refused."""
    return sum(HALF in one.at and one.at[HALF].passed for one in rows)


def _tells(found: Sequence[Found]) -> str:
    lines = [
        "## What such a count tells",
        "",
        "How many more of the 256 own answers than of the base's hold a token under a chance, at full",
        f"strength: what 50, 90 and 95 % of the rounds do not exceed (the gate goes by {UNDER[GATE]:g}, and",
        "lower where the base's own answers are varied). And how well that tells, over the rounds, what",
        "part of the own answers is right no more: the correlation, and the points lost for a point counted.",
        "",
        "| under | 50 % | 90 % | 95 % | r | slope |",
        "|---|---|---|---|---|---|",
    ]
    lost = np.array([one.before.right - one.at[WHOLE].right for one in found])
    for index, chance in enumerate(UNDER):
        more = np.array([one.at[WHOLE].under[index] - one.before.under[index] for one in found])
        quantiles = [f"{int(q)}" for q in np.quantile(more, (0.5, 0.9, 0.95))]
        told = float(np.corrcoef(more, lost)[0, 1]) if more.std() and lost.std() else 0.0
        slope = float(np.polyfit(more / 256, lost, 1)[0]) if more.std() else 0.0
        lines.append(_row([f"{chance:g}", *quantiles, f"{told:.2f}", f"{slope:.2f}"]))
    return "\n".join([*lines, ""])


def _harm() -> str:
    harmful, again = known(), list(courses(AGAIN))
    (before, went), (count, passed) = counted(harmful), counted(again)
    return f"""\
## Harm

In [the study](study.md), which is older than the gate as it is, {went} of {before} candidates on the Llama
that had lost 15 points of facts or form went past it. {len(again)} of their {len(harmful)} courses were
run again (`python -m tests.learning.gone_past --write`): of {count} harmful candidates {passed} pass now.
"""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_UNKNOWN = """\
## What is not known

- Only first rounds are in it, by raters who judge style alone; no rounds in a row.
- The harmful candidates are the ones that the gate was set on, but for those that went past it in several
  rounds, and those that it refused before.
- No model of real size: whether a token under 0.1, or under those of the base's own rarest three in a
  hundred answers, tells as much of what it has lost.
"""
