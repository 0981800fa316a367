# SPDX-License-Identifier: Apache-2.0
"""Answers under way: who waits, who is being written, who has ended; and the caches that they leave.

How they are written is each framework's own: `batching` where a step is all that it brings,
`mlx.batching` where it brings a scheduler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from goodbot.api.sampler import Sampled, SampleRequest
from goodbot.base.errors import ServerError

from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.decoding import Batchable, Row
from goodbot_training.backends.prefixes import Crops, PrefixCache

if TYPE_CHECKING:
    from goodbot_training.backends.abilities import Abilities

ROWS = 128
"""Answers that are written at the same time, at most."""
TOKENS = 32_768
"""In their KV caches, at most: 4.8 GB for a model of 8 billion weights. One alone always goes."""
PART = 512
"""Tokens of prompts that are read before the others get their next token."""
By = Callable[[Sequence[int]], AbstractContextManager[None]]
"""Versions, one a row or one for all → within this, they write."""
OnText = Callable[[str], bool]
Ended = tuple[Hashable, Sampled | Exception]
Kept = TypeVar("Kept", bound=Crops)


@dataclass(kw_only=True, eq=False)
class Generation:
    """One, from the question to its last token."""

    key: Hashable
    row: Row
    version: int
    conversation: str
    steps: Batchable | None = None
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

    steps: Batchable
    answers: list[Generation]

    @property
    def versions(self) -> list[int]:
        """One a row."""
        return [answer.version for answer in self.answers]


class ContinuousBatch(ABC, Generic[Kept]):
    """The answers of one loaded model, by its versions. `Kept` is a conversation's cache."""

    def __init__(self, chat: ChatTemplate, context: int) -> None:
        """`context`: tokens that prompt and answer may have together."""
        self._chat, self._context = chat, context
        self._prefixes: PrefixCache[Kept] = PrefixCache()
        self._waiting: deque[Generation] = deque()
        self._ended: list[Ended] = []
        self._last_thoughts: list[tuple[Hashable, str]] = []
        self._unwanted: set[Hashable] = set()
        self.admits: Callable[[Collection[int]], bool] = lambda versions: True
        """Whether answers by these versions can be written at the same time; asked before one more is."""

    def start(
        self, key: Hashable, request: SampleRequest, version: int, on_text: OnText | None = None
    ) -> None:
        """Begin an answer, which `step` writes and then gives back with its key.

        Raises ServerError for a conversation that the model cannot see whole, TrainingError for one that
        its template refuses.
        """
        prompt = self._chat.prompt(request.messages, thinking=request.thinking)
        row = Row(prompt, request, self._chat, self._context, on_text)
        self._waiting.append(Generation(key=key, row=row, version=version, conversation=request.conversation))

    def cancel(self, key: Hashable) -> None:
        """End an answer at the next step, as far as it has come. An unknown one is ignored."""
        self._unwanted.add(key)

    def thoughts(self) -> list[tuple[Hashable, str]]:
        """What was thought since this was asked last, also of answers that the last step has ended."""
        last, self._last_thoughts = self._last_thoughts, []
        told = [(answer.key, answer.row.thought()) for answer in self._written()]
        return [(key, text) for key, text in (*last, *told) if text]

    def writes(self, version: int | None = None) -> bool:
        """Whether an answer by this version, or by any, is under way or not yet given back."""
        return any(version in (None, answer.version) for answer in self._under_way())

    def versions(self) -> set[int]:
        """Of the answers under way."""
        return {answer.version for answer in self._under_way()}

    def forget(self, version: int) -> None:
        """Drop the caches that a version has made, or is making, for questions to come."""
        self._prefixes.forget(version)
        for answer in self._under_way():
            if answer.version == version:
                answer.conversation = ""

    def step(self) -> list[Ended]:
        """Read a part of what is new, write one token on each answer; those that have ended."""
        self._last_thoughts = []  # whoever wanted them has asked
        unwanted, self._unwanted = self._unwanted, set()
        if unwanted:
            self._drop(unwanted)
        self._go_on()
        ended, self._ended = self._ended, []
        return ended

    @property
    def abilities(self) -> Abilities | None:
        """What the model's cache allows, where a library's scheduler does not look after that."""
        return None

    @abstractmethod
    def _go_on(self) -> None:
        """A step, once those that nobody wants are out of the way."""

    @abstractmethod
    def _let_all_go(self) -> None:
        """Give back the answers that have ended while they were being written."""

    @abstractmethod
    def _written(self) -> list[Generation]:
        """Those that are not waiting."""

    def _under_way(self) -> list[Generation]:
        return [*self._waiting, *self._written()]

    def _drop(self, unwanted: set[Hashable]) -> None:
        for answer in self._under_way():
            if answer.key in unwanted:
                answer.row.finish = "cancelled"
        for answer in [answer for answer in self._waiting if answer.row.finish]:
            self._waiting.remove(answer)
            self._end(answer)
        self._let_all_go()

    def _fits(self, answer: Generation, beside: Sequence[Generation] = ()) -> bool:
        others = (*self._written(), *beside)
        if not others:
            return True
        room = len(others) < ROWS and sum(one.room for one in others) + answer.room <= TOKENS
        return room and self.admits({answer.version, *(one.version for one in others)})

    def _add(self, answer: Generation, token: int, logprob: float, lift: float = 0.0) -> None:
        """A token that was written."""
        try:
            answer.row.add(token, logprob, self._chat.stops, lift)
        except ServerError as error:
            answer.row.finish, answer.error = "failed", error

    def _end(self, answer: Generation) -> None:
        self._ended.append((answer.key, answer.error or answer.row.result()))
        self._last_thoughts.append((answer.key, answer.row.thought()))

    def _fail(self, answers: Sequence[Generation], error: Exception) -> None:
        """It may have been for want of memory: what is only kept goes as well."""
        self._prefixes.forget()
        self._ended += [(answer.key, error) for answer in answers]
