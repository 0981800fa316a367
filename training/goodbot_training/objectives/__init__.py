# SPDX-License-Identifier: Apache-2.0
"""The objectives by name, behind one interface.

An objective turns the rewards of a round into advantages (`advantages`), and is itself a
`goodbot.api.backend.LossFunction`: `loss(xp, policy_logprobs, sampling_logprobs, reference_logprobs,
advantages, mask, normalizer)`, which returns the loss and the statistics that `MisPo.__call__`
describes; one that takes words gets `hindsight` as well, by its name. The variants of MIS-PO are what
goodbot trains with; the others are there to be compared with, and for those who want them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from goodbot.api.hindsight import OBJECTIVES
from goodbot.base.errors import unexpected

from goodbot_training.job.types import TrainingSettings, data_error
from goodbot_training.objectives.advantages import compute_advantages
from goodbot_training.objectives.base import Objective
from goodbot_training.objectives.hindsight import Hindsight
from goodbot_training.objectives.mispo import VARIANTS, MisPo, detach
from goodbot_training.objectives.preference import Bco, Kto, goods_only, signed

_MAKERS: dict[str, Callable[[TrainingSettings], Objective]] = {
    **dict.fromkeys(VARIANTS, lambda s: Objective(MisPo.from_settings(s), _against_baseline(s))),
    **dict.fromkeys(OBJECTIVES, lambda s: _of_words(s)),
    "sft_good": lambda s: Objective(MisPo.from_settings(s), goods_only),
    "kto": lambda s: Objective(Kto(beta=s.beta), signed),
    "bco": lambda s: Objective(Bco(beta=s.beta), signed),
}

NAMES: tuple[str, ...] = tuple(_MAKERS)


def make_objective(settings: TrainingSettings) -> Objective:
    """The objective that `settings.objective` names.

    Raises TrainingError(kind="data") for a plugin's that fails.
    """
    maker = _MAKERS.get(settings.objective)
    return maker(settings) if maker else _of_plugin(settings)


def _of_plugin(settings: TrainingSettings) -> Objective:
    module, _, function = settings.objective.partition(":")
    try:
        made = getattr(import_module(module), function)(settings)
    except Exception as error:
        gone = isinstance(error, ModuleNotFoundError)
        hint = " Install its package where goodbot is installed: the trainer is a process of its own."
        why = f"{unexpected(error)}.{hint if gone else ''}"
        raise data_error(f"The objective {settings.objective} cannot be made: {why}") from error
    if not isinstance(made, Objective):
        raise data_error(f"The objective {settings.objective} gives {type(made).__name__}, not an Objective.")
    return made


def _of_words(settings: TrainingSettings) -> Objective:
    loss = Hindsight(bit=MisPo.from_settings(settings), weight=settings.hindsight_weight)
    instead = settings.objective == "hindsight"
    return Objective(loss, _against_baseline(settings), hindsight=True, instead=instead)


def _against_baseline(settings: TrainingSettings) -> Any:
    return partial(compute_advantages, decay=settings.ema_decay)


__all__ = ["NAMES", "Objective", "detach", "make_objective"]
