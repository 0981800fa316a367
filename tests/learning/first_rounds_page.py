"""The page about first rounds: what passes the gate, what is lost, and what less rare tokens tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean

import numpy as np

from tests.learning.first_rounds import LIKES, MIXES, SEEDS, STRENGTHS, Found
from tests.learning.rare import UNDER, Seen

WHOLE, MIDDLE, HALF = (str(strength) for strength in STRENGTHS)
LOOSER = UNDER.index(0.05)


def text(found: Sequence[Found]) -> str:
    """The whole page."""
    honest = [one for one in found if one.honest]
    harmful = [one for one in found if not one.honest]
    bases = list(dict.fromkeys(one.key.base for one in honest))
    parts = [_about(honest), _by_mix(honest, bases), _by_strength(honest, bases), _wrong(honest)]
    parts.append(_chances(honest, bases))
    if harmful:
        parts.append(_harmful(harmful))
    return "\n".join([*parts, _UNKNOWN])


def _about(honest: Sequence[Found]) -> str:
    whole, half = ([one.at[strength] for one in honest] for strength in (WHOLE, HALF))
    passed, foreign = sum(now.passed for now in whole), sum(not now.known for now in whole)
    return f"""\
# First rounds of honest ratings before the gate

Made by `python -m tests.learning.first_rounds --kept --write`. {len(honest)} first rounds: each base, six
mixes of questions, seeds {SEEDS[0]} to {SEEDS[-1]}, a rater who likes {" or ".join(LIKES)} answers. 40
ratings each (32 to learn from, 8 held out), one in ten wrong on the demo's mix and none on the others;
trained as installed. *Own* are the 256 prompts that the gate samples, which are the round's own; *held out*
are 240 questions whose facts were never rated. Points are changes against the base.

Two of the gate's rules were re-enacted on saved answers, 256 of the base and 256 of the candidate at each
strength: the count of foreign answers, portion by portion as the gate looks, and the same answer to
different questions (*alike*). Its veto by held-out ratings was on in each round and refused none. On the
raw answers, which are not kept, its limits on length, endings, lost language and loss refused none of the
whole adapters either; loops and drift were not looked at.

**{passed} of {len(honest)} pass whole ({100 * passed / len(honest):.0f} %).** {foreign} are refused for
foreign answers, {sum(now.alike for now in whole)} for answers that are alike.
At half of the strength, which is what a round tries next, {sum(now.passed for now in half)} pass;
{sum(not now.known for now in half)} are refused for foreign answers then,
{sum(now.alike for now in half)} for answers that are alike.

{_told_alike(honest)}
"""


def _told_alike(honest: Sequence[Found]) -> str:
    rows = [one for one in honest if one.at[WHOLE].alike]
    if not rows:
        return "None has answers that are alike."
    mixes, likes = ({getattr(one.key, name) for one in rows} for name in ("ratings", "like"))
    lost = fmean(100 * (one.before.held_out - one.at[WHOLE].held_out) for one in rows)
    return f"""\
All that are alike asked {" or ".join(sorted(mixes))} and liked {" or ".join(sorted(likes))} answers;
they lose {lost:.1f} points on held-out questions. Sums of two numbers from 1 to 9 have 17 results, so 40 of
them have at most 17 different right answers that are terse; the base has twice as many, by its styles. Less
strength does not help.
"""


def _by_mix(honest: Sequence[Found], bases: Sequence[str]) -> str:
    lines = [
        "## By what was asked",
        "",
        "At full strength but for the columns with ¾ and ½. The last three are points of right answers.",
        "",
        "| base | questions | pass | foreign | alike | at ¾ | at ½ | own | held out | worst held out |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for base in bases:
        rows = [one for one in honest if one.key.base == base]
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
        base, mix, f"{sum(now.passed for now in whole)} of {len(rows)}",
        str(sum(not now.known for now in whole)), str(sum(now.alike for now in whole)),
        *(str(sum(one.at[strength].passed for one in rows)) for strength in (MIDDLE, HALF)),
        f"{fmean(own):+.1f}", f"{fmean(held_out):+.1f}", f"{min(held_out):+.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _by_strength(honest: Sequence[Found], bases: Sequence[str]) -> str:
    lines = [
        "## By strength",
        "",
        "| base | strength | passes | own right | held out right | liked (held out) |",
        "|---|---|---|---|---|---|",
    ]
    for base in bases:
        rows = [one for one in honest if one.key.base == base]
        lines.append(_strength_line(base, "the base itself", [one.before for one in rows], "–"))
        for strength in (WHOLE, MIDDLE, HALF):
            at = [one.at[strength] for one in rows]
            passed = f"{sum(now.passed for now in at)} of {len(at)}"
            lines.append(_strength_line(base, strength, at, passed))
    return "\n".join([*lines, ""])


def _strength_line(base: str, strength: str, at: Sequence[Seen], passed: str) -> str:
    shares = [fmean(one.right for one in at), fmean(one.held_out for one in at)]
    shares.append(fmean(one.liked for one in at))
    return f"| {base} | {strength} | {passed} | {' | '.join(f'{share:.3f}' for share in shares)} |"


def _wrong(honest: Sequence[Found]) -> str:
    whole = [one.at[WHOLE] for one in honest]
    foreign, right = sum(now.under[0] for now in whole), sum(now.foreign_right for now in whole)
    return f"""\
Of {foreign} answers with a token under {UNDER[0]:g}, {foreign - right} are wrong: that count does find what
was lost. More is lost on the round's own questions than on held-out ones: a round over-fits what was rated,
and the gate asks just that.
"""


def _chances(honest: Sequence[Found], bases: Sequence[str]) -> str:
    lines = [
        "## Under other chances",
        "",
        "How many more of the 256 own answers than of the base's hold a token under a chance: what half,",
        f"90 and 95 % of the honest rounds do not exceed. The gate's is {UNDER[0]:g}.",
        "",
        _row(["base", "strength", *(f"under {chance:g}" for chance in UNDER)]),
        "|---" * (2 + len(UNDER)) + "|",
    ]
    for base in bases:
        rows = [one for one in honest if one.key.base == base]
        for strength in (WHOLE, MIDDLE):
            more = np.array([_more(one, lambda one: one.at[strength]) for one in rows])  # noqa: B023
            cells = [
                ", ".join(f"{int(q)}" for q in np.quantile(more[:, index], (0.5, 0.9, 0.95)))
                for index in range(len(UNDER))
            ]
            lines.append(_row([base, strength, *cells]))
    return "\n".join([*lines, ""])


def _more(one: Found, of: Callable[[Found], Seen]) -> list[int]:
    return [now - usual for now, usual in zip(of(one).under, one.before.under, strict=True)]


def _harmful(harmful: Sequence[Found]) -> str:
    rows = list(_harmful_rows(harmful))
    least = min(more[LOOSER] for _, more in rows)
    lines = [
        "## Harm that passes",
        "",
        f"{len(rows)} of 18 candidates [on the Llama](study.md) that had lost 15 points and passed,",
        "run again, as they passed: on the gate's own prompts all of them show",
        f"under {UNDER[LOOSER]:g}, by {least} answers or more.",
        "",
        _row([
            "ratings", "likes", "seed", "own before", "own", "held out",
            *(f"under {chance:g}" for chance in UNDER),
        ]),
        "|---" * (6 + len(UNDER)) + "|",
    ]  # fmt: skip
    for one, more in rows:
        key, now = one.key, next(iter(one.at.values()))
        right = [f"{share:.3f}" for share in (one.before.right, now.right, now.held_out)]
        lines.append(
            _row([key.ratings, key.like, str(key.seed), *right, *map("{:+d}".format, more)])
        )
    return "\n".join([*lines, ""])


def _harmful_rows(harmful: Sequence[Found]) -> Iterator[tuple[Found, list[int]]]:
    for one in harmful:
        yield one, _more(one, lambda one: next(iter(one.at.values())))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_UNKNOWN = """\
## What is not known

- Every limit that one would read off these tables is chosen on the rounds that it is judged by. It needs
  other seeds, and the planted adapters of [the gate's table](gate.md), before the gate may go by it.
- On the Llama one honest round in ten has 18 answers more under 0.05, as many as the least of the harmful:
  no limit there divides the two without a cost. Three quarters of the strength before a half was looked at,
  not tried.
- What the veto on answers that are alike should be told of questions with few answers.
- Only first rounds are in it, by raters who judge style alone; no rounds in a row, and no model of real size.
- Seven of the 18 harmful candidates were not run again. Two of them are of courses of several rounds, which
  `--harmful` leaves out.
"""
