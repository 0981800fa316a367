# SPDX-License-Identifier: Apache-2.0
"""One end of a Unix socket that speaks JSON lines: the chat's own, and the control socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

_SEND_SECONDS = 10.0


class Link:
    """A connection for `select`. Raises OSError when nobody listens at `path`."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._rest = b""
        try:
            self._socket.settimeout(_SEND_SECONDS)
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise

    @classmethod
    def open(cls, path: Path) -> Link | None:
        """A link, or None when nobody listens: no socket, or a dead daemon's."""
        try:
            return cls(path)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return None

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, line: dict[str, Any]) -> bool:
        """Send one line; False when the other side has gone."""
        try:
            self._socket.sendall(json.dumps(line).encode() + b"\n")
        except OSError:
            return False
        return True

    def receive(self) -> list[dict[str, Any]] | None:
        """The lines that are whole now; waits for some. None when the other side has gone."""
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return []
        except OSError:
            return None
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Hang up; idempotent."""
        self._socket.close()
