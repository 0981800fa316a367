# SPDX-License-Identifier: Apache-2.0
"""The table of docs/platforms.md, what works where, says what tests show, and nothing else."""

from __future__ import annotations

from importlib import import_module

import pytest
from goodbot.api.connector import Capability

from tests.architecture.source import ROOT
from tests.connectors.matrix import NO, PLATFORMS, ROWS, YES, Cell, Row, table

CELLS = [
    pytest.param(row, platform, cell, id=f"{row.name}-{platform}")
    for row in ROWS
    for platform, cell in row.cells.items()
]


def test_the_page_has_the_table() -> None:
    text = (ROOT / "docs/platforms.md").read_text(encoding="utf-8")
    assert "\n".join(table()) in text, "python -m tests.connectors.matrix prints it"


def test_every_row_has_every_platform() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) == 12
    assert all(list(row.cells) == list(PLATFORMS) for row in ROWS)


@pytest.mark.parametrize(("row", "platform", "cell"), CELLS)
def test_a_cell_says_what_the_connector_declares(row: Row, platform: str, cell: Cell) -> None:
    assert bool(cell.test) == (cell.text != NO), "what is there has a test, and what is not has none"
    if row.capability is not Capability.NONE and cell.text in (YES, NO):
        spec = import_module(f"goodbot_connectors.{platform}").SPEC
        assert (row.capability in spec.capabilities) == (cell.text == YES)


@pytest.mark.parametrize("test", sorted({cell.test for row in ROWS for cell in row.cells.values()} - {""}))
def test_a_cells_test_is_there(test: str) -> None:
    file, *names = test.split("::")
    found: object = import_module("tests." + file.removesuffix(".py").replace("/", "."))
    assert file.rpartition("/")[2].startswith("test_")
    for name in names:
        assert name.startswith(("Test", "test_")), "pytest would not collect it"
        found = getattr(found, name)
    assert callable(found)
