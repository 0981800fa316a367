# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of the how-to pages: who tells whom what, tables as bars, and terminals.

`python docs/tools/figures.py` draws those of which all is known here: the flows below, and the bars, whose
figures stand in their pages. `docs/tools/screens.py` runs goodbot and takes the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from textwrap import wrap

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "pictures"
WIDTH, LINE, EDGE = 960, 20, 8
COLUMNS = 112
"""Of a terminal."""
LETTER = 7.4
"""The width of a letter, in pixels, as a mean."""
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1f2328 } .head { font-weight: bold }
.label { font-size: 12px; fill: #59636e; text-anchor: middle } .code, .typed { font: 13px ui-monospace, Menlo,
Consolas, "DejaVu Sans Mono", monospace } .typed { font-weight: bold }
"""
Step = tuple[str, ...] | str
"""A box (its head, and its sentences), or the word on the arrow to the next one."""

FLOWS: dict[str, tuple[str, tuple[Step, ...], str]] = {
    # page: what it shows, from left to right, and what goes back from the last box to the first
    "platforms": (
        "From a rating to the next answer",
        (
            ("Your chat", "Slack, Telegram, Discord, Teams, or a browser"),
            "question",
            ("goodbot", "on your computer. Your own model answers."),
            "answer",
            ("People", "press good or bad, or react."),
            "ratings",
            ("A training", "after 40 ratings, in the background"),
        ),
        "the next answers come from what it learnt",
    ),
    "proxy": (
        "A program and its model, with goodbot between them",
        (
            ("Your program", "an OpenAI or Anthropic client"),
            "request",
            ("goodbot", "keeps question and answer, and learns from those that are rated."),
            "request",
            ("A model", "goodbot's own, or a server that you name"),
        ),
        "the answer, with the name to rate it by",
    ),
    "api": (
        "A program reports an answer, and then how good it was",
        (
            ("Your program", "has answered somebody."),
            "POST /v1/turns",
            ("goodbot", "keeps question and answer, and says which turn that is."),
            "the turn",
            ("Your program", "learns later how good the answer was."),
            "/v1/feedback",
            ("goodbot", "learns from it."),
        ),
        "",
    ),
    "serving": (
        "What was learnt goes into your model server",
        (
            ("Ratings", "wait until there are enough."),
            "learn",
            ("A training", "makes an adapter, a small file beside the model."),
            "load",
            ("Your server", "vLLM, SGLang, llama.cpp, Ollama or MLX"),
            "proof",
            ("The next answer", "comes from the new version. goodbot has checked that."),
        ),
        "",
    ),
    "openclaw": (
        "OpenClaw answers, and goodbot learns from the ratings",
        (
            ("Your chat", "Telegram, Discord or Slack: you talk to OpenClaw, and rate there."),
            "talk, rate",
            ("OpenClaw", "answers. goodbot's plugin is in it."),
            "what was rated",
            ("goodbot", "keeps it, and trains your own local model."),
        ),
        "what became of the rating",
    ),
    "server": (
        "A rented server, your computer, and the chat platform",
        (
            ("Your computer", "opens goodbot's pages in your browser. It may be off at other times."),
            "ssh",
            ("The server", "goodbot runs here, always. Its pages listen here only."),
            "asks for news",
            ("The chat platform", "Slack, Telegram or Discord. The server needs no open port."),
        ),
        "",
    ),
    "wsl": (
        "goodbot runs in Linux, which runs in Windows",
        (
            ("Windows", "Your browser opens the link that goodbot web prints."),
            "localhost",
            ("Ubuntu, in WSL 2", "goodbot runs here. Its source and ~/.goodbot are on Linux's own disk."),
            "if the driver can",
            ("NVIDIA GPU", "Without one it computes on the processor."),
        ),
        "",
    ),
    "filters": (
        "What a filter keeps out of a training",
        (
            ("Rated answers", "wait until there are enough."),
            "each one",
            ("Filters", "look for words that you have blocked, and for personal data."),
            "all others",
            ("A training", "learns from them."),
        ),
        "the rest stays stored, is not learnt, and you see why",
    ),
    "reinforceclaw": (
        "What comes along from ReinforceClaw",
        (
            ("ReinforceClaw", "its database: questions, answers, ratings"),
            "goodbot import",
            ("goodbot", "keeps them as answers of another model."),
            "learn",
            ("A training", "makes goodbot's first version from them, and checks it."),
        ),
        "",
    ),
    "webhooks": (
        "A rating reaches your program",
        (
            ("People", "press good or bad."),
            "rating",
            ("goodbot", "stores it, and signs what it tells of it."),
            "POST",
            ("Your program", "checks the signature, and answers 200."),
        ),
        "not taken: the same again, until it is",
    ),
    "scale": (
        "What more bots need, today",
        (
            ("10 bots", "The tiny demo model: one computer with 2 cores and 16 GB is less than half full."),
            "× 100",
            ("1,000 bots", "Their memory fills up first. It would take 38 such computers."),
            "× 100",
            ("100,000 bots", "Memory, then processors: many large computers. Nobody has tried."),
        ),
        "",
    ),
    "scopes": (
        "A version of Ada's own, beside the shared one",
        (
            ("Ada asks", "in a private chat with the bot."),
            "question",
            ("The shared version", "What all people have taught. In groups it answers alone."),
            "and",
            ("Ada's own version", "What Ada alone has taught, on top of it."),
            "answer",
            ("Ada rates", "good or bad, as everywhere."),
        ),
        "after 40 ratings a training of her own",
    ),
    "contributing": (
        "The way of a rating through the folders",
        (
            ("connectors", "A press becomes a rating event."),
            "event",
            ("conversation", "It is checked, and counts."),
            "label",
            ("learning", "Enough of them begin a run."),
            "items",
            ("training", "A backend makes an adapter."),
            "version",
            ("inference", "Its answers come from it."),
        ),
        "the next answer",
    ),
}


def flow(page: str) -> str:
    """The figure of `FLOWS` for this page, as SVG."""
    title, steps, back = FLOWS[page]
    boxes = [step for step in steps if isinstance(step, tuple)]
    arrows = [step for step in steps if isinstance(step, str)]
    gap = max(len(word) for word in arrows) * 6.4 + 16
    width = (WIDTH - 2 * EDGE - gap * len(arrows)) / len(boxes)
    letters = int((width - 20) / LETTER)
    texts = [[line for sentence in box[1:] for line in wrap(sentence, letters)] for box in boxes]
    height = 46 + LINE * max(map(len, texts))
    drawn: list[str] = []
    for number, (box, lines) in enumerate(zip(boxes, texts, strict=True)):
        left = EDGE + number * (width + gap)
        drawn.append(_box(left, EDGE, width, height))
        drawn += _texts([("head", box[0]), *(("", line) for line in lines)], left + 10, EDGE + 26)
        if number < len(arrows):
            end = left + width + gap
            drawn.append(_arrow(f"M{end - gap + 3:.0f} {EDGE + height / 2:.0f}H{end - 9:.0f}"))
            drawn += _texts([("label", arrows[number])], end - gap / 2, EDGE + height / 2 - 8)
    whole = height + 2 * EDGE
    if back:
        first, last = EDGE + width / 2, WIDTH - EDGE - width / 2
        low = EDGE + height
        drawn.append(_arrow(f"M{last:.0f} {low + 3:.0f}v22H{first:.0f}V{low + 9:.0f}"))
        drawn += _texts([("label", back)], WIDTH / 2, low + 42)
        whole += 44
    return _svg(title, drawn, whole)


def bars_of(title: str, rows: Sequence[tuple[str, float, float]], *, names: tuple[str, str]) -> str:
    """Of each row two bars, of 100: what it is called, before, after; `names` of the two."""
    left, room = 350.0, WIDTH - 350.0 - 60
    drawn: list[str] = []
    top = EDGE + 4.0
    for name, *values in rows:
        drawn += _texts([("head", name)], EDGE, top + 15)
        for said, value, colour in zip(names, values, ("#d1d9e0", "#7fd694"), strict=True):
            drawn += _texts([("", said)], left - 60, top + 15)
            size = f'width="{room * value / 100:.0f}" height="18"'
            drawn.append(f'<rect x="{left}" y="{top}" {size} fill="{colour}"/>')
            drawn += _texts([("", f"{value:g}")], left + room * value / 100 + 8, top + 15)
            top += 24
        top += 12
    return _svg(title, drawn, top)


def terminal(title: str, said: Sequence[tuple[str, str]], *, most: int = 30) -> str:
    """Commands, and what each printed; of a long output the first `most` lines."""
    lines: list[tuple[str, str]] = []
    for command, output in said:
        printed = [part for line in output.rstrip().splitlines() for part in wrap(line, COLUMNS) or [""]]
        cut = [*printed[:most], "…"] if len(printed) > most else printed
        lines += [("typed", f"$ {command}"), *(("code", line) for line in cut), ("code", "")]
    lines.pop()
    height = 2 * EDGE + 22 + 18 * len(lines)
    window = _box(EDGE, EDGE, WIDTH - 2 * EDGE, height - 2 * EDGE)
    return _svg(title, [window, *_texts(lines, EDGE + 14, EDGE + 26, step=18)], height)


def _box(x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<rect {place} rx="10" fill="#ffffff" stroke="#d1d9e0"/>'


def _arrow(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="#59636e" stroke-width="1.5" marker-end="url(#tip)"/>'


def _texts(lines: Sequence[tuple[str, str]], x: float, y: float, *, step: int = LINE) -> Iterator[str]:
    for number, (kind, text) in enumerate(lines):
        if text:
            place = f'x="{x:.0f}" y="{y + number * step:.0f}"'
            yield f'<text class="{kind}" {place} xml:space="preserve">{escape(text)}</text>'


def _svg(title: str, drawn: Sequence[str], height: float) -> str:
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
            f'<defs>{tip}><path d="M0 0l8 4-8 4z" fill="#59636e"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="#f6f8fa"/>',
            *drawn,
            "</svg>\n",
        )
    )


# -- what stands in a page, as bars


def laptop() -> str:
    """What a model gives after 40 ratings, from the table of docs/laptop.md."""
    page = (DOCS / "laptop.md").read_text(encoding="utf-8")
    head = _cells(page, r"^\| \|.*$")
    liked, right = (_cells(page, rf"^\| {words} answers of 100.*$") for words in ("liked", "right"))
    rows: list[tuple[str, float, float]] = []
    for model, *cells in zip(head[1:], liked[1:], right[1:], strict=True):
        for what, cell in zip(("liked answers", "right answers"), cells, strict=True):
            before, after = map(float, re.findall(r"(\d+) and (\d+)", cell)[0])
            name = model.removeprefix("the ").removesuffix("-Instruct")
            rows.append((f"{name}: {what}", before, after))
    return bars_of("Of 100 answers, before and after 40 ratings", rows, names=("before", "after"))


def outcomes() -> str:
    """Right sums before and after, from the run that docs/outcomes.md shows."""
    page = (DOCS / "outcomes.md").read_text(encoding="utf-8")
    found = re.findall(r"^(outcomes|the same, shuffled) +(\d+)% \([^)]*\) +(\d+)%", page, flags=re.M)
    rows = [(name, float(before), float(after)) for name, before, after in found]
    return bars_of("Right answers of 100 sums, before and after 40 outcomes", rows, names=("before", "after"))


def _cells(page: str, pattern: str) -> list[str]:
    [row] = re.findall(pattern, page, flags=re.M)
    return [cell.strip() for cell in row.strip("|").split("|")]


def drawn() -> dict[str, str]:
    """Every figure that needs no run of goodbot, by the name of its file."""
    bars = {"laptop.svg": laptop(), "outcomes.svg": outcomes()}
    return {f"{page}.svg": flow(page) for page in FLOWS} | bars


if __name__ == "__main__":
    for name, figure in drawn().items():
        (PICTURES / name).write_text(figure, encoding="utf-8")
