# SPDX-License-Identifier: Apache-2.0
"""The picture of a link: as `segno` makes it, in half as many rows as it has modules."""

from __future__ import annotations

import importlib.util

import pytest
from goodbot.cli.setup.qr import qr_lines, qr_modules

from tests.support import require

LINK = "https://t.me/the_good_bot?start=ABCD-2345"
_HALVES = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}
"""Light above and below, as a dark terminal shows it."""


def test_the_picture_has_every_module_of_the_code() -> None:
    segno = require("segno")
    drawn = [[_HALVES[sign] for sign in row] for row in qr_lines(LINK)]
    modules = [[half[part] for half in row] for row in drawn for part in (0, 1)]
    matrix = [list(row) for row in segno.make(LINK, micro=False).matrix_iter(border=2)]
    assert modules[: len(matrix)] == matrix
    assert max(len(row) for row in drawn) <= 40, "it fits half a screen"
    assert qr_modules(LINK) == ["".join(str(one) for one in row) for row in matrix], "what the page draws"


def test_without_the_library_the_link_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert qr_lines(LINK) == qr_modules(LINK) == []
