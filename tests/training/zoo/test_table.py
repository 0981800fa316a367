# SPDX-License-Identifier: Apache-2.0
"""The page's table is the zoo's, and every family that the tests know has a row."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable

import pytest

from tests.support import require
from tests.training.backends.families import FAMILIES
from tests.training.zoo import making, table
from tests.training.zoo.dialects import DIALECTS, FAMILY, ROWS


def test_the_page_has_the_table_of_now() -> None:
    text = table.PAGE.read_text("utf-8")
    assert table.page(text) == text, "python -m tests.training.zoo.table"


def test_every_family_and_every_dialect_has_a_row() -> None:
    assert set(FAMILY) == set(FAMILIES)
    assert {dialect for _, dialect in ROWS.values()} == set(DIALECTS)


def rows_of(module: str, name: str) -> list[str]:
    """The rows that a test runs for; none where it may fail or be skipped for one."""
    test = getattr(importlib.import_module(f"tests.training.zoo.{module}"), f"test_{name}")
    marks: Iterable[pytest.Mark] = test.pytestmark
    assert not [mark.name for mark in marks if mark.name in ("skip", "skipif", "xfail")], name
    source = inspect.getsource(test)
    assert "xfail" not in source, name
    assert source.count("pytest.skip(") == (module == "test_rounds"), f"{name}: without torch it has no row"
    return next(list(mark.args[1]) for mark in marks if mark.name == "parametrize" and mark.args[0] == "row")


@pytest.mark.parametrize("column", table.TESTS)
def test_a_column_that_says_yes_has_tests_that_run_for_every_row(column: str) -> None:
    require("transformers")
    if making.BACKEND is None:
        pytest.skip("neither torch nor mlx_lm is installed")
    module, *names = table.TESTS[column]
    assert names
    for name in names:
        assert rows_of(module, name) == list(ROWS)


def test_thoughts_and_tools_are_tried_with_every_row_that_has_them() -> None:
    require("transformers")
    has = {row: DIALECTS[dialect] for row, (_, dialect) in ROWS.items()}
    for trait, of in (("thoughts", "thought"), ("tools", "tools")):
        module, *names = table.SOME[trait]
        for name in names:
            assert rows_of(module, name) == [row for row, dialect in has.items() if getattr(dialect, of)]
