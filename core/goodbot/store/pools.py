# SPDX-License-Identifier: Apache-2.0
"""Where ratings may be claimed from: of which scope, for which base model."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

PERSON = "person "
"""How the scopes of people begin: the account that stands for all that are theirs follows."""
SHARED = "default"
"""The scope whose versions answer everybody who has none of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Where ratings may be claimed from: a scope, a base model, and who the owners are."""

    scope: str
    model: str
    owners: tuple[str, ...]
    others: bool = True
    """Whether answers of other models may be claimed, which other programs have brought in."""
    consented: bool = False
    """Nobody need say `share on`: what is learnt answers those alone who have said it."""

    @property
    def shared(self) -> bool:
        """Whether it is that of everybody's adapter."""
        return self.scope == SHARED

    def asked(self, query: str) -> str:
        """A query on answers `t` as this scope's: of one beside the shared, by what is its own of each.

        A person's own learns of an answer only what they have said of it: where others have rated it, too, it
        teaches the shared one alone.
        """
        return query if self.shared else _beside(query, alone=self.scope.startswith(PERSON))

    def values(self, *, anew: bool = False) -> dict[str, str | bool]:
        """The parameters of the queries here. `anew`: filters are asked again about what they have named."""
        owners = _named(self.owners)
        own = {"scope": self.scope, "model": self.model, "others": self.others}
        own |= {"consented": self.consented}
        return {**own, "owners": owners, "anew": anew}


@functools.cache
def _named(owners: tuple[str, ...]) -> str:
    """`:owners`: the accounts that the config names, and as what the browser knows them."""
    return json.dumps([*owners, *(f"web:{owner}" for owner in owners)])


_TRAINS = "t.scope = :scope AND t.trainable"
_ALONE = f"NOT EXISTS (SELECT 1 FROM labels o WHERE o.turn = t.id AND '{PERSON}' || o.rater <> :scope)"  # noqa: S608


@functools.cache
def _beside(query: str, *, alone: bool) -> str:
    if alone:
        query = query.replace(_TRAINS, f"{_ALONE} AND {_TRAINS}")
    return query.replace("t.scope", "t.own").replace("t.spent", "t.own_spent")
