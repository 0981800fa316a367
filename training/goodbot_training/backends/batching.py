"""Answers that are asked for and end at any time, written together: continuous batching.

mlx-lm's `BatchGenerator` and transformers' continuous batching bring schedulers of their own. They are
not used, because neither keeps what an answer here must keep: its own uniforms, so that a seed names an
answer alone or among others and on both backends; fp32 log-probs of the sampled tokens at the sampling
temperature; the version that it began with, while other rows are written by another (the first
computes a token ahead, and the weights of a batch cannot be exchanged; the second owns its thread, draws
by a generator that all rows share, and pages its cache for GPUs). Their KV caches are used.

So this only says who is written when. All rows are one batch, whatever their version, where the model can
take each row's adapter by itself (`row_adapters`); otherwise those of one version are. One pass of the
model is a token for all of a batch. Between two passes rows come and go, and prompts are read, a part at
a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

import numpy as np
from goodbot.backend import Sampled, SampleRequest
from goodbot.errors import ServerError

from goodbot_training.backends.abilities import Abilities, By
from goodbot_training.backends.answers import Answer, Batch
from goodbot_training.backends.chat import Chat
from goodbot_training.backends.decoding import Decoder, Row, Steps
from goodbot_training.backends.prefixes import PrefixCache

_ROWS = 128
"""Answers that are written at the same time, at most."""
_TOKENS = 32_768
"""In their KV caches, at most: 4.8 GB for a model of 8 billion weights. One alone always goes."""
_PART = 512
"""Tokens of prompts that are read before the others get their next token."""
_SPREAD = 64
"""Tokens by which prompts that are read together may differ."""
OnText = Callable[[str], bool]
Ended = tuple[Hashable, Sampled | Exception]


class Batching:
    """The answers of one loaded model, by its versions."""

    def __init__(self, model: Decoder, chat: Chat, by: By, *, mixes_versions: bool = False) -> None:
        """`mixes_versions`: `by` takes several at once; believed when it was tried."""
        self._model, self._chat, self._by = model, chat, by
        self._mixes_versions = mixes_versions
        self.abilities = Abilities(model)
        self._prefixes = PrefixCache()
        self._waiting: deque[Answer] = deque()
        self._batches: list[Batch] = []
        self._ended: list[Ended] = []
        self._unwanted: set[Hashable] = set()
        self._told = False
        """Whether the step before ended with first tokens, which nobody should wait a pass longer for."""

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
            Answer(key=key, row=row, version=version, conversation=request.conversation)
        )

    def cancel(self, key: Hashable) -> None:
        """End an answer at the next step, as far as it has come. An unknown one is ignored."""
        self._unwanted.add(key)

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
        """Read a part of what is new, write one token on each answer; those that have ended.

        A step that has drawn first tokens ends with them; the one after it writes in any case.
        """
        if self._unwanted:
            self._drop_unwanted()
        began = self._read()
        self._told = began and not self._told
        if not self._told:
            for batch in list(self._batches):
                self._guarded(batch, self._write)
        ended, self._ended = self._ended, []
        return ended

    def _guarded(self, batch: Batch, do: Callable[[Batch], None]) -> None:
        """What goes wrong with a batch ends its own answers, and nobody else's."""
        try:
            do(batch)
        except Exception as error:
            self._batches = [other for other in self._batches if other is not batch]
            self._fail(batch.answers, error)

    def _under_way(self) -> list[Answer]:
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

    def _read(self) -> bool:
        """Read prompts, the oldest first, until a part's worth is done; whether answers have begun."""
        left, began = _PART, False
        while left > 0 and (answers := self._next(left)):
            try:
                with self._by([answer.version for answer in answers]):
                    left -= self._read_some(answers, left)
            except Exception as error:
                self._give_up(answers, error)
                continue
            first = answers[0]
            if first.steps is not None and (first.row.tokens or first.row.finish):
                for answer in answers:
                    self._waiting.remove(answer)
                new, first.steps = Batch(steps=first.steps, answers=answers), None
                self._settle(new)
                began = True
        return began

    def _next(self, most: int) -> list[Answer]:
        """The oldest that waits, with those that can be read beside it, `most` tokens together."""
        found: list[Answer] = []
        for answer in self._waiting:
            width = max(len(one.row.prompt) for one in (*found, answer))
            if found and (not self._beside(found[0], answer) or width * (len(found) + 1) > most):
                break
            if not self._fits(answer, found):
                break
            found.append(answer)
        return found

    def _beside(self, first: Answer, answer: Answer) -> bool:
        """Whether two prompts can be read in one pass: new ones, of about the same length."""
        new = all(
            not (one.steps or one.alone or self._prefixes.knows(one.version, one.conversation))
            for one in (first, answer)
        )
        apart = abs(len(first.row.prompt) - len(answer.row.prompt))
        return (
            new
            and apart <= _SPREAD
            and self.abilities.pads
            and self._together(first.version, answer.version)
        )

    def _read_some(self, answers: list[Answer], most: int) -> int:
        """Read whole prompts together and draw their first tokens, or on in a single one; how much."""
        if len(answers) == 1:
            return self._read_part(answers[0], most)
        lengths = [len(answer.row.prompt) for answer in answers]
        inputs = np.zeros((len(answers), max(lengths)), np.int64)
        for row, answer, length in zip(inputs, answers, lengths, strict=True):
            row[len(row) - length :] = answer.row.prompt
        steps = self._model.decoder()
        steps.begin(lengths)
        self._draw(steps, inputs, answers)
        answers[0].steps = steps
        return sum(lengths)

    def _give_up(self, answers: list[Answer], error: Exception) -> None:
        """Several are tried again one by one: one of them may have been to blame."""
        if len(answers) > 1 and not any(answer.row.tokens for answer in answers):
            for answer in answers:
                answer.alone = True
                answer.row.restart()
            return
        for answer in answers:
            answer.steps = None
            self._waiting.remove(answer)
        self._fail(answers, error)

    def _read_part(self, answer: Answer, most: int) -> int:
        """Read on in a prompt, and draw the first token at its end; how much was read."""
        prompt = answer.row.prompt
        if answer.steps is None:
            known = answer.conversation and self._prefixes.take(
                answer.version, answer.conversation, prompt
            )
            if known and (len(prompt) - known[0] == 1 or self.abilities.resumes):
                answer.read, answer.steps = known
            else:
                answer.read, answer.steps = 0, self._model.decoder()
        rest = prompt[answer.read :]
        if len(rest) > most and self.abilities.resumes:
            answer.steps.read(np.asarray([rest[:most]], np.int64))
            answer.read += most
            return most
        self._draw(answer.steps, np.asarray([rest], np.int64), [answer])
        answer.read = len(prompt)
        return len(rest)

    def _fits(self, answer: Answer, beside: list[Answer]) -> bool:
        rooms = [one.room for batch in self._batches for one in batch.answers]
        rooms += [one.room for one in beside]
        return not rooms or (len(rooms) < _ROWS and sum(rooms) + answer.room <= _TOKENS)

    def _settle(self, new: Batch) -> None:
        """Put answers that have begun beside those that they can be written with."""
        others = list(self._batches)
        self._batches.append(new)
        self._guarded(new, self._let_go)  # a first token may be the last
        if new not in self._batches:
            return
        for batch in others:
            if self.abilities.mixes and self._together(
                batch.answers[0].version, new.answers[0].version
            ):
                self._batches.remove(new)
                batch.answers += new.answers
                self._guarded(batch, lambda batch: batch.steps.join(new.steps))
                return

    def _together(self, one: int, other: int) -> bool:
        return one == other or (
            self._mixes_versions and self.abilities.mixes_versions(self._by, (one, other))
        )

    # -- answers

    def _write(self, batch: Batch) -> None:
        inputs = np.asarray([answer.row.tokens[-1:] for answer in batch.answers], np.int64)
        with self._by(batch.versions):
            self._draw(batch.steps, inputs, batch.answers)
        self._let_go(batch)

    def _draw(self, steps: Steps, inputs: np.ndarray, answers: list[Answer]) -> None:
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

    def _let_go(self, batch: Batch) -> None:
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

    def _end(self, answer: Answer) -> None:
        self._ended.append((answer.key, answer.error or answer.row.result()))

    def _fail(self, answers: list[Answer], error: Exception) -> None:
        """It may have been for want of memory: what is only kept goes as well."""
        self._prefixes.forget()
        self._ended += [(answer.key, error) for answer in answers]
