# SPDX-License-Identifier: Apache-2.0
"""What is installed, told without importing it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable


def missing_modules(requires: Iterable[str]) -> tuple[str, ...]:
    """Those of `requires` that cannot be imported, found without importing them."""
    return tuple(name for name in requires if importlib.util.find_spec(name.split(".")[0]) is None)
