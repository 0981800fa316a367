# SPDX-License-Identifier: Apache-2.0
"""A person at a terminal of 80 columns: pexpect types, pyte shows what the screen would.

`SCREENS=DIR pytest …` writes every screen that a test `shoot`s there, as text and, where Pillow is
installed, as a picture.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.cli.program import PROGRAM, environment
from tests.support import patience, require

pexpect = require("pexpect")
pyte = require("pyte")

COLUMNS, ROWS = 80, 24
CTRL_C = "\x03"
CTRL_D = "\x04"


class Screen:
    """One program on a pseudo-terminal. `keys` counts what was typed."""

    def __init__(self, *args: str, home: Path, command: list[str] | None = None, **env: str) -> None:
        """Start `goodbot ARGS` with `home` as the person's home directory."""
        self._screen = pyte.HistoryScreen(COLUMNS, ROWS, history=10_000)
        self._stream = pyte.Stream(self._screen)
        self.raw = ""
        self.keys = 0
        self._seen = 0
        program, *arguments = [*(command or PROGRAM), *args]
        surroundings = {
            "HOME": str(home),
            "GOODBOT_HOME": str(home / ".goodbot"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forkpty beside threads, in 3.12
            self._child = pexpect.spawn(
                program,
                arguments,
                cwd=str(home),
                dimensions=(ROWS, COLUMNS),
                encoding="utf-8",
                codec_errors="replace",
                timeout=None,
                env=environment(**{**surroundings, **env}),
            )
        self._child.delaybeforesend = None

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._child.close(force=True)

    @property
    def text(self) -> str:
        """All that was ever shown, without what scrolled off being lost."""
        gone = ["".join(line[x].data for x in range(COLUMNS)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*gone, *self._screen.display]).rstrip()

    @property
    def window(self) -> str:
        """What fits on the screen now."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def look(self, seconds: float = 0.05) -> str:
        """What has been shown after a while."""
        with contextlib.suppress(pexpect.TIMEOUT, pexpect.EOF):
            piece = self._child.read_nonblocking(65536, seconds)
            self.raw += piece
            self._stream.feed(piece)
        return self.text

    def sees(self, *texts: str, seconds: float = 30.0) -> str:
        """Wait until all of them are shown, each after the one before and after the last `sees`.

        Where a line was wrapped does not matter, within a word either.
        """
        end = time.monotonic() + patience(seconds)
        while True:
            ended = not self._child.isalive()
            self.look()
            at, shown = self._seen, "".join(self.text.split())
            for text in texts:
                wanted = "".join(text.split())
                found = shown.find(wanted, at)
                if found < 0:
                    assert not ended, f"it ended without: {text}\n{self.text}"
                    assert time.monotonic() < end, f"never seen: {text}\n{self.text}"
                    break
                at = found + len(wanted)
            else:
                self._seen = at
                return " ".join(self.text.split())

    def type(self, text: str) -> None:
        """Keys as a person presses them, one after the other."""
        self.keys += len(text)
        self._child.send(text)

    def answer(self, question: str, answer: str = "", seconds: float = 30.0) -> None:
        """Wait for a question, and answer it with Enter."""
        self.sees(question, seconds=seconds)
        self.type(answer + "\r")

    def until(self, done: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something is true, and read what is shown meanwhile."""
        end = time.monotonic() + patience(seconds)
        while not done():
            self.look()
            assert time.monotonic() < end, self.text

    def ends(self, seconds: float = 30.0) -> int:
        """Wait for the end; the exit code."""
        end = time.monotonic() + patience(seconds)
        while self._child.isalive():
            self.look()
            assert time.monotonic() < end, f"it does not end\n{self.text}"
        self.look(0.2)
        self._child.close()
        return 128 + self._child.signalstatus if self._child.signalstatus else self._child.exitstatus

    def shoot(self, name: str) -> None:
        """Keep the screen for somebody to look at, if they asked for it."""
        if folder := os.environ.get("SCREENS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            Path(folder, f"{name}.txt").write_text(self.window + "\n", encoding="utf-8")
            with contextlib.suppress(ImportError):
                _picture(self._screen, Path(folder, f"{name}.png"))


def _picture(screen: object, path: Path) -> None:
    from PIL import Image, ImageDraw, ImageFont  # pyright: ignore[reportMissingImports]

    font = ImageFont.truetype("DejaVuSansMono.ttf", 16)
    width, height = 10, 20
    image = Image.new("RGB", (COLUMNS * width + 20, ROWS * height + 20), "#1b1b1f")
    draw = ImageDraw.Draw(image)
    colours = {"default": "#dddddd", "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341"}
    for row in range(ROWS):
        for column in range(COLUMNS):
            cell = screen.buffer[row][column]  # pyright: ignore[reportAttributeAccessIssue]
            colour = "#ffffff" if cell.bold else colours.get(cell.fg, "#dddddd")
            place = (10 + column * width, 10 + row * height)
            draw.text(place, cell.data, font=font, fill=colour)
    image.save(path)
