"""The table of the learning benchmark, its intervals, its musts, and its curves as SVG."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from random import Random
from statistics import fmean

from tests.learning.arms import ARMS
from tests.learning.course import Course
from tests.learning.streams import STREAMS

DEFAULT = "scale"
CONTROLS = ("frozen", "shuffled")
VARIANTS = ("filter", "scale", "sign_aware")
FACTS_MAY_FALL = 0.03
DRAWS = 2000


def text(courses: Sequence[Course]) -> str:
    """The whole report as Markdown."""
    streams = [name for name in STREAMS if any(c.stream == name for c in courses)]
    parts = [_header(courses), _choice(courses)]
    parts += [_table(name, [c for c in courses if c.stream == name]) for name in streams]
    return "\n\n".join(parts) + "\n"


def write(courses: Sequence[Course], directory: Path) -> None:
    """`study.md` and `continual.svg`."""
    (directory / "study.md").write_text(text(courses), encoding="utf-8")
    continual = [c for c in courses if c.stream == "continual"]
    if continual:
        (directory / "continual.svg").write_text(curves(continual), encoding="utf-8")


def musts_hold(courses: Sequence[Course]) -> bool:
    """With the gate on, the default never ends below the base on bad-only and adversarial streams."""
    for stream in ("bad only", "adversary"):
        chosen = _of(courses, DEFAULT, stream)
        if chosen and (_gain(chosen) < -0.02 or _facts(chosen) < -FACTS_MAY_FALL):
            return False
    return True


def _of(courses: Sequence[Course], arm: str, stream: str) -> list[Course]:
    return [c for c in courses if c.arm == arm and c.stream == stream]


def _gain(courses: Sequence[Course]) -> float:
    return fmean(c.live[-1].liked - c.before.liked for c in courses)


def _facts(courses: Sequence[Course]) -> float:
    return fmean(c.live[-1].facts - c.before.facts for c in courses)


def _header(courses: Sequence[Course]) -> str:
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "peft")
    )
    seeds = len({c.seed for c in courses})
    likes = ", ".join(sorted({c.like for c in courses}))
    answers = max(c.answers for c in courses)
    return (
        "# The learning benchmark\n\n"
        f"The shipped model (0.95M parameters); {seeds} seeds; liked: {likes}; 40 ratings a round, 32 "
        f"of them train; {answers} judged answers to held-out questions a policy; the gate is on: "
        "*live* is what answers after the last round, *candidate* what was trained, refused or "
        "not. Intervals are 95 %, by a paired bootstrap over seeds and styles.\n\n"
        f"Python {platform.python_version()}, {versions}, {platform.system()} {platform.machine()}. "
        "Made by `make bench-learning`; each arm's own learning rate was chosen on other seeds."
    )


def _choice(courses: Sequence[Course]) -> str:
    """The rule of `study`, applied."""
    rows = ["## Which variant\n", "| variant | worst stream | gain there | most facts lost |"]
    rows.append("|---|---|---|---|")
    best: tuple[float, str] | None = None
    for arm in VARIANTS:
        by_stream = {
            name: chosen for name in STREAMS if name != "bad only"
            if (chosen := _of(courses, arm, name))
        }  # fmt: skip
        if not by_stream:
            continue
        worst = min(by_stream, key=lambda name: _gain(by_stream[name]))
        lost = min(_facts(chosen) for chosen in by_stream.values())
        gain = _gain(by_stream[worst])
        rows.append(f"| {arm} | {worst} | {gain:+.3f} | {lost:+.3f} |")
        if lost >= -FACTS_MAY_FALL and (best is None or gain > best[0]):
            best = (gain, arm)
    rows += ["", f"By the rule: **{best[1] if best else 'none keeps the facts'}**."]
    return "\n".join(rows)


def _table(stream: str, courses: Sequence[Course]) -> str:
    rows = [
        f"## {stream.capitalize()}\n",
        STREAMS[stream].about[0].upper() + STREAMS[stream].about[1:] + ".\n",
        f"| arm | liked, live | against {DEFAULT} | facts, live | liked, candidate | facts, candidate "
        "| malformed | length | drift | passed | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    default = _of(courses, DEFAULT, stream)
    for arm in ARMS:
        chosen = _of(courses, arm, stream)
        if not chosen:
            continue
        against = "" if arm == DEFAULT or not default else _paired(chosen, default)
        candidates = [c.candidate[-1] for c in chosen if c.candidate]
        end = [c.live[-1] for c in chosen]
        rounds = [passed for c in chosen for passed in c.passed]
        drift = [d for c in chosen for d in c.drift if d == d]
        rows.append(
            f"| {arm} | {fmean(c.before.liked for c in chosen):.2f} → "
            f"{fmean(j.liked for j in end):.2f} {_interval([j.liked for j in end])} | {against} "
            f"| {fmean(c.before.facts for c in chosen):.3f} → {fmean(j.facts for j in end):.3f} "
            f"| {_mean(candidates, lambda j: j.liked)} | {_mean(candidates, lambda j: j.facts)} "
            f"| {fmean(j.malformed for j in end):.2f} "
            f"| {fmean(j.length for j in end) / fmean(c.before.length for c in chosen):.2f} "
            f"| {f'{fmean(drift):.2f}' if drift else ''} "
            f"| {f'{sum(rounds)}/{len(rounds)}' if rounds else ''} "
            f"| {fmean(c.cpu_seconds for c in chosen) / max(1, len(chosen[0].passed)):.1f} |"
        )
    return "\n".join(rows)


def _mean(judged: Sequence[object], of: Callable[..., float]) -> str:
    return f"{fmean(of(j) for j in judged):.2f}" if judged else ""


def _paired(courses: Sequence[Course], default: Sequence[Course]) -> str:
    """Liked, live: this arm minus the default on the same seed and style."""
    other = {(c.like, c.seed): c for c in default}
    differences = [
        c.live[-1].liked - other[c.like, c.seed].live[-1].liked
        for c in courses
        if (c.like, c.seed) in other
    ]
    return f"{fmean(differences):+.2f} {_interval(differences)}" if differences else ""


def _interval(values: Sequence[float]) -> str:
    """The bootstrap interval of a mean."""
    draw = Random(0)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return f"[{means[round(0.025 * DRAWS)]:.2f}, {means[round(0.975 * DRAWS) - 1]:.2f}]"


def curves(courses: Sequence[Course]) -> str:
    """Liked share and facts over the rounds of the continual stream, one line an arm."""
    width, height, left, gap = 380, 240, 50, 60
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
    arms = [arm for arm in ARMS if any(c.arm == arm for c in courses)]
    pictures: list[str] = []
    for panel, (title, of) in enumerate(
        (("in the liked style", lambda j: j.liked), ("facts right", lambda j: j.facts))
    ):
        x0 = left + panel * (width + gap)
        pictures.append(
            f'<text x="{x0}" y="18" font-weight="bold">{title}</text>'
            f'<rect x="{x0}" y="30" width="{width}" height="{height}" fill="none" stroke="#999"/>'
        )
        for share in (0, 0.25, 0.5, 0.75, 1):
            y = 30 + height * (1 - share)
            pictures.append(
                f'<line x1="{x0}" x2="{x0 + width}" y1="{y}" y2="{y}" stroke="#ddd"/>'
                f'<text x="{x0 - 6}" y="{y + 4}" text-anchor="end">{share:.0%}</text>'
            )
        for number, arm in enumerate(arms):
            chosen = [c for c in courses if c.arm == arm]
            values = [fmean(of(c.before) for c in chosen)]
            values += [fmean(of(c.live[i]) for c in chosen) for i in range(len(chosen[0].live))]
            step = width / (len(values) - 1)
            points = " ".join(
                f"{x0 + i * step:.1f},{30 + height * (1 - v):.1f}" for i, v in enumerate(values)
            )
            dash = f' stroke-dasharray="{2 + 3 * (number // len(colours))} 3"' * (
                number >= len(colours) or arm in CONTROLS
            )
            colour = colours[number % len(colours)]
            pictures.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
            )
            if not panel:
                y = 30 + height + 30 + 16 * (number // 4)
                x = left + 190 * (number % 4)
                pictures.append(
                    f'<line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" '
                    f'stroke-width="2"{dash}/><text x="{x + 30}" y="{y}">{escape(arm)}</text>'
                )
    total_height = 30 + height + 40 + 16 * (-(-len(arms) // 4))
    body = "\n".join(pictures)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + 2 * width + gap + 20} '
        f'{total_height}" font-family="sans-serif" font-size="12">\n'
        f"<title>Ten rounds in a row, mean over seeds and styles</title>\n"
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )
