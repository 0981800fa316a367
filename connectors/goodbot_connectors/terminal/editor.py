# SPDX-License-Identifier: Apache-2.0
"""The line that a person is typing."""

from __future__ import annotations

import itertools

from goodbot.api.commands import of

from goodbot_connectors.terminal.keys import Key


class Editor:
    """Text, a cursor in it, and the lines before it."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._history: list[str] = []
        self._at = 0
        self._draft = ""

    def insert(self, text: str) -> None:
        """Put text in at the cursor."""
        text = text.replace("\t", "    ")
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
        at, end = self.cursor, len(self.text)
        moves = {
            "left": max(0, at - 1),
            "right": min(end, at + 1),
            "home": 0,
            "end": end,
            "word-left": self._word_start(),
            "word-right": self._word_end(),
        }
        cuts = {
            "backspace": (max(0, at - 1), at),
            "delete": (at, at + 1),
            "kill": (at, end),
            "clear": (0, at),
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
        elif key.name in ("up", "down"):
            self._recall(self._at + (1 if key.name == "down" else -1))

    def _complete(self) -> None:
        """Write the rest of a command's name, or what all have in common that begin like that."""
        typed = self.text[1:]
        if self.text[:1] != "/" or self.cursor != len(self.text):
            return
        found = [one.name for one in of("chat") if one.name.startswith(typed)]
        if found:
            same = itertools.takewhile(lambda signs: len(set(signs)) == 1, zip(*found, strict=False))
            shared = "".join(signs[0] for signs in same)
            self.insert(shared[len(typed) :] + (" " if len(found) == 1 else ""))

    def _remove(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _word_start(self) -> int:
        before = self.text[: self.cursor].rstrip()
        return before.rfind(" ") + 1

    def _word_end(self) -> int:
        after = self.text[self.cursor :]
        lead = len(after) - len(after.lstrip())
        end = after.find(" ", lead)
        return len(self.text) if end < 0 else self.cursor + end

    def _recall(self, at: int) -> None:
        """Another line of the history; below the last one is what was being typed."""
        if not 0 <= at <= len(self._history):
            return
        if self._at == len(self._history):
            self._draft = self.text
        self._at = at
        self.text = self._draft if at == len(self._history) else self._history[at]
        self.cursor = len(self.text)
