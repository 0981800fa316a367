"""Who may talk, rate and administer. Default deny; ids only, exact matches, never names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from goodbot.config import Grants
from goodbot.events import ChannelKind, ChannelRef, UserRef


class Grant(IntEnum):
    """What a command or an event needs. Each includes the ones below it, TALK by channel aside."""

    NONE = 0
    TALK = 1
    RATE = 2
    ADMINISTER = 3


class Authorization:
    """The allowlists of every connector."""

    def __init__(self, grants: Mapping[str, Grants]) -> None:
        self._grants = dict(grants)

    def level(self, user: UserRef) -> Grant:
        """The highest grant of a person, wherever they are."""
        grants = self._grants.get(user.connector)
        if grants is None or user.is_bot or not user.id:
            return Grant.NONE
        if user.id in grants.owners:
            return Grant.ADMINISTER
        if user.id in grants.raters:
            return Grant.RATE
        return Grant.TALK if user.id in grants.talkers else Grant.NONE

    def may_talk(self, user: UserRef, channel: ChannelRef, *, enabled: bool) -> bool:
        """Whether the bot answers this person here; `enabled`: an owner switched the channel on."""
        if user.is_bot or channel.kind is ChannelKind.ENCRYPTED:
            return False
        if channel.kind is ChannelKind.SHARED:
            return enabled
        return self.level(user) >= Grant.TALK

    def may(self, user: UserRef, grant: Grant) -> bool:
        """Whether a person has a grant."""
        return self.level(user) >= grant

    def owners(self) -> list[str]:
        """All owners as `connector:id`."""
        return sorted(
            f"{name}:{id_}" for name, grants in self._grants.items() for id_ in grants.owners
        )


def person(user: UserRef) -> str:
    """The key that a person's ratings and words are stored under, alike for one connector."""
    return f"{user.connector}:{user.id}"
