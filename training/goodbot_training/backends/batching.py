# SPDX-License-Identifier: Apache-2.0
"""Answers that are asked for and end at any time, written together by steps: continuous batching for torch.

MLX has mlx-lm's `BatchGenerator` for that. transformers' continuous batching was tried: a caller can step it,
and a logits processor can give each row its own draws. But it finds blocks of keys by their tokens alone, so
they outlive the weights that made them, and serve other conversations. It refuses recurrent layers, chunked
attention and MLA. A cancelled answer is gone, a pass that fails leaves it unusable, its cache has its full
size from the start; and on a processor each row attends over the keys of all: it is ahead of this with one
chat, and behind with 8 and 32. docs/performance.md has the figures.

So this says who is written when. All rows are one batch, whatever their version, where the model can take
each row's adapter by itself (`row_adapters`); otherwise those of one version are. One pass of the model is a
token for all of a batch. Between two passes rows come and go, and prompts are read, a part at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from goodbot_training.backends.abilities import Abilities
from goodbot_training.backends.answers import PART, Batch, By, ContinuousBatch, Generation
from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.decoding import Batchable, BatchableDecoder, drawn

_SPREAD = 64
"""Tokens by which prompts that are read together may differ."""


class Batching(ContinuousBatch[Batchable]):
    """By steps that can be joined."""

    def __init__(
        self, model: BatchableDecoder, chat: ChatTemplate, by: By, *, mixes_versions: bool = False
    ) -> None:
        """`mixes_versions`: `by` takes several at once; believed when it was tried."""
        super().__init__(chat, model.context)
        self._model, self._by = model, by
        self._mixes_versions = mixes_versions
        self._abilities = Abilities(model)
        self._batches: list[Batch] = []
        self._told = False
        """Whether the step before ended with first tokens, which nobody should wait a pass longer for."""

    @property
    def abilities(self) -> Abilities:
        return self._abilities

    def _go_on(self) -> None:
        """A step that has drawn first tokens ends with them; the one after it writes in any case."""
        began = self._read()
        self._told = began and not self._told
        if not self._told:
            for batch in list(self._batches):
                self._guarded(batch, self._write)

    def _guarded(self, batch: Batch, do: Callable[[Batch], None]) -> None:
        """What goes wrong with a batch ends its own answers, and nobody else's."""
        try:
            do(batch)
        except Exception as error:
            self._batches = [other for other in self._batches if other is not batch]
            self._fail(batch.answers, error)

    def _written(self) -> list[Generation]:
        return [answer for batch in self._batches for answer in batch.answers]

    def _let_all_go(self) -> None:
        for batch in list(self._batches):
            self._guarded(batch, self._let_go)

    # -- prompts

    def _read(self) -> bool:
        """Read prompts, the oldest first, until a part's worth is done; whether answers have begun."""
        left, began = PART, False
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

    def _next(self, most: int) -> list[Generation]:
        """The oldest that waits, with those that can be read beside it, `most` tokens together."""
        found: list[Generation] = []
        for answer in self._waiting:
            width = max(len(one.row.prompt) for one in (*found, answer))
            if found and (not self._beside(found[0], answer) or width * (len(found) + 1) > most):
                break
            if not self._fits(answer, found):
                break
            found.append(answer)
        return found

    def _beside(self, first: Generation, answer: Generation) -> bool:
        """Whether two prompts can be read in one pass: new ones, of about the same length."""
        new = all(
            not (one.steps or one.alone or self._prefixes.knows(one.version, one.conversation))
            for one in (first, answer)
        )
        apart = abs(len(first.row.prompt) - len(answer.row.prompt))
        return (
            new and apart <= _SPREAD and self.abilities.pads and self._together(first.version, answer.version)
        )

    def _read_some(self, answers: list[Generation], most: int) -> int:
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

    def _give_up(self, answers: list[Generation], error: Exception) -> None:
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

    def _read_part(self, answer: Generation, most: int) -> int:
        """Read on in a prompt, and draw the first token at its end; how much was read."""
        prompt = answer.row.prompt
        if answer.steps is None:
            known = answer.conversation and self._prefixes.take(answer.version, answer.conversation, prompt)
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

    def _settle(self, new: Batch) -> None:
        """Put answers that have begun beside those that they can be written with."""
        others = list(self._batches)
        self._batches.append(new)
        self._guarded(new, self._let_go)  # a first token may be the last
        if new not in self._batches:
            return
        for batch in others:
            if self.abilities.mixes and self._together(batch.answers[0].version, new.answers[0].version):
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

    def _draw(self, steps: Batchable, inputs: np.ndarray, answers: Sequence[Generation]) -> None:
        """A token for each of these rows. Raises what the model raises."""
        rows = [answer.row for answer in answers]
        found = drawn(steps, inputs, rows, [row.uniform() for row in rows])
        for answer, (token, logprob, lift) in zip(answers, found, strict=True):
            self._add(answer, token, logprob, lift)

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
                    answer.version,
                    answer.conversation,
                    (*answer.row.prompt, *answer.row.tokens[:-1]),
                    batch.steps if len(answers) == 1 else batch.steps.split(number),
                )
        if kept:
            batch.steps.select(kept)
        else:
            self._batches.remove(batch)
