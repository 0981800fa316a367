# SPDX-License-Identifier: Apache-2.0
"""What lies in `<home>/connectors/codex` for Codex: the programs that it starts, and how they reach us.

The lines in Codex' own settings name `hook` and `notify` here and nothing else, so that they stay the same
whatever else changes: Codex asks its person about each line anew that is not what they have trusted.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from pathlib import Path
from urllib.parse import urlsplit

from goodbot.base import durable, sealed, spawn
from goodbot.base.errors import StoreError
from goodbot.config.lock import HTTP_SOCKET, socket_path

from goodbot_connectors.codex import shim

HOOK, NOTIFY, SHIM, WHERE = "hook", "notify", "shim.py", "codex.json"
_SEALED = "codex home"
_FILES = (HOOK, NOTIFY, SHIM, WHERE, shim.CONNECTION)
_ABOUT = "# goodbot: made by `goodbot connect codex`, taken away by `goodbot disconnect codex`.\n"
_SECONDS = 2.0


def command(folder: Path) -> str:
    """The line of a hook, as a shell reads it."""
    return shlex.quote(str(folder / HOOK))


def programs(folder: Path) -> dict[str, tuple[str, int]]:
    """The files that Codex starts, by name: text and mode. This interpreter runs them."""
    python, path = shlex.quote(spawn.python()[0]), shlex.quote(str(folder / SHIM))
    run = f"{python} -I -S {path}"
    hook = f"[ -x {python} ] && {run} hook 2>/dev/null\nexit 0\n"
    notify = (
        "for last do :; done\n"
        f'[ -x {python} ] && {run} notify "$last" </dev/null >/dev/null 2>&1 &\n'
        '# What was there before us, with its own arguments.\n[ $# -gt 1 ] && exec "$@"\nexit 0\n'
    )
    text = Path(shim.__file__).read_text(encoding="utf-8")
    return {
        SHIM: (text, 0o600),
        HOOK: (f"#!/bin/sh\n{_ABOUT}{hook}", 0o700),
        NOTIFY: (f"#!/bin/sh\n{_ABOUT}{notify}", 0o700),
    }


def write_programs(folder: Path) -> bool:
    """Make them as they are to be; False if they were. Raises OSError."""
    changed = False
    (folder / shim.MISSED).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, (text, mode) in programs(folder).items():
        changed |= _write(folder / name, text, mode)
    return changed


def connect(folder: Path, home: Path, address: str, token: str, *, tcp: bool = False) -> None:
    """Say how they reach us: by the Unix socket, which nobody else can listen at; with `tcp` by the port."""
    url = urlsplit(address)
    place = f"tcp {url.hostname} {url.port}" if tcp else f"unix {socket_path(home, HTTP_SOCKET)}"
    host = "127.0.0.1" if not tcp else url.netloc
    _write(folder / shim.CONNECTION, f"{place}\nhost {host}\ntoken {token}\n", 0o600)


def token(folder: Path) -> str:
    """The token that they use; empty before there is one."""
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / shim.CONNECTION).read_text(encoding="utf-8").splitlines():
            word, _, rest = line.partition(" ")
            if word == "token":
                return rest
    return ""


async def refresh(folder: Path, address: str) -> None:
    """At our start: what an earlier goodbot has put there fits this one. Nothing where none was put."""
    known = token(folder)
    if not known:
        return
    home = folder.parent.parent
    with contextlib.suppress(OSError):
        write_programs(folder)
        connect(folder, home, address, known, tcp=not await _answers(home))


async def _answers(home: Path) -> bool:
    """Whether somebody listens at our Unix socket."""
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_unix_connection(socket_path(home, HTTP_SOCKET))
    except (OSError, StoreError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def remember_codex(folder: Path, home: Path) -> None:
    """Keep where Codex' settings were, for whoever takes ours away again. Raises OSError."""
    _write(folder / WHERE, sealed.note(folder.parent.parent, _SEALED, str(home)), 0o600)


def codex_home(folder: Path) -> Path | None:
    """Where Codex' settings were when goodbot was connected; None before that."""
    try:
        kept = (folder / WHERE).read_text(encoding="utf-8")
        found = sealed.told(folder.parent.parent, _SEALED, kept)
    except (OSError, ValueError):
        return None
    return Path(found) if found else None


def missed(folder: Path, session: str) -> bool:
    """Whether this session has called while we were not there."""
    return shim.identifier(session) and (folder / shim.MISSED / session).exists()


def forgive(folder: Path, session: str) -> None:
    """Strike it out."""
    if shim.identifier(session):
        with contextlib.suppress(OSError):
            (folder / shim.MISSED / session).unlink(missing_ok=True)


def forgive_old(folder: Path, before: float) -> None:
    """Strike out those of before then (seconds since the epoch): nothing is known of them any more."""
    with contextlib.suppress(OSError):
        for path in (folder / shim.MISSED).iterdir():
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Take it all away. Raises OSError."""
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    marks = folder / shim.MISSED
    if marks.is_dir():
        for path in marks.iterdir():
            path.unlink(missing_ok=True)
        marks.rmdir()


def _write(path: Path, text: str, mode: int) -> bool:
    """Replace a file in one step, if it is not so already. Raises OSError."""
    with contextlib.suppress(OSError, ValueError):
        if path.read_text(encoding="utf-8") == text and path.stat().st_mode & 0o777 == mode:
            return False
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace(path, text.encode(), mode)
    return True
