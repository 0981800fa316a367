# SPDX-License-Identifier: Apache-2.0
"""What people said of an answer, as the text that a training reads it with. Pure.

It is appended to the question that the answer was given to, in the words in which it was said: so whoever
asked could have said it at once. In quotation marks or after "the user said" a small model hardly heeds it
(tests/real/test_words.py). The prompt that it makes is scored, and never answered.
"""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.base.printing import printable

OBJECTIVES = ("hindsight", "hybrid")
"""Our own objectives that take it; of plugins `ObjectiveSpec.hindsight` says so."""
BETTER = "+better"
"""What follows a turn's id in that of the better answer to it, which trains as an item of its own."""
LONGEST = 2000
"""Characters of the whole text."""
REASON = 300
"""Characters of one reason."""
_REASONS = 3
"""So many of the last reasons."""
RATERS = 3
"""Of those who said something of an answer, so many are read: each costs a pass over it."""
CHIPS = {
    "long": "That was too long. Answer in fewer words.",
    "short": "That was too short. Answer in more detail.",
    "wrong": "That was wrong. Check the facts.",
    "tone": "The tone was not right. Use another tone.",
}
"""By the keys of `goodbot.api.actions.HINTS`; what asks for nothing in particular says nothing here."""


def hindsight(*, chips: Sequence[str] = (), reasons: Sequence[str] = ()) -> str:
    """The text of what was said, at most `LONGEST` characters; empty where that comes to nothing.

    `chips` are keys of `CHIPS`, `reasons` in the order in which they were given.
    """
    lines = [CHIPS[chip] for chip in dict.fromkeys(chips) if chip in CHIPS]
    said = [line for reason in reasons if (line := " ".join(printable(reason).split())[:REASON])]
    return "\n".join([*lines, *said[-_REASONS:]])
