# SPDX-License-Identifier: Apache-2.0
"""The keys that rate, the same as in the browser, and what the chat tells of itself."""

from __future__ import annotations

from collections.abc import Collection

from goodbot.api.actions import HINTS, STAR_ROW
from goodbot.api.commands import of
from goodbot.api.labels import STARS

KEYS = {
    "g": "good",
    "b": "bad",
    "s": "skip",
    **{str(count): button.action for count, button in enumerate(STAR_ROW, 1)},
    "u": "undo",
}
"""What each stands for, where nothing else is typed."""
_NAMES = {"g": "g good", "b": "b bad", "s": "s skip", "1": f"1–{STARS} stars", "u": "u undo"}
RATINGS = {"good": 1, "bad": -1, "undo": 0}  # what the answer is marked as


def hint(keys: Collection[str]) -> str:
    """What these keys mean, in one line."""
    return " · ".join(name for key, name in _NAMES.items() if key in keys)


def nothing(key: str) -> str:
    """Why a key does nothing now, and how to send it."""
    what = "nothing to undo here" if KEYS[key] == "undo" else "no answer here yet to rate"
    return f"there is {what}; a space before it makes it a message"


AGAIN = f"Another answer: /again {', '.join(HINTS)}. Or say yourself: /reason TEXT, /better TEXT."
_FIRST = (one for one in of("chat") if "chat" in one.first and one.name not in RATINGS)
HELP = """\
After an answer, one key: {}.
A space before it makes it a message. Or just type the next message.
Alt+Enter begins a new line, Tab completes a command, Ctrl-R finds an earlier message
that holds what you have typed. Ctrl-C stops an answer, Ctrl-D or /quit leaves.
/{} mean the last answer, or one from /history. After a bad one
another is given by /again and one of: {}. And:
{}
More: /help all""".format(
    hint(KEYS), ", /".join(RATINGS), ", ".join(HINTS), "\n".join(one.explained("  /") for one in _FIRST)
)
