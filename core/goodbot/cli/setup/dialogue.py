# SPDX-License-Identifier: Apache-2.0
"""Questions as data, and the terminal's way to put them: plain lines, the default in brackets, `b` back.

Every question has the name of a flag. An answer that was given as a flag is taken and not asked
for; with `--yes` nothing is asked, and the default is taken. So there is one way through the
steps for people, scripts and screen readers alike. `goodbot.cli.browser` puts the same questions on a page.
"""

from __future__ import annotations

import contextlib
import getpass
import shutil
import sys
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TextIO, TypeVar

from goodbot.api import texts
from goodbot.api.control import Progress
from goodbot.api.progress import progress_line
from goodbot.api.sentences import sentence
from goodbot.api.setup import ConnectorSetup
from goodbot.api.texts.terminal import here
from goodbot.base import printing
from goodbot.base.columns import table, wrapped
from goodbot.base.errors import UsageError
from goodbot.base.live_line import LiveLine
from goodbot.cli.setup.qr import qr_lines

T = TypeVar("T")
_WIDTH = 80
_DIGITS = 5
"""A number of so many is no choice; Python reads none of thousands."""
_BACK = ("b", "back")
_LEAVE = ("q", "quit")
_YES = {"y": True, "yes": True, "n": False, "no": False}
"""Beside the language's own words: a page answers in these."""


class Back(Exception):  # noqa: N818  it is an answer, no error
    """Somebody wants the question before."""


class Left(Exception):  # noqa: N818
    """Somebody leaves; nothing is written."""


class Refused(Exception):  # noqa: N818
    """An answer cannot be taken; the text is a sentence for the one who gave it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One numbered line. `value` is what the flag takes."""

    value: str
    label: str
    note: str = ""
    """What it means, in one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PutQuestion:
    """One question, before anybody has drawn it."""

    text: str
    kind: Literal["text", "secret", "confirm"] = "text"
    default: str = ""
    """What is taken where nothing is typed."""


class Dialogue:
    """Asks on a terminal, or answers itself from flags and defaults."""

    at_terminal: ClassVar[bool] = True
    """Whether whoever answers types here, and reads about keys."""

    def __init__(self, given: Mapping[str, str], *, asks: bool, out: TextIO, colour: bool = False) -> None:
        """`given` maps flags (`--model`) to answers; without `asks` the defaults are taken."""
        self.asks = asks
        self.asked = 0
        """How many questions were put to a person so far."""
        self.out = out
        self.language = here()
        """In which the steps speak."""
        self._given = dict(given)
        self._colour = colour

    def say(self, text: str = "", *, indent: int = 0) -> None:
        """Lines for the person, wrapped; nothing in colour that the words do not say."""
        width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH) - 1
        for line in text.split("\n"):
            own = " " * (len(line) - len(line.lstrip()) + indent)
            printing.say("\n".join(wrapped(line.strip(), width, begins=own, indent=own)), file=self.out)
        self.out.flush()

    def hint(self, text: str) -> None:
        """What helps to answer; left out where nothing is asked."""
        if self.asks:
            self.say(text)

    def phrase(self, key: str, **values: Any) -> str:
        """A text of the catalogue, for whoever answers."""
        return texts.say(key, self.language, **values)

    def step(self, number: int, of: int, title: str) -> None:
        """Begin a step with its heading."""
        which = self.phrase("setup_page_step", number=number, of=of)
        text = printing.printable(texts.explained(which, title, self.language))
        bold = f"\x1b[1m{text}\x1b[0m" if self._colour else text
        printing.draw(f"\n{bold}\n", file=self.out)

    def verbatim(self, text: str) -> None:
        """What is to be copied: as it is, not wrapped."""
        printing.say(text, file=self.out)

    def rows(self, rows: Mapping[str, str]) -> None:
        """Names with what they are, in two columns."""
        own = {f"  {name} ": what for name, what in rows.items()}
        self.say("\n".join(table(own, least=14)))

    def link(self, text: str, address: str, *, picture: bool = False) -> None:
        """An address to open, under what is said of it; with `picture` also for a phone's camera."""
        self.say(text)
        self.verbatim("\n".join(["", address, *(qr_lines(address) if picture and self.asks else ())]))
        self.say()

    def guide(self, setup: type[ConnectorSetup]) -> None:
        """Where the platform's secrets come from, step by step."""
        self.hint(f"{texts.reworded(setup.guide, self.language)}\n")

    @contextlib.contextmanager
    def work(self, text: str) -> Generator[None]:
        """Something takes its time until the end of the block."""
        with LiveLine(self.out, text) as line:
            if not line.live:
                line.say(f"{text} ...")
            yield

    def progress(self) -> AbstractContextManager[Progress]:
        """A function that shows how far something is."""
        return progress_line(quiet=not self.asks)

    def trouble(self, clause: str) -> None:
        """Say what is wrong, so that it can be asked again. Raises UsageError with `--yes`."""
        if not self.asks:
            raise UsageError(clause)
        self.say(sentence(clause, self.language))

    def choose(self, flag: str, choices: Sequence[Choice], default: str) -> str:
        """One of `choices`, by number or by its value."""
        values = [choice.value for choice in choices]

        def check(answer: str) -> str:
            if answer.isdecimal() and len(answer) < _DIGITS and 0 < int(answer) <= len(values):
                return values[int(answer) - 1]
            near = [value for value in values if value.casefold() == answer.casefold()]
            if not near:
                raise Refused(self.phrase("setup_type_number", most=len(values)))
            return near[0]

        if flag in self._given and self._given[flag] not in values:
            answer = self._given.pop(flag)
            can_be = texts.commas(self.language, *values)
            self.trouble(self.phrase("setup_can_be", flag=flag, answer=answer, values=can_be))
        self.show(flag, choices)
        number = str(values.index(default) + 1) if default in values else ""
        return self.text(flag, self.phrase("setup_choice"), check, number)

    def show(self, flag: str, choices: Sequence[Choice]) -> None:
        """The numbered lines, unless the flag answers."""
        if flag in self._given or not self.asks:
            return
        for number, choice in enumerate(choices, 1):
            self.say(f"{number:>3}  {choice.label}")
            if choice.note:
                self.say(choice.note, indent=5)

    def text(self, flag: str, question: str, check: Callable[[str], T], default: str = "") -> T:
        """What `check` makes of an answer; it raises `Refused` for one that cannot be."""
        return self._ask(flag, PutQuestion(text=question, default=default), check)

    def secret(self, flag: str, question: str, check: Callable[[str], T]) -> T:
        """Like `text`, but what is typed is not shown."""
        return self._ask(flag, PutQuestion(text=question, kind="secret"), check)

    def confirm(self, flag: str, question: str, *, default: bool = True) -> bool:
        """Yes or no; with `--yes` it is yes."""

        def check(answer: str) -> bool:
            known = {
                **dict.fromkeys(self.phrase("ask_yes").split(), True),
                **dict.fromkeys(self.phrase("ask_no").split(), False),
                **_YES,
            }
            if answer.casefold() not in known:
                raise Refused(self.phrase("setup_type_yes"))
            return known[answer.casefold()]

        if not self.asks:
            return True
        asked = PutQuestion(text=question, kind="confirm", default="yes" if default else "no")
        return self._ask(flag, asked, check)

    def answer(self, flag: str) -> str:
        """What was given as a flag; empty when it is a question."""
        return self._given.get(flag, "")

    def has(self, flag: str) -> bool:
        return flag in self._given

    def flags(self) -> list[str]:
        """Those that were given."""
        return list(self._given)

    def forget(self, flag: str) -> None:
        """The flag's answer was tried and refused: ask for another."""
        self._given.pop(flag, None)

    def put(self, asked: PutQuestion) -> str:
        """Put a question to a person, once; what they answer. Raises Back and Left."""
        match asked.kind:
            case "secret":
                answer = self._hidden(f"{self.phrase('setup_hidden', question=asked.text)} ")
            case "confirm":
                choice = self.phrase("ask_no_yes" if asked.default == "yes" else "ask_yes_no")
                answer = self._line(texts.explained(f"{asked.text} {choice}", "", self.language))
            case "text":
                default = f" [{asked.default}]" if asked.default else ""
                answer = self._line(texts.explained(f"{asked.text}{default}", "", self.language))
        answer = answer or asked.default
        if answer.casefold() in _BACK:
            raise Back
        if answer.casefold() in _LEAVE:
            raise Left
        return answer

    def _ask(self, flag: str, asked: PutQuestion, check: Callable[[str], T]) -> T:
        self.asked += self.asks and flag not in self._given
        while True:
            given = self._given.get(flag)
            if given is None and self.asks:
                answer = self.put(asked)
            elif given is None and not asked.default:
                raise UsageError(self.phrase("setup_needed", flag=flag))
            else:
                answer = asked.default if given is None else given
            try:
                taken = check(answer)
                if given is not None and self.asks and self.at_terminal:
                    shown = asked.kind != "secret"
                    self.say(
                        self.phrase("setup_given_as", answer=given) if shown else self.phrase("setup_given")
                    )
                return taken
            except Refused as refused:
                self.forget(flag)
                self.trouble(str(refused) if given is None else f"{flag}: {refused}")

    def _line(self, prompt: str) -> str:
        printing.say(prompt, end="", file=self.out, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise Left
        return "".join(c for c in line if c.isprintable()).strip()

    def _hidden(self, prompt: str) -> str:
        with warnings.catch_warnings(), contextlib.suppress(EOFError):
            warnings.simplefilter("error", getpass.GetPassWarning)  # rather none than one shown
            return getpass.getpass(printing.printable(prompt), self.out).strip()
        raise Left
