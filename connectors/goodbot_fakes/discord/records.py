# SPDX-License-Identifier: Apache-2.0
"""What a Discord remembers: people, servers, channels, messages. Ids are snowflakes, as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from goodbot.base.clock import Clock

Json = dict[str, Any]

TEXT, DM, THREAD, FORUM = 0, 1, 11, 15
"""Kinds of channels: `GUILD_TEXT`, `DM`, `PUBLIC_THREAD`, `GUILD_FORUM`."""
EPHEMERAL, LOADING, COMPONENTS_V2 = 1 << 6, 1 << 7, 1 << 15
"""Flags of messages."""
_EPOCH_MS = 1_420_070_400_000


class Snowflakes:
    """Ids that tell when: milliseconds since 2015 above, a count below. Each is above all before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> str:
        """A new id."""
        now = (int(self._clock.now() * 1000) - _EPOCH_MS) << 22
        self._last = max(self._last + 1, now)
        return str(self._last)


@dataclass(kw_only=True, slots=True)
class User:
    """A person or a bot."""

    id: str
    name: str
    bot: bool = False
    locale: str = "en-US"
    takes_messages: bool = True
    """Whether a bot may write to them directly."""


@dataclass(kw_only=True, slots=True)
class Role:
    """Rights that members share. The role with the guild's own id is everybody's."""

    id: str
    name: str
    permissions: int
    bot_id: str = ""
    """Set for the role that Discord makes for a bot when it is invited."""


@dataclass(kw_only=True, slots=True)
class Guild:
    """A server. `members` has the role ids of each user, without everybody's."""

    id: str
    name: str
    owner_id: str
    roles: dict[str, Role]
    members: dict[str, list[str]]
    joined_at: float
    emojis: dict[str, str] = field(default_factory=dict[str, str])
    """Names of its own emoji, by id."""


@dataclass(kw_only=True, slots=True)
class Channel:
    """Where messages stand; a thread is one, too."""

    id: str
    kind: int
    name: str = ""
    guild_id: str = ""
    parent_id: str = ""
    recipients: tuple[str, ...] = ()
    """The two people of a DM."""
    owner_id: str = ""
    """Who opened a thread."""
    denied: dict[str, int] = field(default_factory=dict[str, int])
    """Permission bits that are taken away here, by role or user id."""
    archived: bool = False
    created: float = 0.0

    @property
    def private(self) -> bool:
        return self.kind == DM


@dataclass(kw_only=True, slots=True, eq=False)
class Message:
    """One message. `reactions` has user ids by emoji: `👍`, or `name:id` for a server's own."""

    id: str
    channel_id: str
    author_id: str
    content: str = ""
    sent_at: float = 0.0
    edited_at: float = 0.0
    kind: int = 0
    flags: int = 0
    components: list[Json] = field(default_factory=list[Json])
    embeds: list[Json] = field(default_factory=list[Json])
    attachments: list[Json] = field(default_factory=list[Json])
    mentions: list[str] = field(default_factory=list[str])
    mention_roles: list[str] = field(default_factory=list[str])
    mention_everyone: bool = False
    reply_to: str = ""
    reactions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    supers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Super reactions, likewise."""
    interaction: Json | None = None
    """The `interaction_metadata` of a message that answers an interaction."""
    webhook_id: str = ""
    nonce: str = ""
    to: str = ""
    """Set for an ephemeral message: the one person who sees it."""

    @property
    def ephemeral(self) -> bool:
        return bool(self.flags & EPHEMERAL)
