# SPDX-License-Identifier: Apache-2.0
"""Whether a person sits before this machine's own screen, and showing them a page there."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

_REMOTE = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
_CONTAINED = "container"
"""The variable by which podman, LXC and systemd say that they are there."""
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")


def sits_here() -> bool:
    """Whether somebody types in a terminal of this machine's desktop: not over SSH, not in a container."""
    screen = sys.platform == "darwin" or any(map(os.environ.get, _SCREENS))
    remote = any(map(os.environ.get, _REMOTE))
    contained = bool(os.environ.get(_CONTAINED)) or any(Path(file).exists() for file in _CONTAINERS)
    return sys.stdin.isatty() and sys.stdout.isatty() and screen and not remote and not contained


def show(url: str) -> bool:
    """Open a page in this person's browser; False where there is none, or only one for terminals."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    chosen = "BROWSER" in os.environ
    if type(browser) is webbrowser.GenericBrowser and not chosen:  # lynx and the like take this terminal
        return False
    return browser.open(url)
