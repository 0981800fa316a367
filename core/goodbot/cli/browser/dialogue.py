# SPDX-License-Identifier: Apache-2.0
"""The wizard's questions on a page: the same steps and checks as in a terminal, shown another way."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, TypeVar

from goodbot.api.control import Progress
from goodbot.api.progress import sentence as progress_sentence
from goodbot.api.sentences import sentence
from goodbot.api.setup import ConnectorSetup
from goodbot.api.texts import reworded
from goodbot.base.printing import printable
from goodbot.cli.browser.stage import Stage
from goodbot.cli.setup.dialogue import Back, Choice, Dialogue, Left, PutQuestion
from goodbot.cli.setup.qr import qr_modules

T = TypeVar("T")


class PageDialogue(Dialogue):
    """Asks by a `Stage`. Nothing that is answered is shown again."""

    at_terminal: ClassVar[bool] = False

    def __init__(self, stage: Stage, given: Mapping[str, str] | None = None) -> None:
        super().__init__(given or {}, asks=True, out=sys.stdout)
        self.language = stage.language
        self._stage = stage
        self._choices: Sequence[Choice] = ()
        self._typed = True
        """Whether something else than one of the choices can be answered."""

    def say(self, text: str = "", *, indent: int = 0) -> None:
        del indent
        if text.strip():
            self._stage.add("text", text=printable(text).strip("\n"))

    def step(self, number: int, of: int, title: str) -> None:
        self._stage.step(number, of, printable(title))

    def verbatim(self, text: str) -> None:
        self._stage.add("copy", stays=True, text=printable(text).strip("\n"))

    def rows(self, rows: Mapping[str, str]) -> None:
        self._stage.add("rows", rows=[[name, printable(what)] for name, what in rows.items()])

    def link(self, text: str, address: str, *, picture: bool = False) -> None:
        modules = qr_modules(address) if picture else []
        self._stage.add("link", stays=True, text=printable(text).strip(), address=address, picture=modules)

    def guide(self, setup: type[ConnectorSetup]) -> None:
        sketches = [asdict(one) for one in setup.sketches]
        lines = reworded(setup.guide, self.language).splitlines()
        self._stage.add("guide", stays=True, lines=lines, sketches=sketches)

    @contextlib.contextmanager
    def work(self, text: str) -> Generator[None]:
        self._stage.work(text)
        try:
            yield
        finally:
            self._stage.work("")

    @contextlib.contextmanager
    def progress(self) -> Generator[Progress]:
        def show(progress: Mapping[str, Any]) -> None:
            self._stage.work(progress_sentence(progress, self.language))

        try:
            yield show
        finally:
            self._stage.work("")

    def trouble(self, clause: str) -> None:
        self._stage.add("trouble", text=printable(sentence(clause)))

    def choose(self, flag: str, choices: Sequence[Choice], default: str) -> str:
        self._typed = False
        try:
            return super().choose(flag, choices, default)
        finally:
            self._typed = True

    def show(self, flag: str, choices: Sequence[Choice]) -> None:
        del flag
        self._choices = choices

    def text(self, flag: str, question: str, check: Callable[[str], T], default: str = "") -> T:
        try:
            return super().text(flag, question, check, default)
        finally:
            self._choices = ()

    def put(self, asked: PutQuestion) -> str:
        answer = self._stage.ask(
            {
                "kind": asked.kind,
                "text": printable(asked.text),
                "default": asked.default,
                "choices": [
                    {"label": printable(one.label), "note": printable(one.note), "typed": not one.value}
                    for one in self._choices
                ],
                "typed": self._typed,
            }
        )
        if answer.do == "back":
            raise Back
        if answer.do == "leave":
            raise Left
        return "".join(sign for sign in answer.value if sign.isprintable()).strip() or asked.default
