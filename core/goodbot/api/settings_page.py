# SPDX-License-Identifier: Apache-2.0
"""The settings of the config file, as a page shows and changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SettingValue = str | int | float | bool | list[str] | None
"""What a setting is set to; None: nothing, or something secret."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting."""

    key: str
    """`serving.language`"""
    told: str
    """What it is for."""
    kind: str
    """`switch`, `whole`, `number`, `text`, `choice`, `texts` (a list), or `section`."""
    default: SettingValue
    value: SettingValue
    """What the file says, or the default: so it is from the next start on."""
    now: SettingValue
    """What this goodbot was started with."""
    choices: Sequence[str] = ()
    written: bool = False
    """The file has it."""
    secret: bool = False
    """It may hold a key or a password: no value is told."""
    why_not: str = ""
    """Why the page alone cannot change it; empty: it can."""
    typed: str = ""
    """What is typed at the bot's machine for a code, with which the page can; empty: no code opens it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaceSeen:
    """Where people can talk to the bot, or could."""

    name: str
    """`telegram`"""
    title: str
    connected: bool
    """The config has it."""
    works: bool
    """It runs, and nothing is wrong with it."""
    command: str
    """What connects it, typed at the bot's machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsSeen:
    """All settings, by section."""

    settings: Sequence[Setting]
    file: str
    """Where they are written."""
    trouble: str = ""
    """Why the file as it is now would not be taken; empty: it would."""
    places: Sequence[PlaceSeen] = ()
    started_at: float = 0.0
    """Since when this goodbot runs, seconds since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingWanted:
    """A setting that shall be another."""

    key: str
    value: SettingValue
    """None: the default, and the file says nothing of it any more."""
    before: SettingValue
    """What the page showed: if the file says something else by now, nothing is changed."""
    code: str = ""
    """What `Setting.typed` has printed."""
