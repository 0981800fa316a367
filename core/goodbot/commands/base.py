# SPDX-License-Identifier: Apache-2.0
"""What a command is given, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiosqlite

from goodbot.api.commands import Grant
from goodbot.api.events import Button, ChannelKind, CommandEvent, RatingEvent, RatingKind, UserRef
from goodbot.api.texts import say
from goodbot.base.errors import UsageError

if TYPE_CHECKING:
    from goodbot.commands.services import Services


DETAILS = "--details"
"""Figures and terms for who wants to know how it works."""


def wrong(event: CommandEvent, key: str, **values: Any) -> UsageError:
    """What was wrong with a command, in the language of whoever typed it."""
    return UsageError(say(key, event.user.language, **values), english=say(key, "en", **values))


@dataclass(frozen=True, kw_only=True)
class Call:
    """One use of a command."""

    event: CommandEvent
    args: tuple[str, ...]
    services: Services
    direct: bool = False
    """It came from a program, which asks back by itself, not out of a chat."""
    within: aiosqlite.Connection | None = None
    """The transaction in which it comes in, where it is done in that: what a rating says."""

    @property
    def user(self) -> UserRef:
        return self.event.user

    @property
    def confidential(self) -> bool:
        """Whether nobody but an owner reads the answer."""
        shared = self.event.channel.kind is ChannelKind.SHARED
        return not shared and self.services.authorization.may(self.user, Grant.ADMINISTER)

    def rating(self, turn: str, kind: RatingKind, **said: Any) -> RatingEvent:
        """The rating that it is of an answer; `said` are further fields of the event."""
        event = self.event
        own: dict[str, Any] = {"event_id": event.event_id, **said}
        return RatingEvent(
            order=event.order, user=event.user, channel=event.channel, turn=turn, kind=kind, **own
        )


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a command answers: a text for people, and data for `--json`."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    once: bool = False
    """Its text is shown and not kept: it holds a one-time code."""
    turn: str = ""
    """The answer that it is about."""
    offer: tuple[Button, ...] = ()
    """What that person may press next."""
    later: Callable[[], Awaitable[Result]] | None = None
    """What it comes to in the end, for somebody who waits; the commands behind it do not."""
