# SPDX-License-Identifier: Apache-2.0
"""Draw docs/pictures/demo.svg: rate, learn, better, with what one real run of the demo said.

Its lines come one after another, once; all stand there at once for who wants no motion, or where none plays.
What it said stands in docs/demo.md. `python docs/tools/picture.py` draws it;
`goodbot demo | python docs/tools/picture.py -` keeps the output of another run first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap

PICTURE = Path(__file__).parents[1] / "pictures/demo.svg"
PAGE = Path(__file__).parents[1] / "demo.md"
BLOCK = re.compile(r"(?<=<!-- demo -->\n```text\n).*?(?=```\n<!-- /demo -->)", re.S)

WIDTH, HEIGHT, PANEL, LINE = 960, 268, 304, 19
LETTERS = 33
"""Of a line in a panel."""
STYLE = """
text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328 }
.head { font: bold 17px system-ui, sans-serif } .dim { fill: #59636e } .bold { font-weight: bold }
@keyframes come { from { opacity: 0 } }
@media (prefers-reduced-motion: no-preference) { .come { animation: come .3s both } }
"""
LINES_A_SECOND = 7
"""So it is over after five: what plays longer must be possible to stop."""
THUMB = (
    "M1 21h4V9H1v12zm22-11c0-1.1-.9-2-2-2h-6.31l.95-4.57.03-.32c0-.41-.17-.79-.44-1.06L14.17 1 7.59 7.59"
    "C7.22 7.95 7 8.45 7 9v10c0 1.1.9 2 2 2h9c.83 0 1.54-.5 1.84-1.22l3.02-7.05c.09-.23.14-.47.14-.73v-2z"
)
"""A thumb that points up, 24 by 24; drawn, since not every machine has a font with one."""

Line = tuple[str, str]
"""How a line is drawn, and its words."""


def kept() -> str:
    """The output of the run that is kept."""
    [output] = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return output


def draw(output: str) -> str:
    """The picture, as SVG, of what `goodbot demo` printed."""
    ratings, style = _one(r"Now (\d+) ratings\. The owner likes “(\w+)”", output)
    (seconds,) = _one(r"^training (\d+) s", output)
    before, after = _one(r"^answers in the liked style: (\d+)% .*→ (\d+)% ", output)
    right, asked, still = _one(r"^right answers: +(\d+) of (\d+) → (\d+) of \d+", output)
    question, old, new = _answers(output)
    panels: list[list[Line]] = [
        [("head", "1  You rate"), *_ratings(output)],
        [
            ("head", "2  It learns by itself"),
            ("bold", f"{ratings} ratings"),
            *_lines("", f"They like the style “{style}”."),
            ("", ""),
            ("bar 100", f"training took {seconds} s"),
            ("dim", "(the tiny demo model)"),
            ("", ""),
            *_lines("", _one(r"^(It passed the safety check): ", output)[0] + "."),
        ],
        [
            ("head", "3  The next answers"),
            *_lines("dim", question),
            *_lines("", f"before: {old}"),
            *_lines("bold", f"after: {new}"),
            ("half", ""),
            ("dim", "answers in the liked style"),
            (f"bar {before}", f"{before} of 100 before"),
            (f"bar {after}", f"{after} of 100 after"),
            ("dim", f"right: {right}, then {still}, of {asked}"),
        ],
    ]
    told = f"{ratings} ratings; then {after} instead of {before} of 100 answers are in the liked style."
    return "\n".join(_svg(panels, told)) + "\n"


def _one(pattern: str, output: str) -> tuple[str, ...]:
    found = re.search(pattern, output, flags=re.M)
    if not found:
        raise SystemExit(f"the demo no longer says {pattern}")
    return found.groups()


def _answers(output: str) -> tuple[str, str, str]:
    """The first question of the table that it shows whole, and whose answer has changed."""
    header, *rows = output[output.index("question   ") :].partition("\n\n")[0].splitlines()
    first, second = header.index("before"), header.index("after")
    for row in rows:
        question, old, new = (row[a:b].strip() for a, b in ((0, first), (first, second), (second, None)))
        if question[-1] in "?." and old[-1] in "!." and old != new:
            return question, old, new
    raise SystemExit("the demo no longer shows an answer that has changed")


def _ratings(output: str) -> Iterator[Line]:
    """A good answer and two bad ones."""
    rated = re.findall(r"^  (👍|👎)  (.+?)  →  (.+)$", output[output.index("\nNow ") :], flags=re.M)
    good, bad = ([one for one in rated if one[0] == thumb] for thumb in "👍👎")
    for thumb, question, answer in (good[0], *bad[:2]):
        yield from _lines("dim", question)
        first, *rest = _lines("", answer, indent="   ")
        yield {"👍": "up", "👎": "down"}[thumb], first[1]
        yield from rest
        yield "half", ""


def _lines(kind: str, text: str, *, indent: str = "") -> list[Line]:
    return [(kind, line) for line in wrap(text, LETTERS, initial_indent=indent, subsequent_indent=indent)]


def _svg(panels: list[list[Line]], told: str) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    yield f"<title>Rate, learn, better</title><desc>{escape(told)}</desc><style>{STYLE}</style>"
    come = 0
    for number, lines in enumerate(panels):
        left, top = 8 + number * (PANEL + 16), 38.0
        yield f'<rect x="{left}" y="8" width="{PANEL}" height="{HEIGHT - 16}" rx="10"'
        yield ' fill="#ffffff" stroke="#d1d9e0"/>'
        for kind, text in lines:
            if text:
                yield f'<g class="come" style="animation-delay: {come / LINES_A_SECOND:.2f}s">'
                yield from _line(kind, text, left + 14, top)
                yield "</g>"
                come += 1
            top += {"head": LINE * 1.5, "half": LINE / 2}.get(kind, LINE)
        if top > HEIGHT:
            raise SystemExit("a panel is too full")
    yield "</svg>"


def _line(kind: str, text: str, x: float, y: float) -> Iterator[str]:
    name, _, share = kind.partition(" ")
    if name == "bar":
        whole = PANEL - 28
        for width, colour in ((whole, "#eff2f5"), (whole * int(share) // 100, "#aceebb")):
            yield f'<rect x="{x}" y="{y - 14}" width="{width}" height="18" fill="{colour}"/>'
    if name in ("up", "down"):
        turn, colour = {"up": ("", "#1a7f37"), "down": (" rotate(180 12 12)", "#cf222e")}[name]
        place = f"translate({x} {y - 12}) scale(.62){turn}"
        yield f'<path transform="{place}" fill="{colour}" d="{THUMB}"/>'
    yield f'<text class="{name}" x="{x}" y="{y}" xml:space="preserve">{escape(text)}</text>'


if __name__ == "__main__":
    if sys.argv[1:] == ["-"]:
        output = sys.stdin.read().replace(str(Path.home()), "~")
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(BLOCK.sub(lambda _: output, page), encoding="utf-8")
    PICTURE.write_text(draw(kept()), encoding="utf-8")
