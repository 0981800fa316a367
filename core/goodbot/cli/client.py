"""Commands that the daemon runs: through its Unix socket, with the standard library alone.

With no daemon running, this process takes the state directory's lock and does it itself.
"""

from __future__ import annotations

import argparse
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from goodbot.cli import output
from goodbot.errors import GoodbotError
from goodbot.lock import socket_path

Progress = Callable[[Mapping[str, Any]], None]


class RemoteError(GoodbotError):
    """The daemon's own error, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def main(arguments: argparse.Namespace) -> int:
    """Run the command and print its answer."""
    args = list(arguments.args)
    if arguments.command == "train" and not arguments.no_wait:
        args.append("wait")
    with output.progress_line(quiet=arguments.json) as progress:
        answer = call(arguments.home, arguments.command, args, progress)
        if answer is None:
            from goodbot.cli.offline import execute

            answer = execute(arguments, args, progress)
    output.print_answer(answer, as_json=arguments.json)
    failed = arguments.command == "train" and answer["data"].get("state", "activated") != "activated"
    return 1 if failed else 0


def call(home: Path, command: str, args: list[str], progress: Progress) -> dict[str, Any] | None:
    """The daemon's answer, None when no daemon runs. Raises RemoteError."""
    request = json.dumps({"command": command, "args": args}) + "\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(socket_path(home, "control.sock")))
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        connection.sendall(request.encode())
        for line in _lines(connection):
            if "progress" in line:
                progress(line["progress"])
            elif line["ok"]:
                return line
            else:
                raise RemoteError(line["error"], line["exit_code"])
    raise GoodbotError("the daemon ended before it answered: look at its log")


def _lines(connection: socket.socket) -> Iterator[dict[str, Any]]:
    with connection.makefile("rb") as stream:
        for line in stream:
            yield json.loads(line)
