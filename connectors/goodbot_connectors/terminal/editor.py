"""The line that a person is typing."""

from __future__ import annotations

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
        match key.name:
            case "text" | "paste":
                self.insert(key.text)
            case "left":
                self.cursor = max(0, self.cursor - 1)
            case "right":
                self.cursor = min(len(self.text), self.cursor + 1)
            case "home":
                self.cursor = 0
            case "end":
                self.cursor = len(self.text)
            case "word-left":
                self.cursor = self._word_start()
            case "word-right":
                self.cursor = self._word_end()
            case "backspace":
                self._remove(max(0, self.cursor - 1), self.cursor)
            case "delete":
                self._remove(self.cursor, self.cursor + 1)
            case "kill":
                self._remove(self.cursor, len(self.text))
            case "clear":
                self._remove(0, self.cursor)
            case "word-rubout":
                self._remove(self._word_start(), self.cursor)
            case "up":
                self._recall(self._at - 1)
            case "down":
                self._recall(self._at + 1)
            case _:
                pass

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
