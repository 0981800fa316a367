# SPDX-License-Identifier: Apache-2.0
"""How boldly it learns, and when."""

from __future__ import annotations

from goodbot import config
from goodbot.base.errors import ConfigError
from goodbot.cli.setup.dialogue import Choice, Dialogue, Refused
from goodbot.cli.setup.draft import OWN, Draft, StateFound
from goodbot.cli.setup.presets import PRESETS, preset_of


def ask_preset(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """One of the presets, or the values that the config file has."""
    choices = [
        Choice(value=preset.name, label=preset.name.capitalize(), note=preset.about) for preset in PRESETS
    ]
    now = preset_of(place.config.training.settings)
    note = "the values in [training.settings] " + ("that you will write" if now else "stay as they are")
    choices.append(Choice(value=OWN, label="Your own", note=note))
    draft.preset = dialogue.choose("--preset", choices, draft.preset or now or OWN)


def ask_schedule(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """As soon as there are enough ratings, at a time of day, or on command."""
    training = place.config.training
    ratings = f"{training.min_ratings} new ratings"
    if training.start_small:
        ratings += ", the first time fewer"
    now = draft.schedule or place.config.training.schedule
    daily = now if ":" in now else "HH:MM"
    if dialogue.asks and not dialogue.has("--schedule"):
        dialogue.say(f"  1  By itself, as soon as there are {ratings}")
        dialogue.say(f"  2  Once a day at a time that you name: type it, for example {_like(daily)}")
        dialogue.say("  3  Only when you type `goodbot train`")

    def check(answer: str) -> str:
        schedule = {"1": "auto", "3": "manual"}.get(answer, answer)
        if schedule == "2":
            raise Refused(f"type the time itself, for example {_like(daily)}")
        plain = "".join(c for c in schedule if c.isalnum() or c == ":")
        try:
            config.parse(f'[training]\nschedule = "{plain}"\n', home=place.config.home)
        except ConfigError:
            raise Refused(
                "type 1, 3 or a time such as 03:30; b goes back, q leaves"
                if dialogue.asks
                else 'it can be auto, manual or a time such as "03:30"'
            ) from None
        return plain

    default = {"auto": "1", "manual": "3"}.get(now, now)
    draft.schedule = dialogue.text("--schedule", "Your choice", check, default)


def _like(time: str) -> str:
    return "03:30" if time == "HH:MM" else time
