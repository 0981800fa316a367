# SPDX-License-Identifier: Apache-2.0
"""Who we are on Slack, and which payloads are ours to take: that is proved, never assumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from goodbot_connectors.kit.fields import Json, items, string, strings, sub


class ActorOrigin(Enum):
    """What a payload says of whoever acts."""

    OURS = auto()
    """Somebody of our workspace."""
    ORGANISATION = auto()
    """Somebody of our Enterprise organisation: perhaps of another workspace of it."""
    UNPROVED = auto()
    """Perhaps somebody of another workspace: the payload does not tell, or not clearly."""
    THEIRS = auto()
    """Somebody of another workspace, or it is not for our installation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BotIdentity:
    """Our own account, as auth.test tells it."""

    user: str
    team: str
    bot: str = ""
    name: str = ""
    workspace: str = ""
    url: str = ""
    enterprise: str = ""
    """The Enterprise organisation of our workspace; empty for none."""
    organisation_wide: bool = False
    """Installed for a whole organisation: then all of its workspaces are ours."""

    @property
    def account(self) -> str:
        """Stable for as long as the app is installed."""
        return f"{self.team}:{self.user}"

    def foreign(self, body: Json) -> bool:
        """Whether a payload says that it is not for us, or that somebody of another workspace acts."""
        return self.standing(body) is ActorOrigin.THEIRS

    def standing(self, body: Json) -> ActorOrigin:
        """Who acts, by what the payload says. Only `OURS` needs no `Members` to confirm it.

        A channel may be shared with another company. Then the wrapper's team is the author's or
        ours, `team` of a mention is ours whoever wrote it, and a reaction names no team at all.
        """
        enterprise = self._enterprise(body)
        if not self._for_us(body, enterprise):
            return ActorOrigin.THEIRS
        told = {team for team in _actor(body) if team}
        others = told - self._own(enterprise)
        inside = bool(enterprise) and _around(body) == enterprise
        if others and not inside:
            return ActorOrigin.THEIRS
        if others or _shared(body) or not self._from_here(body, enterprise):
            return ActorOrigin.UNPROVED
        if enterprise in told and not self.organisation_wide:
            return ActorOrigin.ORGANISATION
        return ActorOrigin.OURS

    def member(self, person: Json) -> bool:
        """Whether `users.info` says that somebody is a person of our workspace, and of no other."""
        if any(person.get(sign) for sign in ("is_stranger", "is_bot", "deleted")):
            return False
        beyond = sub(person, "enterprise_user")
        enterprise, team = string(beyond, "enterprise_id"), string(person, "team_id")
        if enterprise and enterprise != self.enterprise:
            return False
        if self.organisation_wide:
            return bool(enterprise) or team in self._own(self.enterprise)
        return team == self.team or (bool(enterprise) and self.team in strings(beyond, "teams"))

    def _own(self, enterprise: str) -> set[str]:
        return {self.team, enterprise} - {""}

    def _enterprise(self, body: Json) -> str:
        """Our organisation: as auth.test told it, or as the payload tells it beside our workspace."""
        if self.enterprise:
            return self.enterprise
        places = (
            *((string(one, "team_id"), string(one, "enterprise_id")) for one in _installed(body)),
            (string(body, "context_team_id"), string(body, "context_enterprise_id")),
            (string(body, "team_id"), string(body, "enterprise_id")),
            (string(sub(body, "team"), "id"), string(sub(body, "team"), "enterprise_id")),
        )
        return next((org for team, org in places if org and team == self.team), "")

    def _for_us(self, body: Json, enterprise: str) -> bool:
        """Whether a payload is for our installation; the app may be in several workspaces."""
        installed = list(_installed(body))
        if installed:
            return any(self._installation(one, enterprise) for one in installed)
        view, context = string(sub(body, "view"), "app_installed_team_id"), ""
        if "event" in body:
            context = string(body, "context_team_id") or string(body, "team_id")
        place = view or context
        return not place or self.organisation_wide or place in self._own(enterprise)

    def _installation(self, one: Json, enterprise: str) -> bool:
        team, org = string(one, "team_id"), string(one, "enterprise_id")
        if team == self.team:
            return True
        wide = one.get("is_enterprise_install") in (True, "true")
        return wide and bool(enterprise) and org == enterprise and team in ("", enterprise)

    def _from_here(self, body: Json, enterprise: str) -> bool:
        """Whether Slack names our workspace where it says whose action this is."""
        user = sub(body, "user")
        if user:  # an interaction
            own = {self.team, enterprise} if enterprise else {self.team}
            places = (
                string(sub(body, "team"), "id"),
                string(sub(body, "view"), "team_id"),
                string(sub(body, "view"), "app_installed_team_id"),
            )
            return bool(string(user, "team_id")) and all(t in own for t in places if t)
        if string(body, "team_id") == self.team:
            return True
        return self.organisation_wide and string(body, "enterprise_id") == enterprise != ""


def named(body: Json) -> list[str]:
    """The teams and organisations that a payload names, for the log: they are no people."""
    found = [*_actor(body), string(body, "team_id"), string(sub(body, "team"), "id"), _around(body)]
    return [team for team in dict.fromkeys(found) if team.isascii() and team.isalnum()][:5]


def _installed(body: Json) -> Iterator[Json]:
    return items(body, "authorizations")


def _actor(body: Json) -> Iterator[str]:
    """Every team that a payload names as that of whoever acts."""
    event = sub(body, "event")
    yield string(sub(body, "user"), "team_id")
    for name in ("user_team", "source_team", "team"):
        yield string(event, name)
    yield string(sub(event, "user_profile"), "team")
    if "command" in body:
        yield string(body, "team_id")


def _around(body: Json) -> str:
    """The organisation of the place where it happened."""
    return (
        string(body, "enterprise_id")
        or string(sub(body, "enterprise"), "id")
        or string(sub(body, "team"), "enterprise_id")
    )


def _shared(body: Json) -> bool:
    """Whether it happened in a channel that another company is in."""
    return bool(body.get("is_ext_shared_channel") or sub(body, "event").get("is_ext_shared_channel"))
