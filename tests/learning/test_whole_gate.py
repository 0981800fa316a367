# SPDX-License-Identifier: Apache-2.0
"""What the page of the whole gate counts, and that docs quote it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.learning.whole_gate import PAGE, Judged, text, wanted

ROOT = Path(__file__).parents[2]


def test_half_of_the_strength_is_not_whole() -> None:
    page = text(
        [
            Judged("tiny", "demo", "terse", 302, "whole", "No harm found in 128 sampled answers."),
            Judged("tiny", "demo", "friendly", 302, "at half", "Half of the change is kept."),
            Judged("tiny", "only sums", "terse", 302, "refused", "It has lost knowledge."),
        ]
    )
    assert "**1 of 3 go live whole" in page
    assert "| tiny | demo | 1 of 2 | 1 | 0 |" in page
    assert "| tiny | only sums | 0 of 1 | 0 | 1 |" in page
    assert "| tiny | only sums | terse | 302 | refused | It has lost knowledge. |" in page


def test_the_page_has_every_round_and_the_docs_quote_its_count() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) \| (.+?) \| (\d+) of (\d+) \| (\d+) \| (\d+) \|$", page, flags=re.M)
    assert Counter({(base, mix): int(several) for base, mix, _, several, *_ in rows}) == Counter(
        (one.base, one.ratings) for one in wanted()
    )
    assert all(int(whole) + int(half) + int(no) == int(several) for _, _, whole, several, half, no in rows)
    whole = sum(int(row[2]) for row in rows)
    assert f"**{whole} of {len(wanted())} go live whole" in page
    training = " ".join((ROOT / "docs/training.md").read_text(encoding="utf-8").split())
    assert f"{whole} of {len(wanted())}](../tests/learning/results/whole_gate.md)" in training
    results = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    half = sum(int(row[4]) for row in rows)
    assert f"{whole} passed all its rules and went live whole, {half} more at half strength" in results
    assert f"Of {len(wanted())} first rounds" in results
