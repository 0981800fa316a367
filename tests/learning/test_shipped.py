# SPDX-License-Identifier: Apache-2.0
"""Kept measurements say on which shipped model they were made, and so do the pages that quote them."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

import pytest

from tests.learning.shipped import EARLIER, measured_on, of, shipped

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path for path in (Path(__file__).parent / "results").glob("*.md")}
NONE = {"real_rounds"}
"""Measured on no model of ours."""
BEHIND = {"across", "asking", "defaults", "strength", "study"}
"""Measured on an earlier model. This list may only shrink: measure the page again, or drop it."""


@pytest.mark.parametrize("name", sorted(PAGES.keys() - NONE))
def test_a_page_names_its_model_and_says_if_that_is_an_earlier_one(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    assert of(text), "its head names no shipped model: tests/learning/shipped.py has the line"
    assert measured_on(PAGES[name]) in text, "the model has changed: say so in the head"
    assert (of(text) == shipped()) == (name not in BEHIND)
    assert (of(text) in EARLIER) == (name in BEHIND), "a model that was shipped, and from when on another one"


def test_the_list_of_those_behind_only_shrinks() -> None:
    assert PAGES.keys() >= BEHIND | NONE
    assert len(BEHIND) <= 5


@pytest.mark.parametrize("page", ["README.md", "docs/results.md", "docs/training.md", "docs/laptop.md"])
def test_who_quotes_a_page_of_an_earlier_model_says_so(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    linked = re.findall(r"tests/learning/results/(\w+)\.md(?:#[\w-]+)?\)((?: \*\(earlier model\)\*)?)", text)
    assert [name for name, mark in linked if (name in BEHIND) != bool(mark)] == []


def test_the_readme_quotes_what_the_benchmark_found() -> None:
    """Means over the five seeds: liked before and after, facts before and after."""
    _, *parts = PAGES["torch"].read_text(encoding="utf-8").split("## Liking ")
    results = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    training = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    for part in parts:
        rows = re.findall(r"^\| \d \| (\S+) \| (\S+) \|.*\| (\S+) \| (\S+) \| \w+ \(", part, flags=re.M)
        liked, after, facts, kept = (fmean(map(float, column)) for column in zip(*rows, strict=True))
        assert f"| {100 * liked:.0f} before, {100 * after:.0f} after |" in results
        assert f"| {100 * facts:.0f} before, {100 * kept:.0f} after |" in results
        assert f"| {part.split()[0]} | {liked:.2f} → {after:.2f} |".replace(" 0.", " .") in training
        if part.startswith("terse"):
            said = f"{100 * liked:.0f} of 100 answers were short before 40 ratings, and {100 * after:.0f} "
            assert said in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_page_written_anew_from_kept_courses_keeps_its_model(tmp_path: Path) -> None:
    earlier, date = next(iter(EARLIER.items()))
    kept = tmp_path / "page.md"
    assert measured_on(kept) == measured_on() == f"*Measured on the shipped model (`{shipped()}`).*"
    kept.write_text(
        f"# Head\n\n*Measured on the model before {date} (`{earlier}`); the shipped one is newer.*\n"
    )
    assert f"before {date} (`{earlier}`)" in measured_on(kept)
