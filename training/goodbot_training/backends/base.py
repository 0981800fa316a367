"""A backend around a model: all of `TrainingBackend` and `Sampler` but the arithmetic."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from goodbot.backend import (
    LoraSettings,
    LossFunction,
    OptimizerSettings,
    Sampled,
    SampleRequest,
    StepStats,
    TokenizedTurn,
    TrainingBatch,
)
from goodbot.errors import AdapterError, TrainingError
from goodbot.events import Message
from goodbot.models.directory import identity

from goodbot_training.backends.adapters import (
    AdapterWeights,
    Shape,
    fit,
    fresh,
    read_adapter,
    write_adapter,
)
from goodbot_training.backends.batching import Batching, Ended
from goodbot_training.backends.chat import Chat, check_model_directory
from goodbot_training.backends.decoding import Decoder, first_tokens, generate
from goodbot_training.backends.packing import pack

if TYPE_CHECKING:
    from goodbot.backend import Floats
    from goodbot.models.architecture import Experts

    from goodbot_training.backends.packing import Packed


class Model(Decoder, Protocol):
    """A loaded base model with LoRA on all its projections: what a framework must bring."""

    vocabulary: int
    experts: Experts

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """Path → (out, in) of every adapted projection, (experts, out, in) of stacks of experts."""
        ...

    @property
    def enabled(self) -> bool:
        """Whether the adapter has its effect; the base speaks otherwise."""
        ...

    @enabled.setter
    def enabled(self, value: bool) -> None: ...

    def prepare(self, weights: AdapterWeights) -> Any:
        """The adapter as the framework's own arrays."""
        ...

    def assign(self, prepared: Any) -> None:
        """Put prepared weights in place; what was prepared stays as it is."""
        ...

    def extract(self) -> AdapterWeights:
        """The weights in place."""
        ...

    def scores(self, packed: Packed, temperature: Sequence[float]) -> Floats:
        """fp32 log-probs of the targets, `(B, R)`, no gradient."""
        ...


class ModelSampler:
    """A sampler over a loaded model. Activating a version replaces the adapter weights in place."""

    def __init__(self, model: Model, chat: Chat) -> None:
        self._model, self._chat = model, chat
        self._versions: dict[int, Any] = {}
        self._active: int | None = None
        self._placed = 0
        self._batching = Batching(model, chat, self._place)

    def load_adapter(self, version: int, directory: Path) -> None:
        """Keep an adapter ready as `version` (1 or more). Raises AdapterError."""
        if version < 1:
            raise AdapterError(f"Version {version} cannot be loaded: 0 is the base model.")
        weights = fit(read_adapter(directory), self._model.shapes, directory)
        self._versions[version] = self._model.prepare(weights)
        self._forget(version)

    def activate(self, version: int) -> None:
        """Answer with `version`; 0 is the base. Raises AdapterError for one that is not loaded."""
        self._known(version)
        self._placed = 0  # whoever trains may have changed the weights in place
        self._place(version)
        self._active = version

    def unload_adapter(self, version: int) -> None:
        """Forget a version. Raises AdapterError for the active one."""
        if version and version == self._active:
            raise AdapterError(f"Version {version} is active and cannot be unloaded.")
        if version and self.writes(version):
            raise AdapterError(f"Version {version} is writing an answer and cannot be unloaded.")
        self._versions.pop(version, None)
        self._forget(version)

    def sample(
        self, request: SampleRequest, on_text: Callable[[str], bool] | None = None
    ) -> Sampled:
        """Sample one answer."""
        self._place(self._active)
        return generate(self._model, self._chat, [request], on_text)[0]

    def sample_many(self, requests: Sequence[SampleRequest]) -> list[Sampled]:
        """Sample an answer to each request."""
        self._place(self._active)
        return generate(self._model, self._chat, requests)

    def start(
        self,
        key: Hashable,
        request: SampleRequest,
        version: int,
        on_text: Callable[[str], bool] | None = None,
    ) -> None:
        """Begin an answer; see `Sampler.start`."""
        self._known(version)
        self._batching.start(key, request, version, on_text)

    def step(self) -> list[Ended]:
        """Write on all answers; see `Sampler.step`."""
        return self._batching.step()

    def cancel(self, key: Hashable) -> None:
        """End an answer at the next step."""
        self._batching.cancel(key)

    def writes(self, version: int | None = None) -> bool:
        """Whether an answer is under way."""
        return self._batching.writes(version)

    def first_tokens(
        self, messages: Sequence[Message], *, version: int, top: int
    ) -> dict[str, float]:
        """How an answer by a version may begin; out of no cache."""
        self._known(version)
        self._place(version)
        return first_tokens(self._model, self._chat, messages, top)

    def _known(self, version: int) -> None:
        if version and version not in self._versions:
            raise AdapterError(f"Version {version} is not loaded.")

    def _place(self, version: int | None) -> None:
        """Put a version's weights into the model, unless they are there; None: leave it as it is."""
        if version is None:
            return
        if version and version != self._placed:
            self._model.assign(self._versions[version])
            self._placed = version
        self._model.enabled = bool(version)

    def _forget(self, version: int) -> None:
        self._batching.forget(version)
        if version == self._placed:
            self._placed = 0


class ModelBackend(ABC):
    """The common part of the torch and the MLX backend."""

    name: str
    _model: Any
    _chat: Chat
    _lora: LoraSettings
    _seed: int
    _base_name: str

    @property
    def parameters(self) -> int:
        """Weights in the projections that the adapter acts on, as one token meets them."""
        experts = self._model.experts
        return sum(
            math.prod(shape) if len(shape) == 2 else math.prod(shape[1:]) * experts.active
            for shape in self._model.shapes.values()
        )

    @abstractmethod
    def _load_model(
        self, directory: Path, config: dict[str, Any], rank: int, bits: int | None
    ) -> Model: ...

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
    def examine(
        self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction
    ) -> StepStats:
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
        self._chat = Chat(model, config)
        self._lora, self._seed, self._base_name = lora, seed, identity(model)
        self._model = self._load_model(model, config, lora.rank, bits)
        self.load_adapter(adapter)

    def tokenize(self, messages: Sequence[Message], response: str) -> TokenizedTurn:
        """Token ids by the model's own chat template."""
        return self._chat.turn(messages, response)

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

    def first_tokens(
        self, messages: Sequence[Message], *, top: int, adapter: bool
    ) -> dict[str, float]:
        """How an answer may begin; see `TrainingBackend.first_tokens`."""
        self._model.enabled = adapter
        return first_tokens(self._model, self._chat, messages, top)

    def load_adapter(self, directory: Path | None) -> None:
        """Replace the adapter; None starts a fresh one. Raises AdapterError."""
        shapes = self._model.shapes
        if directory is None:
            weights = fresh(
                shapes, rank=self._lora.rank, alpha=self._lora.alpha, seed=self._seed,
                expert_rank=self._model.experts.rank(self._lora.rank),
            )  # fmt: skip
        else:
            weights = fit(read_adapter(directory), shapes, directory)
        self._model.assign(self._model.prepare(weights))
        self._model.enabled = True

    def save_adapter(self, directory: Path) -> None:
        """Write the adapter in PEFT's layout."""
        write_adapter(directory, self._model.extract(), base_model=self._base_name)

    def sampler(self) -> ModelSampler:
        """A sampler over the same weights: activating one of its versions replaces the adapter."""
        return ModelSampler(self._model, self._chat)
