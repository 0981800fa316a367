# SPDX-License-Identifier: Apache-2.0
"""What the page shows now, and what is answered there: data between the wizard and the page's server.

The wizard waits in its own thread until something is answered; the server looks and hands answers in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

End = Literal["left", "done", "starts", "failed"]
"""How a set-up can end, for its page."""
_FAREWELL_SECONDS = 5.0
"""So long the page may take to see how it ended: it looks several times a second."""
_SILENT_SECONDS = 30.0
"""A page that has not looked for so long is gone, or lies where its browser has it look once a minute."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageAnswer:
    """What was pressed: an answer, or one of the two ways out of a question."""

    do: Literal["answer", "back", "leave"]
    value: str = field(default="", repr=False)
    """It may be a token."""


class Stage:
    """One set-up in one browser."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.language = ""
        """What the reader reads, once the page is there."""
        self._begun = False
        self._number = 0
        self._title: dict[str, Any] = {"title": "", "step": 0, "of": 0}
        self._said: list[dict[str, Any]] = []
        self._asked: dict[str, Any] | None = None
        self._answers: list[PageAnswer] = []
        self._working = ""
        self._end: End | None = None
        self._end_seen = False
        self._looked = False
        """Whether the page has looked within the time in which it is expected to."""
        self.silent: Callable[[], object] = _nothing
        """Called while something is asked, and the page does not look any more."""

    # What the page may do: from the server's thread

    def begin(self, language: str) -> None:
        """The page is there, and whoever reads it reads that language."""
        with self._changed:
            self.language, self._begun = language, True
            self._changed.notify_all()

    def view(self) -> Mapping[str, Any]:
        """All that the page shows. No answer is in it."""
        with self._changed:
            self._end_seen, self._looked = self._end is not None, True
            self._changed.notify_all()
            return {
                "number": self._number,
                **self._title,
                "said": list(self._said),
                "asked": self._asked,
                "working": self._working,
                "end": self._end,
            }

    def take(self, number: int, answer: PageAnswer) -> bool:
        """Hand an answer in; False where that is no longer what is asked: in another tab it was answered."""
        with self._changed:
            if self._asked is None or self._asked["number"] != number:
                return False
            self._asked, self._answers = None, [answer]
            self._change()
            return True

    # What the wizard does: from its own thread

    def wait_for_page(self) -> None:
        """Until somebody has opened it."""
        with self._changed:
            self._changed.wait_for(lambda: self._begun)

    def step(self, number: int, of: int, title: str) -> None:
        """Begin a step: what was said in the one before is gone."""
        with self._changed:
            before = self._title["step"]
            if before == number:  # it is asked from its beginning again, and that was just said
                self._said = [one for one in self._said if not one["stays"]]
            elif before:  # what is said before the first one is its introduction
                self._said = []
            self._title = {"title": title, "step": number, "of": of}
            self._change()

    def add(self, kind: str, *, stays: bool = False, **what: Any) -> None:
        """Say something; what `stays` is there until the next step, else until the next answer but one."""
        with self._changed:
            self._said.append({"kind": kind, "stays": stays, **what})
            self._change()

    def work(self, text: str) -> None:
        """What is being done while nothing is asked; empty: nothing that has a name."""
        with self._changed:
            self._working = text
            self._change()

    def ask(self, question: Mapping[str, Any]) -> PageAnswer:
        """Put a question, and wait for what is answered."""
        with self._changed:
            self._change()
            self._asked, self._answers = {**question, "number": self._number}, []
            self._looked = True
        while not self._heard():
            self.silent()  # without the lock: the page may come back meanwhile
        with self._changed:
            answer = self._answers.pop()
            self._said = [one for one in self._said if one["stays"]]
            self._change()
            return answer

    def _heard(self) -> bool:
        """Wait for an answer; False where none came, and the page has not looked for so long."""
        with self._changed:
            while not self._changed.wait_for(lambda: self._answers, _SILENT_SECONDS):
                if not self._looked:
                    return False
                self._looked = False
            return True

    def end(self, how: End, said: Sequence[str] = ()) -> None:
        """Say how it ended, and give the page a moment to see it."""
        with self._changed:
            self._asked, self._end, self._working = None, how, ""
            self._said += [{"kind": "text", "stays": True, "text": text} for text in said]
            self._change()
            if self._begun:
                self._changed.wait_for(lambda: self._end_seen, _FAREWELL_SECONDS)

    def unseen(self) -> list[str]:
        """What it ended with, where no page has shown that: how somebody owns the bot is in it."""
        with self._changed:
            if self._end_seen:
                return []
            return ["\n".join(one[name] for name in ("text", "address") if name in one) for one in self._said]

    def _change(self) -> None:
        self._number += 1
        self._end_seen = False
        self._changed.notify_all()


def _nothing() -> None:
    """While nobody is to be told."""
