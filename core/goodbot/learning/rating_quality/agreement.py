# SPDX-License-Identifier: Apache-2.0
"""How far each rater agrees with the others about answers that several have rated.

Of each answer the rater's word is compared with what most others say of it; where those are as many on
both sides it tells nothing. Cohen's kappa (1960) takes away what chance alone would make agree:

    κ = (p - e) / (1 - e)      p: how often both say the same, e: how often they would if the ratings
                               of either were dealt out to the answers anew

Of few answers it says little, and of people who always say the same nothing: those have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from goodbot.api.people import RaterAgreement
from goodbot.store.vote_history import Vote

FEWEST = 20
"""Answers: of so many κ is known to within about ±0.4 (2 standard errors, at κ = ½)."""


def agreements(labels: Sequence[Vote]) -> dict[str, RaterAgreement]:
    """Of each rater of whom it can be told. `labels` is what counts at present."""
    on: defaultdict[str, list[Vote]] = defaultdict(list)
    for vote in labels:
        on[vote.turn].append(vote)
    pairs: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for votes in on.values():
        balance = sum(1 if vote.good else -1 for vote in votes)
        for vote in votes:
            if others := balance - (1 if vote.good else -1):
                pairs[vote.rater].append((vote.good, others > 0))
    found = {rater: _kappa(said) for rater, said in pairs.items() if len(said) >= FEWEST}
    return {
        rater: RaterAgreement(kappa=kappa, answers=len(pairs[rater]))
        for rater, kappa in found.items()
        if kappa is not None
    }


def _kappa(said: Sequence[tuple[bool, bool]]) -> float | None:
    count = len(said)
    own, theirs = sum(one for one, _ in said) / count, sum(other for _, other in said) / count
    if not (0 < own < 1 and 0 < theirs < 1):
        return None
    chance = own * theirs + (1 - own) * (1 - theirs)
    return (sum(one == other for one, other in said) / count - chance) / (1 - chance)
