# SPDX-License-Identifier: Apache-2.0
"""Whether a person sits before this machine's own screen, and showing them a page there."""

from __future__ import annotations

import html
import os
import sys
import webbrowser
from pathlib import Path

from goodbot.base import spawn

_REMOTE = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
_CONTAINED = "container"
"""The variable by which podman, LXC and systemd say that they are there."""
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")
_SANDBOXED = ("/snap/bin/firefox", "/snap/bin/chromium")
_NEEDED = (
    "BROWSER",
    "DISPLAY",
    "WAYLAND_*",
    "XAUTHORITY",
    "XMODIFIERS",
    "DBUS_SESSION_*",
    "DESKTOP_SESSION",
    "GNOME_*",
    "KDE_*",
    "GTK_*",
    "GDK_*",
    "QT_*",
    "MOZ_*",
    "FONTCONFIG_*",
    "NIX_*",
    "WSL*",
    "*_proxy",
    "*_PROXY",
    "__CF_USER_TEXT_ENCODING",
)
"""Of our environment, what a browser needs besides what any program may have."""
_OPENS = """
import os, sys, webbrowser
os.umask(int(sys.argv[2]))
sys.exit(not webbrowser.get().open(sys.argv[1]))
"""
"""Run in a child: what is started from there has nothing of ours, and goes on when we end."""
_GOES_ON = (
    '<!DOCTYPE html><meta charset="utf-8"><title>goodbot</title>'
    '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={0}">'
    '<a href="{0}">goodbot</a>\n'
)


def sits_here() -> bool:
    """Whether somebody types in a terminal of this machine's desktop: not over SSH, not in a container."""
    screen = sys.platform == "darwin" or any(map(os.environ.get, _SCREENS))
    contained = bool(os.environ.get(_CONTAINED)) or any(Path(file).exists() for file in _CONTAINERS)
    return sys.stdin.isatty() and sys.stdout.isatty() and screen and not over_ssh() and not contained


def over_ssh() -> bool:
    """Whether this terminal is that of another machine."""
    return any(map(os.environ.get, _REMOTE))


def show(url: str, page: Path) -> bool:
    """Open an address in this person's browser; False where there is none, or only one for terminals.

    Every account of a machine reads what programs are started with, so the address stands in `page`, which
    only this person can read, and the browser is started with that. Raises OSError.
    """
    if any(map(os.path.exists, _SANDBOXED)):  # it reads nothing in a directory such as ~/.goodbot
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    chosen = "BROWSER" in os.environ
    if type(browser) is webbrowser.GenericBrowser and not chosen:  # lynx and the like take this terminal
        return False
    page.unlink(missing_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(_GOES_ON.format(html.escape(url)))
    if not (opened := _opened(page, terminal=chosen)):
        page.unlink(missing_ok=True)
    return opened


def _opened(page: Path, *, terminal: bool) -> bool:
    """Start the browser: with none of our tokens, and our terminal only where it was chosen for that."""
    known = spawn.child_environment(*_NEEDED)
    environ = {name: value for name, value in known.items() if name in os.environ}
    mask = os.umask(0o077)
    os.umask(mask)  # what the person will download is theirs to share
    shown = dict.fromkeys(("stdin", "stdout", "stderr"), None if terminal else spawn.NOTHING)
    words = spawn.python("-c", _OPENS, page.as_uri(), str(mask))
    return spawn.run(*words, seconds=None, environ=environ, **shown).returncode == 0
