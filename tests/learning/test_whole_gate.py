# SPDX-License-Identifier: Apache-2.0
"""What the page of the whole gate counts, and that docs quote it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.learning.first_rounds import LIKES, MIXES
from tests.learning.whole_gate import PAGE, Judged, text

ROOT = Path(__file__).parents[2]


def test_half_of_the_strength_is_not_whole() -> None:
    found = [
        Judged("demo", "terse", True, "No harm found in 128 sampled answers."),
        Judged("demo", "friendly", True, "At half strength. At full strength it has lost knowledge."),
        Judged("only sums", "terse", False, "It has lost knowledge."),
    ]
    page = text(found)
    assert "**1 of 3 go live whole" in page
    assert [line.split(" | ")[2] for line in page.splitlines() if line.startswith("| demo")] == [
        "whole",
        "at half",
    ]
    assert "| only sums | terse | refused |" in page


def test_the_page_has_every_round_and_the_docs_quote_its_count() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (\w+) \| (whole|at half|refused) \|", page, flags=re.M)
    assert sorted((mix, like) for mix, like, _ in rows) == sorted(
        (mix, like) for mix in MIXES for like in LIKES
    )
    whole = sum(live == "whole" for *_, live in rows)
    assert f"**{whole} of {len(rows)} go live whole" in page
    training = " ".join((ROOT / "docs/training.md").read_text(encoding="utf-8").split())
    assert f"{whole} of {len(rows)}](../tests/learning/results/whole_gate.md)" in training
