# SPDX-License-Identifier: Apache-2.0
"""What was wanted of words: that they do no harm (musts), and how far they were to bring it (goals).

The musts are of what goodbot does: an objective that can be chosen, as it is installed, and training with a
note on a model that follows notes. What else was run is told beside them as a goal: an objective with another
setting, and a note on a model that goodbot's own trial (`goodbot.conversation.note_trial`) gives none. They
were parted so after the run: what was wanted before it named no setting and no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from tests.learning.arms import DEFAULT, NOTED, WORDS
from tests.learning.course import Course
from tests.learning.figures import Check, facts, of
from tests.learning.worded import HARMLESS, beside

OFFERED = ("hybrid", "hindsight")
"""What `objective` may be for words to train."""
FOLLOW = ("tiny",)
"""Bases that follow notes; tests/training/test_note_trial.py has the others that do not."""
MISLEADING = (*HARMLESS, "contradicting")
WEIGHTS = (DEFAULT, *OFFERED)
PROMPTS = ("notes", "tapered + note", "hybrid + note")
WHOLE = ("tapered + all notes",)
"""With all lines of the note, as it was until ratings were compared with them. `hybrid + note` has all, too,
and in goodbot it is so: a line that a round teaches is not left out, whatever ratings say."""
THUMBS = "24 ratings"
"""The one stream here in which nobody says a word."""
LONGEST = ("200 chips", "200 reasons")
REACHED = (
    (THUMBS, 0.85, "85 % liked after 24 bare thumbs"),
    ("12 chips", 0.85, "85 % liked after 12 ratings with chips"),
    ("flip with reasons", 0.80, "a changed mind is followed to .80 in one round"),
    ("80 chips", 0.95, "80 ratings with chips reach .95"),
)


def musts(courses: Sequence[Course], base: str) -> list[Check]:
    """On one base; nothing where no words were said."""
    return [*_never_below(courses, base), *_teach_nothing(courses, base)]


def goals(courses: Sequence[Course], base: str) -> list[Check]:
    """On one base; nothing where no words were said."""
    if not _said(courses, base):
        return []
    return [
        *_reached(courses, base),
        *_worst_style(courses, base),
        *_facts(courses, base),
        *_weights_beside_notes(courses, base),
        *_cost(courses, base),
    ]


def elsewhere(courses: Sequence[Course]) -> list[Check]:
    """What no course of this study can tell."""
    if not any(_said(courses, base) for base in {c.base for c in courses}):
        return []
    return [
        Check(
            must=False,
            held=None,
            text="SmolLM2-135M: one round of 40 with chips lifts a habit by 35 points",
            found="no round with words was run; what bits do there is in real_rounds.md",
        ),
        Check(must=True, held=None, text="SmolLM2-135M: words never end below bits", found="as above"),
    ]


def _said(courses: Sequence[Course], base: str) -> bool:
    return any(of(courses, arm, base=base) for arm in (*WORDS, *PROMPTS))


def _is_must(arm: str, base: str) -> bool:
    return arm in OFFERED or (arm in PROMPTS and base in FOLLOW)


def _why_not(arm: str, base: str) -> str:
    if arm in PROMPTS and base not in FOLLOW:
        return "goodbot gives it no notes"
    return "goodbot leaves out what ratings refute" if arm in WHOLE else "`hindsight_skip` is 2 as installed"


def _check(base: str, arm: str, text: str, held: bool, found: str) -> Check:
    must = _is_must(arm, base)
    told = f"{base}: {arm} {text}"
    return Check(must=must, held=held, text=told if must else f"{told} ({_why_not(arm, base)})", found=found)


def _never_below(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """No interval of the paired difference lies below 0; where no words misled, it says so."""
    for arm in (*WORDS, *NOTED):
        rows = beside(courses, base, (arm,))
        missed = [one for one in rows if one.below]
        if rows:
            yield _check(
                base,
                arm,
                "never ends below the same ratings without words, gate on",
                not missed,
                ("; ".join(map(str, missed)) or f"no interval below 0 on {len(rows)} streams")
                + (
                    ""
                    if any(one.stream in MISLEADING for one in rows)
                    else "; with words that mislead not measured"
                ),
            )


def _teach_nothing(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """The interval holds 0, on both measures. The note alone is held beside the base without one.

    There the injected words are left out: in goodbot they are another person's, and so in no prompt of this
    one's, and a course leaves them out of the note likewise.
    """
    for arm, other in (*((arm, DEFAULT) for arm in (*WORDS, *NOTED)), ("notes", "frozen")):
        rows = [one for one in beside(courses, base, (arm,), other) if one.stream in HARMLESS]
        rows = [one for one in rows if arm != "notes" or one.stream != "injected"]
        if rows:
            yield _check(
                base,
                arm,
                f"less {other}: {' and '.join(one.stream for one in rows)} words teach nothing",
                all(one.nothing for one in rows),
                "; ".join(map(str, rows)),
            )


def _ends(courses: Sequence[Course], base: str, stream: str, arms: Sequence[str]) -> dict[str, float]:
    """The liked share in the end, by arm."""
    found = {arm: of(courses, arm, stream, base) for arm in arms}
    return {arm: fmean(c.live[-1].liked for c in some) for arm, some in found.items() if some}


def _best(ends: dict[str, float], goal: float) -> str:
    best = max(ends.values())
    told = ", ".join(f"{arm} {end:.2f}" for arm, end in ends.items())
    return told if best >= goal else f"{told}: {goal - best:.2f} short"


def _reached(courses: Sequence[Course], base: str) -> Iterator[Check]:
    for stream, goal, text in REACHED:
        for how, arms in (("in the weights", WEIGHTS), ("with a note", PROMPTS)):
            if how == "with a note" and (base not in FOLLOW or stream == THUMBS):
                continue
            ends = _ends(courses, base, stream, arms)
            yield Check(
                must=False,
                held=max(ends.values()) >= goal if ends else None,
                text=f"{base}: {text}, {how}",
                found=_best(ends, goal) if ends else "not run",
            )


def _worst_style(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """The weaker of the styles that were run, on the stream where that is best."""
    if base != "llama":
        return
    worst: dict[str, float] = {}
    for arm in WEIGHTS:
        for stream in ("chips", "reasons"):
            by = {c.like: of(courses, arm, stream, base, c.like) for c in of(courses, arm, stream, base)}
            ends = {like: fmean(c.live[-1].liked for c in some) for like, some in by.items()}
            if ends:
                least = min(ends, key=lambda like: ends[like])
                worst[f"{arm}, {stream}, {least}"] = ends[least]
    if worst:
        best = max(worst.values()) >= 0.7
        yield Check(
            must=False,
            held=False if not best else None,
            text=f"{base}: the worst style reaches .70 (pirate was not run here)",
            found=_best(worst, 0.7),
        )


def _facts(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """By what goodbot does there, on its worst stream."""
    worst: dict[str, tuple[float, str]] = {}
    for arm in (*WEIGHTS, *(PROMPTS[1:] if base in FOLLOW else ())):
        streams = dict.fromkeys(c.stream for c in of(courses, arm, base=base))
        lost = [(fmean(facts(c) for c in of(courses, arm, stream, base)), stream) for stream in streams]
        if lost:
            worst[arm] = min(lost)
    most = min(lost for lost, _ in worst.values()) if worst else 0.0
    if worst:
        told = ", ".join(f"{arm} {lost:+.3f} ({stream})" for arm, (lost, stream) in worst.items())
        yield Check(
            must=False,
            held=most >= -0.01,
            text=f"{base}: at most 1 point of facts is lost on any stream",
            found=told + ("" if most >= -0.01 else f": {-most - 0.01:.3f} too many"),
        )


def _weights_beside_notes(courses: Sequence[Course], base: str) -> Iterator[Check]:
    if base not in FOLLOW:
        return
    ahead: dict[str, float] = {}
    for stream in ("12 chips", "chips", "80 chips", "reasons", *LONGEST):
        weights, notes = (_ends(courses, base, stream, arms) for arms in (WEIGHTS, ("notes",)))
        if weights and notes:
            ahead[stream] = max(weights.values()) - notes["notes"]
    told = ", ".join(f"{stream} {by:+.2f}" for stream, by in ahead.items())
    longest = [ahead[stream] for stream in LONGEST if stream in ahead]
    yield Check(
        must=False,
        held=min(longest) >= 0.05 if longest else None,
        text=f"{base}: after 200 ratings the weights alone end 5 points above the note alone",
        found=told if longest else f"no course has 200; what there is: {told or 'nothing'}",
    )


def _cost(courses: Sequence[Course], base: str) -> Iterator[Check]:
    """CPU seconds of rounds, gate included; both arms have as many rounds."""
    times: dict[str, float] = {}
    for arm in OFFERED:
        for stream in dict.fromkeys(c.stream for c in of(courses, arm, base=base)):
            ours, bits = (of(courses, one, stream, base) for one in (arm, DEFAULT))
            if bits and (without := fmean(c.cpu_seconds for c in bits)):
                times[f"{arm}, {stream}"] = fmean(c.cpu_seconds for c in ours) / without
    if times:
        most = max(times, key=lambda place: times[place])
        yield Check(
            must=False,
            held=times[most] <= 1.4,
            text=f"{base}: a round with words costs at most 1.4 times one without",
            found=f"{min(times.values()):.2f} to {times[most]:.2f} ({most})",
        )
