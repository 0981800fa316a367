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
        Choice(
            value=name,
            label=dialogue.phrase(f"setup_preset_{name}"),
            note=dialogue.phrase(f"setup_preset_{name}_note"),
        )
        for name in PRESETS
    ]
    now = preset_of(place.config.training.settings)
    note = dialogue.phrase("setup_own_to_write" if now else "setup_own_stays")
    choices.append(Choice(value=OWN, label=dialogue.phrase("setup_own"), note=note))
    draft.preset = dialogue.choose("--preset", choices, draft.preset or now or OWN)


def ask_schedule(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """As soon as there are enough ratings, at a time of day, or on command."""
    training = place.config.training
    by_itself = "setup_auto_small" if training.start_small else "setup_auto"
    now = draft.schedule or place.config.training.schedule
    daily = now if ":" in now else "HH:MM"
    choices = [
        Choice(value="auto", label=dialogue.phrase(by_itself, count=training.min_ratings)),
        Choice(value="", label=dialogue.phrase("setup_daily", time=_like(daily))),
        Choice(value="manual", label=dialogue.phrase("setup_manual")),
    ]
    dialogue.show("--schedule", choices)

    def check(answer: str) -> str:
        schedule = {"1": "auto", "3": "manual"}.get(answer, answer)
        if schedule == "2":
            raise Refused(dialogue.phrase("setup_type_time", time=_like(daily)))
        plain = "".join(c for c in schedule if c.isalnum() or c == ":")
        try:
            config.parse(f'[training]\nschedule = "{plain}"\n', home=place.config.home)
        except ConfigError:
            if not dialogue.at_terminal:
                raise Refused(dialogue.phrase("setup_type_time", time=_like(daily))) from None
            wrong = "setup_type_schedule" if dialogue.asks else "setup_schedule_is"
            raise Refused(dialogue.phrase(wrong)) from None
        return plain

    default = {"auto": "1", "manual": "3"}.get(now, now)
    draft.schedule = dialogue.text("--schedule", dialogue.phrase("setup_choice"), check, default)


def _like(time: str) -> str:
    return "03:30" if time == "HH:MM" else time
