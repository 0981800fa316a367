# SPDX-License-Identifier: Apache-2.0
"""What some families do to logits between the head and the softmax: scale them, or cap them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodbot.api.estimate import CHUNK

__all__ = ["CHUNK", "HIDDEN", "Bend", "bends"]

HIDDEN = "Of this model the hidden states cannot be found."


@dataclass(frozen=True, kw_only=True, slots=True)
class Bend:
    """z = cap · tanh(scale · y / cap) of the head's outputs y; without a cap z = scale · y."""

    scale: float = 1.0
    cap: float | None = None


def bends(config: Mapping[str, Any]) -> list[Bend]:
    """What a model may do by its config, the likeliest last; a backend believes what it sees.

    `final_logit_softcapping` (Gemma) caps, `logits_scaling` (Granite) divides, `logit_scale` (Cohere)
    and `lm_head_multiplier` (Falcon H1) multiply.
    """
    nested: Any = config.get("text_config")
    known: dict[str, Any] = {**config, **(nested if isinstance(nested, Mapping) else {})}

    def number(name: str) -> float | None:
        value = known.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return float(value)
        return None

    found = [Bend()]
    divisor, cap = number("logits_scaling"), number("final_logit_softcapping")
    for scale in (number("logit_scale"), number("lm_head_multiplier"), divisor and 1 / divisor):
        if scale:
            found.append(Bend(scale=scale))
    if cap:
        found += [Bend(scale=bend.scale, cap=cap) for bend in found]
    return found
