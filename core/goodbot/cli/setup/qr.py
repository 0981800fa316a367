# SPDX-License-Identifier: Apache-2.0
"""The picture of a link for a phone's camera, where `segno` is installed."""

from __future__ import annotations

import importlib
import importlib.util
import io
from typing import Any

_BORDER = 2
"""Modules of light around a QR code: phones read it with fewer than the four that the norm asks for."""


def qr_lines(text: str) -> list[str]:
    """The rows of its QR code in half blocks; none where `segno` is not installed, as without any extra."""
    made = _made(text)
    if made is None:
        return []
    drawn = io.StringIO()
    made.terminal(drawn, border=_BORDER, compact=True)
    return drawn.getvalue().splitlines()


def qr_modules(text: str) -> list[str]:
    """The same as a row of `1` (dark) and `0` (light) each; none without `segno`."""
    made = _made(text)
    if made is None:
        return []
    return ["".join("1" if dark else "0" for dark in row) for row in made.matrix_iter(border=_BORDER)]


def _made(text: str) -> Any:
    if importlib.util.find_spec("segno") is None:
        return None
    return importlib.import_module("segno").make(text, micro=False)
