# SPDX-License-Identifier: Apache-2.0
"""One interaction's answer: the first response within three seconds, and what follows it.

Nothing that tells of success is sent before the commit; a deferral tells nothing. After fifteen minutes
Discord takes no more words for an interaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from goodbot.api.events import Button, Reply
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError

from goodbot_connectors.discord import render
from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.normalize import COMPONENT, ephemeral
from goodbot_connectors.discord.presses import AnswerRef
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import Json, string

logger = logging.getLogger(__name__)

FIRST = 2.8
"""Seconds until the first response must have left us; Discord waits for three."""
LIFE = 890.0
"""Seconds for which the token is good, a little less than the fifteen minutes."""
_MESSAGE, _WAIT, _WAIT_QUIETLY, _UPDATE, _FORM = 4, 5, 6, 7, 9
_CALLBACK = "/interactions/{webhook_id}/{webhook_token}/callback"
_FOLLOW_UP = "/webhooks/{webhook_id}/{webhook_token}"
_ORIGINAL = f"{_FOLLOW_UP}/messages/@original"


class EphemeralReply:
    """What one person is shown of an interaction of theirs, to them alone."""

    def __init__(self, api: Api, clock: Clock, json: Json, application: str) -> None:
        self.id, self._token = identifier(json.get("id")), string(json, "token")
        self._api, self._clock, self._application = api, clock, application
        self._began = clock.monotonic()
        self._component = json.get("type") == COMPONENT
        self._ephemeral = ephemeral(json)
        self._alone = self._ephemeral or not json.get("guild_id")
        """Nobody else sees the message where the button stood."""
        self._lock = asyncio.Lock()
        self.language = string(json, "locale")
        self.expected = 1
        """How many events were made of it; each is acknowledged, and all are told together."""
        self._heard: list[str] = []
        self._open = ""
        """What the original response is: nothing yet, `waiting`, `quiet`, `said`, or `lost`."""

    @property
    def left(self) -> float:
        """Seconds until the first response is due."""
        return self._began + FIRST - self._clock.monotonic()

    async def ask(self, form: dict[str, Any]) -> None:
        """Open a form."""
        async with self._lock:
            await self._respond("said", _FORM, form)

    async def wait(self) -> None:
        """Say that something will follow, if nothing was said yet."""
        async with self._lock:
            if not self._open:
                if self._component:
                    await self._respond("quiet", _WAIT_QUIETLY)
                else:
                    await self._respond("waiting", _WAIT, {"flags": render.EPHEMERAL})

    async def hear(
        self, text: str, about: AnswerRef, offer: Sequence[Button] = (), *, used: bool = False
    ) -> str:
        """One of its events was acknowledged; what cannot be shown here any more, mostly nothing.

        A button that was `used` goes, with what stood beside it, unless others see it, too.
        """
        used = used and self._alone
        self._heard.append(text)
        if len(self._heard) < self.expected:
            return ""
        if whole := "\n".join(filter(None, self._heard[-self.expected :])):
            return "" if await self.say(whole, about, offer, used=used) else whole
        await self.done(used=used)
        return ""

    async def say(
        self, text: str, about: AnswerRef, offer: Sequence[Button] = (), *, used: bool = False
    ) -> bool:
        """Show a text to that person alone; False where Discord does not take it any more."""
        reply = Reply(text=text, buttons=render.with_form(offer, self.language))
        async with self._lock:
            for body in render.messages(reply, about):
                if not await self._show(body, used=used):
                    return False
            await self._put_away(used=used)
        return True

    async def done(self, *, used: bool = False) -> None:
        """Nothing is to be said; a button that was `used` goes, with what stood beside it."""
        async with self._lock:
            if self._open == "waiting" or (not self._open and not self._component):
                if not self._open:
                    await self._respond("waiting", _WAIT, {"flags": render.EPHEMERAL})
                await self._follow("DELETE", _ORIGINAL)
                self._open = "quiet"
            elif not self._open and used and not self._ephemeral:
                await self._respond("quiet", _UPDATE, {"components": []})
            elif not self._open:
                await self._respond("quiet", _WAIT_QUIETLY)
            await self._put_away(used=used)

    async def _put_away(self, *, used: bool) -> None:
        """After a quiet response the original message is the one where the button stood."""
        if used and self._component and self._ephemeral and self._open == "quiet":
            self._ephemeral = False
            await self._follow("DELETE", _ORIGINAL)

    async def _show(self, body: dict[str, Any], *, used: bool) -> bool:
        hidden = body | {"flags": body["flags"] | render.EPHEMERAL}
        if not self._open and used and self._component:
            return await self._respond("said", _UPDATE, _edit(body))
        if not self._open:
            return await self._respond("said", _MESSAGE, hidden)
        if self._open == "waiting":
            self._open = "said"
            return await self._follow("PATCH", _ORIGINAL, _edit(body))
        return await self._follow("POST", _FOLLOW_UP, hidden)

    async def _respond(self, becomes: str, kind: int, data: dict[str, Any] | None = None) -> bool:
        """The first response, which is worth nothing when it is late."""
        body = {"type": kind, **({} if data is None else {"data": data})}
        ids = {"webhook_id": self.id, "webhook_token": self._token}
        self._open = "lost"
        if self.left <= 0:
            return False
        try:
            await self._api.call(
                "POST", _CALLBACK, body=body, patient=False, seconds=max(self.left, 0.5), **ids
            )
        except ConnectorError as error:
            logger.info("discord: an interaction was not answered: %s", error)
            return False
        self._open = becomes
        return True

    async def _follow(self, method: str, path: str, body: dict[str, Any] | None = None) -> bool:
        if self._open == "lost" or self._clock.monotonic() - self._began > LIFE:
            return False
        ids = {"webhook_id": self._application, "webhook_token": self._token}
        try:
            await self._api.call(method, path, body=body, **ids)
        except ConnectorError as error:
            logger.info("discord: an interaction was not gone on with: %s", error)
            return False
        return True


def _edit(body: dict[str, Any]) -> dict[str, Any]:
    """An edit leaves a message as private as it is."""
    return {name: value for name, value in body.items() if name != "flags"}
