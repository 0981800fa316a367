# SPDX-License-Identifier: Apache-2.0
"""What stands under an answer in a private chat: rating buttons, and for a while an offer and a note."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from goodbot.api.actions import RETRY, THUMBS, rating
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import Button, MessageRef, Reply
from goodbot.api.texts import say
from goodbot.base.errors import ConnectorError

from goodbot_connectors.kit.backoff import FloodError, jittered
from goodbot_connectors.kit.lru import forget
from goodbot_connectors.kit.rate_limit import Spawn
from goodbot_connectors.kit.state import StateTexts
from goodbot_connectors.telegram import callback, render
from goodbot_connectors.telegram.api import Api

logger = logging.getLogger(__name__)

NOTE_SECONDS = 10.0
"""Offered beside the retries: what is typed instead of tapped."""
_BARE = "bare"
"""Of an offer that stands under a text of its own, not under an answer."""
_REMEMBERED = 1000
_PATIENCE = 10.0
"""Seconds that buttons wait when Telegram asks for a pause; later nobody looks there any more."""

_Spot = tuple[str, str]
"""Chat and message."""


@dataclass(slots=True)
class _Under:
    """What stands under one answer beside the buttons that rate it."""

    turn: str
    offer: Sequence[Button] = ()
    note: str = ""
    notes: int = 0
    drawing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Keyboards:
    """One offer a chat at most: it goes with the next message, or when it is used.

    An edit must repeat the buttons that stay, and Telegram does not tell which they are. Those of
    the last answers are in memory; an older one gets the row that answers had last, if it is no
    part of an answer that has its buttons further down.
    """

    def __init__(self, host: ConnectorHost, api: Api, data: StateTexts, spawn: Spawn) -> None:
        self._clock, self._api, self._data, self._spawn = host.clock, api, data, spawn
        self._rows: dict[_Spot, tuple[Button, ...]] = {}
        self._offers = StateTexts(host, "offers")
        self._parts = StateTexts(host, "parts")
        self._usual = StateTexts(host, "row", 20)
        self._under: dict[_Spot, _Under] = {}
        self._taken: set[_Spot] = set()

    async def load(self) -> None:
        """Read what an earlier process has kept."""
        await self._offers.load()
        await self._parts.load()
        await self._usual.load()

    @property
    def kept(self) -> Sequence[StateTexts]:
        """What outlives a restart and names people's chats."""
        return (self._offers, self._parts)

    def forget(self, chat: str) -> None:
        """Know no message of a chat any more; what outlives a restart is in `kept`."""
        forget(chat, self._rows, self._under)

    async def prepare(self, turn: str, buttons: Sequence[Button]) -> None:
        """Keep what does not fit a button; to be called before they are shown."""
        for button in buttons:
            if callback.too_long(button.action, turn):
                data = f"{button.action}:{turn}"
                await self._data.put(callback.key(data), data)

    def take(self, messages: Sequence[MessageRef]) -> None:
        """Another answer is being written into these: their buttons are let alone until `let_go`."""
        self._taken |= {_spot(message) for message in messages}

    def let_go(self, messages: Sequence[MessageRef]) -> None:
        """Nothing is written into these any more."""
        self._taken -= {_spot(message) for message in messages}

    async def sent(self, messages: Sequence[MessageRef], reply: Reply) -> None:
        """Remember the buttons of a message that now stands in a private chat."""
        row = tuple(button for button in reply.buttons if rating(button.action))
        for message in messages:
            spot = _spot(message)
            self._taken.discard(spot)
            self._under.pop(spot, None)
            self._rows[spot] = row if message is messages[-1] else ()
            if message is not messages[-1]:
                await self._parts.put(_name(spot), "")
            if self.offered(message.channel.id) == message.id:
                await self._offers.drop(message.channel.id)
        for old in list(self._rows)[:-_REMEMBERED]:
            del self._rows[old]
        if row:
            await self._remember(row)
        if messages and len(row) < len(reply.buttons):
            chat, message_id = _spot(messages[-1])
            await self.close(chat)
            self._at((chat, message_id), reply.turn).offer = reply.buttons
            await self._offers.put(chat, f"{message_id} {reply.turn} {_BARE}")

    async def offer(self, chat: str, message: str, turn: str, offer: Sequence[Button]) -> None:
        """Put an offer under an answer, or none in the place of one that is there."""
        if await self._set_offer(chat, message, turn, offer):
            await self._draw((chat, message))

    async def note(self, chat: str, message: str, turn: str, text: str, offer: Sequence[Button] = ()) -> None:
        """Say something under an answer for ten seconds, above an offer that stays."""
        await self._set_offer(chat, message, turn, offer)
        spot = (chat, message)
        under = self._at(spot, turn)
        under.note, under.notes = text, under.notes + 1
        await self._draw(spot)
        until = self._clock.monotonic() + NOTE_SECONDS
        self._spawn(self._end_note(spot, under, under.notes, until), "telegram note")

    async def _set_offer(self, chat: str, message: str, turn: str, offer: Sequence[Button]) -> bool:
        """Whether that changes what is shown; what stood elsewhere in the chat is taken away."""
        open_ = self.offered(chat)
        if open_ and open_ != message:
            await self.close(chat)
        if not offer and open_ != message:
            return False
        await self.prepare(turn, offer)
        self._at((chat, message), turn).offer = offer
        if offer:
            await self._offers.put(chat, f"{message} {turn}")
        else:
            await self._offers.drop(chat)
        return True

    async def _end_note(self, spot: _Spot, under: _Under, number: int, until: float) -> None:
        try:
            if (left := until - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
        finally:  # also at a stop: nobody would come back for it
            if under.notes == number:
                under.note = ""
                if self._under.get(spot) is under:
                    await self._draw(spot)

    def offered(self, chat: str) -> str:
        """The message under which the chat's offer stands, if any."""
        return self._offers.get(chat, "").partition(" ")[0]

    async def close(self, chat: str) -> None:
        """Take the chat's offer away: it was used, or the talk went on."""
        message, turn, bare = (*self._offers.get(chat, "").split(" "), "", "")[:3]
        if message:
            await self._offers.drop(chat)
            if bare:
                self._rows[chat, message] = ()
            self._at((chat, message), turn).offer = ()
            await self._draw((chat, message))

    async def used(self, chat: str, message: str) -> None:
        """A button was pressed that is good for one press: take away what stood with it."""
        if self.offered(chat) == message:
            await self.close(chat)

    def _at(self, spot: _Spot, turn: str) -> _Under:
        under = self._under.setdefault(spot, _Under(turn))
        under.turn = turn
        return under

    async def _draw(self, spot: _Spot, *, again: bool = True) -> None:
        """Show what is to stand there by now; one after the other, so that the last word holds."""
        under = self._under.get(spot)
        if under is None:
            return
        async with under.drawing:
            if spot in self._taken:
                return
            note = (Button(action=callback.NOTE, label=under.note),) if under.note else ()
            keyboard = render.keyboard(under.turn, self.row(*spot), note, under.offer)
            try:
                await self._api.edit_keyboard(int(spot[0]), int(spot[1]), keyboard)
            except FloodError as error:
                if again and error.retry_after <= _PATIENCE:
                    self._spawn(self._draw_later(spot, error.retry_after), "telegram buttons")
                    return
                logger.debug("telegram: the buttons of a message stay: %s", error)
            except ConnectorError as error:
                logger.debug("telegram: the buttons of a message stay: %s", error)
            if not under.note and not under.offer and self._under.get(spot) is under:
                del self._under[spot]

    async def _draw_later(self, spot: _Spot, seconds: float) -> None:
        await self._clock.sleep(jittered(seconds))
        await self._draw(spot, again=False)

    def row(self, chat: str, message: str) -> tuple[Button, ...]:
        """The buttons that rate the answer there, as far as we know."""
        known = self._rows.get((chat, message))
        if known is not None:
            return known
        if _name((chat, message)) in self._parts:
            return ()
        usual = [Button(action=action, label=label) for action, label in self._usual.items()]
        return tuple(usual) or THUMBS

    async def _remember(self, row: Sequence[Button]) -> None:
        if [(button.action, button.label) for button in row] == list(self._usual.items()):
            return
        for action in list(self._usual):
            await self._usual.drop(action)
        for button in row:
            await self._usual.put(button.action, button.label)


def typed(language: str) -> tuple[Button, ...]:
    """What can be typed instead of tapped."""
    return (
        Button(action="reason", label=say("button_why", language)),
        Button(action="better", label=say("button_better", language)),
    )


def with_typed(offer: Sequence[Button], language: str) -> tuple[Button, ...]:
    """An offer of other answers, with what can be typed instead of tapped."""
    retries = any(button.action.startswith(f"{RETRY}:") for button in offer)
    return (*offer, *typed(language)) if retries else tuple(offer)


def _name(spot: _Spot) -> str:
    return ":".join(spot)


def _spot(message: MessageRef) -> _Spot:
    return (message.channel.id, message.id)
