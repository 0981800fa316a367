# SPDX-License-Identifier: Apache-2.0
"""The last line of a terminal, which changes in place. Where it stands still, it counts the seconds."""

from __future__ import annotations

import os
import shutil
import threading
import time
from types import TracebackType
from typing import TextIO

from goodbot.base.printing import draw, printable, say

_STILL = 1.0
"""Seconds without a change after which they are counted."""
_CLEAR = "\r\x1b[K"


class LiveLine:
    """Shows that a program is at work: `with LiveLine(sys.stdout, "installing"):` → `installing … 40 s`.

    On what is no terminal only whole lines are printed. A thread counts: who works need not yield.
    """

    def __init__(
        self, out: TextIO, text: str = "", *, quiet: bool = False, moment: str = "one moment"
    ) -> None:
        """`text` is what is waited for, `moment` stands where that is not said.

        With `quiet` nothing is printed at all.
        """
        self.live = out.isatty() and os.environ.get("TERM") != "dumb" and not quiet
        self._out = out
        self._quiet = quiet
        self._text = text
        self._moment = moment
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._counter = threading.Thread(target=self._count, name="live line", daemon=True)

    def __enter__(self) -> LiveLine:
        self.show(self._text)
        if self.live:
            self._counter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._over.set()
        if self._counter.is_alive():
            self._counter.join()
        self.show("")

    def show(self, text: str) -> None:
        """Put another text there."""
        with self._lock:
            self._text, self._since = text, time.monotonic()
            self._draw(text)

    def say(self, text: str) -> None:
        """Print a text that stays; the line is empty then, and below it."""
        with self._lock:
            self._text, self._since = "", time.monotonic()
            self._draw("")
            if not self._quiet:
                say(text, file=self._out, flush=True)

    def _draw(self, text: str) -> None:
        if self.live:
            room = shutil.get_terminal_size().columns - 1  # a full line would wrap
            draw(_CLEAR + printable(text)[:room], file=self._out)

    def _count(self) -> None:
        while not self._over.wait(_STILL):
            with self._lock:
                still = time.monotonic() - self._since
                if still >= _STILL:
                    self._draw(f"{self._text or self._moment} … {still:.0f} s")
