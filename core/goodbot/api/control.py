# SPDX-License-Identifier: Apache-2.0
"""A command for the daemon that runs: through its Unix socket, with the standard library alone."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from goodbot.api.texts.terminal import told_here
from goodbot.base.errors import GoodbotError, StoreError
from goodbot.base.worded import Worded
from goodbot.config.lock import CONTROL_SOCKET, socket_path

Progress = Callable[[Mapping[str, Any]], None]

FEATURE = "feature"
"""The command that asks a feature: its name and its own words come behind it."""
_ANSWER_SECONDS = 120.0
"""`rollback` and `resume` may load an adapter; only `_LONG` and `train` take longer than this."""
_LONG = ("export", "import")
"""What goes through all that is stored."""


class RemoteError(GoodbotError):
    """The daemon's own error, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def unheard(_: Mapping[str, Any]) -> None:
    """For whoever does not want to hear how far it is."""


def call(home: Path, command: str, args: list[str], progress: Progress = unheard) -> dict[str, Any] | None:
    """Send a command to the daemon that runs for a home, with the language of this terminal.

    Args:
        home: goodbot's directory.
        command: The name of the command.
        args: What was typed behind it.
        progress: Called with each message on how far it is.

    Returns:
        The daemon's answer; None when no daemon runs.

    Raises:
        RemoteError: The command failed there.
        StoreError: The home is another user's.
        GoodbotError: The daemon ended, or does not answer.
    """
    request = json.dumps({"command": command, "args": args, "language": told_here()}) + "\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(None if "wait" in args or command in _LONG else _ANSWER_SECONDS)
        try:
            connection.connect(str(socket_path(home, CONTROL_SOCKET)))
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return None
        except PermissionError as error:
            whose = Worded("the state directory {home} belongs to another user", home=home)
            raise StoreError(whose) from error
        try:
            connection.sendall(request.encode())
            for line in _lines(connection):
                if "progress" in line:
                    progress(line["progress"])
                elif line["ok"]:
                    return line
                else:
                    raise RemoteError(line["error"], line["exit_code"])
        except TimeoutError:
            raise GoodbotError("the running goodbot does not answer: look at its log") from None
        except (ConnectionError, ValueError):
            pass
    raise GoodbotError("the running goodbot ended before it answered: look at its log")


def _lines(connection: socket.socket) -> Iterator[dict[str, Any]]:
    with connection.makefile("rb") as stream:
        for line in stream:
            yield json.loads(line)
