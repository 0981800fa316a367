# SPDX-License-Identifier: Apache-2.0
"""How a template may want a conversation, and words by which it is seen what it makes of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from goodbot.api.events import Message
from goodbot.api.plain import in_parts, plainer, without_system
from goodbot.base.worded import Worded

Way = Callable[[Sequence[Message]], list[Message]]
WAYS: tuple[Way, ...] = (
    list,
    in_parts,
    without_system,
    lambda messages: in_parts(without_system(messages)),
    plainer,
    lambda messages: in_parts(plainer(messages)),
)
"""The plainest last; each second one in parts."""
_NEEDS = (
    "",
    "needs the system's words in the first question",
    "needs users and assistants in turn, and no system message",
)
_PARTS = "shows contents that are lists of parts only, not plain text"
_UNBEGUN = "does not begin an answer when it is asked to (add_generation_prompt)"
PROBE: list[Message] = [
    {"role": role, "content": f'{first} < "{second}"\n{second}'}
    for role, first, second in (
        ("system", "quartz", "agate"),
        ("user", "heron", "plover"),
        ("assistant", "walnut", "hazel"),
        ("user", "lantern", "candle"),
    )
]
"""Words that no template has of its own, in two lines, with signs that are easily escaped."""


def shows(written: str) -> bool:
    """Whether a template has written all that the probe says, as it says it."""
    return all(message["content"] in written for message in PROBE)


def helped(way: Way, *, opening: bool, end: str) -> tuple[str, ...]:
    """What a program that has the model's files alone would get wrong, a clause each.

    `opening`: whether an answer has to be begun for it; `end` is how turns end, where no file says so.
    """
    at = WAYS.index(way)
    needs = (_NEEDS[at // 2], _PARTS if at % 2 else "", _UNBEGUN if opening else "")
    found = [Worded(one) for one in needs if one]
    both = (
        [reduce(lambda one, other: Worded("{one} and {other}", one=one, other=other), found)] if found else []
    )
    clauses = [Worded("its chat template {what}", what=what) for what in both]
    if end:
        unnamed = "its turns end with {name}, which none of its files names as an end (eos_token_id)"
        clauses.append(Worded(unnamed, name=end))
    return tuple(clauses)
