"""Settings of `[connectors.codex]`. It has no secret of its own: `goodbot connect codex` makes a token."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CodexSettings:
    """How goodbot behaves inside of Codex."""

    hint: bool = True
    """Whether a line under each answer says how to rate it."""
    keep_days: int = 14
    """What was said in a session is kept for its next answers until nobody has used it for so long."""

    def __post_init__(self) -> None:
        """Raises ValueError, which the config reports with its file and line."""
        if not 1 <= self.keep_days <= 3650:
            raise ValueError("keep_days is a number of days, 1 to 3650")
