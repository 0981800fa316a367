# SPDX-License-Identifier: Apache-2.0
"""What arrives from a terminal in raw mode, as keys; and the terminal's modes themselves."""

from __future__ import annotations

import codecs
import contextlib
import re
import termios
from collections.abc import Generator
from typing import NamedTuple


class Key(NamedTuple):
    """One key by name, or `text` / `paste` with the characters."""

    name: str
    text: str = ""


_NAMES = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "1~": "home",
    "3~": "delete",
    "4~": "end",
    "7~": "home",
    "8~": "end",
    "1;5C": "word-right",
    "1;5D": "word-left",
    "1;3C": "word-right",
    "1;3D": "word-left",
}
_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\t": "tab",
    "\x01": "home",
    "\x02": "left",
    "\x03": "ctrl-c",
    "\x04": "ctrl-d",
    "\x05": "end",
    "\x06": "right",
    "\x0b": "kill",
    "\x0c": "redraw",
    "\x0e": "down",
    "\x10": "up",
    "\x12": "search",
    "\x15": "clear",
    "\x17": "word-rubout",
    "\x1a": "ctrl-z",
}
_SEQUENCE = re.compile(r"\x1b(?:\[([0-9;]{0,16}[A-Za-z~])|O([A-Z])|([^\[O]))")
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"


class Keys:
    """Takes bytes as they are read, gives the keys that are whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> list[Key]:
        """The keys in what was read; an unfinished sequence waits for more."""
        text, self._rest = self._rest + self._decoder.decode(data), ""
        keys: list[Key] = []
        while text:
            taken = self._escape(text, keys) if text[0] == "\x1b" else self._plain(text, keys)
            if not taken:
                self._rest = text
                break
            text = text[taken:]
        return keys

    def lone(self) -> bool:
        """Whether an Escape waits for the rest of a sequence that may never come."""
        return bool(self._rest) and not self._rest.startswith(_PASTE)

    def drop(self) -> None:
        """Give an unfinished sequence up: it was the Escape key."""
        self._rest = ""

    def _escape(self, text: str, keys: list[Key]) -> int:
        if text.startswith(_PASTE):
            end = text.find(_PASTED)
            if end < 0:
                return 0
            pasted = text[len(_PASTE) : end].replace("\r\n", "\n").replace("\r", "\n")
            keys.append(Key("paste", pasted))
            return end + len(_PASTED)
        found = _SEQUENCE.match(text)
        if found is None:
            return 0 if len(text) < 20 else 1
        name = "newline" if found[3] in ("\r", "\n") else _NAMES.get(found[1] or found[2] or "")
        if name:
            keys.append(Key(name))
        return found.end()

    def _plain(self, text: str, keys: list[Key]) -> int:
        if text[0] in _CONTROLS:
            keys.append(Key(_CONTROLS[text[0]]))
            return 1
        end = next((n for n, c in enumerate(text) if c < " " or c == "\x7f"), len(text))
        if end:
            keys.append(Key("text", text[:end]))
        return max(end, 1)


class Terminal:
    """A terminal's modes: every key at once and no echo while inside `raw`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._saved = termios.tcgetattr(fd)

    @contextlib.contextmanager
    def raw(self) -> Generator[None]:
        """Raw while inside; as it was before afterwards, whatever happens."""
        self.enter()
        try:
            yield
        finally:
            self.restore()

    def enter(self) -> None:
        """Keys come one by one; Ctrl-C and Ctrl-Z come as keys too. Output stays as it is."""
        modes = termios.tcgetattr(self._fd)
        modes[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR | termios.IGNCR)
        modes[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        modes[6][termios.VMIN] = 1
        modes[6][termios.VTIME] = 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, modes)

    def restore(self) -> None:
        """As it was before."""
        with contextlib.suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)
