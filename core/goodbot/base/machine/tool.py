# SPDX-License-Identifier: Apache-2.0
"""A small program of the machine's own, asked without a shell and without patience."""

from __future__ import annotations

import os
from collections.abc import Callable

from goodbot.base import spawn

Tool = Callable[..., str]
"""Takes a command's words, returns what it printed, and an empty text where it did not work."""

_SECONDS = 5.0


def ask(*command: str) -> str:
    """Run it for at most five seconds. It is blocking: call it in a thread."""
    path = os.environ.get("PATH", os.defpath)
    try:
        # In German a comma would not parse.
        done = spawn.run(*command, seconds=_SECONDS, environ={"PATH": path, "LC_ALL": "C"})
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
