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


FOUND = {
    *(f"S{number}" for number in range(1, 12)),
    *(f"B{number}" for number in range(1, 16)),
    *(f"M{number}" for number in range(1, 6)),
    "F2",
}
"""What two audits from outside found; M4 is three of the seven conditions that no test had missed."""


@dataclass(frozen=True)
class Row:
    """Of the table in audits.md, which tells what was found, and of what kind it is."""

    numbers: Sequence[str]
    """`S4`, `26.4`; none for what nobody else has found."""
    mended: Sequence[str]
    """Modules and what is meant in them: `base/crowd.py`, `store/backup.py::strip`."""
    tests: Sequence[Path]
    missing: Sequence[str]
    """Tests that it names and that are not there."""


@cache
def files(folder: str) -> dict[str, Path]:
    return {f"/{path.relative_to(ROOT)}": path for path in (ROOT / folder).rglob("*.py")}


def audits() -> Iterator[Row]:
    everything = {**files("tests"), **files("core")}
    for line in (FOLDER / "audits.md").read_text(encoding="utf-8").splitlines():
        if not re.match(r"\| [^|-]*[\d–] \|", line):
            continue
        number, _, mended, held = (cell.strip() for cell in line.strip("|").split(" | "))
        named = re.findall(r"`([\w/]+\.py)`", held)
        found = {name: [path for at, path in everything.items() if at.endswith(f"/{name}")] for name in named}
        yield Row(
            numbers=re.findall(r"[A-Z]\d+|\d+\.\d+", number),
            mended=re.findall(r"`([\w/]+\.py(?:::[\w.]+)?)`", mended),
            tests=[path for paths in found.values() for path in paths],
            missing=[name for name, paths in found.items() if not paths],
        )


def numbered(path: Path) -> str:
    """The names of its tests, each number as it stands there: `_s4_`, `_26_4_`."""
    return " ".join(
        f"_{name}_"
        for name in re.findall(r"^(?:async )?def test_(\w+)", path.read_text(encoding="utf-8"), re.M)
    )


def test_each_finding_of_the_audits_stands_in_the_table() -> None:
    assert {number for row in audits() for number in row.numbers} >= FOUND


def test_what_the_table_of_the_audits_names_is_there() -> None:
    gone: list[str] = []
    for row in audits():
        gone += row.missing
        for name in row.mended:
            path, _, symbol = name.partition("::")
            texts = [module.text for module in modules() if f"/{module.path}".endswith(f"/{path}")]
            meant = symbol.rpartition(".")[2]
            if not any(re.search(rf"\b{meant}\b", text) for text in texts):
                gone.append(name)
        assert row.tests, row
    assert gone == []


def test_each_finding_of_the_audits_stands_in_the_name_of_a_test_that_holds_it() -> None:
    unnamed: list[Row] = []
    for row in audits():
        names = " ".join(map(numbered, row.tests))
        numbers = [number for number in row.numbers if number[0] in "SBMF"]
        if numbers and not any(f"_{one.lower().replace('.', '_')}_" in names for one in row.numbers):
            unnamed.append(row)
    assert unnamed == []
