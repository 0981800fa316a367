# SPDX-License-Identifier: Apache-2.0
"""What `[connectors.api]` says of the proxy. Keys come from the environment, never from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api import address

OWN = "goodbot"
"""The upstream that is our own model."""
OPENAI, ANTHROPIC, BOTH = "openai", "anthropic", "both"
KEY, ANTHROPIC_KEY = "UPSTREAM_API_KEY", "UPSTREAM_ANTHROPIC_API_KEY"
SECRETS = (KEY, ANTHROPIC_KEY)
"""The environment variables with the keys of `upstream` and `upstream_anthropic`."""
_ANTHROPIC_HOST = "api.anthropic.com"


@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """Who answers the programs that use goodbot as their API. Times in seconds."""

    upstream: str = OWN
    """Our own model, or the address of another server, like `https://api.openai.com/v1`."""
    upstream_dialect: str = ""
    """What `upstream` speaks: `openai`, `anthropic` or `both`; empty: `openai`, but for Anthropic's own."""
    upstream_anthropic: str = ""
    """Another one for `/v1/messages`, where `upstream` does not speak that."""
    upstream_hosts: tuple[str, ...] = ()
    """Other machines that these addresses may lead to."""
    pass_credentials: bool = False
    """Programs log in to the upstream themselves: what is in their Authorization and x-api-key headers
    goes there, and our token comes in `X-Goodbot-Token`."""
    capture: bool = True
    """Whether answers become turns. Without it they only go through."""
    session_seconds: float = 3600.0
    """A session nobody has used for so long is over."""

    def __post_init__(self) -> None:
        """Raises ValueError, which the config reports with its file and line."""
        if self.upstream_dialect not in ("", OPENAI, ANTHROPIC, BOTH):
            raise ValueError(
                f'upstream_dialect is "{OPENAI}", "{ANTHROPIC}" or "{BOTH}", not "{self.upstream_dialect}"'
            )
        for name, url in (("upstream", self.upstream), ("upstream_anthropic", self.upstream_anthropic)):
            if url not in ("", OWN):
                checked(name, url, self.upstream_hosts)
        if not self.upstream:
            raise ValueError(f'upstream is "{OWN}" or an address, like "https://api.openai.com/v1"')
        if self.session_seconds <= 0:
            raise ValueError("session_seconds is more than 0")

    def upstream_for(self, dialect: str) -> tuple[str, str]:
        """Who answers requests in `openai` or `anthropic`, and the name of its key's variable.

        `OWN` for our own model; empty: nobody.
        """
        if dialect == ANTHROPIC and self.upstream_anthropic:
            return self.upstream_anthropic, ANTHROPIC_KEY
        if self.upstream == OWN:
            return OWN, ""
        spoken = self.upstream_dialect or (
            ANTHROPIC if _ANTHROPIC_HOST in self.upstream.split("/") else OPENAI
        )
        return (self.upstream, KEY) if spoken in (dialect, BOTH) else ("", "")


def checked(name: str, url: str, hosts: Sequence[str]) -> str:
    """An address in one spelling, without `/v1` at its end. Raises ValueError in a sentence of ours."""
    try:
        return address.checked(url, hosts, section="connectors.api", setting="upstream_hosts", key=KEY)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
