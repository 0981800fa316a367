# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and a form of exported answers: what one answer becomes in a file.

A plugin registers an `ExportForm`; `goodbot export --format` names one. The core selects the answers, masks
what is to be masked, and writes the file; a form says only which lines one answer is.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.completions import without_tools
from goodbot.api.events import Message
from goodbot.api.labels import Opinion

Line = Mapping[str, Any]
"""One object of the file, as JSON takes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedPair:
    """Two answers to the same messages, of which somebody preferred one."""

    messages: Sequence[Message]
    preferred: str
    other: str
    source: str
    """`better`: somebody typed the preferred one; `retry`: both are the bot's, and rated; `choice`: both are
    the bot's, by two versions, and an owner was asked which is better without knowing whose they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedAnswer:
    """One answer, with all that people said of it."""

    record: Mapping[str, Any]
    """As goodbot's own form has it: see `docs/export.md`."""
    pairs: Sequence[ExportedPair] = ()
    may_teach: bool = True
    """Whether the bot itself may learn from it: whose private chat it is has agreed to that."""

    @property
    def ratings(self) -> Mapping[str, Opinion]:
        """By rater."""
        return self.record["ratings"]

    @property
    def score(self) -> float | None:
        """The mean of the ratings, from -1 to 1; None where there are none."""
        said = [one[0] if isinstance(one, list) else one for one in self.ratings.values()]
        return statistics.fmean(said) if said else None

    @property
    def prompt(self) -> tuple[list[Message], list[Any]]:
        """The messages that it answers, and the declarations of the tools that go with them."""
        return without_tools(self.record["messages"])


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportForm:
    """A form of the file that `goodbot export` writes."""

    name: str
    """As it is typed: small letters, digits and `-`."""
    summary: str
    """What it is for, in a few words."""
    lines: Callable[[ExportedAnswer], Iterable[Line]]
    """What an answer becomes: any number of lines, also none. It is plain and fast, and keeps no state."""
    array: bool = False
    """The file is one JSON list, not one object a line."""
    teaches: bool = False
    """Others train on it: what the bot itself may not learn from is left out."""
