# SPDX-License-Identifier: Apache-2.0
"""How README and the docs read is measured, and README reads no harder than docs/results-goals.md says."""

from __future__ import annotations

import re

import pytest

from tests.examples.support import ROOT, tool

TOOL = tool("readability")
GOALS = "docs/results-goals.md"
PAGE = """# A heading

It is *good*. Is `a b` it?

| a | table |
|---|---|

* One [link](to.md), and
  more
* Two 3.5.

```console
$ nobody reads this
```
"""


def test_sentences_are_what_somebody_reads() -> None:
    assert TOOL.sentences(PAGE) == [
        ["It", "is", "good"],
        ["Is", "it", "it"],
        ["One", "link", "and", "more"],
        ["Two", "3.5."],
    ]


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("the", 1),
        ("gate", 1),
        ("trained", 1),
        ("rated", 2),
        ("makes", 1),
        ("changes", 2),
        ("table", 2),
        ("v", 1),
    ],
)
def test_syllables_are_about_those_that_are_said(word: str, count: int) -> None:
    assert TOOL.syllables(word) == count


def test_long_words_and_long_sentences_read_harder() -> None:
    length, ease = TOOL.measured(["The cat sat on the mat."])
    assert length == 6
    assert ease == pytest.approx(206.835 - 1.015 * 6 - 84.6)
    assert TOOL.measured(["Considerable installation."])[1] < ease
    assert TOOL.measured(["The cat sat on the mat " + "and on the mat " * 9])[1] < ease


def test_readme_reads_no_harder_than_was_measured() -> None:
    told = (ROOT / GOALS).read_text(encoding="utf-8")
    for name, row in (
        ("README.md", "README"),
        ("docs/getting-started.md", "[Getting started](getting-started.md)"),
    ):
        [(words, of)] = re.findall(
            rf"^\| {re.escape(row)} \|.*\| ([\d.]+) words, (\d+) \|$", told, flags=re.M
        )
        length, ease = TOOL.measured([TOOL.pages()[name]])
        assert length <= float(words) + 1, f"{name}: shorter sentences, or another figure in {GOALS}"
        assert ease >= float(of) - 3
