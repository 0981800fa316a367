# SPDX-License-Identifier: Apache-2.0
"""What the value of a setting must be, said at its field: `Annotated[int, Range(least=1)]`.

A check is called with the setting's name and its value, and raises ValueError with a sentence about both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from goodbot.base.worded import Worded

Check = Callable[[str, Any], object]
_USUAL: Mapping[tuple[str, ...], str] = {
    (): "must be a number",
    ("least",): "must be at least {least}",
    ("above",): "must be above {above}",
    ("most",): "must be at most {most}",
    ("below",): "must be below {below}",
    ("least", "most"): "must lie between {least} and {most}",
    ("least", "below"): "must be at least {least} and below {below}",
    ("above", "most"): "must be above {above} and at most {most}",
    ("above", "below"): "must be above {above} and below {below}",
}
"""What is said of a number that lies outside of a range with these ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A check that a number lies in a range; neither infinity nor NaN does, and None is no number."""

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float = math.inf
    says: str = ""
    """What is said of a number that does not, after the setting's name; empty: the range, in words."""

    def __call__(self, name: str, value: float | None) -> None:
        if value is None:
            return
        inside = self.least <= value <= self.most and self.above < value < self.below
        if not inside:
            raise ValueError(Worded("{name} {what}", name=name, what=Worded(self.says) or self._usual))

    @property
    def _usual(self) -> Worded:
        lower = {"least": self.least} if self.least > -math.inf else {"above": self.above}
        upper = {"most": self.most} if self.most < math.inf else {"below": self.below}
        ends = {name: f"{n:g}" for name, n in {**lower, **upper}.items() if abs(n) < math.inf}
        return Worded(_USUAL[tuple(ends)], **ends)


@cache
def declared(cls: type) -> Mapping[str, tuple[Check, ...]]:
    """The checks at a dataclass's fields, by field."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: get_args(hint)[1:] for name, hint in hints.items() if get_origin(hint) is Annotated}


Days = Annotated[int, Range(least=1, most=3650, says="is a number of days, 1 to 3650")]
