"""Settings of `[connectors.claude_code]`. It has no secret of the platform's: we make the token."""

from __future__ import annotations

from dataclasses import dataclass

HOOKS = ("auto", "http")


@dataclass(frozen=True, kw_only=True)
class ClaudeCodeSettings:
    """How goodbot behaves in Claude Code."""

    hint: bool = True
    """A line under each answer that was kept: how to rate it, and how far the next training is."""
    history: int = 4
    """Earlier exchanges of the session that count as part of the prompt."""
    keep_days: int = 7
    """What was said in a session is kept that long for its next answers and for `/rl good`."""
    hooks: str = "auto"
    """What calls us: `auto` takes a small script where there is `curl`, which says once that goodbot
    is not running; `http` lets Claude Code call, which then complains at every answer."""
    config_dir: str = ""
    """Claude Code's directory; empty: `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""

    def __post_init__(self) -> None:
        """Raises ValueError, which the config reports with its file and line."""
        if not 0 <= self.history <= 16:
            raise ValueError("history is a number of exchanges, 0 to 16")
        if not 1 <= self.keep_days <= 3650:
            raise ValueError("keep_days is a number of days, 1 to 3650")
        if self.hooks not in HOOKS:
            raise ValueError('hooks is "auto" or "http"')
