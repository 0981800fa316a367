# SPDX-License-Identifier: Apache-2.0
"""How boldly a round learns, by name and by the model's shape: what the owner leaves out.

`d` is a setting's default in `TrainingSettings`. What the owner sets himself always wins.

| preset | learning_rate_scale | kl |
|---|---|---|
| `careful` | d / 2 | 2 d |
| `balanced` | d | d |
| `aggressive` | 1.5 d | d / 2 |
| `custom` | d | d, whatever the model is |

| model | learning_rate_scale | kl | rank, alpha |
|---|---|---|---|
| dense | times 1 | times 1 | d |
| mixture of experts | times 1/2 | times 1/2 | 2 d |

The size comes in through `learning_rate_for`, which takes the adapted weights that one token meets:
with `balanced` 1.9e-4 for Qwen3-0.6B and 5.6e-5 for Qwen3-8B. For a mixture those are the active
ones, few beside what there is, so its rate is halved; each of its experts gets the rank
divided by the experts that a token meets, so the rank is doubled (and alpha with it, which keeps
alpha / rank). Nothing was measured at those sizes: the defaults were chosen on models of a million
parameters, the rate on one of 135 million as well, and the factors of the other presets are of about two
around them. How long a round is, is no
matter of boldness: `max_passes` decides it, `steps` in a round of more than 96 ratings, and that each is seen
once in one of more than 768.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api.backend import Resolved
from goodbot.api.model_shape import Architecture

from goodbot_training.job.settings import TrainingSettings

_PACE = {
    "careful": {"learning_rate_scale": 0.5, "kl": 2.0},
    "balanced": {},
    "aggressive": {"learning_rate_scale": 1.5, "kl": 0.5},
}
_MIXTURE = {"learning_rate_scale": 0.5, "kl": 0.5, "rank": 2.0, "alpha": 2.0}


def resolve(own: Mapping[str, Any], shape: Architecture | None) -> Resolved:
    """The values of `[training.settings]` that `own` leaves to its preset, and the whole in words.

    `own` is what the owner has set, checked; `shape` None: the model's config tells nothing, and it
    counts as dense.
    """
    default = TrainingSettings()
    preset = str(own.get("preset", default.preset))
    factors: dict[str, float] = {}
    if preset != "custom":
        factors |= _PACE[preset]
        if shape is not None and shape.experts.count:
            for name, factor in _MIXTURE.items():
                factors[name] = factors.get(name, 1.0) * factor
    if "rank" in own:  # alpha belongs to the rank that it was chosen with
        factors.pop("alpha", None)
    values = {
        name: _times(getattr(default, name), factor) for name, factor in factors.items() if name not in own
    }
    numbers = {name: value for name, value in own.items() if name != "objective"}  # a plugin's may be named
    settings = TrainingSettings.from_mapping({**numbers, **values})
    return Resolved(values=values, why=_why(settings, own, shape))


def adapted(shape: Architecture) -> int:
    """Weights of the projections with LoRA, as one token meets them."""
    return sum(p.outputs * p.inputs * p.active for p in shape.projections if p.adapted)


def _times(value: float, factor: float) -> float:
    """Whole numbers stay whole, and at least 1."""
    product = value * factor
    return max(1, round(product)) if isinstance(value, int) else product


def _why(settings: TrainingSettings, own: Mapping[str, Any], shape: Architecture | None) -> str:
    """`balanced, 0.6B dense: rate 1.9e-04, KL 0.1, rank 8 (yours: kl 0.1)`."""
    if shape is None:
        kind, rate = "a model of unknown shape", settings.learning_rate
    else:
        kind = f"{_size(shape.parameters)} dense"
        if shape.experts.count:
            kind = f"{_size(shape.parameters)} mixture of experts, {_size(shape.active)} a token"
        rate = settings.rate_for(adapted(shape))
    told = [f"rate {rate:.1e}"] if rate else [f"rate by its size times {settings.learning_rate_scale:g}"]
    told += [f"KL {settings.kl:g}", f"rank {settings.rank}"]
    named = [f"{name} {own[name]}" for name in sorted(set(own) - {"preset"})]
    yours = f" (yours: {', '.join(named)})" if named else ""
    return f"{settings.preset}, {kind}: {', '.join(told)}{yours}"


def _size(weights: int) -> str:
    """`0.6B`, `30.5B`, `135M`, `0.9M`."""
    if weights >= 5e8:
        return f"{weights / 1e9:.1f}B"
    return f"{weights / 1e6:.{0 if weights >= 1e7 else 1}f}M"
