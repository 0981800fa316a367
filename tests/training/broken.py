# SPDX-License-Identifier: Apache-2.0
"""A backend that fails as a library does: with a message that nobody foresaw."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Broken:
    """It cannot load anything."""

    name = "broken"

    def load(self, model: Path, **options: Any) -> None:
        try:
            raise ValueError("Invalid strides, got [1, 8, 64] with a very PRIVATE question 7")
        except ValueError as error:
            raise RuntimeError("the product of matrices failed") from error
