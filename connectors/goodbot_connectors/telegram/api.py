# SPDX-License-Identifier: Apache-2.0
"""The few Bot API calls that we make: JSON goes in and comes out, as the Bot API has it.

This module and `client` are the only ones that know python-telegram-bot.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import telegram
from goodbot.base.errors import RetriableError
from telegram.error import BadRequest, InvalidToken, TelegramError

from goodbot_connectors.telegram.client import REFUSED_PAUSE, Client, MovedError, RefusedError
from goodbot_connectors.telegram.fields import Json, as_json, items

__all__ = ["UPDATES", "Api", "MovedError", "RefusedError", "SentMessage"]

logger = logging.getLogger(__name__)

UPDATES = ("message", "message_reaction", "callback_query")
"""What we read. Telegram sends reactions only to those who ask by name."""
_MOVES = 3
"""How often a message follows a chat to another id."""


class SentMessage(NamedTuple):
    """Where a message is now; the chat is another one than was asked for when that had moved."""

    chat_id: int
    message_id: int


class Api(Client):
    """The calls. Every one raises a `ConnectorError` of the fitting kind."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._moved: dict[int, int] = {}

    async def updates(self, offset: int | None, timeout: int) -> list[Json]:
        """Updates from `offset` on, as Telegram's JSON; asking confirms all before it.

        Waits up to `timeout` seconds for one. Only a wrong token is fatal.
        """
        with _asking_again(), self.errors():
            try:
                await self.bot.get_updates(offset=offset, timeout=timeout, allowed_updates=list(UPDATES))
            except TelegramError:
                raise
            except Exception as error:
                # One update of a newer Bot API than the library's must not make us deaf.
                logger.warning("python-telegram-bot cannot read an update: %s", type(error).__name__)
        return list(items(as_json(json.loads(self.raw.payload)), "result"))

    async def send(self, message: dict[str, Any]) -> SentMessage:
        """sendMessage, to where the chat is now."""
        for _ in range(_MOVES):
            message = self._redirected(message)
            chat_id = int(message["chat_id"])
            try:
                with self.errors():
                    sent = await self.bot.send_message(**self._typed(message))
            except MovedError as error:
                self.moved(chat_id, error.to)
            else:
                return SentMessage(chat_id, sent.message_id)
        raise RefusedError("Telegram refused: the group moves from id to id")

    async def edit(self, message: dict[str, Any]) -> None:
        """editMessageText; the same text again is fine."""
        with self.errors(), _unmodified():
            await self.bot.edit_message_text(**self._typed(message))

    async def edit_keyboard(self, chat_id: int, message_id: int, keyboard: dict[str, Any] | None) -> None:
        """editMessageReplyMarkup; None takes the keyboard away, the same again is fine."""
        markup = telegram.InlineKeyboardMarkup.de_json(keyboard, self.bot) if keyboard else None
        with self.errors(), _unmodified():
            await self.bot.edit_message_reply_markup(chat_id, message_id, reply_markup=markup)

    async def touched(self, chat_id: int, message_id: int, keyboard: dict[str, Any] | None) -> str | None:
        """The words of a message of ours, whose buttons change; None where it is another's, or gone."""
        markup = telegram.InlineKeyboardMarkup.de_json(keyboard or {}, self.bot)
        with self.errors():
            try:
                found = await self.bot.edit_message_reply_markup(chat_id, message_id, reply_markup=markup)
            except BadRequest:
                return None
        return (isinstance(found, telegram.Message) and found.text) or ""

    async def delete(self, chat_id: int, message_id: int) -> None:
        """deleteMessage."""
        with self.errors():
            await self.bot.delete_message(chat_id, message_id)

    async def draft(self, message: dict[str, Any], draft_id: int) -> None:
        """sendMessageDraft, which clients show for 30 seconds and animate from one to the next.

        Raises RefusedError also where the server does not know the method.
        """
        known = ("chat_id", "text", "entities", "message_thread_id")
        typed = self._typed({name: message[name] for name in known if name in message})
        with self.errors():
            try:
                await self.bot.send_message_draft(draft_id=draft_id, **typed)
            except InvalidToken:  # a 404: our token was good enough to get here
                raise RefusedError("this Bot API server knows no drafts") from None

    async def typing(self, chat_id: int, thread: int | None) -> None:
        """sendChatAction: "typing", which clients show for five seconds."""
        with self.errors():
            await self.bot.send_chat_action(chat_id, "typing", message_thread_id=thread)

    async def react(self, chat_id: int, message_id: int, emoji: str) -> None:
        """setMessageReaction: our own reaction, a standard emoji; empty takes it away."""
        with self.errors():
            reaction = [telegram.ReactionTypeEmoji(emoji)] if emoji else []
            await self.bot.set_message_reaction(chat_id, message_id, reaction)

    async def answer(self, query_id: str, text: str) -> None:
        """answerCallbackQuery: a toast for the one who pressed; without text the spinner ends."""
        with self.errors():
            await self.bot.answer_callback_query(query_id, text or None)

    async def set_commands(self, commands: Sequence[tuple[str, str]], scope: str, language: str) -> None:
        """setMyCommands, or deleteMyCommands for none; `scope` as in BotCommandScope's `type`."""
        where: dict[str, Any] = {"scope": telegram.BotCommandScope(scope), "language_code": language or None}
        with self.errors():
            if commands:
                await self.bot.set_my_commands(commands, **where)
            else:
                await self.bot.delete_my_commands(**where)

    async def commands(self, scope: str, language: str) -> tuple[tuple[str, str], ...]:
        """getMyCommands: what clients suggest there now."""
        with self.errors():
            found = await self.bot.get_my_commands(telegram.BotCommandScope(scope), language or None)
        return tuple((command.command, command.description) for command in found)

    async def set_webhook(self, url: str, secret: str) -> None:
        """setWebhook, or deleteWebhook for no address; what waits at Telegram is kept."""
        with self.errors():
            if url:
                await self.bot.set_webhook(url, allowed_updates=list(UPDATES), secret_token=secret)
            else:
                await self.bot.delete_webhook()

    async def webhook(self) -> telegram.WebhookInfo:
        """getWebhookInfo: `url` is empty when updates are polled for."""
        with self.errors():
            return await self.bot.get_webhook_info()

    async def status_in(self, chat_id: int) -> str:
        """getChatMember of ourselves: `administrator`, `member`, `left`, …"""
        with self.errors():
            return (await self.bot.get_chat_member(chat_id, self.bot.id)).status

    @property
    def reads_groups(self) -> bool:
        """Whether Telegram sends all that is said in groups (no privacy mode). After `open`."""
        return bool(self.bot.bot.can_read_all_group_messages)

    def moved(self, old: int, new: int) -> None:
        """A group is now a supergroup: what is sent to the old id goes to the new one."""
        if old != new:
            self._moved[old] = new

    def _redirected(self, message: dict[str, Any]) -> dict[str, Any]:
        new = self._moved.get(int(message["chat_id"]))
        if new is None:
            return message
        # Ids of messages and topics mean others there, or nothing.
        gone = ("reply_parameters", "message_thread_id")
        return {k: v for k, v in message.items() if k not in gone} | {"chat_id": new}

    def _typed(self, message: dict[str, Any]) -> dict[str, Any]:
        typed = dict(message)
        for name, kind in _TYPES.items():
            if name in typed:
                typed[name] = kind(typed[name], self.bot)
        return typed


@contextmanager
def _asking_again() -> Generator[None]:
    """Whatever Telegram refuses us now, a poll is the only way to hear of people again."""
    try:
        yield
    except RefusedError as error:
        raise RetriableError(str(error), retry_after=REFUSED_PAUSE) from None


@contextmanager
def _unmodified() -> Generator[None]:
    """What is there already need not be said again."""
    try:
        yield
    except BadRequest as error:
        if "not modified" not in error.message:
            raise


def _markup(markup: dict[str, Any], bot: telegram.Bot) -> Any:
    kind = telegram.ForceReply if "force_reply" in markup else telegram.InlineKeyboardMarkup
    return kind.de_json(markup, bot)


_TYPES: dict[str, Any] = {
    "entities": telegram.MessageEntity.de_list,
    "link_preview_options": telegram.LinkPreviewOptions.de_json,
    "reply_markup": _markup,
    "reply_parameters": telegram.ReplyParameters.de_json,
}
