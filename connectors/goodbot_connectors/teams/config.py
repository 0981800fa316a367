# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.teams]`. The client secret is no setting: it comes from the environment."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from goodbot.base.addresses import is_here

APP_PASSWORD = "GOODBOT_TEAMS_APP_PASSWORD"  # noqa: S105  the variable's name
"""The environment variable with the client secret of the app registration."""
DEFAULT, CUSTOM = "default", "custom"


@dataclass(frozen=True, kw_only=True)
class TeamsSettings:
    """How goodbot behaves on Teams. Times in seconds.

    Reactions by the names that Teams gives them (`like`, `1f525_fire`), skin tones count as the
    plain one; any other reaction is no rating. Clear verdicts only: `sad` or `surprised` may be
    about what an answer says.
    """

    app_id: str = ""
    """The bot's id: the “Application (client) ID” of its app registration."""
    tenant: str = ""
    """The id of the one organisation that it is for; empty for an old bot that is for many."""
    port: int = 3978
    """Where it listens, on 127.0.0.1 alone: a proxy with TLS or a dev tunnel stands before it."""
    path: str = "/api/messages"
    """The path of the “messaging endpoint”."""
    good: tuple[str, ...] = (
        "like",
        "heart",
        "1f44d_thumbsup",
        "1f44f_clappinghands",
        "1f389_partypopper",
        "1f3c6_trophy",
        "2764_redheart",
        "1f525_fire",
        "1f929_starstruck",
        "1f4af_hundredpoints",
        "1f44c_okhand",
    )
    """Reactions that call an answer good, by Teams's names for them."""
    bad: tuple[str, ...] = ("angry", "dislike", "1f44e_thumbsdown", "1f4a9_pileofpoo", "1f92e_facevomiting")
    """Reactions that call it bad."""
    feedback: str = DEFAULT
    """The form behind 👍 and 👎: Teams's own (`default`), or ours with a better answer (`custom`)."""
    group_buttons: bool = False
    """Rating controls under answers in group chats and channels too, not only in personal chats."""
    targeted: bool = False
    """In groups, tell one person something by a targeted message, which is a preview of Teams."""
    edit_interval: float = 2.0
    """The least time between two edits of an answer that is written in a group chat or channel."""
    stream_interval: float = 1.5
    """The least time between two pieces of an answer that is streamed in a personal chat."""
    service_urls: tuple[str, ...] = ()
    """More addresses that our access token may be sent to, beside those of Teams itself."""
    openid_metadata: str = ""
    """Where the keys of the Bot Framework are described, if not at Microsoft's address."""
    token_endpoint: str = ""
    """Where access tokens come from, if not from Microsoft's address for `tenant`."""
    insecure_local: bool = False
    """Believe whoever calls, without a token: for Microsoft's playground on this machine only."""

    def __post_init__(self) -> None:
        """Raises ValueError, which the config reports with its file and line."""
        if not self.path.startswith("/"):
            raise ValueError('path begins with a slash, like "/api/messages"')
        if self.feedback not in (DEFAULT, CUSTOM):
            raise ValueError(f'feedback is "{DEFAULT}" or "{CUSTOM}", not "{self.feedback}"')
        if self.insecure_local and self.app_id:
            raise ValueError("insecure_local checks nobody's token: take out either it or app_id")
        for name, url in (
            *(("service_urls", url) for url in self.service_urls),
            ("openid_metadata", self.openid_metadata),
            ("token_endpoint", self.token_endpoint),
        ):
            if url and not (url.startswith("https://") or is_loopback(url)):
                raise ValueError(f"{name} takes https addresses, or some of this machine, not {url}")

    @property
    def needed_secrets(self) -> tuple[str, ...]:
        """The secrets without which it cannot work as it is set up."""
        return () if self.insecure_local else (APP_PASSWORD,)


def is_loopback(url: str) -> bool:
    """Whether an http address is on this machine, by its name alone."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and is_here(parts.hostname or "")
