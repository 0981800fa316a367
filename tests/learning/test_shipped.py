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


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{name}.md" for name in ("results", "results-goals", "training", "laptop"))]
)
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
        assert f"| {part.split()[0]} | {100 * liked:.0f} → {100 * after:.0f} |" in training
        if part.startswith("terse"):
            said = f"{100 * liked:.0f} of 100 answers were short before 40 ratings, and {100 * after:.0f} "
            assert said in (ROOT / "README.md").read_text(encoding="utf-8")


def _said(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def _words() -> str:
    return PAGES["words"].read_text(encoding="utf-8")


def _ends(base: str, stream: str) -> dict[str, tuple[int, float]]:
    """Of 100 answers, by arm: liked, and right."""
    section = _words().partition("### Notes and weights")[2].partition("\n## ")[0]
    rows = re.findall(rf"^\| {base} \| {stream} \| (.+?) \| (\S+) \| (\S+) \|$", section, flags=re.M)
    return {arm: (round(100 * float(liked)), 100 * float(facts)) for arm, liked, facts in rows}


def _goal(text: str) -> tuple[dict[str, int], int]:
    """What the arms reached of 100, and by how much the best of them misses it."""
    [found] = re.findall(
        rf"^\| goal \| (?:\*\*missed\*\*|held) \| {re.escape(text)} \| (.*) \|$", _words(), flags=re.M
    )
    arms = {arm: round(100 * float(end)) for arm, end in re.findall(r"([a-z][a-z +]*) (0\.\d\d)", found)}
    short = re.search(r": (0\.\d\d) short$", found)
    return arms, round(100 * float(short[1])) if short else 0


def test_what_words_add_is_quoted_as_it_was_found() -> None:
    results = _said("docs/results-goals.md")
    reasons, chips, better = _ends("tiny", "reasons"), _ends("tiny", "chips"), _ends("llama", "better")
    for said in (
        f"from {reasons['frozen'][0]} to {reasons['notes'][0]} of 100 with written reasons, and to "
        f"{chips['notes'][0]} with chips. Together with a round it was {reasons['tapered + note'][0]} and "
        f"{chips['tapered + note'][0]}; a round without the note, {reasons['tapered'][0]} and "
        f"{chips['tapered'][0]}.",
        f"brought the Llama from {better['frozen'][0]} to {better['hybrid'][0]}, ratings alone to "
        f"{better['tapered'][0]}.",
    ):
        assert said in results
    results = _said("docs/results.md")
    for said in (
        f"from {reasons['frozen'][0]} to {reasons['notes'][0]} of 100 by written reasons. By the buttons it "
        f"brought them from {chips['frozen'][0]} to {chips['notes'][0]}.",
        f"In the same test it has {chips['tapered'][0]} after 40 ratings",
    ):
        assert said in results
    llama, other = _ends("llama", "chips"), _ends("two-style", "chips")
    lost = [round(one["frozen"][1] - one["notes"][1]) for one in (llama, other)]
    assert f"With a note they lost {lost[0]} and {lost[1]} of 100 right answers" in results


def test_what_was_wanted_of_words_is_quoted_as_it_was_found() -> None:
    results = _said("docs/results-goals.md")
    twelve, _ = _goal("tiny: 85 % liked after 12 ratings with chips, in the weights")
    both, short = _goal("tiny: 85 % liked after 12 ratings with chips, with a note")
    assert (
        f"| **missed by {short}**: {twelve['tapered']} by the training, {both['notes']} by the note, "
        f"{both['hybrid + note']} by both |"
    ) in results
    for text, other in (
        ("a changed mind is followed to .80 in one round", "hindsight"),
        ("80 ratings with chips reach .95", "hybrid"),
    ):
        tiny, short = _goal(f"tiny: {text}, in the weights")
        noted, _ = _goal(f"tiny: {text}, with a note")
        llama, further = _goal(f"llama: {text}, in the weights")
        assert (
            f"| **missed by {short}**: {tiny['tapered']}; with the note {noted['hybrid + note']}. The Llama "
            f"{llama['tapered']}, and {llama[other]} with `{other}`: missed by {further} |"
        ) in results
        said = {
            "hindsight": f"style in {tiny['tapered']} of 100 answers, the Llama in {llama['tapered']}.",
            "hybrid": f"After 80 ratings the tiny model has {tiny['tapered']} of 100.",
        }
        assert said[other] in _said("docs/results.md")


def test_words_that_mislead_are_told_as_they_were_found() -> None:
    """What all lines of a note cost, and what is left of that as goodbot does it."""
    results = _said("docs/results-goals.md")
    assert "| must | held | tiny: tapered + note never ends below" in _words()
    row = r"^\| {} \| contradicting \| (\S+) \[.*\] \| (\S+) \[(\S+), (\S+)\] \|"
    [(_, facts, low, high)] = re.findall(row.format(r"tapered \+ all notes"), _words(), flags=re.M)
    of_100 = [f"{-100 * float(one):.1f}" for one in (facts, high, low)]
    assert f"{of_100[0]} fewer right answers of 100 (between {of_100[1]} and {of_100[2]})" in results
    [(liked, facts, low, high)] = re.findall(row.format(r"tapered \+ note"), _words(), flags=re.M)
    ends = f"between {-100 * float(low):.1f} fewer and {100 * float(high):.1f} more"
    assert abs(float(facts)) < 0.0015
    assert f"as many right answers ({ends}), and {100 * float(liked):.0f} more liked ones" in results
    [terse] = re.findall(r"tiny: reasons, shuffled ratings with wishes .*terse (\S+) \[", _words())
    assert f"moved short answers by {100 * float(terse):.0f} of 100" in results


def test_a_page_written_anew_from_kept_courses_keeps_its_model(tmp_path: Path) -> None:
    earlier, date = next(iter(EARLIER.items()))
    kept = tmp_path / "page.md"
    assert measured_on(kept) == measured_on() == f"*Measured on the shipped model (`{shipped()}`).*"
    kept.write_text(
        f"# Head\n\n*Measured on the model before {date} (`{earlier}`); the shipped one is newer.*\n"
    )
    assert f"before {date} (`{earlier}`)" in measured_on(kept)
