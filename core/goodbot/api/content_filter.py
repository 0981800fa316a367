# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and a content filter, which says what no training may take.

A plugin registers a `ContentFilterSpec`; the section `[filters.NAME]` switches it on. It is asked about each
answer each time that a training picks its material. What it names is left out of that training, and that is
all: it stays stored, and its ratings count wherever else ratings count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.turns import Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterCase:
    """An answer that a training would take, with what it would learn beside it."""

    turn: Turn
    said: Sequence[str] = ()
    """Reasons, better answers and corrections that would be learnt with it, as people wrote them."""

    @property
    def question(self) -> str:
        """What was asked: an agent's prompt goes on behind it, with what its tools said."""
        return str(self.turn.question.get("content") or "") if self.turn.messages else ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The question, the thought, the answer, and what was said of it."""
        return (self.question, self.turn.thought, self.turn.response, *self.said)


class ContentFilter(ABC):
    """Made at start with the settings of its section."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def reasons(self, case: FilterCase) -> Sequence[str]:
        """Say what is in an answer that may not be learnt; nothing, if it may be.

        Each is a few words for owners, like `too short`, and holds nothing of what was found. `email`,
        `phone`, `iban`, `card`, `ip` and `word` are codes: owners read them in their language. Called in a
        thread, mostly while others may rate. What is raised ends the training: a broken filter lets nothing
        through.
        """


@dataclass(frozen=True, kw_only=True)
class ContentFilterSpec:
    """What the host must know of a content filter before it imports it."""

    name: str
    """The section `[filters.NAME]` switches it on."""
    factory: str
    """`package.module:Class`, a `ContentFilter`."""
    settings: type[Any]
    """A frozen dataclass; the config section is parsed into it."""
