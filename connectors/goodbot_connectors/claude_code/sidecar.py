# SPDX-License-Identifier: Apache-2.0
"""What lies beside `hook.sh` in `<home>/connectors/claude_code`: how it reaches us, and whom we missed."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from goodbot.base import durable
from goodbot.base.errors import StoreError
from goodbot.config.lock import HTTP_SOCKET, socket_path

from goodbot_connectors.claude_code import script
from goodbot_connectors.claude_code.payloads import identifier

_SECONDS = 2.0


def socket(here: Path) -> Path | None:
    """Where the script is to speak; None: at the port, as the daemon has told it to when it started."""
    with contextlib.suppress(OSError, ValueError):
        text = (here / script.NAME).read_text(encoding="utf-8")
        if script.BY_SOCKET not in text and not _place(here).exists():
            return None
    return _place(here)


def write(here: Path, address: str, socket: Path | None) -> None:
    """Make the script, if it is not so already. Raises OSError."""
    (here / script.MISSED).mkdir(mode=0o700, exist_ok=True)
    text = script.text(here, address, socket)
    with contextlib.suppress(OSError, ValueError):
        if (here / script.NAME).read_text(encoding="utf-8") == text:
            return
    durable.replace(here / script.NAME, text.encode(), 0o700)


async def refresh(here: Path, address: str) -> None:
    """At our start: what an earlier goodbot has put there fits this one. Nothing where none was put."""
    if not (here / script.NAME).is_file():
        return
    found = await _listening(here)
    with contextlib.suppress(OSError):
        write(here, address, found)


def missed(here: Path, session: str) -> bool:
    """Whether the session had something to say while we were not there."""
    return identifier(session) and (here / script.MISSED / session).exists()


def forgive(here: Path, session: str) -> None:
    """Strike it out."""
    with contextlib.suppress(OSError):
        (here / script.MISSED / session).unlink(missing_ok=True)


def forgive_all(here: Path, *, before: float | None = None) -> None:
    """Strike out all, or those of before then (seconds since the epoch): we know nothing of them."""
    folder = here / script.MISSED
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if before is None or path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
        if before is None:
            folder.rmdir()


def _place(here: Path) -> Path:
    home = here.parent.parent
    try:
        return socket_path(home, HTTP_SOCKET)
    except (OSError, StoreError):
        return home / HTTP_SOCKET


async def _listening(here: Path) -> Path | None:
    """Our Unix socket, if somebody listens there."""
    place = _place(here)
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_unix_connection(place)
    except (OSError, TimeoutError):
        return None
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return place
