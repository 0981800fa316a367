# SPDX-License-Identifier: Apache-2.0
"""A link as a picture in the terminal, for a phone's camera."""

from __future__ import annotations

import importlib
import importlib.util
import io

_BORDER = 2
"""Modules of light around it: phones read it with fewer than the four that the norm asks for."""


def lines(text: str) -> list[str]:
    """The rows of its QR code in half blocks; none where `segno` is not installed, as without any extra."""
    if importlib.util.find_spec("segno") is None:
        return []
    drawn = io.StringIO()
    importlib.import_module("segno").make(text, micro=False).terminal(drawn, border=_BORDER, compact=True)
    return drawn.getvalue().splitlines()
