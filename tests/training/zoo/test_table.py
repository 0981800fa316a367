# SPDX-License-Identifier: Apache-2.0
"""The page's table is the zoo's, and every family that the tests know has a row."""

from __future__ import annotations

from tests.training.backends.families import FAMILIES
from tests.training.zoo import table
from tests.training.zoo.dialects import DIALECTS, FAMILY, ROWS


def test_the_page_has_the_table_of_now() -> None:
    text = table.PAGE.read_text("utf-8")
    assert table.page(text) == text, "python -m tests.training.zoo.table"


def test_every_family_and_every_dialect_has_a_row() -> None:
    assert set(FAMILY) == set(FAMILIES)
    assert {dialect for _, dialect in ROWS.values()} == set(DIALECTS)
