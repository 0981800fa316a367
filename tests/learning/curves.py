# SPDX-License-Identifier: Apache-2.0
"""The curves of the learning benchmark, as SVG without a library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean

from tests.learning.arms import ARMS, DEFAULT
from tests.learning.course import Course
from tests.learning.exam import Judged
from tests.learning.figures import estimate, of

COLOURS = (
    "#777777",
    "#000000",
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#882255",
    "#999933",
    "#332288",
    "#44aa99",
    "#b15928",
)
CONTROLS = ("frozen", "shuffled")
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 240, 50, 30, 60
_TICK = 'text-anchor="middle" fill="#555"'


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One measure and its axis, from `low` to 1."""

    title: str
    of: Callable[[Judged], float]
    low: float

    def at(self, value: float) -> float:
        return (value - self.low) / (1 - self.low)

    def ticks(self) -> list[float]:
        step = 0.25 if not self.low else 0.05 if self.low > 0.65 else 0.1
        return [self.low + step * n for n in range(round((1 - self.low) / step) + 1)]


def _panels(courses: Sequence[Course]) -> list[Panel]:
    """The liked share from 0; the facts from the tenth below the least, for they differ little."""
    least = min(judged.facts for c in courses for judged in (c.before, *c.live))
    return [
        Panel(title="in the liked style", of=lambda judged: judged.liked, low=0.0),
        Panel(title="facts right", of=lambda judged: judged.facts, low=min(0.8, math.floor(10 * least) / 10)),
    ]


def rounds(courses: Sequence[Course]) -> str:
    """Both measures of what answers over the rounds of one stream, one line an arm."""
    shown = [arm for arm in ARMS if of(courses, arm)]
    count = max(len(c.live) for c in courses)
    step = WIDTH / count
    body: list[str] = []
    for place, panel in enumerate(_panels(courses)):
        x0 = LEFT + place * (WIDTH + GAP)
        body.append(f'<text x="{x0}" y="18" font-weight="bold">{panel.title}</text>')
        for tick in panel.ticks():
            y = TOP + HEIGHT * (1 - panel.at(tick))
            body.append(f'<line x1="{x0}" x2="{x0 + WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>')
            body.append(f'<text x="{x0 - 6}" y="{y + 4}" text-anchor="end">{tick:.0%}</text>')
        for number in range(count + 1):
            x = x0 + number * step
            body.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" {_TICK}>{number}</text>')
        for arm in shown:
            chosen = of(courses, arm)
            values = [fmean(panel.of(c.before) for c in chosen)]
            values += [fmean(panel.of(c.live[i]) for c in chosen) for i in range(count)]
            points = " ".join(
                f"{x0 + i * step:.1f},{TOP + HEIGHT * (1 - panel.at(value)):.1f}"
                for i, value in enumerate(values)
            )
            body.append(f'<polyline points="{points}" fill="none" {_stroke(arm)}/>')
    for number, arm in enumerate(shown):
        x, y = LEFT + 190 * (number % 4), TOP + HEIGHT + 42 + 18 * (number // 4)
        body.append(f'<line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" {_stroke(arm)}/>')
        body.append(f'<text x="{x + 30}" y="{y}">{escape(arm)}</text>')
    height = TOP + HEIGHT + 40 + 18 * math.ceil(len(shown) / 4)
    return _picture("What answers after each round, mean over seeds and styles", height, body)


def arms(courses: Sequence[Course]) -> str:
    """Both measures of what answers at the end, a row an arm, with 95 % intervals."""
    shown = [arm for arm in ARMS if of(courses, arm)]
    row, names = 20, 60
    width, height = WIDTH - names // 2, row * len(shown) + 10
    body: list[str] = []
    for place, panel in enumerate(_panels(courses)):
        x0 = LEFT + names + place * (width + GAP)
        body.append(f'<text x="{x0}" y="18" font-weight="bold">{panel.title}</text>')
        for tick in panel.ticks():
            x = x0 + width * panel.at(tick)
            body.append(f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{TOP + height}" stroke="#ddd"/>')
            body.append(f'<text x="{x}" y="{TOP + height + 16}" {_TICK}>{tick:.0%}</text>')
        for number, arm in enumerate(shown):
            found = estimate([panel.of(c.live[-1]) for c in of(courses, arm)])
            y = TOP + 15 + row * number
            low, mean, high = (
                x0 + width * max(0.0, panel.at(v)) for v in (found.low, found.mean, found.high)
            )
            body.append(
                f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" '
                f'stroke="{_colour(arm)}" stroke-width="2"/>'
                f'<circle cx="{mean:.1f}" cy="{y}" r="4" fill="{_colour(arm)}"/>'
            )
            if not place:
                weight = ' font-weight="bold"' if arm == DEFAULT else ""
                body.append(f'<text x="{x0 - 10}" y="{y + 4}" text-anchor="end"{weight}>{escape(arm)}</text>')
    return _picture("What answers after one round, by arm", TOP + height + 28, body)


def _colour(arm: str) -> str:
    """The same for an arm in every picture."""
    return COLOURS[list(ARMS).index(arm) % len(COLOURS)]


def _stroke(arm: str) -> str:
    dash = ' stroke-dasharray="3 3"' if arm in CONTROLS else ""
    return f'stroke="{_colour(arm)}" stroke-width="{3 if arm == DEFAULT else 1.5}"{dash}'


def _picture(title: str, height: int, body: Sequence[str]) -> str:
    width = LEFT + 2 * WIDTH + GAP + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">\n'
        f"<title>{title}</title>\n"
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )
