# SPDX-License-Identifier: Apache-2.0
"""Installing what a platform or a backend needs, into this very environment."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from goodbot.base import spawn
from goodbot.base.installed import missing_modules
from goodbot.base.packages import install_command, install_environment, install_line
from goodbot.cli.setup.dialogue import Dialogue

MOST_UNASKED = 500_000_000
"""Bytes that are fetched without a person's yes."""


def offer(
    dialogue: Dialogue, what: str, requires: Sequence[str], extra: str, download: int | None = None
) -> bool:
    """Install `extra`, of so many bytes, if the person agrees; whether `requires` can be imported then."""
    if not missing_modules(requires):
        return True
    about = f" They take about {amount(download)}." if download else ""
    dialogue.say(f"{what} needs packages that are not installed.{about}")
    large = (download or 0) > MOST_UNASKED
    said = dialogue.answer("--install")
    if said == "no":
        return False
    if large and not dialogue.asks and not said:
        dialogue.say(
            f"So much is fetched only if you say so: add --install yes. By hand: {install_line(extra)}"
        )
        return False
    if not dialogue.confirm("--install", "Install them now?"):
        return False
    if not _install(dialogue, extra):
        dialogue.say(f"They could not be installed. By hand: {install_line(extra)}")
        return False
    importlib.invalidate_caches()
    return not missing_modules(requires)


def amount(count: int) -> str:
    """Bytes for people: `65 MB`, `2.5 GB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _install(dialogue: Dialogue, extra: str) -> bool:
    command = install_command(extra)
    if command is None:
        dialogue.say("This Python environment has no pip, and there is no uv.")
        return False
    # The installer draws its own progress; --json keeps stdout for the result.
    done = spawn.run(
        *command, seconds=None, environ=install_environment(), stdout=dialogue.out.fileno(), stderr=None
    )
    return done.returncode == 0
