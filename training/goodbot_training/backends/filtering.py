# SPDX-License-Identifier: Apache-2.0
"""Draws from less than the whole distribution: `top_k`, `top_p`, `min_p`, the repetition penalty.

Written once over an array namespace (`torch`, `mlx.core`, `numpy`), so that the backends cannot drift apart.
The likeliest tokens come sorted, best first, with the log-probs that the whole distribution gives them at
the temperature; how many of them a framework has to sort is its own affair.

With π the policy at its temperature and q what is left of it, a token a has the log-prob log q(a), and the
*lift* log q(a) - log π(a), by which the filters made it likelier. Where tokens were only taken out, that is
-log of the kept mass. Training holds the lift fixed, as a part of how the answer was drawn:

    q_θ(a) = π_θ(a) · e^lift      and so      q_θ(a) / q_old(a) = π_θ(a) / π_old(a)

So the importance ratio of the unchanged policy is exactly 1 at each token; no token has a ratio of 0 or
infinity because another policy would have kept others; and the gradient is that of the whole distribution.
The constant falls out of the ratio, of its bands and of the KL term, where base and policy both have it:
they all compare the policies' own log-probs, log q - lift.

The other rule, a softmax over the very tokens that were kept (DeepSeek-V3.2 keeps its sampling mask for
that), was not taken. It needs these tokens stored with each token, and no model server tells them. Where one
token alone was kept its gradient is 0, so a habit that the policy is sure of could never be unlearnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from goodbot.base.sampling import Filters

if TYPE_CHECKING:
    from goodbot.api.step import Floats

Array = Any
"""A torch tensor, an MLX array or a NumPy array."""
FIRST = 64
"""Tokens that are sorted at first where `top_k` does not say how many: a chat model's nucleus has fewer."""


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """What stays of the distributions of some rows. `(B, 1)`."""

    top_k: Any
    """int64; the vocabulary's size for all"""
    top_p: Floats
    low: Floats
    """log min_p, -inf for none"""

    @classmethod
    def of(cls, filters: Sequence[Filters], vocabulary: int) -> Cuts:
        """Those of rows over so many tokens."""
        ks = [one.top_k or vocabulary for one in filters]
        with np.errstate(divide="ignore"):
            low = np.log(np.asarray([one.min_p for one in filters], np.float32))
        return cls(
            top_k=np.minimum(np.asarray(ks, np.int64), vocabulary)[:, None],
            top_p=np.asarray([one.top_p for one in filters], np.float32)[:, None],
            low=low[:, None],
        )

    def enough(self, vocabulary: int) -> int:
        """So many sorted tokens hold all that any row keeps, if nothing but `top_k` is asked; see `FIRST`."""
        named = int(np.where(self.top_k < vocabulary, self.top_k, 0).max())
        open_ = bool((self.top_k == vocabulary).any())
        return min(max(named, FIRST if open_ else 1), vocabulary)


def keep(xp: Any, top: Array, top_k: Array, top_p: Array, low: Array) -> Array:
    """Which of the sorted log-probs `(B, K)` stay, as booleans: always a beginning, and never nothing.

    `top_k`, `top_p` and `low` are those of `Cuts`. Where the last of a row stays, and K is neither its
    `top_k` nor the vocabulary, more may.
    """
    number = top.shape[1]
    places = _places(xp, top)
    within = places < top_k
    chances = xp.where(within, xp.exp(top), 0.0)
    # Of a row that sorts all tokens, or will, the chances add up to 1.
    mass = xp.where(top_k <= number, chances.sum(axis=1)[:, None], 1.0)
    before = xp.cumsum(chances, axis=1) - chances
    return (places < 1) | (within & (before < top_p * mass) & (top >= top[:, :1] + low))


def pick(xp: Any, top: Array, kept: Array, uniforms: Array) -> tuple[Array, Array]:
    """Where among the sorted each row's uniform falls, and log q of what stands there; all `(B, 1)`."""
    mass = xp.cumsum(xp.where(kept, xp.exp(top - top[:, :1]), 0.0), axis=1)
    whole = mass[:, -1:]
    place = (mass <= uniforms * whole).sum(axis=1)[:, None]
    last = kept.sum(axis=1)[:, None] - 1
    place = xp.where(place > last, last, place)
    # take_along_axis is not in all three: what stands there is the only one that counts.
    here = _places(xp, top) == place
    chosen = xp.where(here, top - top[:, :1], 0.0).sum(axis=1)[:, None]
    return place, chosen - xp.log(whole)


def _places(xp: Any, top: Array) -> Array:
    """0, 1, 2 … a row: `arange` would have to know the device."""
    return xp.cumsum(xp.ones_like(top), axis=1) - 1


def penalize(xp: Any, logits: Array, factor: Array) -> Array:
    """Logits of tokens that were said before: nearer to 0 where positive, farther below it where negative."""
    return xp.where(logits > 0, logits / factor, logits * factor)
