# SPDX-License-Identifier: Apache-2.0
"""What stands in front of an answer and behind it, beside a thought, and within that."""

from __future__ import annotations

import json
import re

from goodbot.base import in_pieces

SMALL = {sign: sign + 32 for sign in range(ord("A"), ord("Z") + 1)}
CHANNEL, MESSAGE = "<|channel|>", "<|message|>"
FINAL = f"{CHANNEL}final{MESSAGE}"
LONGEST = 64
"""Characters of a harmony channel's header at most."""
KIND = re.compile(r"(<\|channel\|>(?:analysis|commentary|final))(?: ?<\|constrain\|>| )\w{1,24}<\|message\|>")
"""A header that also names the kind of what follows."""
HEADERS = {
    "<|start|>assistant": "",
    FINAL: "<|end|>",
    "<|START_RESPONSE|>": "<|END_RESPONSE|>",
    "<|begin_of_solution|>": "<|end_of_solution|>",
}
"""What may stand in front of an answer, with a thought or without, and what then stands behind it."""
WRAPPERS = {f"<{name}>": f"</{name}>" for name in ("response", "answer", "output", "solution")}
"""What may stand so between a thought and its answer only: else it is a word of the answer."""
BREAK = "\u2060"
"""What marks are broken with in prompts (`goodbot.api.marks`)."""
_TURNS = re.compile(r"<\|end\|>(<\|start\|>assistant)?(<\|channel\|>\w*(<\|message\|>)?)?")
_ENDS = ("<|end_of_solution|>", "<|END_RESPONSE|>", "<|return|>")
"""What ends an answer, and is left as text by some servers."""

_SIGNS, _OPENINGS = ("<", "[", "◁"), ("analysis", "Here")
"""First characters of all marks, and words that begin a thought where they begin the text."""


def small(text: str) -> str:
    """The text with the capitals of ASCII as small letters: it stays as long as it is."""
    return in_pieces.mapped(lambda piece: piece.translate(SMALL), text)


def is_plain(text: str) -> bool:
    """Whether nothing in a text can be a mark: most of what is said, which then need not be taken apart."""
    return not any(sign in text for sign in _SIGNS) and not text.lstrip().startswith(_OPENINGS)


def wrappers(asked: object) -> dict[str, str]:
    """What an answer to these messages may stand in. Who speaks of such a tag wants to see it."""
    said = json.dumps(asked, ensure_ascii=False, default=str).replace(BREAK, "").lower()
    return {opens: ends for opens, ends in WRAPPERS.items() if opens not in said and ends not in said}


def tidy(thought: str) -> str:
    """A thought as people read it: without the marks of turns within it."""
    return in_pieces.sub(_TURNS, lambda _: "\n", thought).strip()


class Ending:
    """Takes the text of one answer as it comes, and leaves out the mark that stands behind it."""

    def __init__(self, wrapper: str = "") -> None:
        """`wrapper` is the end of what the answer stands in."""
        self._ends = (*_ENDS, *([wrapper] if wrapper else []))
        self._wrapped = bool(wrapper)
        self._held = ""

    def feed(self, piece: str) -> str:
        """More of the text; what is surely no mark."""
        text = self._held + piece
        bare = text.rstrip()
        at = len(bare)
        for end in self._ends:
            last = bare[-len(end) :].translate(SMALL)
            if last == end.translate(SMALL):
                at = min(at, len(bare) - len(end))
            elif len(bare) == len(text):
                at = min(at, len(text) - begun(last, end.translate(SMALL)))
        if at == len(bare):
            at = len(bare) if self._wrapped else len(text)
        elif self._wrapped:
            at = len(text[:at].rstrip())
        self._held = text[at:]
        return text[:at]

    def end(self) -> str:
        """What was held back and is no mark."""
        held, self._held = self._held, ""
        bare = small(held.strip())
        return "" if any(bare == end.translate(SMALL) for end in self._ends) else held


def begun(text: str, mark: str) -> int:
    """How many of the last characters may be the beginning of a mark."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if mark.startswith(text[-n:])), 0)
