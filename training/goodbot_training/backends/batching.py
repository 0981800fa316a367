"""Answers that are asked for and end at any time, written together: continuous batching.

mlx-lm's `BatchGenerator` and transformers' continuous batching bring schedulers of their own. They are
not used, because neither keeps what an answer here must keep: its own uniforms, so that a seed names an
answer alone or among others and on both backends; fp32 log-probs of the sampled tokens at the sampling
temperature; the version that it began with, while other rows are written by another (the first
computes a token ahead, and the weights of a batch cannot be exchanged; the second owns its thread, draws
by a generator that all rows share, and pages its cache for GPUs). Their KV caches are used.

So this only says who is written when. Rows of one version are a batch: one pass of the model is a token
for all of them. Between two passes rows come and go, prompts are read, a part at a time, and the
adapter's weights are exchanged, so that versions stand side by side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from goodbot.backend import Sampled, SampleRequest
from goodbot.errors import ServerError

from goodbot_training.backends.abilities import Abilities
from goodbot_training.backends.chat import Chat
from goodbot_training.backends.decoding import Decoder, Row, Steps
from goodbot_training.backends.prefixes import PrefixCache

_ROWS = 128
"""Answers that are written at the same time, at most."""
_TOKENS = 32_768
"""In their KV caches, at most: 4.8 GB for a model of 8 billion weights. One alone always goes."""
_PART = 512
"""Tokens of prompts that are read before the others get their next token."""
OnText = Callable[[str], bool]
Ended = tuple[Hashable, Sampled | Exception]


@dataclass(kw_only=True, eq=False)
class _Answer:
    key: Hashable
    row: Row
    version: int
    conversation: str
    steps: Steps | None = None
    """While its prompt is read: its own cache."""
    read: int = 0
    """Tokens of the prompt that this has seen."""
    error: ServerError | None = None

    @property
    def room(self) -> int:
        return len(self.row.prompt) + self.row.limit


@dataclass(kw_only=True, eq=False)
class _Batch:
    """Rows of one version in one cache."""

    version: int
    steps: Steps
    answers: list[_Answer] = field(default_factory=list[_Answer])


class Batching:
    """The answers of one loaded model. `place(version)` puts a version's weights into it."""

    def __init__(self, model: Decoder, chat: Chat, place: Callable[[int], None]) -> None:
        self._model, self._chat, self._place = model, chat, place
        self._abilities = Abilities(model)
        self._prefixes = PrefixCache()
        self._waiting: deque[_Answer] = deque()
        self._batches: list[_Batch] = []
        self._ended: list[Ended] = []
        self._unwanted: set[Hashable] = set()

    def start(
        self, key: Hashable, request: SampleRequest, version: int, on_text: OnText | None = None
    ) -> None:
        """Begin an answer, which `step` writes and then gives back with its key.

        Raises ServerError for a conversation that the model cannot see whole, TrainingError for one that
        its template refuses.
        """
        prompt = self._chat.prompt(request.messages)
        row = Row(prompt, request, self._chat, self._model.context, on_text)
        self._waiting.append(
            _Answer(key=key, row=row, version=version, conversation=request.conversation)
        )

    def cancel(self, key: Hashable) -> None:
        """End an answer at the next step, as far as it has come. An unknown one is ignored."""
        self._unwanted.add(key)

    def writes(self, version: int | None = None) -> bool:
        """Whether an answer by this version, or by any, is under way or not yet given back."""
        return any(version in (None, answer.version) for answer in self._under_way())

    def forget(self, version: int) -> None:
        """Drop the caches that a version has made, or is making, for questions to come."""
        self._prefixes.forget(version)
        for answer in self._under_way():
            if answer.version == version:
                answer.conversation = ""

    def step(self) -> list[Ended]:
        """Read a part of what is new, write one token on each answer; those that have ended."""
        if self._unwanted:
            self._drop_unwanted()
        self._read()
        for batch in list(self._batches):
            self._guarded(batch, self._write)
        ended, self._ended = self._ended, []
        return ended

    def _guarded(self, batch: _Batch, do: Callable[[_Batch], None]) -> None:
        """What goes wrong with a batch ends its own answers, and nobody else's."""
        try:
            do(batch)
        except Exception as error:
            self._batches = [other for other in self._batches if other is not batch]
            self._fail(batch.answers, error)

    def _under_way(self) -> list[_Answer]:
        return [*self._waiting, *(answer for batch in self._batches for answer in batch.answers)]

    def _drop_unwanted(self) -> None:
        unwanted, self._unwanted = self._unwanted, set()
        for answer in self._under_way():
            if answer.key in unwanted:
                answer.row.finish = "cancelled"
        for answer in [answer for answer in self._waiting if answer.row.finish]:
            self._waiting.remove(answer)
            self._end(answer)
        for batch in list(self._batches):
            self._guarded(batch, self._let_go)

    # -- prompts

    def _read(self) -> None:
        """Read prompts, the oldest first, until a part's worth is done."""
        left = _PART
        while self._waiting and left > 0 and self._fits(self._waiting[0]):
            answer = self._waiting[0]
            try:
                self._place(answer.version)
                left -= self._read_part(answer, left)
            except Exception as error:
                answer.steps = None
                self._waiting.popleft()
                self._fail([answer], error)
                continue
            if answer.row.tokens or answer.row.finish:
                self._waiting.popleft()
                self._settle(answer)

    def _read_part(self, answer: _Answer, most: int) -> int:
        """Read on in a prompt, and draw the first token at its end; how much was read."""
        prompt = answer.row.prompt
        if answer.steps is None:
            known = answer.conversation and self._prefixes.take(
                answer.version, answer.conversation, prompt
            )
            if known and (len(prompt) - known[0] == 1 or self._abilities.resumes):
                answer.read, answer.steps = known
            else:
                answer.read, answer.steps = 0, self._model.decoder()
        rest = prompt[answer.read :]
        if len(rest) > most and self._abilities.resumes:
            answer.steps.read(np.asarray([rest[:most]], np.int64))
            answer.read += most
            return most
        self._draw(answer.steps, np.asarray([rest], np.int64), [answer])
        answer.read = len(prompt)
        return len(rest)

    def _fits(self, answer: _Answer) -> bool:
        rooms = [one.room for batch in self._batches for one in batch.answers]
        return not rooms or (len(rooms) < _ROWS and sum(rooms) + answer.room <= _TOKENS)

    def _settle(self, answer: _Answer) -> None:
        """Put an answer that has begun into the batch of its version."""
        steps, answer.steps = answer.steps, None
        assert steps is not None  # noqa: S101  it has read its prompt
        own = _Batch(version=answer.version, steps=steps, answers=[answer])
        if not answer.row.finish:
            for batch in self._batches:
                if batch.version == answer.version and self._abilities.mixes:
                    batch.answers.append(answer)
                    self._guarded(batch, lambda batch: batch.steps.join(steps))
                    return
        self._batches.append(own)
        self._guarded(own, self._let_go)

    # -- answers

    def _write(self, batch: _Batch) -> None:
        self._place(batch.version)
        inputs = np.asarray([answer.row.tokens[-1:] for answer in batch.answers], np.int64)
        self._draw(batch.steps, inputs, batch.answers)
        self._let_go(batch)

    def _draw(self, steps: Steps, inputs: np.ndarray, answers: list[_Answer]) -> None:
        """A token for each of these rows. Raises what the model raises."""
        rows = [answer.row for answer in answers]
        temperatures = np.asarray([row.request.temperature for row in rows], np.float32)
        uniforms = np.asarray([row.uniform() for row in rows], np.float32)
        tokens, logprobs = steps(inputs, temperatures, uniforms)
        for answer, token, logprob in zip(answers, tokens, logprobs, strict=True):
            try:
                answer.row.add(token, logprob, self._chat.stops)
            except ServerError as error:
                answer.row.finish, answer.error = "failed", error

    def _let_go(self, batch: _Batch) -> None:
        """Give back the answers of a batch that have ended; the others go on."""
        answers = batch.answers
        kept = [number for number, one in enumerate(answers) if not one.row.finish]
        if len(kept) == len(answers):
            return
        batch.answers = [answers[number] for number in kept]
        for answer in answers:
            if answer.row.finish:
                self._end(answer)
        for number, answer in enumerate(answers):
            if answer.row.finish and answer.conversation and not answer.error:
                self._prefixes.put(
                    answer.version, answer.conversation,
                    (*answer.row.prompt, *answer.row.tokens[:-1]),
                    batch.steps if len(answers) == 1 else batch.steps.split(number),
                )  # fmt: skip
        if kept:
            batch.steps.select(kept)
        else:
            self._batches.remove(batch)

    def _end(self, answer: _Answer) -> None:
        self._ended.append((answer.key, answer.error or answer.row.result()))

    def _fail(self, answers: list[_Answer], error: Exception) -> None:
        """It may have been for want of memory: what is only kept goes as well."""
        self._prefixes.forget()
        self._ended += [(answer.key, error) for answer in answers]
