# SPDX-License-Identifier: Apache-2.0
"""Which log-probs does a server tell: at temperature 1, or at that of the request? Before or after filters?

Training compares the policy that wrote an answer with the one that it trains, so it can use them only at the
temperature that the tokens were drawn at. Servers say nowhere which they tell, but it shows: at half the
temperature the distance between two tokens doubles.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

HALF = 0.5
_GONE = -1000.0
"""Servers have such a number for a token that cannot come, or leave it out."""
_FAR = 0.5
"""Nats between two tokens, at temperature 1, from which the distance is more than rounding."""
_BETWEEN = 1.5
"""A distance that grows less than this stays as it is; one that grows more doubles."""


async def is_followed(first_tokens: Callable[[float], Awaitable[Mapping[str, float]]]) -> bool:
    """Whether log-probs are at the temperature of the request; False also where it cannot be seen.

    `first_tokens(temperature)` asks for the likeliest first tokens of one and the same answer.
    """
    whole = await first_tokens(1.0)
    half = await first_tokens(HALF)
    if not whole or not half:
        return False
    best = max(whole, key=lambda token: whole[token])
    growths = [
        (half[best] - half[token]) / (whole[best] - whole[token])
        for token in whole.keys() & half.keys()
        if best in half and whole[best] - whole[token] > _FAR
    ]
    return bool(growths) and sorted(growths)[len(growths) // 2] > _BETWEEN


def are_filtered(whole: Mapping[str, float], best: Mapping[str, float]) -> bool:
    """Whether log-probs are of what filters leave: asked for `top_k` 1, there is one token then.

    Both are the likeliest first tokens of one and the same answer, `best` with that filter.
    """
    gone = [token for token, logprob in best.items() if logprob < _GONE]
    return len(whole) > 1 and len(best) - len(gone) == 1


def makes_no_difference(temperature: float) -> bool:
    """Whether both ways of telling are the same: at 1, and at 0, where servers tell those at 1."""
    return temperature in (0.0, 1.0)
