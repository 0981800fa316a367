# SPDX-License-Identifier: Apache-2.0
"""Which prompts of Codex are meant for goodbot, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.commands import find
from goodbot.api.labels import STARS, star_value
from goodbot.base.worded import Worded

from goodbot_connectors.codex import shim

UNDO = "undo"
SAYS = ("reason", "better")
_COUNTS = {str(count): count for count in range(1, STARS + 1)}


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptCommand:
    """What a prompt asks of goodbot. `name` is a command, by its own name if it is about an answer."""

    name: str
    args: str = ""
    rates: bool = False
    """Whether it is about an answer: the last one of this session, no other."""
    value: float | None = None
    """With `good`, `bad` and `stars`: from -1 to 1; None otherwise, and for stars that go."""
    wrong: str = ""
    """Why it can mean nothing, as a sentence; empty if it can."""


def said(prompt: str) -> PromptCommand | None:
    """What a prompt asks of goodbot; None for one that goes to the model.

    `+1`, `-1`, 👍, 👎 and `rl good` are meant so as whole prompts alone; what begins with ` /rl ` always.
    """
    words = shim.meant(prompt)
    if not words:
        return None
    name, *rest = words.split(maxsplit=1)
    args = rest[0] if rest else ""
    command = find(name)
    if command is None or not command.rates:
        return PromptCommand(name=name, args=args)
    return _rating(command.name, args)


def _rating(name: str, args: str) -> PromptCommand:
    if name in SAYS:
        wrong = "" if args else Worded("Say it in the same line: `{typed} TEXT`.", typed=f" /rl {name}")
        return PromptCommand(name=name, args=args, rates=True, wrong=wrong)
    if name == "stars":
        count = args.strip("★⭐\ufe0f")
        if count not in ("0", *_COUNTS):
            how = "Say how many stars, 1 to {most}: ` /rl stars 4`; 0 takes them back."
            return PromptCommand(name=name, rates=True, wrong=Worded(how, most=STARS))
        value = star_value(_COUNTS[count]) if count in _COUNTS else None
        return PromptCommand(name=name, rates=True, value=value)
    if args:
        alone = "` /rl {name}` takes nothing behind it: it means the last answer of this session."
        return PromptCommand(name=name, rates=True, wrong=Worded(alone, name=name))
    return PromptCommand(name=name, rates=True, value={"good": 1.0, "bad": -1.0}.get(name))
