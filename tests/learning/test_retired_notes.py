# SPDX-License-Identifier: Apache-2.0
"""Docs quote the kept courses in which notes retired."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "results" / "retired_notes.jsonl.gz"


def test_docs_quote_what_the_kept_courses_say() -> None:
    courses = [json.loads(line) for line in gzip.decompress(KEPT.read_bytes()).splitlines()]
    taught = [one["retired"] for one in courses if not one["control"]]
    retired = [one for one in taught if one]
    kept = [one for one in retired if one["without"]["style"] >= 0.9 * one["with"]["style"]]
    controls = [one["retired"] for one in courses if one["control"]]
    training = (ROOT / "docs/training.md").read_text(encoding="utf-8")
    assert f"| {len(retired)} of {len(taught)} courses (" in training
    assert f"| {len(kept)} of {len(retired)} (" in training
    assert f"| {sum(map(bool, controls))} of {len(controls)}, " in training
    assert len(taught) > 100, "so many were wanted"
