# SPDX-License-Identifier: Apache-2.0
"""mlx-lm's `BatchGenerator` with what an answer here must keep.

It reads prompts in parts, writes all rows in one batch, and computes a token ahead. The rest goes in by what
it lets its caller bring:

* The answer rides along with its row, as if it were one more layer's cache: so a pass knows the versions of
  its rows, their temperatures and the uniforms that they are drawn with.
* A pass is computed by the versions of its rows. Arrays are lazy and never change in place, so one that was
  begun ahead keeps its weights, whichever are put in place meanwhile.
* Logits leave the model in fp32, at the temperature, and penalized where they were said before, so what it
  calls log-probs are those that the draw takes tokens out of.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np
from goodbot.base.sampling import UNFILTERED, Filters
from mlx_lm.generate import BatchGenerator
from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache

from goodbot_training.backends.answers import ROWS, By, Generation
from goodbot_training.backends.mlx.sampler import draw, draw_filtered, heated, marked, normal, penalized


class DecoderRow:
    """A row."""

    def __init__(self, version: int, answer: Generation | None = None) -> None:
        self.version, self.answer = version, answer
        self.left = 0
        """Tokens of its prompt that are not read, but for the last one: that begins the answer."""
        self.began = False
        """Whether a token of this writer's has come."""
        self.ahead: deque[tuple[mx.array, int]] = deque()
        """The log-probs and lifts of passes that are not told yet, `(2, B)`, and its place in them."""
        self.said: mx.array | None = None
        """`(V,)`: the tokens of its prompt and its answer, those that are written ahead among them."""

    @property
    def temperature(self) -> float:
        """1 for one that is only tried."""
        return self.answer.row.request.temperature if self.answer else 1.0

    @property
    def filters(self) -> Filters:
        """None for one that is only tried."""
        return self.answer.row.request.filters if self.answer else UNFILTERED

    def marks(self, vocabulary: int) -> mx.array:
        """`said`, which is begun with what stands there."""
        if self.said is None:
            penalized = self.answer is not None and self.filters.repetition_penalty != 1
            row = self.answer.row if self.answer and penalized else None
            self.said = marked((*row.prompt, *row.tokens) if row else (), vocabulary)
        return self.said


class Riders:
    """The lines of a batch, which mlx-lm carries along as a layer's cache."""

    state: Any = ()
    nbytes = 0

    def __init__(self, lines: Sequence[DecoderRow]) -> None:
        self.lines = list(lines)

    @staticmethod
    def merge(several: Sequence[Riders]) -> Riders:
        """One batch of several."""
        return Riders([line for one in several for line in one.lines])

    def extend(self, other: Riders) -> None:
        """Others come behind."""
        self.lines = [*self.lines, *other.lines]

    def filter(self, rows: Sequence[int]) -> None:
        """Only these stay."""
        self.lines = [self.lines[row] for row in rows]

    def extract(self, row: int) -> Riders:
        """One by itself."""
        return Riders([self.lines[row]])

    def prepare(self, **_: Any) -> None:
        """Padding is nothing to them."""

    finalize = prepare

    def __deepcopy__(self, memo: Any) -> Riders:
        return Riders(self.lines)


class PrefixState:
    """A conversation's cache."""

    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers

    def crop(self, tokens: int) -> bool:
        """Forget the newest tokens; see `Crops`."""
        return can_trim_prompt_cache(self.layers) and trim_prompt_cache(self.layers, tokens) == tokens


class Written(NamedTuple):
    """A token of a line, and at its end what its cache holds."""

    uid: int
    token: int
    logprob: float
    lift: float
    kept: tuple[list[int], PrefixState] | None


class BatchDecoder:
    """A `BatchGenerator` with its lines."""

    def __init__(
        self,
        causal: Any,
        by: By,
        *,
        stops: Sequence[int] = (),
        part: int,
        sampler: Callable[[mx.array], mx.array] | None = None,
    ) -> None:
        self.lines: dict[int, DecoderRow] = {}
        self.failed: list[DecoderRow] = []
        """Those of a pass that has raised."""
        self._causal, self._by = causal, by
        self._rows: list[DecoderRow] = []
        self._own: mx.array | None = None
        """Of the last pass, the log-probs before tokens were penalized; None: as they are."""
        model: Any = self._pass  # it is only called
        self.generator = BatchGenerator(
            model,
            sampler=sampler or self._draw,
            stop_tokens=[[stop] for stop in stops],
            completion_batch_size=ROWS,
            prefill_batch_size=ROWS,
            prefill_step_size=part,
        )

    def insert(
        self, line: DecoderRow, prompt: Sequence[int], most: int, known: tuple[int, PrefixState] | None = None
    ) -> None:
        """Write on after `prompt`, whose first tokens are in a cache that is `known`."""
        read, kept = known or (0, PrefixState([_single(one) for one in make_prompt_cache(self._causal)]))
        [uid] = self.generator.insert(
            [list(prompt[read:])],
            [most],
            caches=[[*kept.layers, Riders([line])]],
            all_tokens=[list(prompt[:read])],
        )
        line.left = len(prompt) - read - 1
        self.lines[uid] = line

    def step(self) -> list[Written]:
        """Read a part of each prompt, and a token of every other line."""
        read, written = self.generator.next()
        for told in read:
            done, whole = told.progress
            self.lines[told.uid].left = max(0, whole - done - 1)
        for told in written:
            self.lines[told.uid].began = True
        passes = [self.lines[told.uid].ahead.popleft() for told in written]
        scores: dict[int, Any] = {id(one): one for one, _ in passes}
        scores = {key: one.tolist() for key, one in scores.items()}
        return [
            Written(
                told.uid,
                told.token,
                scores[id(one)][0][place],
                scores[id(one)][1][place],
                _kept(told.prompt_cache or (), told.all_tokens or ()) if told.finish_reason else None,
            )
            for told, (one, place) in zip(written, passes, strict=True)
        ]

    def remove(self, uid: int) -> tuple[list[int], PrefixState]:
        """End a line; what its cache holds."""
        return _kept(*self.generator.remove([uid], return_prompt_caches=True)[uid])

    def close(self) -> None:
        """Of no more use: its caches are given up at once, not when a circle is found."""
        self.generator.close()
        del self.generator

    def _pass(self, inputs: mx.array, cache: list[Any]) -> mx.array:
        *layers, riders = cache
        self._rows = riders.lines
        try:
            with self._by([line.version for line in self._rows]):
                logits = self._causal(inputs, cache=layers)
        except Exception:
            self.failed = self._rows
            raise
        logits = heated(logits, self._temperatures())
        factors = [line.filters.repetition_penalty for line in self._rows]
        self._own = None
        if any(factor != 1 for factor in factors):
            self._own = normal(logits[:, -1])
            said = [line.marks(logits.shape[-1]) for line in self._rows]
            logits = penalized(logits, mx.stack(said), factors)
        return logits

    def _draw(self, logprobs: mx.array) -> mx.array:
        uniforms = [line.answer.row.uniform() for line in self._rows if line.answer]
        numbers = np.asarray(uniforms, np.float32)
        filters = [line.filters for line in self._rows]
        if any(filters):
            drawn, chosen = draw_filtered(logprobs, self._temperatures(), numbers, filters)
            own = logprobs if self._own is None else self._own
            lifts = chosen - mx.take_along_axis(own, drawn[:, None], axis=1)[:, 0]
        else:
            drawn, chosen = draw(logprobs, self._temperatures(), numbers)
            lifts = mx.zeros_like(chosen)
        for place, line in enumerate(self._rows):
            if line.filters.repetition_penalty != 1:
                said = line.marks(logprobs.shape[-1])
                line.said = said | (mx.arange(len(said)) == drawn[place])
        told = mx.stack([chosen, lifts])
        mx.async_eval(told)
        for place, line in enumerate(self._rows):
            line.ahead.append((told, place))
        return drawn

    def _temperatures(self) -> np.ndarray:
        return np.asarray([line.temperature for line in self._rows], np.float32)


def _kept(layers: Sequence[Any], tokens: Sequence[int]) -> tuple[list[int], PrefixState]:
    return list(tokens), PrefixState(list(layers[:-1]))


def _single(layer: Any) -> Any:
    """A layer's cache that can at least be a batch of one row."""
    if not hasattr(layer, "merge"):
        layer.merge = lambda several: several[0]
        layer.filter = lambda rows: None
        layer.extract = MethodType(lambda self, row: self, layer)
    return layer
