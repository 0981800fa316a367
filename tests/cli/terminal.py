# SPDX-License-Identifier: Apache-2.0
"""A terminal with a person at it: a pty, and what would be seen on its screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from tests.cli.program import PROGRAM, environment
from tests.support import patience

_SEQUENCE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])")


class Page:
    """Rows of text, as far as our own sequences can change them. It never scrolls off."""

    def __init__(self) -> None:
        self.rows = [""]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            if found := _SEQUENCE.match(text, at):
                self._sequence(found[1], found[2])
                at = found.end()
                continue
            assert text[at] != "\x1b", f"an unknown sequence: {text[at : at + 10]!r}"
            self._character(text[at])
            at += 1

    def _character(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            if self.row == len(self.rows):
                self.rows.append("")
        else:
            line = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1

    def _sequence(self, numbers: str, letter: str) -> None:
        count = int(numbers) if numbers.isdecimal() else 1
        if letter == "A":
            self.row = max(0, self.row - count)
        elif letter == "C":
            self.column += count
        elif letter in "JK":
            self.rows[self.row] = self.rows[self.row][: self.column]
            if letter == "J":
                del self.rows[self.row + 1 :]
        else:
            assert letter in "mhl", f"an unknown sequence: {numbers}{letter}"


class Person:
    """Somebody who runs `goodbot --home HOME ARGS` in a terminal and looks at it."""

    def __init__(
        self, home: Path, *args: str, columns: int = 80, through: Sequence[str] = (), **env: str
    ) -> None:
        """`through` is what becomes the program, where something else is to run first."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.modes = termios.tcgetattr(slave)
        self._slave = slave
        self.page = Page()
        self.raw = ""
        self.process = subprocess.Popen(
            [*through, *PROGRAM, "--home", str(home), *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=environment(**{"TERM": "xterm", "NO_COLOR": "", "LANG": "C.UTF-8", **env}),
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Person:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)
            self.process.wait(patience(60))
        os.close(self._master)
        os.close(self._slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press(self, key: str) -> None:
        """One key, and a moment without another."""
        self.type(key)
        self.look(0.9)

    def look(self, seconds: float = 0.1) -> str:
        """What is on the screen after a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._master], [], [], left)[0]:
                with contextlib.suppress(OSError):
                    text = os.read(self._master, 65536).decode("utf-8", "replace")
                    self.raw += text
                    self.page.feed(text)
        return "\n".join(row.rstrip() for row in self.page.rows)

    def sees(self, *texts: str, seconds: float = 60.0) -> str:
        """Wait until all of it is on the screen."""
        return self.until(lambda screen: all(text in screen for text in texts), seconds)

    def until(self, done: Callable[[str], bool], seconds: float = 60.0) -> str:
        end = time.monotonic() + patience(seconds)
        while not done(screen := self.look(0.05)):
            assert time.monotonic() < end, f"never seen; the screen is:\n{screen}"
        return screen

    def ends(self) -> int:
        """Wait for the end of the program; its exit code. The terminal must be as it was."""
        end = time.monotonic() + patience(60)
        while self.process.poll() is None:
            self.look(0.05)
            assert time.monotonic() < end, self.look()
        self.look()
        assert termios.tcgetattr(self._slave) == self.modes, "the terminal was not restored"
        return self.process.returncode
