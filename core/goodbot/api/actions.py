# SPDX-License-Identifier: Apache-2.0
"""The buttons under an answer: what they are called, and what a press means.

A press that rates becomes a `RatingEvent` with the source and value that `rating` gives. Every other
action becomes a `PressEvent`, and the core decides what it means and who may.
"""

from __future__ import annotations

from typing import NamedTuple

from goodbot.api.commands import parted
from goodbot.api.events import Button, CommandEvent, PressEvent
from goodbot.api.labels import STARS, star_value
from goodbot.api.texts import say

STAR_ROW = tuple(Button(action=f"star:{count}", label=f"{count} ★") for count in range(1, STARS + 1))
RETRY = "again"
"""`again:HINT`: another answer in place of this one."""
COMMAND = "run"
"""`run:NAME ARGS`: the command as if typed, by whoever presses."""


class Hint(NamedTuple):
    """What was wrong with an answer: the chip's name, and what the model is told."""

    name: str
    told: str

    def label(self, language: str = "") -> str:
        """What the chip is called."""
        return say(f"hint_{self.name}", language)


HINTS = {
    hint.name: hint
    for hint in (
        Hint("long", "That was too long. Answer again, shorter."),
        Hint("short", "That was too short. Answer again, in more detail."),
        Hint("wrong", "That was wrong. Check it and answer again."),
        Hint("tone", "The tone was not right. Answer again in another tone."),
        Hint("better", "Say it better."),
    )
}


class Pressed(NamedTuple):
    """What a rating button says: the source under which it counts, and its value in [-1, 1]."""

    source: str
    value: float


def rating(action: str) -> Pressed | None:
    """What a press rates; None for an action that is no rating."""
    if action in ("good", "bad"):
        return Pressed("button", 1.0 if action == "good" else -1.0)
    kind, _, count = action.partition(":")
    if kind == "star" and count in {str(n) for n in range(1, STARS + 1)}:
        return Pressed("stars", star_value(int(count)))
    return None


def hint(action: str) -> Hint | None:
    """What was wrong, when a press asks for another answer; None for any other action."""
    kind, _, name = action.partition(":")
    return HINTS.get(name) if kind == RETRY else None


def is_command(press: PressEvent) -> bool:
    """Whether a press stands for a typed command."""
    return press.action.startswith(f"{COMMAND}:")


def typed(press: PressEvent) -> CommandEvent:
    """The command that a press stands for, as if whoever pressed had typed it there."""
    name, args = parted(press.action.removeprefix(f"{COMMAND}:"))
    return CommandEvent(
        event_id=press.event_id,
        order=press.order,
        user=press.user,
        channel=press.channel,
        name=name,
        args=args,
        reply_to=press.message_id,
    )


def run(command: str, label: str) -> Button:
    """A button that is the command (`NAME ARGS`)."""
    return Button(action=f"{COMMAND}:{command}", label=label)


def thumbs(language: str = "") -> tuple[Button, Button]:
    """Good and bad."""
    return (
        Button(action="good", label=say("button_good", language)),
        Button(action="bad", label=say("button_bad", language)),
    )


def retry_row(language: str = "") -> tuple[Button, ...]:
    """What is offered to whoever called an answer bad."""
    return tuple(Button(action=f"{RETRY}:{name}", label=hint.label(language)) for name, hint in HINTS.items())


THUMBS = thumbs()
"""As those have them who read English."""
