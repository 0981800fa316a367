# SPDX-License-Identifier: Apache-2.0
"""The keys that rate, the same as in the browser, and what the chat tells of itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from goodbot.api.actions import HINTS, STAR_ROW
from goodbot.api.commands import Command, of
from goodbot.api.labels import STARS
from goodbot.api.sentences import version
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase, rephrased

KEYS = {
    "g": "good",
    "b": "bad",
    "s": "skip",
    **{str(count): button.action for count, button in enumerate(STAR_ROW, 1)},
    "u": "undo",
}
"""What each stands for, where nothing else is typed."""
_NAMED = ("g", "b", "s", "1", "u")
RATINGS = {"good": 1, "bad": -1, "undo": 0}  # what the answer is marked as


def hint(keys: Collection[str]) -> str:
    """What these keys mean, in one line."""
    return " · ".join(phrase(f"chat_key_{key}", most=STARS) for key in _NAMED if key in keys)


def nothing(key: str) -> str:
    """Why a key does nothing now, and how to send it."""
    return phrase("chat_no_undo" if KEYS[key] == "undo" else "chat_no_answer")


def told(command: Command, verb: str) -> str:
    """A command's line in a list."""
    return command._replace(summary=rephrased(command.summary)).explained(verb)


def again() -> str:
    """How to get another answer than a bad one."""
    return phrase("chat_again", hints=commas(here(), *HINTS))


def answers_now(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say that another version answers, by two states; nothing of a new one, since the news tells of it."""
    if not before or now["version"] == before["version"]:
        return ""
    run = now["last_run"]
    if run and run["state"] == "activated" and now["version"] > before["version"]:
        return ""
    return phrase("chat_now", name=version(now["version"], here(), begins=True))


def help_() -> str:
    """What can be typed, as far as a screen has room for it."""
    first = [one for one in of("chat") if "chat" in one.first and one.name not in RATINGS]
    rest = [told(one, "  /") for one in first]
    return phrase(
        "chat_help",
        keys=hint(KEYS),
        ratings=commas(here(), *(f"/{name}" for name in RATINGS)),
        hints=commas(here(), *HINTS),
        rest="\n".join(rest),
    )
