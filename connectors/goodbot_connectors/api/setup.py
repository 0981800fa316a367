# SPDX-License-Identifier: Apache-2.0
"""Setting the API up: a client for whoever sits at this machine, and its token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from goodbot.api.setup import Check, CheckState, ConnectorSetup, Identity

from goodbot_connectors.api.config import ApiSettings
from goodbot_connectors.kit.bridge import clients

CONNECTOR = "api"
OWNER = "me"
_SECONDS = 5.0
_PART = "api"


class ApiSetup(ConnectorSetup):
    """The daemon's own API."""

    title = "The API"
    guide = (
        "Nothing is needed from anybody. Programs of this machine report answers and how good they were,\n"
        "or use goodbot in the place of OpenAI's or Anthropic's API. Each has a token of its own; the\n"
        "first one is yours, and shown once."
    )
    pairs = False
    owner: ClassVar[str] = OWNER
    settings: ApiSettings

    async def identify(self) -> Identity:
        """There is no account but our own."""
        return Identity(account="local", name="goodbot's own API", link=self.address)

    async def install(self, *, dry_run: bool) -> Sequence[str]:
        """Make the client `me`, unless there is one: its token is shown this once."""
        if any(one.name == OWNER for one in clients.listed(self.home, CONNECTOR)):
            return ()
        if dry_run:
            return (f"a client {OWNER!r} of goodbot's API, whose token is shown once",)
        token = clients.create(self.home, CONNECTOR, OWNER, admin=True)
        return (
            f"your token for goodbot's API, shown this once:\n  {token}",
            f"and a line to try it, once goodbot runs:\n  {curl(self.address, token)}",
        )

    async def examine(self) -> Sequence[Check]:
        """Whether the API is answered, and which programs may use it."""
        found = clients.listed(self.home, CONNECTOR)
        names = ", ".join(f"{one.name} (admin)" if one.admin else one.name for one in found)
        told = (
            _check(CheckState.OK, f"programs with a token: {names}")
            if found
            else _check(CheckState.WARN, "no program has a token", "goodbot api token add NAME")
        )
        return (await self._answers(), told)

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Every token of the API."""
        found = clients.listed(self.home, CONNECTOR)
        if not dry_run:
            for one in found:
                clients.remove(self.home, CONNECTOR, one.name)
        return [f"the token of {one.name}" for one in found]

    async def _answers(self) -> Check:
        """Whether the daemon asks for a token there: then it is ours, and the API is up."""
        import aiohttp  # not before it is asked: `goodbot connect --help` needs none

        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"{self.address}/v1/status") as response,
            ):
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            return _check(CheckState.WARN, f"no goodbot answers at {self.address}", "goodbot run")
        if status == 401:
            return _check(CheckState.OK, f"it answers at {self.address}")
        return _check(
            CheckState.FAIL,
            f"what answers at {self.address} is no API of goodbot's ({status}): goodbot runs without this "
            "connector, or another program has the port",
            "goodbot service restart, or stop `goodbot run` and start it again; `[http] port` sets another",
        )


def curl(address: str, token: str) -> str:
    """A line for a shell that asks for the status; other users of the machine do not see the token."""
    return f"""echo 'header = "Authorization: Bearer {token}"' | curl --config - {address}/v1/status"""


def _check(state: CheckState, text: str, fix: str = "") -> Check:
    return Check(part=_PART, state=state, text=text, fix=fix)
