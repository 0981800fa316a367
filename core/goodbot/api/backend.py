# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and what trains and samples a model.

The core never imports an ML framework. A backend plugin registers a `BackendSpec`; training and
sampling run in child processes, `python -m WORKER train|plan|predict|serve`, which speak
JSON lines on stdin and stdout (see `docs/worker-protocol.md`). Inside such a child, the class
named by `BackendSpec.factory` is a `TrainingBackend`; it is held to
`goodbot.testing.BackendContract`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from goodbot.api.events import Message
from goodbot.api.sampler import Sampler, TokenizedTurn
from goodbot.api.step import LoraSettings, LossFunction, OptimizerSettings, StepStats, TrainingBatch

if TYPE_CHECKING:
    from goodbot.api.model_shape import Architecture
    from goodbot.api.step import Floats

__all__ = [
    "BackendSpec",
    "LoraSettings",
    "LossFunction",
    "OptimizerSettings",
    "OptimizesForInference",
    "Resolved",
    "ShowsStates",
    "StepStats",
    "TellsOverhead",
    "TrainingBackend",
    "TrainingBatch",
]


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """What a backend's presets fill in: `values` by the name of their setting, and `why` in one line."""

    values: Mapping[str, Any]
    why: str


@dataclass(frozen=True, kw_only=True)
class BackendSpec:
    """What the host must know before it starts a child."""

    name: str
    factory: str
    """`package.module:Class`, a `TrainingBackend`; imported only in the child."""
    requires: tuple[str, ...]
    """Modules that must be importable, checked without importing them."""
    extra: str
    """The extra of the distribution that brings `requires`."""
    settings: type[Any]
    """A frozen dataclass; the config section `[training.settings]` is parsed into it."""
    priority: int
    """How fast it is here beside others: with `backend = "auto"` the highest that is installed is taken."""
    download: int | None = None
    """Bytes that installing `extra` fetches here, roughly. None: not known, or nothing fits this machine."""
    worker: str = "goodbot_training.process.worker"
    """The module that `python -m` runs as the child."""
    objectives: tuple[str, ...] = ()
    """The names of its own ways to learn; `[training.settings] objective` names one, or a plugin's."""
    presets: Callable[[Mapping[str, Any], Architecture | None], Resolved] | None = None
    """What `[training.settings]` leaves out, by the model's shape (None: it cannot be read). Pure."""
    remote: bool = False
    """Whether the server of `[training.remote]` computes its steps. Its child has no network: it asks us,
    and we ask that server alone (`docs/worker-protocol.md`). Such a backend is never taken by itself."""
    driver: str = ""
    """With `remote`: the module that `python -m` runs to answer its child in our place, with a network, where
    `url` names the head of a Ray cluster."""


class TrainingBackend(Protocol):
    """One frozen base model and one LoRA adapter on it, in this process."""

    name: str

    @property
    def parameters(self) -> int:
        """Weights in the projections that the adapter acts on; known once `load` has returned."""
        ...

    def load(
        self,
        model: Path,
        *,
        lora: LoraSettings,
        adapter: Path | None = None,
        seed: int = 0,
        bits: int | None = None,
    ) -> None:
        """Load a model from a local directory.

        Never touches the network and never runs code from the directory.

        Args:
            model: The directory.
            lora: The shape of a fresh adapter.
            adapter: Start from this one (PEFT layout), with its own rank and alpha; None: from a fresh one.
            seed: Of the fresh adapter's weights.
            bits: 4: quantize the frozen projections. It changes the reference policy a little, and no
                adapter's format. None: as they are.

        Raises:
            TrainingError: There is no such model.
            AdapterError: The adapter cannot be trusted or loaded.
        """
        ...

    def tokenize(self, messages: Sequence[Message], response: str, thought: str = "") -> TokenizedTurn:
        """Turn a prompt and its answer into token ids, by the model's own template.

        Args:
            messages: The prompt, oldest message first.
            response: The answer.
            thought: What the model thought before it; its tokens count as the prompt's.

        Returns:
            The tokens of both; the end token is the last.
        """
        ...

    def logprobs(
        self, batch: Sequence[TokenizedTurn], *, temperature: Sequence[float], adapter: bool
    ) -> list[Floats]:
        """Compute the log-probability of each response token, without gradients.

        Args:
            batch: B tokenized answers.
            temperature: The temperature of each.
            adapter: Whether the adapter counts; False is the frozen base, the reference policy.

        Returns:
            B arrays in fp32 of the shape `(response tokens,)`, in nats: of `softmax(logits / temperature)`.
        """
        ...

    def first_tokens(self, messages: Sequence[Message], *, top: int, adapter: bool) -> dict[str, float]:
        """Say how an answer may begin: its likeliest first tokens, at temperature 1.

        Args:
            messages: The prompt, oldest message first.
            top: How many tokens to tell.
            adapter: Whether the adapter counts; False is the frozen base.

        Returns:
            The log-probability of each in nats, by what the tokenizer makes of that one token; of two
            that read alike, the likelier. Empty for a backend that cannot tell.
        """
        ...

    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        """Take one optimizer step a batch, lazily. A batch that does not `TrainingBatch.teaches` is skipped.

        Args:
            batches: What each step learns from. With a checkpoint: those that are left.
            settings: Of the optimizer.
            loss: The objective's.
            checkpoint: A directory that `save_checkpoint` has written under the same settings. It goes on
                from there, and every step is what it would have been (bit for bit on a CPU).

        Yields:
            The figures of each step, once it is taken.

        Raises:
            TrainingError: Of kind `data` for a damaged checkpoint; of kind `nan` *before* a step whose
                loss or gradient is not finite.
        """
        ...

    def save_checkpoint(self, directory: Path) -> None:
        """Write what `train` needs to go on into a directory that is there and empty, synced.

        LoRA weights, the moments and step counts of AdamW, the framework's random state. Valid
        while `train` waits between two steps; TrainingError otherwise.
        """
        ...

    def examine(self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction) -> StepStats:
        """Compute what a step on this batch would report, finite or not, without taking it.

        Nothing changes, and a `train` that waits between two steps is not disturbed.

        Args:
            batch: What the step would learn from.
            settings: Of the optimizer.
            loss: The objective's.

        Returns:
            The figures of that step.
        """
        ...

    def load_adapter(self, directory: Path | None) -> None:
        """Replace the adapter; None starts a fresh one, which has no effect. AdapterError."""
        ...

    def save_adapter(self, directory: Path) -> None:
        """Write `adapter_model.safetensors` and `adapter_config.json` (PEFT layout, fp32)."""
        ...

    def sampler(self) -> Sampler:
        """Return a sampler over the same loaded weights."""
        ...


@runtime_checkable
class TellsOverhead(Protocol):
    """A backend that knows what a forward pass costs besides its tokens: few large ones are better then."""

    @property
    def overhead(self) -> int:
        """What one more pass costs, in tokens; known once `load` has returned."""
        ...


@runtime_checkable
class ShowsStates(Protocol):
    """A backend that shows what its model makes of an answer, as the numbers that it goes on with."""

    def states(self, batch: Sequence[TokenizedTurn], *, adapter: bool) -> Floats:
        """Compute the mean of the last hidden states over the tokens of each response, without gradients.

        Args:
            batch: B tokenized answers.
            adapter: Whether the adapter counts; False is the frozen base.

        Returns:
            `(B, D)`, fp32. What is not finite stays so.

        Raises:
            TrainingError: The states of this model cannot be found.
        """
        ...


@runtime_checkable
class FreezesRanks(Protocol):
    """A backend that can train a part of an adapter's ranks, and leave the others as they are."""

    def freeze(self, adapter: Path) -> None:
        """Until the next `load`, the first ranks of what is trained stand still.

        Args:
            adapter: A directory in PEFT's layout; on each projection so many ranks stand still as it has.

        Raises:
            AdapterError: It cannot be read, or is not for this model.
        """
        ...


@runtime_checkable
class OptimizesForInference(Protocol):
    """A backend that answers faster once it need not train any more."""

    def optimize_for_inference(self) -> None:
        """Nothing is trained until the next `load`; answers and log-probs stay what they are."""
        ...
