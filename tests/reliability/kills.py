# SPDX-License-Identifier: Apache-2.0
"""How often a goodbot is killed: `GOODBOT_KILLS=1000`, for who wants to count, or as often as every day."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence


def asked(environ: Mapping[str, str]) -> int:
    """How many kills of each test the environment asks for; 0: it does not say."""
    return int(environ.get("GOODBOT_KILLS", "0"))


KILLS = asked(os.environ)


def each(steps: Sequence[str], kills: int) -> list[str]:
    """All the steps as often as makes so many kills, and once at least."""
    return [*steps] * max(1, -(-kills // len(steps)))
