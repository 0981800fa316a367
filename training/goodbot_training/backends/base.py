# SPDX-License-Identifier: Apache-2.0
"""A backend around a model: all of `TrainingBackend` and `Sampler` but the arithmetic."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goodbot.api.backend import LoraSettings, LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.api.events import Message
from goodbot.api.model import identity
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import TrainingError

from goodbot_training.backends.adapters import fit, fresh, read_adapter, write_adapter
from goodbot_training.backends.chat import ChatTemplate, check_model_directory
from goodbot_training.backends.decoding import first_tokens
from goodbot_training.backends.packing import pack
from goodbot_training.backends.sampling import Model, ModelSampler
from goodbot_training.backends.sums import ranks

if TYPE_CHECKING:
    from goodbot.api.step import Floats


class ModelBackend(ABC):
    """The common part of the torch and the MLX backend."""

    name: str
    _model: Any
    _chat: ChatTemplate
    _lora: LoraSettings
    _seed: int
    _base_name: str
    _still: Mapping[str, int]
    """So many of the first ranks of a path are not trained."""

    @property
    def parameters(self) -> int:
        """Weights in the projections that the adapter acts on, as one token meets them."""
        experts = self._model.experts
        return sum(
            math.prod(shape) if len(shape) == 2 else math.prod(shape[1:]) * experts.active
            for shape in self._model.shapes.values()
        )

    @property
    def vocabulary(self) -> int:
        """So many token ids the model knows, from 0 on."""
        return self._model.vocabulary

    @abstractmethod
    def _load_model(self, directory: Path, config: dict[str, Any], rank: int, bits: int | None) -> Model: ...

    @abstractmethod
    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        """One optimizer step a batch; see `TrainingBackend.train`."""

    @abstractmethod
    def save_checkpoint(self, directory: Path) -> None:
        """Write what `train` needs to go on; see `TrainingBackend.save_checkpoint`."""

    @abstractmethod
    def examine(self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction) -> StepStats:
        """A step that is not taken; see `TrainingBackend.examine`."""

    def load(
        self,
        model: Path,
        *,
        lora: LoraSettings,
        adapter: Path | None = None,
        seed: int = 0,
        bits: int | None = None,
    ) -> None:
        """Load a local model directory. A parent adapter keeps its own rank and alpha."""
        if bits not in (None, 4):
            raise TrainingError("A base can be loaded as it is or in 4 bits.", kind="data")
        config = check_model_directory(model)
        self._chat = ChatTemplate(model, config)
        self._lora, self._seed, self._base_name = lora, seed, identity(model)
        self._model = self._load_model(model, config, lora.rank, bits)
        self._chat.vocabulary = self._model.vocabulary
        self._still = {}
        self.load_adapter(adapter)

    def tokenize(self, messages: Sequence[Message], response: str, thought: str = "") -> TokenizedTurn:
        """Token ids by the model's own chat template."""
        return self._chat.turn(messages, response, thought)

    def spelt(self, tokens: Sequence[int]) -> tuple[str, str]:
        """What token ids spell: without the template's own tokens, and with them."""
        return self._chat.text(tokens), self._chat.thoughts.raw(tokens)

    def logprobs(
        self, batch: Sequence[TokenizedTurn], *, temperature: Sequence[float], adapter: bool
    ) -> list[Floats]:
        """fp32 log-probs of each response token; see `TrainingBackend.logprobs`."""
        if not batch:
            return []
        self._model.enabled = adapter
        packed = pack(batch, vocabulary=self._model.vocabulary)
        rows = self._model.scores(packed, temperature)
        return [row[: len(turn.response)] for row, turn in zip(rows, batch, strict=True)]

    def states(self, batch: Sequence[TokenizedTurn], *, adapter: bool) -> Floats:
        """The mean last hidden state of each answer; see `goodbot.api.backend.ShowsStates`."""
        self._model.enabled = adapter
        return self._model.states(pack(batch, vocabulary=self._model.vocabulary))

    def first_tokens(self, messages: Sequence[Message], *, top: int, adapter: bool) -> dict[str, float]:
        """How an answer may begin; see `TrainingBackend.first_tokens`."""
        self._model.enabled = adapter
        return first_tokens(self._model, self._chat, messages, top)

    def load_adapter(self, directory: Path | None) -> None:
        """Replace the adapter; None starts a fresh one. Raises AdapterError."""
        shapes = self._model.shapes
        if directory is None:
            weights = fresh(
                shapes,
                rank=self._lora.rank,
                alpha=self._lora.alpha,
                seed=self._seed,
                expert_rank=self._model.experts.rank(self._lora.rank),
            )
        else:
            weights = fit(read_adapter(directory), shapes, directory)
        self._model.assign(self._model.prepare(weights))
        self._model.enabled = True

    def freeze(self, adapter: Path) -> None:
        """See `goodbot.api.backend.FreezesRanks`."""
        self._still = ranks(fit(read_adapter(adapter), self._model.shapes, adapter))

    def save_adapter(self, directory: Path) -> None:
        """Write the adapter in PEFT's layout."""
        write_adapter(directory, self._model.extract(), base_model=self._base_name)

    def sampler(self) -> ModelSampler:
        """A sampler over the same weights: activating one of its versions replaces the adapter."""
        return ModelSampler(self._model, self._chat)
