# SPDX-License-Identifier: Apache-2.0
"""The state directory: what lies in it, and how one is told from anybody else's directory."""

from __future__ import annotations

from pathlib import Path

from goodbot.base.worded import Worded

APPLICATION_ID = 0x60_0D_B0_07
"""In the database's header, so that another program's is never taken for ours."""

DATABASE = "goodbot.db"
LOGIN_PAGE = "login.html"
BEFORE_RESTORE = ".before-restore-"
"""`HOME.before-restore-20261121-101500` is what a restore has replaced."""
RESTORED = ".restored"
"""`HOME.restored` is a complete, verified directory that is about to become HOME."""

ENTRIES = {
    "goodbot.db": "what was said, ratings, settings made in chats",
    "goodbot.db-wal": "the same, not yet folded in",
    "goodbot.db-shm": "the same, an index",
    "adapters": "what was learnt",
    "config.toml": "settings",
    "secrets.env": "tokens",
    "fetched.json": "which base models goodbot has downloaded",
    "encryption.json": "by which mark the key of what is encrypted is known",
    "undo.key": "by which it knows its own records of other programs' settings",
    LOGIN_PAGE: "the way to a link that logs in, while a browser opens it",
    "connectors": "what each platform's connector keeps",
    "serving": "what the driver of a model server keeps",
    "staging": "a training under way",
    "clear": "what is encrypted, for a program that reads it while goodbot runs",
    "imports": "an adapter, or rated answers, being brought in",
    "backups": "where a backup is being made",
    "exports": "rated answers that were exported",
    "tracking": "curves of trainings, where a tracker is on",
    "lock": "which process has the directory",
    "control.sock": "where the daemon takes commands",
    "http.sock": "where programs of this machine reach what it answers over HTTP",
    "goodbot.log": "the log",
    "logs": "the log, under launchd",
    "demo": "what `goodbot demo` left",
    ".goodbot-demo": "that this is what `goodbot demo` left",
}
"""Everything that goodbot puts there; copies made before an upgrade are `goodbot.db.schema-N.bak`."""

GIVEN = {"models", "questions.toml"}
"""What a person may have put there: model directories, and questions that versions are to be asked."""

_HEADER = 72
_PARTIAL = (".new", ".partial", ".lock")
"""Endings of files that are being written, or are locked while another one is."""


def no_space(home: Path) -> str:
    """What somebody is told who starts goodbot on a full disk."""
    return Worded("the disk of {home} is full: free some space there, then start goodbot again", home=home)


def ours(name: str) -> bool:
    """Whether an entry of the state directory is goodbot's own."""
    for ending in _PARTIAL:
        name = name.removesuffix(ending)
    copy = name.startswith(f"{DATABASE}.") and name.endswith(".bak")
    key = name.startswith("undo.key.")  # being made
    return name in ENTRIES or copy or key


def beside(home: Path) -> list[Path]:
    """State directories that a restore has replaced, or did not come to put in place."""
    name, parent = home.name, home.parent
    starts = (f"{name}{BEFORE_RESTORE}", f"{name}.restoring-")
    return [
        path
        for path in (sorted(parent.iterdir()) if parent.is_dir() else ())
        if (path.name.startswith(starts) or path.name == name + RESTORED)
        and path.is_dir()
        and not path.is_symlink()
        and is_home(path)
    ]


def is_home(home: Path) -> bool:
    """Whether the directory is a state directory, or empty; looks only at names and headers."""
    names = [entry.name for entry in home.iterdir()]
    return (
        all(ours(name) or name in GIVEN for name in names)
        or is_database(home / DATABASE)
        or _is_lock(home / "lock")
        or _is_configured(home)
    )


def is_database(path: Path) -> bool:
    """Whether the file has the header of one of our databases."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return False
    return header.startswith(b"SQLite format 3\0") and header[68:] == APPLICATION_ID.to_bytes(4)


def _is_configured(home: Path) -> bool:
    """Somebody has written a config by hand; other programs have a `config.toml`, too."""
    from goodbot import config  # it imports what imports this module
    from goodbot.base.errors import ConfigError

    try:
        return bool(config.load(home).source.strip())
    except ConfigError:
        return False


def _is_lock(path: Path) -> bool:
    """Ours holds one number."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 32:
            return False
        text = path.read_bytes()
    except OSError:
        return False
    return text.strip().isdigit() and text.endswith(b"\n")
