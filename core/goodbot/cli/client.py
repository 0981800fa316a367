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

_ANSWER_SECONDS = 120.0
"""`rollback` and `resume` may load an adapter; nothing but `train` takes longer than this."""


class RemoteError(GoodbotError):
    """The daemon's own error, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def main(arguments: argparse.Namespace) -> int:
    """Run the command and print its answer."""
    command: str = arguments.command
    args = [*arguments.first, *([arguments.word] if arguments.word else arguments.words or ())]
    if arguments.since:
        args += ["since", arguments.since]
    if command in ("forget", "reset"):
        if not _agrees(arguments):
            print("Nothing was changed." if command == "reset" else "Nothing was deleted.")
            return 1
        args.append("yes")
    dry = command == "train" and arguments.dry_run
    waits = command == "train" and not (arguments.no_wait or dry)
    if dry:
        args.append("--dry-run")
    if waits or dry:
        args.append("wait")
    with output.progress_line(quiet=arguments.json) as progress:
        try:
            answer = call(arguments.home, command, args, progress)
        except KeyboardInterrupt:
            if waits:
                raise StillTrainingError from None
            raise
        if answer is None:
            from goodbot.cli.offline import execute

            answer = execute(arguments, args, progress)
    output.print_answer(answer, as_json=arguments.json)
    if dry and not answer["data"]["trains"]:
        return 2
    failed = waits and answer["data"].get("state", "activated") != "activated"
    return 1 if failed else 0


def _agrees(arguments: argparse.Namespace) -> bool:
    from goodbot.cli.asking import agrees

    question = (
        "Let the base model answer, and leave out all ratings so far?"
        if arguments.command == "reset"
        else f"Delete all words and ratings of {arguments.words[0]}, and what was learnt from them? "
        "It cannot be undone."
    )
    return agrees(question, yes=arguments.yes)


class StillTrainingError(GoodbotError):
    """Ctrl-C ended the waiting, not the training."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__(
            "the training goes on in the daemon: `goodbot status` shows how far it is, "
            "`goodbot pause` stops it"
        )


def call(home: Path, command: str, args: list[str], progress: Progress) -> dict[str, Any] | None:
    """The daemon's answer, None when no daemon runs. Raises RemoteError, GoodbotError."""
    request = json.dumps({"command": command, "args": args}) + "\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(None if "wait" in args else _ANSWER_SECONDS)
        try:
            connection.connect(str(socket_path(home, "control.sock")))
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return None
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
