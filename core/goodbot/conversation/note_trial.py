# SPDX-License-Identifier: Apache-2.0
"""Whether the model follows notes at all: tried once a model, since its template only tells that one fits.

A model that never learnt to follow a system message answers worse with one. So it is asked some everyday
questions twice, with a note that wants few words and with one that wants many. Who follows notes answers
most of them in fewer words with the first.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from goodbot.api.noted import FRAME
from goodbot.api.server import BASE, Generated, GenerateRequest
from goodbot.base.errors import boundary
from goodbot.conversation.note_rules import RULES
from goodbot.conversation.parts import AnsweringParts
from goodbot.store import notes

logger = logging.getLogger(__name__)

QUESTIONS = (
    *(f"What is the capital of {place}?" for place in ("France", "Italy", "Spain", "Japan", "Egypt", "Cuba")),
    *(f"What color is {thing}?" for thing in ("the sky", "grass", "snow", "a banana", "coal", "a tomato")),
    *(f"What sound does a {animal} make?" for animal in ("dog", "cat", "cow", "duck")),
    *(f"What is {task}?" for task in ("2 plus 2", "9 minus 4")),
    *("What month comes after May?", "What day comes after Monday?", "What can you do?"),
    *("Why do people sleep?", "How do plants grow?", "Tell me about dogs."),
)
"""Any model has something to say to these; whether it is right does not matter."""
_BRIEF, _FULL = (f'{FRAME}"{RULES[chip].text}"' for chip in ("long", "short"))
LEAD = len(QUESTIONS) // 3
"""By so many questions more must the one note give the shorter answer than the other, at any time: a coin
gets there in 11 of 100 trials."""
FEWEST = 8
"""Of so few questions nothing is known, and the model is taken to follow notes."""
_TOKENS = 48
_SECONDS = 60.0
"""Between two looks."""


class Compared(NamedTuple):
    """What the answers have shown."""

    shorter: int = 0
    """Questions whose answer was shorter with the note that wants few words."""
    longer: int = 0
    compared: int = 0
    """All whose answers came to an end; those of the same length are among them."""

    def and_(self, brief: int | None, full: int | None) -> Compared:
        """With one question more, by the lengths of its answers; None for one that was cut off.

        Of two that were both cut off nothing is known.
        """
        if brief is None and full is None:
            return self
        one, other = (math.inf if length is None else length for length in (brief, full))
        return Compared(self.shorter + (one < other), self.longer + (one > other), self.compared + 1)

    @property
    def clear(self) -> bool:
        """Whether no further question is needed: it follows them."""
        return self.shorter - self.longer >= LEAD

    @property
    def follows(self) -> bool:
        """Whether the model is taken to follow notes."""
        return self.clear or self.compared < FEWEST


class AskedTwice:
    """Asks a model until it is clear that it follows notes, or there is no further question.

    What an error ends goes on later with the question that it broke off at.
    """

    def __init__(self, ask: Callable[[GenerateRequest], Awaitable[Generated]]) -> None:
        self._ask = ask
        self._found = Compared()
        self._questions = [*QUESTIONS]

    async def end(self) -> Compared:
        """Ask what is left, and return what all answers have shown. Raises what asking does."""
        while self._questions and not self._found.clear:
            brief, full = [await _length(self._ask, note, self._questions[0]) for note in (_BRIEF, _FULL)]
            self._found = self._found.and_(brief, full)
            del self._questions[0]
        return self._found


async def _length(
    ask: Callable[[GenerateRequest], Awaitable[Generated]], note: str, question: str
) -> int | None:
    """Of an answer, in characters; None for one that did not come to its end, however it ended."""
    request = GenerateRequest(
        messages=[{"role": "system", "content": note}, {"role": "user", "content": question}],
        max_tokens=_TOKENS,
        temperature=0.0,
        seed=0,
        version=BASE,  # one that has learnt to be brief is brief with either note
    )
    answer = await ask(request)
    return len(answer.text.strip()) if answer.finish == "stop" else None


class FollowTrial:
    """Tries the model as soon as it has loaded, while nobody waits for an answer.

    A few short answers are no load: neither a battery nor a training puts them off, for until they are there
    nobody knows whether notes do harm. Until then they are followed, however long that takes: else the first
    chip would do nothing on a model that follows.
    """

    def __init__(self, parts: AnsweringParts) -> None:
        self._parts = parts
        self._trial = AskedTwice(parts.spare.answer)

    async def loop(self) -> None:
        """Return once it is known."""
        known = False
        while not known:
            with boundary(logger, "trying whether the model follows notes"):
                known = await self._known()
                if not known:
                    await self.once()
            await self._parts.clock.sleep(_SECONDS)

    async def once(self) -> None:
        """Try it now, unless the model is away. Raises ServerError, StoreError."""
        p = self._parts
        if p.presence.away:
            return
        found = await self._trial.end()
        now = p.clock.now()
        await p.store.write(lambda db: notes.tried(db, p.pool.model, found.follows, now))
        if not found.follows:
            logger.warning(
                "the model does not follow notes: of %d answers %d were shorter where fewer words were asked "
                "for, and %d longer. So there are none",
                found.compared,
                found.shorter,
                found.longer,
            )

    async def _known(self) -> bool:
        p = self._parts
        if p.notes.where == "never":
            return True
        return await p.store.read(lambda db: notes.follows(db, p.pool.model)) is not None
