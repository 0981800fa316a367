# SPDX-License-Identifier: Apache-2.0
"""What owners have done, and others were refused, as a page of it asks for and shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityWanted:
    """Which entries of the audit trail are meant; None, 0 and empty say nothing."""

    since: float | None = None
    """When it was done, seconds since the epoch."""
    until: float | None = None
    """Before then."""
    person: str = ""
    """Who did it, or who is named in it: `connector:id`, or the name that the trail has for them."""
    action: str = ""
    """A command's name, or what else the trail calls it."""
    result: str = ""
    """`done`, `asked` or `refused`."""
    before: int = 0
    """What the page before said it ends with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Act:
    """One entry."""

    number: int
    at: float
    who: str
    """`connector:id`; `person-…`: somebody who was forgotten since."""
    you: bool
    """It is whoever asks for the page."""
    action: str
    what: str
    """What was to be done, in plain words."""
    typed: str = ""
    """The command, with what was typed behind it."""
    where: str = ""
    """`private`, or the chat; empty where it was no command."""
    refused: str = ""
    """Why it was not done; empty: it was."""
    asked: bool = False
    """It was not done yet: they were asked back whether they mean it."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What else the trail says of it."""
    hash: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityPage:
    """Some of them, the newest first."""

    acts: Sequence[Act]
    before: int = 0
    """Where to go on looking; 0: that is all. There may be more though none is on this page."""
    actions: Sequence[str] = ()
    """On the first page, each action that there ever was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrailChecked:
    """Whether the trail is as it was written."""

    entries: int
    changed: int = 0
    """The first entry that does not fit; 0: all do."""
    missing: int = 0
    """The last entry that was ever written, where it is not there any more; 0: it is."""
