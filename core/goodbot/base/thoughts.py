# SPDX-License-Identifier: Apache-2.0
"""A model's thought, told from its answer by the marks that models put around it.

Only a thought at the very beginning counts: an answer that mentions `<think>` stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ThoughtTags:
    """What stands before and behind a thought."""

    opens: str
    closes: str
    then: str = ""
    """A pattern that must follow `opens`, where that is a word that an answer may begin with."""
    sure: bool = True
    """Without its end it is a thought all the same; else it is taken for an answer."""


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of a thought, among the pieces of an answer."""

    text: str


_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think", "longcat_think")
KNOWN: tuple[ThoughtTags, ...] = (
    *(ThoughtTags(opens=f"<{name}>", closes=f"</{name}>") for name in _NAMES),
    ThoughtTags(opens="[THINK]", closes="[/THINK]"),
    ThoughtTags(opens="<|START_THINKING|>", closes="<|END_THINKING|>"),
    ThoughtTags(opens="<|channel>thought", closes="<channel|>"),
    ThoughtTags(opens="<|channel|>analysis<|message|>", closes="<|channel|>final<|message|>"),
    ThoughtTags(opens="<|channel|>commentary<|message|>", closes="<|channel|>final<|message|>"),
    ThoughtTags(opens="analysis", closes="assistantfinal", then=r"[A-Z\"'(]", sure=False),
    ThoughtTags(opens="<|think:start|>", closes="<|think:end|>"),
    ThoughtTags(opens="<|inner_prefix|>", closes="<|inner_suffix|>"),
    ThoughtTags(opens="<|begin_of_thought|>", closes="<|end_of_thought|>"),
    ThoughtTags(opens="◁think▷", closes="◁/think▷"),
    ThoughtTags(opens="Here is my thought process:", closes="Here is my response:", sure=False),
    ThoughtTags(opens="Here's my thought process:", closes="Here's my response:", sure=False),
)
"""Of the families that are known; where a model's own template is at hand, that decides."""
_HEADERS = ("<|channel|>final<|message|>", "<|START_RESPONSE|>", "<|begin_of_solution|>")
"""What may stand between a thought and its answer, or in front of an answer without one."""
_TURNS = re.compile(r"<\|end\|>(<\|start\|>assistant)?(<\|channel\|>\w*(<\|message\|>)?)?")


class Splitter:
    """Takes the text of one answer as it comes, gives it back as pieces of thought and of answer."""

    def __init__(self, marks: Sequence[ThoughtTags] = KNOWN, opened: ThoughtTags | None = None) -> None:
        """`opened`: the prompt has begun such a thought already."""
        self._marks = marks
        self._inside: ThoughtTags | None = opened
        self._rest: str = ""
        self._depth = 1
        self._fresh = True
        """No word of the answer, and none of the thought, has come."""
        self.thought: str = ""
        self.answering = False

    @property
    def thinking(self) -> bool:
        """Whether a thought is open."""
        return self._inside is not None

    def feed(self, piece: str) -> list[str | Thought]:
        """More of the text; what of it can be told apart by now."""
        if self.answering:
            return [piece] if piece else []
        self._rest += piece
        found: list[str | Thought] = []
        while not self.answering and self._step(found):
            pass
        return found

    def end(self, *, cut: bool = False) -> list[str | Thought]:
        """What was held back. `cut`: the answer was ended where it may have no more tokens."""
        if self.answering:
            return []
        rest, self._rest = self._rest, ""
        if self._inside is None:
            self.answering = True
            return [rest] if rest and not (self.thought and not rest.strip()) else []
        marks, self._inside = self._inside, None
        whole = self.thought + rest
        if marks.closes in whole:  # it mentions a mark: the last end counts
            self.thought, _, answer = whole.rpartition(marks.closes)
            self.answering = True
            return [answer.lstrip()] if answer.strip() else []
        if not marks.sure and not cut:
            self.thought, self.answering = "", True
            return [marks.opens + whole]
        return [self._think(rest)] if rest else []

    def _step(self, found: list[str | Thought]) -> bool:
        """Go on by one mark; whether there is more to do."""
        if self._inside is not None:
            return self._within(self._inside, found)
        text = self._rest.lstrip()
        if not text:
            return False
        for header in _HEADERS:
            if text.startswith(header):
                self._rest, self._fresh = text[len(header) :], False
                return bool(self._rest)
        for marks in self._marks:
            if text.startswith(marks.opens):
                rest = text[len(marks.opens) :]
                if marks.then and not rest:
                    return False
                if not marks.then or re.match(marks.then, rest):
                    self._inside, self._rest, self._depth = marks, rest, 1
                    self._fresh = False
                    return bool(rest)
        if any(one.startswith(text) for one in (*_HEADERS, *(m.opens for m in self._marks))):
            return False
        said, self._rest = (self._rest if self._fresh else text), ""
        self.answering = True
        found.append(said)
        return False

    def _within(self, marks: ThoughtTags, found: list[str | Thought]) -> bool:
        text = self._rest
        if self._fresh:  # the prompt has opened it, and the model says so again
            begun = text.lstrip()
            if marks.opens.startswith(begun) and begun != marks.opens:
                return False
            text = begun.removeprefix(marks.opens)
            self._fresh = False
        close, again = text.find(marks.closes), text.find(marks.opens)
        if not marks.then and again >= 0 and (close < 0 or again < close):
            at = again + len(marks.opens)
            self._depth += 1
        elif close >= 0 and self._depth > 1:
            at = close + len(marks.closes)
            self._depth -= 1
        elif close >= 0:
            if text[:close]:
                found.append(self._think(text[:close]))
            self._inside, self._rest = None, text[close + len(marks.closes) :]
            return bool(self._rest)
        else:
            at = len(text) - max(_begun(text, marks.closes), _begun(text, marks.opens))
            if at:
                found.append(self._think(text[:at]))
            self._rest = text[at:]
            return False
        found.append(self._think(text[:at]))
        self._rest = text[at:]
        return bool(self._rest)

    def _think(self, text: str) -> Thought:
        self.thought += text
        return Thought(text)


def options(thinking: bool) -> dict[str, bool]:
    """What chat templates are told; families read one name or the other."""
    return {"enable_thinking": thinking, "thinking": thinking}


def tidy(thought: str) -> str:
    """A thought as people read it: without the marks of turns within it."""
    return _TURNS.sub("\n", thought).strip()


def split(
    text: str, marks: Sequence[ThoughtTags] = KNOWN, opened: ThoughtTags | None = None, *, cut: bool = False
) -> tuple[str, str]:
    """The thought and the answer of a whole text. A thought that the prompt has begun may lack its first
    mark: then its end has to stand on a line of its own."""
    if opened is None:
        opened = orphan(text, marks)
    splitter = Splitter(marks, opened)
    pieces = [*splitter.feed(text), *splitter.end(cut=cut)]
    return tidy(splitter.thought), "".join(piece for piece in pieces if isinstance(piece, str))


def orphan(text: str, marks: Sequence[ThoughtTags] = KNOWN) -> ThoughtTags | None:
    """The marks of which a text holds the end, on a line of its own, and no beginning."""
    for one in marks:
        found = re.search(rf"(?m)^[ \t]*{re.escape(one.closes)}[ \t]*$", text) if one.sure else None
        if found is None:
            continue
        before = text[: found.start()]
        if one.opens not in before and before.count("```") % 2 == 0 and before.strip():
            return one
    return None


def _begun(text: str, mark: str) -> int:
    """How many of the last characters may be the beginning of a mark."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if mark.startswith(text[-n:])), 0)


def opened_by(prompt: str, marks: Sequence[ThoughtTags] = KNOWN) -> ThoughtTags | None:
    """The thought that a prompt ends within."""
    end = prompt.rstrip()
    return next((one for one in marks if not one.then and end.endswith(one.opens)), None)


def opened_by_template(template: str, *, thinking: bool) -> ThoughtTags | None:
    """The thought that a chat template begins for the model, read without running it.

    One that depends on whether the model is to think is begun only where it is.
    """
    _, found, tail = template.rpartition("add_generation_prompt")
    for one in KNOWN if found else ():
        for literal in re.finditer(r"'([^']*)'|\"([^\"]*)\"|\}([^{}]+)\{", tail):
            words = next(group for group in literal.groups() if group is not None)
            if opened_by(words.replace("\\n", "\n"), (one,)) is not None:
                asks = "thinking" in tail[: literal.start()]
                return one if thinking or not asks else None
    return None
