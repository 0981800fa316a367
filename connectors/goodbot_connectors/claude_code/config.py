# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.claude_code]`. It has no secret of the platform's: we make the token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from goodbot.base.checks import Days, Range


@dataclass(frozen=True, kw_only=True)
class ClaudeCodeSettings:
    """How goodbot behaves in Claude Code."""

    hint: bool = True
    """A line under each answer that was kept: how to rate it, and how far the next training is."""
    history: Annotated[int, Range(least=0, most=16, says="is a number of exchanges, 0 to 16")] = 4
    """Earlier exchanges of the session that count as part of the prompt."""
    keep_days: Days = 7
    """What was said in a session is kept that long for its next answers and for `/rl good`."""
    hooks: Literal["auto", "http"] = "auto"
    """What calls us: `auto` takes a small script where there is `curl`, which says once that goodbot
    is not running; `http` lets Claude Code call, which then complains at every answer."""
    config_dir: str = ""
    """Claude Code's directory; empty: `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""
