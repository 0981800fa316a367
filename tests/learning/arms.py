# SPDX-License-Identifier: Apache-2.0
"""The arms: what is trained on the same ratings, and on whose answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goodbot_training.job.settings import TrainingSettings

DEFAULT = TrainingSettings().objective
"""The arm that stands for goodbot as it is installed."""
TRL = "TRL KTO"
WORDS = ("hybrid", "hybrid, all tokens", "hindsight")
"""Those that train with what is said of an answer."""
NOTED = ("tapered + note", "tapered + all notes", "hybrid + note")
"""Those that train, and answer with the note that the words come to."""
PLAIN: dict[str, Any] = {"attention_rate": 1.0, "damping": 0.0, "strength": 1.0, "contested_strength": 1.0}
"""AdamW as it is, for every weight, and every round taken as it comes."""
HYBRID: dict[str, Any] = {"objective": "hybrid", "learning_rate_scale": 1.0}
BARE = {"gate_retry": 0.0, "start_over": False, **PLAIN}
"""Without what others do not have."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to learn. `settings` are the worker's own, beside the defaults."""

    name: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shuffled: bool = False
    """The same ratings, dealt out at random over answers as they come: no style can be learnt."""
    among_chosen: bool = False
    """Dealt out among those answers that the stream chose by their style, which tell of it."""
    writer: str = ""
    """Who wrote the rated answers: `4-bit` a quantized copy of the base, `stale` an older adapter;
    empty: the policy that is trained."""
    any_wish: bool = False
    """The same ratings, with words that want any style: what they say of the liked one is chance."""
    note: bool = False
    """Who judges is answered with the note that the words come to."""
    compared: bool = False
    """Without the lines that ratings refute, as goodbot does it."""
    untrained: bool = False
    """Only the note."""
    trainer: str = ""
    """What trains in place of goodbot: `reinforceclaw` its loss, `trl` TRL's KTOTrainer."""

    def defaults(self) -> TrainingSettings:
        """All settings that it trains with."""
        return TrainingSettings.from_mapping(self.settings)


def _variant(name: str, about: str) -> Arm:
    """A variant of MIS-PO, with all else as it is installed."""
    return Arm(name=name, about=about, settings={"objective": name, "learning_rate_scale": 1.0})


def _other(name: str, about: str, rate: float) -> Arm:
    """Another objective as it is published: with AdamW as it is, at `rate` times the default learning rate,
    at which it gained most on the shipped model (`tests.learning.sweep NAME --of learning_rate_scale`)."""
    how = {"objective": name, "learning_rate_scale": rate, **PLAIN}
    return Arm(name=name, about=about, settings=how)


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
        _other("sft_good", "supervised, good answers only", 3.0),
        _other("kto", "KTO over single ratings", 0.6),
        _other("bco", "BCO over single ratings", 0.6),
        Arm(
            name="reinforceclaw",
            about="ReinforceClaw 0.1.0's loss from its formulas, our rate",
            trainer="reinforceclaw",
            settings={"objective": "reinforce", "kl": 0.001, **BARE},
        ),
        Arm(
            name=TRL,
            about="TRL's own KTOTrainer: same LoRA, ratings and number of steps",
            trainer="trl",
            settings={"objective": "kto", "learning_rate_scale": 0.6, **BARE},
        ),
        Arm(name="4-bit writer", about="the default on answers of a 4-bit copy", writer="4-bit"),
        Arm(name="stale writer", about="the default on an older adapter's answers", writer="stale"),
        Arm(name="notes", about="the base, not trained, with the note", note=True, untrained=True),
        Arm(
            name="tapered + note",
            about="the default, with the note, without the lines of it that ratings refute",
            note=True,
            compared=True,
        ),
        Arm(name="tapered + all notes", about="the default, with all lines of the note", note=True),
        *(
            Arm(name=name, about=about, settings={"objective": name, "learning_rate_scale": 1.0})
            for name, about in (
                ("hindsight", "words, and of the rating what they leave"),
                ("hybrid", "the rating, and words beside it"),
            )
        ),
        Arm(name="hybrid + note", about="hybrid, with all lines of the note", settings=HYBRID, note=True),
        Arm(
            name="hybrid, all tokens",
            about="hybrid, from an answer's first token on",
            settings=HYBRID | {"hindsight_skip": 0},
        ),
        Arm(
            name="any wish",
            about="hybrid, the same ratings shuffled, with wishes for any style",
            settings=HYBRID,
            shuffled=True,
            any_wish=True,
        ),
        Arm(
            name="OpenClaw, combined",
            about="OpenClaw-RL's older combined loss from its formulas, with our rate, steps and teacher; "
            "its newer one, which picks among hints, is not here",
            trainer="openclaw",
            settings={**HYBRID, "kl": 0.0, "hindsight_skip": 0, "hindsight_clip": 100.0, **BARE},
        ),
        Arm(
            name="chosen",
            shuffled=True,
            among_chosen=True,
            about="as shuffled, but among the answers that the stream chose by style, which tell of it",
        ),
    )
}
