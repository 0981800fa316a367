"""Who we are on Slack, and which payloads are ours to take."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot_connectors.fields import Json, items, string, sub


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Our own account, as auth.test tells it."""

    user: str
    team: str
    bot: str = ""
    name: str = ""
    workspace: str = ""
    url: str = ""

    @property
    def account(self) -> str:
        """Stable for as long as the app is installed."""
        return f"{self.team}:{self.user}"

    def foreign(self, body: Json) -> bool:
        """Whether a payload is for the app in another workspace, or somebody of another one acts.

        A shared channel has both; nobody of another workspace may ever be taken for one of ours.
        """
        installed = [string(one, "team_id") for one in items(body, "authorizations")]
        event = sub(body, "event")
        teams = (
            installed[0] if installed and installed[0] else string(body, "team_id"),
            string(sub(body, "team"), "id"), string(sub(body, "user"), "team_id"),
            string(event, "user_team"), string(event, "source_team"),
        )  # fmt: skip
        return any(team and team != self.team for team in teams)
