# SPDX-License-Identifier: Apache-2.0
"""Answers that come and go, written by mlx-lm's `BatchGenerator`.

What that does not do is done here: bound what is under way, keep the caches of conversations, tell whose
fault an error was, and find out whether rows of a family's cache may be joined at all.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import mlx.core as mx
import numpy as np

from goodbot_training.backends.answers import PART, By, ContinuousBatch, Generation
from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.mlx.batch_decoder import BatchDecoder, DecoderRow, PrefixState
from goodbot_training.backends.mlx.sampler import MlxDecoder

_TRIED = ((5, 9, 3, 7, 11, 4, 8, 6), (10, 12, 6), (6, 8, 4, 11, 7), (12, 5))
_NEXT = 7


class BatchedModel(Protocol):
    """What is written with."""

    causal: Any
    context: int
    rounding: float
    mixes_versions: bool


class MlxBatching(ContinuousBatch[PrefixState]):
    """By one `BatchGenerator`; by one a version where a pass cannot have several, and by one an answer where
    a family's rows cannot be joined."""

    def __init__(self, model: BatchedModel, chat: ChatTemplate, by: By) -> None:
        super().__init__(chat, model.context)
        self._model, self._by = model, by
        self._writers: list[BatchDecoder] = []
        self._joins: dict[bool, bool] = {True: False} if not model.mixes_versions else {}
        """Whether rows of one version (False), or of several (True), can be in one batch."""

    def _written(self) -> list[Generation]:
        return [line.answer for one in self._writers for line in one.lines.values() if line.answer]

    def _go_on(self) -> None:
        self._begin()
        for writer in list(self._writers):
            try:
                self._write(writer)
            except Exception as error:
                self._break_off(writer, error)
        self._close([writer for writer in self._writers if not writer.lines])

    def _write(self, writer: BatchDecoder) -> None:
        for told in writer.step():
            answer = writer.lines[told.uid].answer
            assert answer  # noqa: S101  only those that are tried have none
            self._add(answer, told.token, told.logprob, told.lift)
            if answer.row.finish:
                self._let_go(writer, told.uid, told.kept)

    def _let_all_go(self) -> None:
        for writer in list(self._writers):
            try:
                for uid, line in list(writer.lines.items()):
                    if line.answer and line.answer.row.finish:
                        self._let_go(writer, uid)
            except Exception as error:
                self._break_off(writer, error)

    def _let_go(
        self, writer: BatchDecoder, uid: int, kept: tuple[list[int], PrefixState] | None = None
    ) -> None:
        kept = kept or writer.remove(uid)
        answer = writer.lines.pop(uid).answer
        assert answer  # noqa: S101
        self._end(answer)
        if answer.conversation and not answer.error:
            # Cut out now: a slice that nobody asks for holds the keys and values of the whole batch.
            mx.async_eval([layer.state for layer in kept[1].layers])
            self._prefixes.put(answer.version, answer.conversation, *kept)

    def _break_off(self, writer: BatchDecoder, error: Exception) -> None:
        """A pass that fails ends the answers of its rows; the others go on in another writer.

        Prompts that were read together are tried again one by one: one of them may have been to blame.
        """
        self._close([writer])
        failed = writer.failed or [*writer.lines.values()]
        again = len(failed) > 1 and not any(line.began for line in failed)
        for line in reversed(writer.lines.values()):
            answer = line.answer
            assert answer  # noqa: S101
            if line in failed and not again:
                self._fail([answer], error)
                continue
            answer.alone |= again and line in failed
            answer.row.restart()
            self._waiting.appendleft(answer)

    def _close(self, writers: Sequence[BatchDecoder]) -> None:
        for writer in writers:
            self._writers.remove(writer)
            writer.close()

    # -- who is written by whom

    def _begin(self) -> None:
        """Let in those that wait, the oldest first, as far as there is room."""
        while self._waiting and self._may_begin(self._waiting[0]):
            answer = self._waiting.popleft()
            row = answer.row
            prompt = (*row.prompt, *row.tokens)  # it may have been written by another before
            line = DecoderRow(answer.version, answer)
            known = self._prefixes.take(answer.version, answer.conversation, prompt)
            try:
                writer = self._writer(line)
                writer.insert(line, prompt, row.limit - len(row.tokens), known)
            except Exception as error:
                self._fail([answer], error)

    def _may_begin(self, answer: Generation) -> bool:
        lines = [line for writer in self._writers for line in writer.lines.values()]
        if not self._fits(answer) or any(not line.left and not line.began for line in lines):
            return False  # whose prompts are read have their first tokens first
        reading = [line for line in lines if line.left]
        alone = answer.alone or any(line.answer and line.answer.alone for line in reading)
        known = self._prefixes.knows(answer.version, answer.conversation)
        width = max([0 if known else len(answer.row.prompt), *(line.left for line in reading)])
        return not reading or (not alone and width * (len(reading) + 1) <= PART)

    def _writer(self, line: DecoderRow) -> BatchDecoder:
        for writer in self._writers:
            versions = {other.version for other in writer.lines.values()}
            if self._can_join(line.version, versions - {line.version}):
                return writer
        writer = BatchDecoder(self._model.causal, self._by, stops=sorted(self._chat.stops), part=PART)
        self._writers.append(writer)
        return writer

    def _can_join(self, version: int, others: set[int]) -> bool:
        """Tried once for a single version, and once for several."""
        for several in (False, True)[: 2 if others else 1]:
            if several not in self._joins:
                self._joins[several] = False
                with suppress(Exception):  # each family's cache fails in its own way
                    other = min(others) if several else version
                    self._joins[several] = all(self._tried(version, other))
            if not self._joins[several]:
                return False
        return True

    def _tried(self, one: int, other: int) -> Iterator[bool]:
        """Whether rows that come, are read in parts and go are what they are alone."""
        writer = BatchDecoder(
            self._model.causal,
            self._by,
            part=3,
            sampler=lambda logprobs: mx.full(len(logprobs), _NEXT, mx.uint32),
        )
        ends: dict[DecoderRow, mx.array] = {}
        lines = {DecoderRow((one, other)[number % 2]): prompt for number, prompt in enumerate(_TRIED)}
        for number, (line, prompt) in enumerate(lines.items()):
            writer.insert(line, prompt, 4 + number)
            if number:
                _try_on(writer, ends)
        while len(ends) < len(lines):
            _try_on(writer, ends)
        writer.close()
        for number, (line, prompt) in enumerate(lines.items()):
            with self._by([line.version]):
                alone = MlxDecoder(self._model.causal)
                alone.read(np.asarray([(*prompt, *[_NEXT] * (2 + number))], np.int64))
                tokens, logprobs = alone.likeliest(np.asarray([[_NEXT]]), ends[line].size)
            apart = np.array(ends[line])[tokens] - np.asarray(logprobs)
            yield bool(np.abs(apart).max() < self._model.rounding)


def _try_on(writer: BatchDecoder, ends: dict[DecoderRow, mx.array]) -> None:
    for told in writer.generator.next()[1]:
        if told.finish_reason:
            ends[writer.lines[told.uid]] = told.logprobs
