"""Answers under way, and the caches that they share."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from goodbot.errors import ServerError

from goodbot_training.backends.decoding import Row, Steps


@dataclass(kw_only=True, eq=False)
class Answer:
    """One, from the question to its last token."""

    key: Hashable
    row: Row
    version: int
    conversation: str
    steps: Steps | None = None
    """While its prompt is read: its own cache, or that of all that are read beside it."""
    read: int = 0
    """Tokens of the prompt that this has seen."""
    alone: bool = False
    """Its prompt is not read beside others: that went wrong."""
    error: ServerError | None = None

    @property
    def room(self) -> int:
        """Tokens in a KV cache, at most."""
        return len(self.row.prompt) + self.row.limit


@dataclass(kw_only=True, eq=False)
class Batch:
    """Rows in one cache."""

    steps: Steps
    answers: list[Answer]

    @property
    def versions(self) -> list[int]:
        """One a row."""
        return [answer.version for answer in self.answers]
