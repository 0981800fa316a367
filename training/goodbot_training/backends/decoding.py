# SPDX-License-Identifier: Apache-2.0
"""What a sampling loop is made of, once for all backends: a backend only computes one step.

A token is drawn by inverting the cumulative distribution at a uniform number, and the uniforms come
from NumPy, seeded by the request. So a seed gives the same answer alone or among others, and, up to
rounding, on another backend.

`generating` is for requests that are all known beforehand; `batching` is for those that come and go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from goodbot.api.events import Message
from goodbot.api.sampler import Sampled, SampleRequest
from goodbot.base.errors import ServerError
from goodbot.base.sampling import Filters
from goodbot.base.worded import Worded

from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.thoughts import BROKEN, Leading

if TYPE_CHECKING:
    from goodbot.api.step import Floats

_NOT_FINITE = "The model's numbers are not finite."
_WINDOW, _OVERLAP = 32, 8
"""Tokens that are turned into text again with each new one, and how many of them stay for the next."""


@dataclass(frozen=True)
class Filtered:
    """How a row is drawn beside its temperature and its uniform."""

    filters: Filters
    said: Sequence[int] = ()
    """The tokens that stand in its prompt and its answer, for the penalty; in no order."""


class Steps(Protocol):
    """Sequences of one length that grow together, with a KV cache of their own. B rows."""

    def __call__(self, inputs: Any, temperatures: Floats, uniforms: Floats) -> tuple[list[int], list[float]]:
        """New ids `(B, S)`, temperatures `(B,)`, uniforms `(B,)` → the drawn token and its log-prob, a
        row each. Temperature 0 takes the likeliest, scored at 1."""
        ...

    def filtered(
        self, inputs: Any, temperatures: Floats, uniforms: Floats, rows: Sequence[Filtered]
    ) -> tuple[list[int], list[float], list[float]]:
        """As a call, where some rows are drawn from less than the whole distribution: also the lifts, see
        `filtering`. A row without filters is drawn as by a call. Nothing takes the likeliest out, so
        temperature 0 knows only the penalty."""
        ...

    def read(self, inputs: Any) -> None:
        """Take ids `(B, S)` in without drawing."""
        ...

    def likeliest(self, inputs: Any, top: int) -> tuple[list[int], list[float]]:
        """New ids `(1, S)` → the `top` likeliest next tokens, best first, and their log-probs."""
        ...

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows, in this order; one may be named several times."""
        ...


class Batchable(Steps, Protocol):
    """Sequences of any length, which also come and go while they grow."""

    def begin(self, lengths: Sequence[int]) -> None:
        """Of a fresh one: the ids that come first are of rows of these lengths, padded on the left.

        Raises what the family's cache raises that cannot.
        """
        ...

    def join(self, other: Any) -> None:
        """Take in the rows of another `Steps`, which is used up. Their lengths may differ.

        Raises NotImplementedError where the family's cache is of another kind.
        """
        ...

    def split(self, row: int) -> Batchable:
        """A copy of one row, by itself."""
        ...

    def crop(self, tokens: int) -> bool:
        """Forget the newest tokens; False where that cannot be, and then it is of no more use."""
        ...


class Decoder(Protocol):
    """A model that can continue sequences."""

    context: int
    """Tokens that the model can see, prompt and answer together."""
    rounding: float
    """Nats by which log-probs may differ that were computed in another order."""

    def decoder(self) -> Steps:
        """Steps from an empty KV cache."""
        ...


class BatchableDecoder(Decoder, Protocol):
    """One whose sequences come and go."""

    def decoder(self) -> Batchable:
        """Steps from an empty KV cache."""
        ...


def first_tokens(
    model: Decoder, chat: ChatTemplate, messages: Sequence[Message], top: int
) -> dict[str, float]:
    """How the model in its present state may begin an answer; see `TrainingBackend.first_tokens`.

    What it can never say is left out. Raises ServerError for log-probs that are no numbers.
    """
    prompt = chat.prompt(messages)
    if len(prompt) >= model.context:
        raise too_long(model.context)
    tokens, logprobs = model.decoder().likeliest(np.asarray([prompt], np.int64), top)
    if not math.isfinite(logprobs[0]):
        raise ServerError(_NOT_FINITE)
    found: dict[str, float] = {}
    for token, logprob in zip(tokens, logprobs, strict=True):
        if math.isfinite(logprob):
            found.setdefault(chat.name(token), logprob)
    return found


def too_long(context: int) -> ServerError:
    """What to raise for a conversation that the model cannot see whole."""
    return ServerError(
        Worded("The conversation is longer than the model's {context} tokens.", context=context)
    )


def drawn(
    steps: Steps, inputs: Any, rows: Sequence[Row], uniforms: Sequence[float]
) -> list[tuple[int, float, float]]:
    """The next token of each row with its log-prob and its lift. Raises what the model raises."""
    temperatures = np.asarray([row.request.temperature for row in rows], np.float32)
    numbers = np.asarray(uniforms, np.float32)
    if any(row.request.filters for row in rows):
        by = [row.filtered for row in rows]
        return list(zip(*steps.filtered(inputs, temperatures, numbers, by), strict=True))
    tokens, logprobs = steps(inputs, temperatures, numbers)
    return [(token, logprob, 0.0) for token, logprob in zip(tokens, logprobs, strict=True)]


class Row:
    """One answer while it grows."""

    def __init__(
        self,
        prompt: tuple[int, ...],
        request: SampleRequest,
        chat: ChatTemplate,
        context: int,
        on_text: Callable[[str], bool] | None,
    ) -> None:
        """`context`: tokens that prompt and answer may have together. Raises ServerError."""
        if len(prompt) >= context:
            raise too_long(context)
        self.prompt, self.request, self.finish = prompt, request, ""
        self.limit = max(1, min(request.max_tokens, context - len(prompt)))
        """Tokens of the answer at most, without the end token."""
        self.tokens: list[int] = []
        self._logprobs: list[float] = []
        self._lifts: list[float] = []
        self._said: set[int] = set()
        self._random = np.random.default_rng(request.seed)
        self._chat, self._on_text = chat, on_text
        self._words = 0  # tokens without the end token
        self._pieces: list[str] = []
        self._from, self._shown = 0, ""
        self._leading = Leading(chat.thoughts, chat.text, prompt, request.messages)

    def restart(self) -> None:
        """Draw the next token's number again, and those after it: what was drawn ahead is lost."""
        self._random = np.random.default_rng(self.request.seed)
        self._random.random(len(self.tokens))

    def uniform(self) -> float:
        """The number that the next token is drawn with."""
        return self._random.random()

    @property
    def filtered(self) -> Filtered:
        """How the next token is drawn."""
        filters = self.request.filters
        if filters.repetition_penalty == 1:
            return Filtered(filters)
        if not self._said:
            self._said.update(self.prompt)
        self._said.update(self.tokens[-1:])
        return Filtered(filters, tuple(self._said))

    def add(self, token: int, logprob: float, stops: frozenset[int], lift: float = 0.0) -> None:
        """Go on by a token. Raises ServerError for a log-prob that is no number."""
        if not (math.isfinite(logprob) and math.isfinite(lift)):
            raise ServerError(_NOT_FINITE)
        self.tokens.append(token)
        self._logprobs.append(logprob)
        self._lifts.append(lift)
        if token in stops:
            self.finish = "stop"
        else:
            self._words += 1
            if self._words >= self.limit:
                self.finish = "length"
        if self._on_text is not None and not self._on_text(self._piece()):
            self.finish = self.finish or "cancelled"

    def thought(self) -> str:
        """What it has thought since this was asked last."""
        return self._leading.told()

    def result(self) -> Sampled:
        """The whole answer, as far as it came."""
        if self._on_text is None:
            self._piece()
        self._pieces.append(self._leading.rest())
        return Sampled(
            prompt=self.prompt,
            tokens=tuple(self.tokens),
            logprobs=tuple(self._logprobs),
            lifts=tuple(self._lifts) if self.request.filters else (),
            text="".join(self._pieces),
            finish=self.finish,
            thought=self._leading.thought,
            thought_tokens=self._leading.tokens,
        )

    def _piece(self) -> str:
        """Text that is new and whole; half a character waits until the answer ends.

        Only the newest tokens are turned into text, so that a long answer costs no more than a short one.
        """
        window = self.tokens[self._from : self._words]
        leading = not self._leading.over
        decode = self._chat.thoughts.raw if leading else self._chat.text
        text = decode(window)
        if not self.finish:
            text = text.rstrip(BROKEN)
        if not text.startswith(self._shown):
            text = self._shown
        piece, self._shown = text[len(self._shown) :], text
        moves = len(window) >= _WINDOW and piece and not self.finish
        if leading:
            piece = self._leading.feed(piece, self.tokens, self._words, self.finish)
        piece = self._leading.more(piece) + (self._leading.rest() if self.finish else "")
        self._pieces.append(piece)
        if leading and self._leading.over:
            self._from = self._leading.tokens
        elif moves:
            self._from = self._words - _OVERLAP
        else:
            return piece
        decode = self._chat.text if self._leading.over else decode
        text = decode(self.tokens[self._from : self._words])
        self._shown = text if self.finish else text.rstrip(BROKEN)
        return piece
