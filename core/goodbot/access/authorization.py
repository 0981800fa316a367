# SPDX-License-Identifier: Apache-2.0
"""Who may talk, rate and administer. Default deny; ids only, exact matches, never names.

Grants come from the config, from the store (by pairing or a command) and from the platforms' own
groups. All of it lies in memory: `refresh` reads the store's again after each change, and
`goodbot.access.groups` asks the platforms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, ChannelRef, UserRef
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.suggest import TERMINAL
from goodbot.config import Grants
from goodbot.store import Store, people

LEVELS = {"owner": Grant.ADMINISTER, "rater": Grant.RATE, "talker": Grant.TALK}
"""What each role may."""

WEB = "web"
"""The connector that one logs in to (`goodbot.access.login`)."""
OWN_NAMES = ("me", "owner")
"""What the machine's owner is called on the other connectors of this machine."""

_CONFIGURED = {"owner": "owners", "rater": "raters", "talker": "talkers"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Granted:
    """One person's role and where it comes from. `since` is seconds since the epoch."""

    person: str
    role: str
    source: str
    """`config`, `paired`, `granted` or `group`."""
    by: str = ""
    """Who granted it, or which group; empty for the config."""
    since: float | None = None


class Authorization:
    """The allowlists of every connector."""

    def __init__(
        self, grants: Mapping[str, Grants], clock: Clock | None = None, *, local: Collection[str] = ()
    ) -> None:
        """`local` are the connectors of this machine (`ConnectorSpec.local`)."""
        self._config = dict(grants)
        self._local = frozenset(local)
        self._clock = clock or SystemClock()
        self._granted: dict[str, people.GrantRow] = {}
        self._groups: dict[tuple[str, str], tuple[frozenset[str], float]] = {}

    async def refresh(self, store: Store) -> None:
        """Read what was granted by pairing and by commands, as last committed."""
        rows = await store.read(people.grants)
        self._granted = {row.person: row for row in rows}

    def set_members(self, connector: str, group: str, members: Collection[str], until: float) -> None:
        """Who is in a platform's group; believed until then, on the monotonic clock."""
        self._groups[connector, group] = (frozenset(members), until)

    def level(self, user: UserRef) -> Grant:
        """The highest grant of a person, wherever they are."""
        grants = self._config.get(user.connector)
        if grants is None or user.is_bot or not user.id:
            return Grant.NONE
        if first := origin(person(user)):  # it was logged in from that one, and may the same
            return self.level_of(first)
        levels = [LEVELS[r] for r, name in _CONFIGURED.items() if user.id in getattr(grants, name)]
        if row := self._granted.get(person(user)):
            levels.append(LEVELS[row.role])
        if any(user.id in self.members(user.connector, group) for group in grants.rater_groups):
            levels.append(Grant.RATE)
        return max(levels, default=Grant.NONE)

    def members(self, connector: str, group: str) -> frozenset[str]:
        """Who is in a platform's group; nobody while that is not known well enough."""
        members, until = self._groups.get((connector, group), (frozenset[str](), 0.0))
        return members if self._clock.monotonic() < until else frozenset()

    def waits_for_groups(self, connector: str) -> bool:
        """Whether a platform has not told yet who is in one of its groups."""
        grants = self._config.get(connector)
        return grants is not None and any((connector, one) not in self._groups for one in grants.rater_groups)

    def may_talk(self, user: UserRef, channel: ChannelRef, *, enabled: bool) -> bool:
        """Whether the bot answers this person here; `enabled`: an owner switched the channel on."""
        if user.is_bot or channel.kind is ChannelKind.ENCRYPTED:
            return False
        if channel.kind is ChannelKind.SHARED:
            return enabled or self.configured(channel)
        return self.level(user) >= Grant.TALK

    def configured(self, channel: ChannelRef) -> bool:
        """Whether the config switches this channel on."""
        grants = self._config.get(channel.connector)
        return grants is not None and channel.id in grants.channels

    def may(self, user: UserRef, grant: Grant) -> bool:
        """Whether a person has a grant."""
        return self.level(user) >= grant

    def may_rate(self, user: UserRef) -> bool:
        """Whether a person teaches the bot."""
        return self.may(user, Grant.RATE)

    def is_owner(self, who: str) -> bool:
        """Whether `connector:id` may administer."""
        return self.level_of(who) is Grant.ADMINISTER

    def level_of(self, who: str) -> Grant:
        """The highest grant of `connector:id`."""
        connector, _, id_ = who.partition(":")
        return self.level(UserRef(connector=connector, account="", id=id_))

    def owners(self, *, granted: bool = True) -> list[str]:
        """All owners as `connector:id`; without `granted` those whom the config names."""
        return sorted(
            {
                entry.person
                for entry in self.people()
                if entry.role == "owner" and (granted or entry.source == "config")
            }
        )

    def people(self) -> list[Granted]:
        """Everybody with a grant, owners first; one entry a source."""
        found = [
            Granted(person=f"{name}:{id_}", role=role, source="config")
            for name, grants in self._config.items()
            for role, key in _CONFIGURED.items()
            for id_ in getattr(grants, key)
        ]
        found += [
            Granted(
                person=row.person,
                role=row.role,
                since=row.since,
                by=row.given_by,
                source="paired" if row.given_by == people.PAIRING else "granted",
            )
            for row in self._granted.values()
            if row.person.partition(":")[0] in self._config
        ]
        found += [
            Granted(person=f"{name}:{id_}", role="rater", source="group", by=group)
            for name, grants in self._config.items()
            for group in grants.rater_groups
            for id_ in sorted(self.members(name, group))
        ]
        return sorted(found, key=lambda entry: (people.ROLES.index(entry.role), entry.person))

    def is_local(self, who: str) -> bool:
        """Whether an account (`connector:id`) was made at this machine, not on a chat platform."""
        return who.partition(":")[0] in self._local and not origin(who)

    def own(self) -> list[str]:
        """The accounts that the machine's owner has by the config, the terminal's first."""
        mine = [
            f"{name}:{id_}"
            for name, grants in sorted(self._config.items(), key=lambda one: one[0] != TERMINAL)
            for id_ in grants.owners
            if name in self._local and (name == TERMINAL or id_ in OWN_NAMES)
        ]
        return mine if TERMINAL in self._config else []

    @property
    def connectors(self) -> dict[str, Grants]:
        """What the config grants on each connector."""
        return dict(self._config)


def origin(who: str) -> str:
    """The account that `web:telegram:42` was logged in from (`telegram:42`); empty for any other."""
    connector, _, id_ = who.partition(":")
    logged_in = connector == WEB and ":" in id_ and not id_.startswith(f"{WEB}:")
    return id_ if logged_in else ""


def person(user: UserRef) -> str:
    """The key that a person's ratings and words are stored under, alike for one connector."""
    return f"{user.connector}:{user.id}"
