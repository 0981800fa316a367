"""The arms: what is trained on the same ratings, and on whose answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goodbot_training.settings import TrainingSettings

DEFAULT = TrainingSettings().objective
"""The arm that stands for goodbot as it is installed."""
TRL = "TRL KTO"
BARE = {"gate_retry": 0.0, "start_over": False}
"""What others do not have."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to learn. `settings` are the worker's own, beside the defaults."""

    name: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shuffled: bool = False
    """The same ratings, dealt out at random: nothing of the style can be learnt."""
    writer: str = ""
    """Who wrote the rated answers: `4-bit` a quantized copy of the base, `stale` an older adapter;
    empty: the policy that is trained."""
    trainer: str = ""
    """What trains in place of goodbot: `reinforceclaw` its loss, `trl` TRL's KTOTrainer."""

    def defaults(self) -> TrainingSettings:
        """All settings that it trains with."""
        return TrainingSettings.from_mapping(self.settings)


def _variant(name: str, about: str, rate: float = 1.0) -> Arm:
    """Trained at `rate` times the default learning rate, chosen by `tests.learning.sweep`."""
    return Arm(name=name, about=about, settings={"objective": name, "learning_rate_scale": rate})


ARMS = {
    arm.name: arm
    for arm in (
        Arm(name="frozen", about="the base, not trained"),
        Arm(name="shuffled", about="the default, ratings dealt out at random", shuffled=True),
        _variant("tapered", "MIS-PO, letting go of bad answers as they vanish"),
        _variant("filter", "MIS-PO as published"),
        _variant("scale", "MIS-PO, scaled"),
        _variant("sign_aware", "MIS-PO, stopping what has moved far enough"),
        _variant("reinforce", "no ratio at all"),
        _variant("sft_good", "supervised, good answers only", 3.0),
        _variant("kto", "KTO over single ratings", 0.6),
        _variant("bco", "BCO over single ratings", 0.6),
        Arm(
            name="reinforceclaw", about="ReinforceClaw 0.1.0's loss from its formulas, our rate",
            trainer="reinforceclaw", settings={"objective": "reinforce", "kl": 0.001, **BARE},
        ),
        Arm(
            name=TRL, about="TRL's own KTOTrainer: same LoRA, ratings and number of steps",
            trainer="trl", settings={"objective": "kto", "learning_rate_scale": 0.6, **BARE},
        ),
        Arm(name="4-bit writer", about="the default on answers of a 4-bit copy", writer="4-bit"),
        Arm(name="stale writer", about="the default on an older adapter's answers", writer="stale"),
    )
}  # fmt: skip
