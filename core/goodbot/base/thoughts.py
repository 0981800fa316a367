# SPDX-License-Identifier: Apache-2.0
"""A model's thought, told from its answer by the marks that models put around it.

Only a thought at the very beginning counts: an answer that mentions `<think>` stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goodbot.base import in_pieces
from goodbot.base.endings import (
    CHANNEL,
    FINAL,
    HEADERS,
    KIND,
    LONGEST,
    MESSAGE,
    WRAPPERS,
    Ending,
    begun,
    small,
    tidy,
    wrappers,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ThoughtTags:
    """What stands before and behind a thought."""

    opens: str
    closes: str
    then: str = ""
    """A pattern that must follow `opens`, where that is a word that an answer may begin with."""
    sure: bool = True
    """Without its end it is a thought all the same; else it is taken for an answer."""

    def begins(self, text: str) -> bool:
        """Whether a text begins with it."""
        return self.cased(text[: len(self.opens)]) == self.cased(self.opens)

    def may_begin(self, text: str) -> bool:
        """Whether a text may go on to begin with it."""
        return len(text) <= len(self.opens) and self.cased(self.opens).startswith(self.cased(text))

    def pending(self, text: str) -> int:
        """How many of the last characters may be the beginning of one of its marks."""
        text = text[-LONGEST:]
        known = self.cased(text)
        found = max(begun(known, self.cased(self.closes)), begun(known, self.cased(self.opens)))
        if self.closes == FINAL and (at := text.rfind(CHANNEL)) >= 0:
            found = max(found, 0 if MESSAGE in text[at:] else len(text) - at)
        return found

    def cased(self, text: str) -> str:
        """Tags are tags in capitals, too."""
        return small(text) if self.opens[:1] == "<" and self.opens[1:2].isalpha() else text


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of a thought, among the pieces of an answer."""

    text: str


_NAMES = ("think", "thinking", "thought", "Thought", "reasoning", "seed:think", "longcat_think")
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
_MOST = 64  # marks in a row: each costs a look at all that follows, so behind so many nothing is one


class Splitter:
    """Takes the text of one answer as it comes, gives it back as pieces of thought and of answer."""

    def __init__(
        self,
        marks: Sequence[ThoughtTags] = KNOWN,
        opened: ThoughtTags | None = None,
        *,
        ends: bool = True,
        asked: object = (),
    ) -> None:
        """`opened`: the prompt has begun such a thought already. `ends`: the mark behind the answer is left
        out, too. `asked`: the messages that are answered; the tags that they speak of are kept."""
        self._ends, self._ending = ends, Ending()
        self.wrapper = ""
        """The end of what the answer stands in."""
        self._asked = asked
        self._headers: Mapping[str, str] = HEADERS
        self._marks = marks
        self._inside: ThoughtTags | None = opened
        self._rest: str = ""
        self._depth, self._left = 1, _MOST
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
            return self._said(piece)
        self._rest = in_pieces.sub(KIND, lambda found: f"{found[1]}{MESSAGE}", self._rest + piece)
        found: list[str | Thought] = []
        while not self.answering and self._step(found):
            pass
        return [told for one in found for told in ([one] if isinstance(one, Thought) else self._said(one))]

    def _said(self, text: str) -> list[str | Thought]:
        said = self._ending.feed(text) if self._ends else text
        return [said] if said else []

    def end(self, *, cut: bool = False) -> list[str | Thought]:
        """What was held back. `cut`: the answer was ended where it may have no more tokens."""
        found = [] if self.answering else self._remains(cut)
        if not self._ends:
            return found
        said = "".join(one for one in found if isinstance(one, str))
        last = self._ending.feed(said) + self._ending.end()
        return [*(one for one in found if isinstance(one, Thought)), *([last] if last else [])]

    def _remains(self, cut: bool) -> list[str | Thought]:
        rest, self._rest = self._rest, ""
        if self._inside is None:
            self.answering = True
            return [rest] if rest and not (self.thought and not rest.strip()) else []
        marks, self._inside = self._inside, None
        whole = self.thought + rest
        if (at := marks.cased(whole).rfind(marks.cased(marks.closes))) >= 0:  # it mentions a mark
            self.thought, answer = whole[:at], whole[at + len(marks.closes) :]
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
        low = small(text[:LONGEST])
        for header, wrapper in self._headers.items():
            if (low if header in WRAPPERS else text).startswith(header):
                self._rest, self._fresh = text[len(header) :], False
                self._stands_in(wrapper)
                self._passed()
                return bool(self._rest)
        for marks in self._marks:
            if marks.begins(text):
                rest = text[len(marks.opens) :]
                if marks.then and not rest:
                    return False
                if not marks.then or re.match(marks.then, rest):
                    self._inside, self._rest, self._depth = marks, rest, 1
                    self._fresh = False
                    self._passed()
                    return bool(rest)
        if self._may_begin(text):
            return False
        found.append(self._rest if self._fresh else text)
        self._rest, self.answering = "", True
        return False

    def _may_begin(self, text: str) -> bool:
        """Whether a text may go on to begin with a mark."""
        if len(text) > LONGEST:
            return False
        channel = text.startswith(CHANNEL) and MESSAGE not in text and bool(self._headers)
        known = any(one.startswith(small(text) if one in WRAPPERS else text) for one in self._headers)
        return channel or known or any(marks.may_begin(text) for marks in self._marks)

    def _stands_in(self, wrapper: str) -> None:
        self.wrapper, self._ending = wrapper, Ending(wrapper)

    def _passed(self) -> None:
        self._left -= 1
        if not self._left:
            self._marks, self._headers = (), {}

    def _within(self, marks: ThoughtTags, found: list[str | Thought]) -> bool:
        text = self._rest
        if self._fresh:  # the prompt has opened it, and the model says so again
            text = text.lstrip()
            if marks.may_begin(text) and not marks.begins(text):
                return False
            text = text[len(marks.opens) :] if marks.begins(text) else text
            self._fresh = False
        at, close = self._nested(marks, text)
        until = close if close >= 0 else len(text) - marks.pending(text[at:])
        if until:
            found.append(self._think(text[:until]))
        if close < 0:
            self._rest = text[until:]
            return False
        self._inside, self._rest = None, text[close + len(marks.closes) :]
        if self._headers is HEADERS:
            self._headers = {**HEADERS, **wrappers(self._asked)}
        if marks.closes == FINAL:
            self._stands_in(HEADERS[FINAL])
        return bool(self._rest)

    def _nested(self, marks: ThoughtTags, text: str) -> tuple[int, int]:
        """Up to where the marks are known, and where the thought ends; -1: not yet. Reads the text once."""
        known, opens, closes = marks.cased(text), marks.cased(marks.opens), marks.cased(marks.closes)
        at = 0
        close = known.find(closes)
        again = -1 if marks.then else known.find(opens)
        while again >= 0 or close >= 0:
            if again >= 0 and (close < 0 or again < close):
                at = again + len(opens)
                self._depth += 1
            elif self._depth > 1:
                at = close + len(closes)
                self._depth -= 1
            else:
                return at, close
            close = known.find(closes, at) if 0 <= close < at else close
            again = known.find(opens, at) if 0 <= again < at else again
        return at, -1

    def _think(self, text: str) -> Thought:
        self.thought += text
        return Thought(text)


def options(thinking: bool) -> dict[str, bool]:
    """What chat templates are told; families read one name or the other."""
    return {"enable_thinking": thinking, "thinking": thinking}


def split(
    text: str,
    marks: Sequence[ThoughtTags] = KNOWN,
    opened: ThoughtTags | None = None,
    *,
    cut: bool = False,
    asked: object = (),
) -> tuple[str, str]:
    """The thought and the answer of a whole text. A thought that the prompt has begun may lack its first
    mark: then its end has to be the last thing on a line. `asked` as in `Splitter`."""
    if opened is None:
        opened = orphan(text, marks)
    splitter = Splitter(marks, opened, asked=asked)
    pieces = [*splitter.feed(text), *splitter.end(cut=cut)]
    return tidy(splitter.thought), "".join(piece for piece in pieces if isinstance(piece, str))


def orphan(text: str, marks: Sequence[ThoughtTags] = KNOWN) -> ThoughtTags | None:
    """The marks of which a text holds the end, the last thing on its line, and no beginning.

    Behind other words follows, at once, only what no document has as a tag: an answer that tells of such a
    mark puts it in quotes or behind a blank, and other tags end lines of XML.
    """
    low = in_pieces.mapped(str.lower, text)
    for one in marks:
        if one.closes.lower() not in low:
            continue
        end = re.escape(one.closes)
        behind = rf"|(?<=[^\s\"'`“‘(>]){end}" if one.closes == "</think>" or one.closes[:2] != "</" else ""
        found = in_pieces.search(rf"(?im)(?:^[ \t]*{end}{behind})[ \t]*$", text) if one.sure else None
        if found is None:
            continue
        before, tag = text[: found.start()], one.opens[:1] == "<" and one.opens[-1:] == ">"
        begin = rf"{re.escape(one.opens[:-1])}[\s>]" if tag else re.escape(one.opens)  # with attributes, too
        if not in_pieces.search(f"(?i){begin}", before) and before.count("```") % 2 == 0 and before.strip():
            return one
    return None


def opened_by(prompt: str, marks: Sequence[ThoughtTags] = KNOWN) -> ThoughtTags | None:
    """The thought that a prompt ends within."""
    end = prompt.rstrip()
    return next((one for one in marks if not one.then and end.endswith(one.opens)), None)
