"""How long to wait after a platform has refused."""

from __future__ import annotations

import random


def jittered(seconds: float) -> float:
    """A pause a little longer than asked for: those who were refused together come back apart."""
    return seconds * random.uniform(1.0, 1.1)  # noqa: S311
