"""A small program of the machine's own, asked without a shell and without patience."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

Tool = Callable[..., str]
"""Takes a command's words, returns what it printed, and an empty text where it did not work."""

_SECONDS = 5.0


def ask(*command: str) -> str:
    """Run it for at most five seconds. It is blocking: call it in a thread."""
    path = os.environ.get("PATH", os.defpath)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
            env={"PATH": path, "LC_ALL": "C"},  # a comma would not parse, and no token goes along
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
