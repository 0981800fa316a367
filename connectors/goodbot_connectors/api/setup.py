# SPDX-License-Identifier: Apache-2.0
"""Setting the API up: a client for whoever sits at this machine, and its token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from goodbot.api.setup import Check, ConnectorSetup, Identity, fail, ok, warn
from goodbot.api.texts import beside, commas, say
from goodbot.api.texts.terminal import here, phrase

from goodbot_connectors.api.config import ApiSettings
from goodbot_connectors.kit.bridge import clients

CONNECTOR = "api"
OWNER = "me"
_SECONDS = 5.0
_PART = "api"


class ApiSetup(ConnectorSetup):
    """The daemon's own API."""

    title = "The API"
    guide = say("guide_api")
    pairs = False
    owner: ClassVar[str] = OWNER
    settings: ApiSettings

    async def identify(self) -> Identity:
        """There is no account but our own."""
        return Identity(account="local", name=phrase("ap_name"), link=self.address)

    async def install(self, *, dry_run: bool) -> Sequence[str]:
        """Make the client `me`, unless there is one: its token is shown this once."""
        if any(one.name == OWNER for one in clients.listed(self.home, CONNECTOR)):
            return ()
        if dry_run:
            return (phrase("ap_client", name=repr(OWNER)),)
        token = clients.create(self.home, CONNECTOR, OWNER, admin=True)
        return (f"{phrase('ap_token')}\n  {token}", f"{phrase('ap_try')}\n  {curl(self.address, token)}")

    async def examine(self) -> Sequence[Check]:
        """Whether the API is answered, and which programs may use it."""
        found = clients.listed(self.home, CONNECTOR)
        shown = (beside(one.name, "admin", here()) if one.admin else one.name for one in found)
        names = commas(here(), *shown)
        told = (
            ok(_PART, phrase("ap_tokens", names=names))
            if found
            else warn(_PART, phrase("ap_none"), "goodbot api token add NAME")
        )
        return (await self._answers(), told)

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Every token of the API."""
        found = clients.listed(self.home, CONNECTOR)
        if not dry_run:
            for one in found:
                clients.remove(self.home, CONNECTOR, one.name)
        return [phrase("token_of", name=one.name) for one in found]

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
            return warn(_PART, phrase("ap_silent", place=self.address), "goodbot run")
        if status == 401:
            return ok(_PART, phrase("ap_well", place=self.address))
        return fail(_PART, phrase("ap_other", place=self.address, status=status), phrase("ap_other_fix"))


def curl(address: str, token: str) -> str:
    """A line for a shell that asks for the status; other users of the machine do not see the token."""
    return f"""echo 'header = "Authorization: Bearer {token}"' | curl --config - {address}/v1/status"""
