# SPDX-License-Identifier: Apache-2.0
"""docs/decisions: the index names every page and every decision, and no page names a file that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, modules

FOLDER = ROOT / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
LONGEST = 12
"""Lines of a decision."""
RECORDS = [path for path in PAGES if re.match(r"\d{4}-", path.name)]


def test_the_index_names_every_page() -> None:
    assert {path.name for path in PAGES} == set(re.findall(r"\]\(([\w-]+\.md)\)", INDEX))
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_says_what_and_instead_of_what_and_since_when(path: Path) -> None:
    number, *decisions = re.split(r"^#+ ", path.read_text(encoding="utf-8"), flags=re.M)[1:]
    subject = re.fullmatch(rf"{path.name[:4]}: (.+)", number.strip())
    assert subject
    [row] = [line for line in INDEX.splitlines() if f"({path.name})" in line]
    told = [one.partition("\n")[0] for one in decisions]
    assert row == f"| [{path.name[:4]}]({path.name}) | {subject[1]} | {' · '.join(told)} |"
    for one in decisions:
        assert len([line for line in one.splitlines() if line.strip()]) <= LONGEST, "more than one decision"
        assert re.search(r"\n\n.+?\n\n\*Instead of:\* .+?\n\n\*Since:\* \d{4}-\d\d-\d\d\s*\Z", one, re.S)


@pytest.mark.parametrize("path", [*RECORDS, ROOT / "docs" / "architecture.md"], ids=lambda p: p.stem)
def test_what_is_named_of_a_module_is_in_it(path: Path) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", path.read_text(encoding="utf-8"))
    gone = [
        f"{file}::{name}"
        for file, name in named
        for module in modules()
        if f"/{module.path}".endswith(f"/{file}")
        if not re.search(rf"^\s*(?:(?:async )?def|class) {name}\b|^{name}\b", module.text, re.M)
    ]
    assert gone == []


@pytest.mark.parametrize("path", [*RECORDS, ROOT / "docs" / "architecture.md"], ids=lambda p: p.stem)
def test_the_modules_that_are_named_are_there(path: Path) -> None:
    """A path is named from its package on or shorter: `store/retries.py`."""
    named = re.findall(r"`([\w/]+\.py)(?:::\w+)?`", path.read_text(encoding="utf-8"))
    there = [f"/{module.path}" for module in modules()]
    gone = [name for name in named if not any(one.endswith(f"/{name}") for one in there)]
    assert [name for name in gone if not (ROOT / name).exists()] == []


def test_each_finding_of_the_audits_stands_in_a_test_s_name() -> None:
    table = (FOLDER / "audits.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]\d[^|]*)\|", table, re.M)
    findings = {number.lower() for row in rows for number in re.findall(r"[A-Z]\d+", row)}
    named: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^(?:async )?def test_(\w+)", path.read_text(encoding="utf-8"), re.M):
            named |= set(name.split("_"))
    assert len(findings) > 20, "the scan has lost its subject"
    assert findings - named == set()
