"""Settings of `[connectors.web]`. It has no secret: who signs in is proven by a one-time code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WebSettings:
    """How goodbot behaves in a browser."""

    session_days: int = 30
    """After so many days a browser has to sign in anew."""
    keep_days: int = 30
    """A conversation that nobody has touched for so many days is not kept for its page any more."""

    def __post_init__(self) -> None:
        """Raises ValueError, which the config reports with its file and line."""
        for name in ("session_days", "keep_days"):
            if not 1 <= getattr(self, name) <= 3650:
                raise ValueError(f"{name} is a number of days, 1 to 3650")
