# SPDX-License-Identifier: Apache-2.0
"""Installing what a platform or a backend needs, into this very environment."""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.texts import joined
from goodbot.base import spawn
from goodbot.base.installed import missing_modules
from goodbot.base.packages import install_command, install_environment, install_line
from goodbot.cli.setup.dialogue import Dialogue

MOST_UNASKED = 500_000_000
"""Bytes that are fetched without a person's yes."""
_LAST_LINES = 12
"""Of an installer that failed, shown."""


def offer(
    dialogue: Dialogue, what: str, requires: Sequence[str], extra: str, download: int | None = None
) -> bool:
    """Install `extra`, of so many bytes, if the person agrees; whether `requires` can be imported then."""
    if not missing_modules(requires):
        return True
    about = dialogue.phrase("setup_packages_size", size=amount(download)) if download else ""
    dialogue.say(joined(dialogue.language, dialogue.phrase("setup_packages", what=what), about))
    large = (download or 0) > MOST_UNASKED
    said = dialogue.answer("--install")
    if said == "no":
        return False
    if large and not dialogue.asks and not said:
        dialogue.say(dialogue.phrase("setup_too_much", line=install_line(extra)))
        return False
    if not dialogue.confirm("--install", dialogue.phrase("setup_install")):
        return False
    if _installed(dialogue, extra, requires, amount(download) if download else ""):
        return True
    dialogue.say(dialogue.phrase("setup_by_hand", line=install_line(extra)))
    return False


def amount(count: int) -> str:
    """Bytes for people: `65 MB`, `2.5 GB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _installed(dialogue: Dialogue, extra: str, requires: Sequence[str], size: str) -> bool:
    """Install it, with one line for the person; what the installer says is shown where it fails."""
    command = install_command(extra)
    if command is None:
        dialogue.say(dialogue.phrase("setup_no_pip"))
        return False
    key = "setup_installing_size" if size else "setup_installing"
    doing = dialogue.phrase(key, what=extra, size=size)
    handle, name = tempfile.mkstemp(prefix="goodbot-install-", suffix=".log")
    log, began = Path(name), time.monotonic()
    try:
        with os.fdopen(handle, "w") as said, dialogue.work(doing):
            environ, file = install_environment(), said.fileno()
            done = spawn.run(*command, seconds=None, environ=environ, stdout=file, stderr=file)
    except BaseException:  # Ctrl-C
        log.unlink(missing_ok=True)
        raise
    importlib.invalidate_caches()
    if done.returncode == 0 and not missing_modules(requires):
        log.unlink()
        took = f"{time.monotonic() - began:.0f}"
        dialogue.say(dialogue.phrase("setup_installed", what=extra, seconds=took))
        return True
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    dialogue.verbatim("\n".join(f"  {one}" for one in lines[-_LAST_LINES:]))
    dialogue.say(dialogue.phrase("setup_install_failed", log=str(log)))
    return False
