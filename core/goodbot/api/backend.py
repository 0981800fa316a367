# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and what trains and samples a model.

The core never imports an ML framework. A backend plugin registers a `BackendSpec`; training and
sampling run in child processes, `python -m WORKER train|plan|serve`, which speak
JSON lines on stdin and stdout (see `docs/worker-protocol.md`). Inside such a child, the class
named by `BackendSpec.factory` is a `TrainingBackend`; it is held to
`goodbot.testing.BackendContract`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from goodbot.api.events import Message
from goodbot.api.sampler import Sampler, TokenizedTurn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from goodbot.api.model_shape import Architecture

    Floats = NDArray[np.float32]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraSettings:
    """The shape of an adapter: all linear projections of every layer."""

    rank: int = 8
    alpha: float = 16.0


@dataclass(frozen=True, kw_only=True)
class StepStats:
    """One optimizer step."""

    loss: float
    kl: float
    """Mean k3 estimate of the divergence from the base, nats a token."""
    token_acceptance: float
    """The part of the tokens whose importance ratio lies inside the token band."""
    trajectory_acceptance: float
    """Mean of the objective's trajectory term; 1 for one that has no band for whole answers."""
    grad_norm: float
    """Before clipping."""
    tokens: int = 0
    """Response tokens of the batch."""
    skipped: bool = False

    @classmethod
    def nothing(cls) -> StepStats:
        """A batch that was skipped, since it teaches nothing."""
        return cls(loss=0, kl=0, token_acceptance=0, trajectory_acceptance=0, grad_norm=0, skipped=True)

    @classmethod
    def of(cls, batch: TrainingBatch, sums: Mapping[str, float], grad_norm: float) -> StepStats:
        """From the sums that a `LossFunction` gives over the parts of `batch`."""
        tokens = float(batch.mask.sum())
        return cls(
            loss=sums["loss"],
            kl=sums["kl"] / tokens,
            token_acceptance=sums["tokens_accepted"] / tokens,
            trajectory_acceptance=sums["trajectories_accepted"] / len(batch.sequences),
            grad_norm=grad_norm,
            tokens=int(tokens),
        )


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
        """Load a local model directory; start from `adapter` (PEFT layout) or a fresh one.

        Never touches the network and never runs code from the directory. A parent `adapter` keeps
        its own rank and alpha. `bits` 4: the frozen projections are quantized, which changes the
        reference policy a little, and no adapter's format. Raises TrainingError (no such model) or
        AdapterError.
        """
        ...

    def tokenize(self, messages: Sequence[Message], response: str, thought: str = "") -> TokenizedTurn:
        """Token ids by the model's own template, a thought among the prompt's; the end token is the last."""
        ...

    def logprobs(
        self, batch: Sequence[TokenizedTurn], *, temperature: Sequence[float], adapter: bool
    ) -> list[Floats]:
        """fp32 log-probabilities of each response token, no gradient.

        One array `(response tokens,)` a sequence, of `softmax(logits / temperature)`.
        `adapter=False` is the frozen base (the reference policy).
        """
        ...

    def first_tokens(self, messages: Sequence[Message], *, top: int, adapter: bool) -> dict[str, float]:
        """How an answer may begin: text of the `top` likeliest first tokens → log-prob at temperature 1.

        The text is what the tokenizer makes of that one token; of two that read alike, the likelier.
        Empty for a backend that cannot tell.
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
        """One optimizer step a batch, lazily; one that does not `TrainingBatch.teaches` is skipped.

        With `checkpoint`, a directory that `save_checkpoint` has written under the same settings,
        it goes on from there: `batches` are then those that are left, and every step is what it
        would have been (bit for bit on a CPU). Raises TrainingError(kind="data") for a damaged one.

        Raises TrainingError(kind="nan") *before* a step whose loss or gradient is not finite.
        """
        ...

    def save_checkpoint(self, directory: Path) -> None:
        """Write what `train` needs to go on into a directory that is there and empty, synced.

        LoRA weights, the moments and step counts of AdamW, the framework's random state. Valid
        while `train` waits between two steps; TrainingError otherwise.
        """
        ...

    def examine(self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction) -> StepStats:
        """What a step on this batch would report, finite or not, without taking it.

        Nothing changes, and a `train` that waits between two steps is not disturbed.
        """
        ...

    def load_adapter(self, directory: Path | None) -> None:
        """Replace the adapter; None starts a fresh one, which has no effect. AdapterError."""
        ...

    def save_adapter(self, directory: Path) -> None:
        """Write `adapter_model.safetensors` and `adapter_config.json` (PEFT layout, fp32)."""
        ...

    def sampler(self) -> Sampler:
        """A sampler over the same loaded weights."""
        ...


@runtime_checkable
class TellsOverhead(Protocol):
    """A backend that knows what a forward pass costs besides its tokens: few large ones are better then."""

    @property
    def overhead(self) -> int:
        """What one more pass costs, in tokens; known once `load` has returned."""
        ...


@runtime_checkable
class OptimizesForInference(Protocol):
    """A backend that answers faster once it need not train any more."""

    def optimize_for_inference(self) -> None:
        """Nothing is trained until the next `load`; answers and log-probs stay what they are."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerSettings:
    """AdamW, no weight decay by default, a linear warm-up and a linear decay."""

    learning_rate: float = 3e-3
    attention_rate: float = 1.0
    """Times that where the model looks at other tokens: attention, or what stands in its place."""
    damping: float = 0.0
    """How much weights of small gradients are held back; 0 is AdamW. A backend's own affair: see
    `goodbot_training.backends.pace`."""
    warmup_steps: int = 0
    decay_steps: int = 0
    """The rate falls in a line to nothing over so many steps; 0: it stays."""
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    tokens_per_forward: int = 8192
    """Padded tokens of one forward pass; a larger batch is cut up and its gradients added."""
    recompute: bool = False
    """Keep one activation a layer and compute the others again for the gradient: less memory for
    a third more time."""

    def rate_at(self, step: int) -> float:
        """The learning rate of the `step`-th step taken, counted from 1."""
        warm = min(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        left = max(0.0, 1.0 - (step - 1) / self.decay_steps) if self.decay_steps else 1.0
        return self.learning_rate * warm * left


@dataclass(frozen=True, kw_only=True)
class TrainingBatch:
    """One optimizer step's rollouts, padded to the right. B rollouts, R response tokens.

    Arrays are NumPy; a backend converts them. `mask` is 1 on real response tokens.
    """

    sequences: tuple[TokenizedTurn, ...]
    temperature: tuple[float, ...]
    sampling_logprobs: Floats
    """`(B, R)`: by the policy that wrote the answer."""
    reference_logprobs: Floats
    """`(B, R)`: by the frozen base."""
    advantages: Floats
    """`(B,)`"""
    mask: Floats
    """`(B, R)`"""
    normalizer: float = field(default=1.0)
    """The constant N that divides every token sum (never the answer's own length)."""
    hindsight: Floats | None = None
    """`(B, R)`: what people's words say for (above 0) or against each token, nats times the item's weight; 0
    where nobody said any. None: nobody did, or the objective takes none."""

    @property
    def teaches(self) -> bool:
        """Whether anything in it is for or against an answer."""
        return bool(self.advantages.any() or (self.hindsight is not None and self.hindsight.any()))


LossFunction = Callable[..., "tuple[object, dict[str, object]]"]
"""`loss(xp, policy_logprobs, sampling_logprobs, reference_logprobs, advantages, mask, normalizer)`.

`xp` is the array namespace (`torch`, `mlx.core`, `numpy`), the arrays are its own: `(B, R)`, fp32,
and advantages `(B,)`. Returns the loss, a scalar, and the sums `kl`, `tokens_accepted` and
`trajectories_accepted`; all four add up over parts of a batch. Where `TrainingBatch.hindsight` is there,
it is given, too, by that name. See `goodbot_training.objectives`.
"""
