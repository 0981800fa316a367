"""The arms: what is trained on the same ratings, and on whose answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    loss: str = ""
    """A loss of this benchmark's own in place of goodbot's."""


def _variant(name: str, about: str, rate: float = 1.0) -> Arm:
    """Trained at `rate` times the default learning rate: the best of 0.1, 0.3, 1 and 3 by the liked
    share on two other seeds, of those that keep the facts within 3 points."""
    return Arm(name=name, about=about, settings={"objective": name, "learning_rate_scale": rate})


ARMS = {
    arm.name: arm
    for arm in (
        Arm(name="frozen", about="the base, not trained"),
        Arm(name="shuffled", about="the default, ratings dealt out at random", shuffled=True),
        _variant("filter", "MIS-PO as published"),
        _variant("scale", "MIS-PO, scaled"),
        _variant("sign_aware", "MIS-PO, stopping what has moved far enough"),
        _variant("reinforce", "no ratio at all"),
        _variant("sft_good", "supervised, good answers only", 0.3),
        _variant("kto", "KTO over single ratings", 0.3),
        _variant("bco", "BCO over single ratings", 0.3),
        Arm(
            name="reinforceclaw", about="ReinforceClaw 0.1.0's loss from its formulas, our rate",
            loss="reinforceclaw", settings={"objective": "reinforce", "kl": 0.001},
        ),
        Arm(name="4-bit writer", about="the default on answers of a 4-bit copy", writer="4-bit"),
        Arm(name="stale writer", about="the default on an older adapter's answers", writer="stale"),
    )
}  # fmt: skip
