# SPDX-License-Identifier: Apache-2.0
"""Setting the account up, and what `goodbot doctor` may say of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from goodbot import Check, CheckState, ConnectorSetup, Identity

from goodbot_matrixlike import TOKEN
from goodbot_matrixlike.api import Api


class MatrixlikeSetup(ConnectorSetup):
    """One access token on one homeserver."""

    title = "Matrixlike"
    guide = (
        "1. Make an account for the bot on your homeserver.\n"
        "2. Log in as it once, and copy its access token from the settings."
    )

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        return "" if value.startswith("syt_") else "an access token begins with syt_"

    async def identify(self) -> Identity:
        async with self._api() as api:
            account = await api.whoami()
        return Identity(account=account, name=account)

    async def examine(self) -> Sequence[Check]:
        """An encrypted room cannot be read; all others can."""
        async with self._api() as api:
            rooms = await api.joined_rooms()
            closed = [room for room in rooms if await api.encrypted(room)]
        part = "matrixlike rooms"
        if not closed:
            return [Check(part=part, state=CheckState.OK, text=f"{len(rooms)}, all readable")]
        text = f"{len(closed)} of {len(rooms)} are encrypted; the bot is silent there"
        fix = "invite it to rooms without encryption"
        return [Check(part=part, state=CheckState.WARN, text=text, fix=fix)]

    @contextlib.asynccontextmanager
    async def _api(self) -> AsyncGenerator[Api]:
        api = Api(self.settings.homeserver, self.secrets.get(TOKEN))
        try:
            yield api
        finally:
            await api.close()
