# SPDX-License-Identifier: Apache-2.0
"""What one person is told unasked, in private."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.events import Button


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """Something to tell one person. `key` says what it is: it is told once."""

    key: str
    person: str
    """`connector:id`."""
    text: str
    buttons: tuple[Button, ...] = ()
    """What that person may press under it; the text says how to say the same in words."""
