# SPDX-License-Identifier: Apache-2.0
"""Interactions on their way in: stored, and answered within three seconds.

The first response waits for the commit for as long as it may. A database that is stalled gets a deferral
in its place, which promises nothing; when nothing was stored after all, the person is told to try again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import Event, Outcome, PressEvent, RatingEvent, Receipt
from goodbot.api.texts import say
from goodbot.base.errors import StoreError

from goodbot_connectors.discord import commands, forms
from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.exchange import EphemeralReply
from goodbot_connectors.discord.identity import BotIdentity
from goodbot_connectors.discord.normalize import COMMAND, COMPONENT, FORM, Normalizer, target
from goodbot_connectors.discord.presses import EXPLAIN, OPINION, AnswerRef, read
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import Json, string, sub
from goodbot_connectors.kit.lru import Recent

logger = logging.getLogger(__name__)

_COMMIT = 2.0
"""Seconds that the first response waits for the commit, and for what is to be said."""
_MARGIN = 0.8
"""Seconds that are kept for the response's own way to Discord."""


class Interactions:
    """Takes interactions in, and remembers where the answer to each of their events is shown."""

    def __init__(self, host: ConnectorHost, api: Api, me: BotIdentity, normalizer: Normalizer) -> None:
        self._host, self._api, self._me, self._normalizer = host, api, me, normalizer
        self._exchanges: Recent[str, EphemeralReply] = Recent()
        self._known: Recent[str, None] = Recent()

    def of(self, event: Event) -> EphemeralReply | None:
        """The interaction that an event came from, while this process remembers it."""
        return self._exchanges.get(event.event_id)

    async def take(self, json: Json, events: Sequence[Event], cursor: Callable[[], str]) -> None:
        """Store one interaction and see to its first response; returns after the commit.

        `cursor` is what to commit with its events.

        When nothing could be stored the person knows, and presses again.
        """
        id_ = identifier(json.get("id"))
        if not id_ or id_ in self._known or self._normalizer.actor(json) is None:
            return
        self._known[id_] = None
        exchange = EphemeralReply(self._api, self._host.clock, json, self._me.application)
        form = self._form(json)
        if form is not None:
            await exchange.ask(form)
        elif not events:
            await self._decline(json, exchange)
        else:
            await self._store(exchange, events, cursor())

    async def _store(self, exchange: EphemeralReply, events: Sequence[Event], cursor: str) -> None:
        exchange.expected = len(events)
        for event in events:
            self._exchanges[event.event_id] = exchange
        submit = asyncio.ensure_future(self._host.submit(events, cursor=cursor))
        try:
            await self._first(submit, exchange)
            receipts = await submit
        except Exception as error:
            await exchange.say(say("not_stored", exchange.language), AnswerRef())
            if not isinstance(error, StoreError):
                raise
            logger.error("discord: an interaction was not stored: %s", error)
            return
        finally:
            submit.cancel()
        told = sum(map(_told_later, events, receipts))
        self._host.spawn(self._respond(exchange, told), "discord interaction")

    async def _respond(self, exchange: EphemeralReply, told: int) -> None:
        """Nothing more, when nothing will be said; else a deferral where that takes its time."""
        if not told:
            return await exchange.done()
        await self._host.clock.sleep(max(0.0, exchange.left - _MARGIN))
        return await exchange.wait()

    async def _first(self, submit: asyncio.Future[tuple[Receipt, ...]], exchange: EphemeralReply) -> None:
        """Wait for the commit; a deferral leaves when it takes too long."""
        timer = asyncio.ensure_future(self._host.clock.sleep(_COMMIT))
        try:
            await asyncio.wait({submit, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        if not submit.done():
            await exchange.wait()

    def _form(self, json: Json) -> dict[str, Any] | None:
        """The form that an interaction asks for, if it asks for one."""
        data, kind = sub(json, "data"), json.get("type")
        if kind == COMMAND and commands.entry(data) == OPINION:
            about = target(data, self._me.user)
            return forms.form(about, rate=True, language=string(json, "locale")) if about else None
        action, about = read(string(data, "custom_id"), {})
        if kind != COMPONENT or action != EXPLAIN:
            return None
        about = self._normalizer.about(json, about)
        return forms.form(about, rate=False, language=string(json, "locale"))

    async def _decline(self, json: Json, exchange: EphemeralReply) -> None:
        """Say why nothing comes of it."""
        kind = json.get("type")
        if kind == COMMAND and commands.entry(sub(json, "data")):
            await exchange.say(say("not_mine", exchange.language), AnswerRef())
        elif kind == FORM:
            await exchange.say(say("form_empty", exchange.language), AnswerRef())
        elif kind in (COMMAND, COMPONENT):
            await exchange.say(say("gone", exchange.language), AnswerRef())


def _told_later(event: Event, receipt: Receipt) -> bool:
    """Whether the core will acknowledge it: it tells nobody of a refusal without a word."""
    if receipt.duplicate:
        return False
    told = receipt.outcome is Outcome.ACCEPTED or bool(receipt.text)
    return told or isinstance(event, (PressEvent, RatingEvent))
