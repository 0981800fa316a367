# SPDX-License-Identifier: Apache-2.0
"""How one round trains: every setting with its default, checked by name, type and range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeGuard, get_type_hints

from goodbot.base.checks import Range, declared
from goodbot.base.errors import TrainingError


def data_error(sentence: str) -> TrainingError:
    """A `TrainingError` of kind `data`."""
    return TrainingError(sentence, kind="data")


_Count = Annotated[int, Range(least=1)]
_Positive = Annotated[float, Range(above=0)]
_FromZero = Annotated[float, Range(least=0)]
_Share = Annotated[float, Range(least=0, most=1)]

OBJECTIVES = (
    *("tapered", "filter", "scale", "sign_aware", "reinforce", "hindsight", "hybrid"),
    *("sft_good", "kto", "bco"),
)
"""The first four are variants of MIS-PO, two take words; see `goodbot_training.objectives`."""
PRESETS = ("careful", "balanced", "aggressive", "custom")
"""See `goodbot_training.job.presets`."""


def learning_rate_for(parameters: int) -> float:
    """The AdamW rate for a LoRA on a model with so many weights in the adapted projections.

    `3e-3 · (10^6 / parameters)^0.45`, at most 3e-3, which is what the tiny model learns best at. The power
    leads through 3.8e-4 at 10^8, where SmolLM2-135M was measured (tests/learning/results/real_rounds.md).
    Above that nothing was measured: 2.0e-4 at 4 · 10^8, 5.3e-5 at 8 · 10^9. With `damping` c a weight that
    decides goes 1 + c times as far, so these lie below the rates in common use for a LoRA.
    """
    return min(3e-3, 3e-3 * (1e6 / max(parameters, 1)) ** 0.45)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSettings:
    """How one round trains. The defaults were measured on models of a million parameters."""

    preset: str = "balanced"
    """One of `PRESETS`: it decides what the owner leaves out, before anything else sees these values."""
    objective: str = "tapered"
    """One of `OBJECTIVES`, or a plugin's `package.module:function` (`goodbot.api.objective`)."""
    learning_rate: Annotated[float | None, Range(above=0)] = None
    """None: by the model's size; see `learning_rate_for`."""
    learning_rate_scale: _Positive = 1.0
    """Times that; a learning rate that is set stays as it is. Either is the peak for a round that has
    much to teach (`goodbot_training.objectives.advantages.to_learn`)."""
    strength: Annotated[float, Range(above=0, most=1)] = 0.6
    """A candidate goes this part of the way from the policy before it to what was trained, and is trained
    the more boldly for it (`bolder`): that forgets less of what the base knows for what it learns. 1: all of
    the way."""
    attention_rate: _Positive = 0.2
    """Times the learning rate in attention, or what stands in its place: at 1 more is forgotten for what
    is learnt (tests/learning/results/defaults.md, as for the other settings)."""
    damping: _FromZero = 3.0
    """How much weights that hardly matter stay behind those that do; 0 is AdamW. See `backends.pace`."""
    warmup: Annotated[int, Range(least=0)] = 0
    """Optimizer steps of linear warm-up; over the whole round the rate falls in a line to nothing."""
    weight_decay: _FromZero = 0.0
    """Of AdamW."""
    max_grad_norm: _Positive = 1.0
    """A step's gradient is made shorter where it is longer than this."""
    rank: _Count = 8
    """Of LoRA."""
    alpha: _Positive = 16.0
    """Of LoRA: what is learnt counts `alpha / rank` times."""
    batch_size: _Count = 8
    """Rollouts an optimizer step."""
    steps: _Count = 96
    """Optimizer steps a round, at most; more only where one look at every rating takes more."""
    max_passes: _Count = 8
    """How often a round may look at one rating, at most: few ratings make few steps."""
    kl: _FromZero = 0.1
    """Weight of the KL term to the base, for `tapered` on good answers only; `kto`, `bco`: none."""
    beta: _Positive = 0.1
    """Of `kto` and `bco`: how far the policy may go from the base for a rating."""
    hindsight_weight: _FromZero = 1.0
    """Of `hindsight` and `hybrid`: how much words count beside ratings."""
    hindsight_clip: _Positive = 2.0
    """Nats by which words may speak for or against one token, at most."""
    hindsight_skip: Annotated[int, Range(least=0)] = 2
    """Tokens at the beginning of an answer that words say nothing of: there a model says how it takes the
    words, and not what was wrong."""
    note_weight: _FromZero = 1.0
    """Of `hindsight` and `hybrid`: how much the notes are taught that prompts have, times
    `hindsight_weight`; 0: not at all, and none retires."""
    note_answers: Annotated[int, Range(least=0)] = 48
    """Answers by which a note is tried, four times so many in all; 0: none retires."""
    token_low: _Positive = 0.5
    """A token fits while it is at least this part as likely as when it was written; the objective says what
    becomes of one that does not."""
    token_high: float = 2.0
    """The same, at most so many times as likely."""
    trajectory_low: Annotated[float | None, Range(least=0)] = None
    """None: the objective's own band (`goodbot_training.objectives.mispo.VARIANTS`)."""
    trajectory_high: float | None = None
    """The upper end of that band."""
    ema_decay: Annotated[float, Range(least=0, below=1)] = 0.99
    """Of the running mean of rewards: nearer to 1 it follows the ratings more slowly."""
    max_sequence_tokens: _Count = 4096
    """Turns longer than this (prompt and response) are left out, and counted."""
    base_bits: int | None = None
    """4: the base is loaded in 4 bits, for a quarter of the memory; None: as it is."""
    tokens_per_forward: _Count = 8192
    """Padded tokens of one forward pass: a larger batch is cut up and its gradients added."""
    slice_steps: _Count = 8
    """See `slice_seconds`."""
    slice_seconds: _FromZero = 30.0
    """A checkpoint after so many steps or so many seconds of training, whichever comes first."""
    gate_anchors: Annotated[int, Range(least=0)] = 256
    """Answers that the publish gate samples from the candidate at most, and from the base as far as
    it needs them; it stops as soon as more would not change its mind. 0: no sampling."""
    gate_retry: _Share = 0.5
    """A candidate that is refused for what it has lost is asked once more at this part of its strength,
    on the line from the policy before it; 0: never."""
    contested_strength: Annotated[float, Range(above=0, most=1)] = 0.2
    """The `strength` where ratings are left out because who gave them is outvoted, if it is less: that
    forgets still less, and is slower. 1: as in any other round."""
    start_over: bool = True
    """Whether a round starts from the base again when the newest version's answers are rated worse than
    the base's own were; see `goodbot_training.round.restart`."""
    gate_max_tokens: _Count = 64
    """Tokens of each of those answers, at most."""
    gate_max_foreign: _Share = 0.075
    """The part of the answers that may hold something the base would seldom say: about the part of what
    it knows of the round's own questions that a candidate may lose, counted from the base over all
    rounds. What chance does is allowed too: see `goodbot_training.gate.decide.foreign_allowed`."""
    gate_min_retained: _Share = 0.95
    """The part of the tokens that the base is sure of which the candidate must still expect."""
    gate_max_anchor_loss: _FromZero = 1.5
    """Nats a token by which the loss on the base's own answers may rise."""
    gate_max_drift: _FromZero = 2.0
    """Nats a token of KL(candidate, base), estimated on the candidate's own answers."""
    gate_max_length_ratio: Annotated[float, Range(least=1)] = 2.5
    """Mean answer length against the base's; the lower bound is its inverse squared."""
    gate_max_degenerate: _Share = 0.1
    """How much the shares of empty, looping and never-ending answers may each rise."""
    gate_min_distinct: _Share = 0.5
    """Answers that are their question's own (see `goodbot_training.gate.answers`), against the base's."""

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> TrainingSettings:
        """Check names, types and ranges. Raises TrainingError(kind="data")."""
        hints = get_type_hints(cls)
        unknown = sorted(set(mapping) - {field.name for field in fields(cls)})
        if unknown:
            raise data_error(f"Unknown training setting: {unknown[0]}.")
        values: dict[str, Any] = {}
        for name, value in mapping.items():
            values[name] = _setting(name, value, hints[name])
        try:
            return cls(**values)
        except ValueError as error:
            raise data_error(f"{error}.") from error

    def rate_for(self, parameters: int) -> float:
        """The learning rate for a model with so many weights in the adapted projections."""
        return self.learning_rate or self.learning_rate_scale * learning_rate_for(parameters)

    @property
    def bolder(self) -> float:
        """Times `rate_for` is trained, for what is taken back afterwards."""
        return min(1 / self.strength, 3.0)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES and ":" not in self.objective:
            raise ValueError(f"There is no objective {self.objective}; have: {', '.join(OBJECTIVES)}")
        if self.preset not in PRESETS:
            raise ValueError(f"There is no preset {self.preset}; have: {', '.join(PRESETS)}")
        for name, checks in declared(type(self)).items():
            for check in checks:
                check(f"Training setting {name}", getattr(self, name))
        if self.base_bits not in (None, 4):
            raise ValueError("Training setting base_bits must be 4, or left out")
        if self.token_low > 1 or self.token_high < 1:
            raise ValueError("The band token_low to token_high must hold 1")
        low, high = self.trajectory_low, self.trajectory_high
        if (low is not None and low > 1) or (high is not None and high < 1):
            raise ValueError("The band trajectory_low to trajectory_high must hold 1")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is an integer; JSON's true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def as_whole(value: object, what: str) -> int:
    """An integer. Raises TrainingError(kind="data")."""
    if not is_whole(value):
        raise data_error(f"{what} is not a whole number.")
    return value


def as_number(value: object, what: str) -> float:
    """A finite number. Raises TrainingError(kind="data")."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise data_error(f"{what} is not a finite number.")
    return float(value)


def _setting(name: str, value: object, kind: object) -> object:
    what = f"Training setting {name}"
    if kind is str:
        if not isinstance(value, str):
            raise data_error(f"{what} is not text.")
        return value
    if kind is bool:
        if not isinstance(value, bool):
            raise data_error(f"{what} is neither true nor false.")
        return value
    if kind is int:
        return as_whole(value, what)
    if value is None and kind is not float:
        return None
    if kind == int | None:
        return as_whole(value, what)
    return as_number(value, what)
