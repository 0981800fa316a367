# SPDX-License-Identifier: Apache-2.0
"""The line that a person is typing."""

from __future__ import annotations

import itertools
import unicodedata

from goodbot.api.commands import Command, of

from goodbot_connectors.terminal.keys import Key
from goodbot_connectors.terminal.words import told

_BORDERS = (" ", "\n")
"""Of words."""


class Editor:
    """Text, a cursor in it, and the lines before it."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._history: list[str] = []
        self._at = 0
        self._draft = ""

    def insert(self, text: str) -> None:
        """Put text in at the cursor; what would steer the terminal is left out of what is pasted."""
        text = text.replace("\t", "    ")
        text = "".join(sign for sign in text if sign == "\n" or unicodedata.category(sign) != "Cc")
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def take(self) -> str:
        """The finished line, which goes into the history; the editor is empty then."""
        line = self.text.strip()
        if line and (not self._history or self._history[-1] != line):
            self._history.append(line)
        self.clear()
        return line

    def clear(self) -> None:
        """Forget the line."""
        self.text, self.cursor = "", 0
        self._at, self._draft = len(self._history), ""

    def handle(self, key: Key) -> None:
        """Do what an editing key says; unknown ones do nothing."""
        at = self.cursor
        start, end = self._ends(at)
        moves = {
            "left": max(0, at - 1),
            "right": min(len(self.text), at + 1),
            "home": start,
            "end": end,
            "word-left": self._word_start(),
            "word-right": self._word_end(),
        }
        cuts = {
            "backspace": (max(0, at - 1), at),
            "delete": (at, at + 1),
            "kill": (at, end),
            "clear": (start, at),
            "word-rubout": (self._word_start(), at),
        }
        if key.name in ("text", "paste"):
            self.insert(key.text)
        elif key.name in moves:
            self.cursor = moves[key.name]
        elif key.name in cuts:
            self._remove(*cuts[key.name])
        elif key.name == "newline":  # Alt+Enter
            self.insert("\n")
        elif key.name == "tab":
            self._complete()
        elif key.name == "search":  # Ctrl-R
            self._search()
        elif key.name == "up":
            self._climb(start - 1, at - start, self._at - 1)
        elif key.name == "down":
            self._climb(end + 1, at - start, self._at + 1)

    @property
    def menu(self) -> str:
        """Which commands begin like this; of a single one what it does."""
        found = self._begun()
        return told(found[0], "/") if len(found) == 1 else "  ".join(f"/{one.name}" for one in found)

    def _begun(self) -> list[Command]:
        """The commands that begin with what was typed."""
        return [one for one in of("chat") if self.text and f"/{one.name}".startswith(self.text)]

    def _complete(self) -> None:
        """Write the rest of a command's name, or what all have in common that begin like that."""
        found = self._begun()
        if found and self.cursor == len(self.text):
            letters = zip(*(f"/{one.name}" for one in found), strict=False)
            same = itertools.takewhile(lambda signs: len(set(signs)) == 1, letters)
            shared = "".join(signs[0] for signs in same)
            self.insert(shared[len(self.text) :] + (" " if len(found) == 1 else ""))

    def _ends(self, at: int) -> tuple[int, int]:
        """Where the line that holds this place begins and ends."""
        end = self.text.find("\n", at)
        return self.text.rfind("\n", 0, at) + 1, len(self.text) if end < 0 else end

    def _climb(self, place: int, column: int, at: int) -> None:
        """To the line that holds a place; where there is none, to another message."""
        if 0 <= place <= len(self.text):
            start, end = self._ends(place)
            self.cursor = min(start + column, end)
        else:
            self._recall(at)

    def _search(self) -> None:
        """An earlier message that holds what was typed; again, one before it."""
        sought = (self.text if self._at == len(self._history) else self._draft).casefold()
        earlier = range(self._at - 1, -1, -1)
        self._recall(next((at for at in earlier if sought in self._history[at].casefold()), -1))

    def _remove(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _word_start(self) -> int:
        before = self.text[: self.cursor].rstrip()
        return max(before.rfind(border) for border in _BORDERS) + 1

    def _word_end(self) -> int:
        after = self.text[self.cursor :]
        lead = len(after) - len(after.lstrip())
        ends = [end for border in _BORDERS if (end := after.find(border, lead)) >= 0]
        return self.cursor + min(ends) if ends else len(self.text)

    def _recall(self, at: int) -> None:
        """Another line of the history; below the last one is what was being typed."""
        if not 0 <= at <= len(self._history):
            return
        if self._at == len(self._history):
            self._draft = self.text
        self._at = at
        self.text = self._draft if at == len(self._history) else self._history[at]
        self.cursor = len(self.text)
