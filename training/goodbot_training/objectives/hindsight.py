# SPDX-License-Identifier: Apache-2.0
"""What people say of an answer, as token advantages: `hindsight`, and `hybrid`, which keeps the rating too.

A rating is one bit an answer; words say *which tokens* were wrong. Teacher and student are one model, the
policy at the round's start, π_old; the teacher has the words o in its prompt x (SDPO from user interactions,
arXiv 2603.12273). With C = `hindsight_clip`, w = `hindsight_weight` and ω the weight of the words, which is
their rater's part of the answer's weight (of several raters each has words and a d of their own, and they
are added up):

    d_t = clip(T · (log π_old(a_t | x, o, a_<t) - log π_old(a_t | x, a_<t)), -C, C)
    L   = L_tapered(ratings)  -  w · Σ_rollouts Σ_t  ω · d_t · g_t · log π_θ(a_t) / N
        + kl · Σ_(tokens with d_t > 0) (e^d - d - 1) / N
    g_t = clip(x_t, 0.8, 1.28) where d_t > 0, else min(1, Π_{j<=t} x_j) · (1 - π_base(a_t))

T is the temperature that the log-probs are taken at. Where w · mean_t |d_t| is above the answer's rating
|r|, its d_t are scaled down to that (`round.hindsight`): no reason, whatever it says, outweighs the rating
that it came with.

x_t, d and N are those of `objectives.mispo`. The coefficients are *detached*: the gradient flows through
log π_θ only. A token that words speak against is pushed as one of a bad answer is: less and less, and not
held to the base. Held, it would be pulled back by far more than words and ratings push (kl · (e^d - 1) grows
without bound), and a complaint would make likelier what it complains of. One that words speak for is held,
as a good answer is. Words that are about something else speak for and against tokens, too, nearly as far as
a request does, but of no kind more than of others (tests/real/test_words.py).

An answer without words keeps its rating, and in `hybrid` one with words does, too. In `hindsight` words
stand in the place of the rating r as far as they say something: the rating weighs

    1 - min(1, w · mean_t |Σ ω · d_t| / |ω · r|)

times what it would (`advantages.kept`). So words that say nothing of the answer take nothing from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from goodbot_training.objectives.mispo import Array, MisPo, detach, k3, taper

_LOW, _HIGH = math.log(0.8), math.log(1.28)
"""The band that x_t is cut to (OpenClaw-RL's, after DAPO's "clip higher")."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hindsight:
    """Ratings by MIS-PO and words by their tokens; callable as a `goodbot.api.backend.LossFunction`."""

    bit: MisPo
    weight: float

    def __call__(
        self,
        xp: Any,
        policy_logprobs: Array,
        sampling_logprobs: Array,
        reference_logprobs: Array,
        advantages: Array,
        mask: Array,
        normalizer: float,
        hindsight: Array | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Loss and statistics as of `MisPo.__call__`; `hindsight` is ω · d_t, `(B, R)`, 0 without words."""
        rest = (sampling_logprobs, reference_logprobs)
        if hindsight is None:
            return self.bit(xp, policy_logprobs, *rest, advantages, mask, normalizer)
        said: Array = hindsight * mask
        loss, statistics = self.bit(xp, policy_logprobs, *rest, advantages, mask, normalizer)
        log_ratio = (detach(xp, policy_logprobs) - sampling_logprobs) * mask
        wanted = said > 0
        # Cut before exp, which may be infinite.
        pull = xp.exp(xp.clip(log_ratio, _LOW, _HIGH))
        coefficients = xp.where(wanted, pull, taper(xp, log_ratio, reference_logprobs))
        gain = (said * coefficients * policy_logprobs).sum()
        free = xp.where(wanted, 1.0 - self.bit.held(xp, advantages), 0.0)
        hold = k3(xp, (reference_logprobs - policy_logprobs) * mask * free).sum()
        return loss + (self.bit.kl * hold - self.weight * gain) / normalizer, statistics
