# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.codex]`. It has no secret of its own: `goodbot connect codex` makes a token."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.base.checks import Days


@dataclass(frozen=True, kw_only=True)
class CodexSettings:
    """How goodbot behaves inside of Codex."""

    hint: bool = True
    """Whether a line under each answer says how to rate it."""
    keep_days: Days = 14
    """What was said in a session is kept for its next answers until nobody has used it for so long."""
