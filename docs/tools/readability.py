# SPDX-License-Identifier: Apache-2.0
"""Measure how README and the pages of docs read: words a sentence, and Flesch's reading ease.

`python docs/tools/readability.py` prints a table of the files as they are, `… COMMIT` of those of a commit.
Blocks of code, tables, headings and generated pages are left out; a piece of code in a line counts as one
short word. 100 reads very easily, 60 as plain English, below 50 is hard.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ("docs/reference.md", "docs/plugin-api.md")
_TABLE_OR_HEADING = re.compile(r"^ *(?:\||#|!\[).*$", re.M)
_SILENT = re.compile(r"(?<=[^aeiouyl])e$|(?<=[^aeioutdy])ed$|(?<=[^aeiouysxzcgh])es$")
_FENCE = re.compile(r"^ *```.*?^ *```$|<!--.*?-->", re.M | re.S)


def sentences(page: str) -> list[list[str]]:
    """The words of each sentence that somebody reads on a page."""
    prose = _TABLE_OR_HEADING.sub("\n", _FENCE.sub("\n", page))
    prose = re.sub(r"`[^`]*`", "it", re.sub(r"\]\([^)]*\)", "]", prose))
    parts = re.split(r"\n\s*\n|\n *(?:[*-]|\d+\.) |(?<=[.!?])[”\")*]*\s", f"\n{prose}")
    words = (re.findall(r"[A-Za-zÀ-ÿ][A-Za-zÀ-ÿ'’-]*|\d[\d.,]*", part) for part in parts)
    return [found for found in words if found]


def syllables(word: str) -> int:
    """About how many a word has: groups of vowels, but for an `e` at the end that nobody says."""
    said = re.sub(_SILENT, "", word.lower()) if len(word) > 3 else word.lower()
    return max(1, len(re.findall(r"[aeiouyà-ÿ]+", said)))


def measured(pages: Iterable[str]) -> tuple[float, float]:
    """Words a sentence as a mean, and Flesch's reading ease, of all pages together."""
    found = [sentence for page in pages for sentence in sentences(page)]
    words = [word for sentence in found for word in sentence]
    length = len(words) / len(found)
    ease = 206.835 - 1.015 * length - 84.6 * sum(map(syllables, words)) / len(words)
    return length, ease


def pages(commit: str = "") -> dict[str, str]:
    """README and the pages of docs, by name, as they are or as a commit has them."""
    if commit:
        listed = _git("ls-tree", "--name-only", commit, "README.md", "docs/").splitlines()
        return {name: _git("show", f"{commit}:{name}") for name in listed if _counts(name)}
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = {path.relative_to(ROOT).as_posix(): path for path in found}
    return {name: path.read_text(encoding="utf-8") for name, path in named.items() if _counts(name)}


def _counts(name: str) -> bool:
    return name.endswith(".md") and name not in GENERATED


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main(commit: str = "") -> None:
    """Print the table."""
    found = pages(commit)
    chosen = {
        "README": ["README.md"],
        "getting started": ["docs/getting-started.md"],
        "README and all pages": list(found),
    }
    sys.stdout.write("| | pages | words a sentence | reading ease |\n|---|---|---|---|\n")
    for name, of in chosen.items():
        length, ease = measured(found[one] for one in of)
        sys.stdout.write(f"| {name} | {len(of)} | {length:.1f} | {ease:.0f} |\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
