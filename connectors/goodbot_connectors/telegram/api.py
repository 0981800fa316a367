"""The few Bot API calls that we make, over `telegram.Bot`, with goodbot's errors.

The only module that knows python-telegram-bot. JSON goes in and comes out, as the Bot API has it.
The token is part of every URL: no error and no log record that names it may leave this module.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import telegram
from goodbot.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.secrets import Secret
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest

from goodbot_connectors.telegram.config import TOKEN
from goodbot_connectors.telegram.fields import Json, as_json, items
from goodbot_connectors.telegram.normalize import Identity

logger = logging.getLogger(__name__)

UPDATES = ("message", "message_reaction", "callback_query")
"""What we read. Telegram sends reactions only to those who ask by name."""
COMMANDS = (("rl", "Rate my answers: good, bad, undo, status, help"),)

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
_LOGGERS = ("httpx", "telegram.Bot")


class FloodError(RetriableError):
    """Telegram asks for a pause of `retry_after` seconds; nothing was done."""


class Api:
    """One bot account. Every call raises a `ConnectorError` of the fitting kind."""

    def __init__(self, token: Secret, api_base: str = "") -> None:
        if not _TOKEN.fullmatch(token.reveal()):
            raise FatalConnectorError(
                f"{TOKEN} holds no Telegram bot token"
                if token
                else f"set {TOKEN} to the token of your bot; @BotFather on Telegram gives one"
            )
        self._token = token
        self._mask = _Mask(token)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._mask)
        self._raw = _RawRequest(connection_pool_size=1, connect_timeout=10, read_timeout=15)
        self.date = ""
        """The `Date` of Telegram's last answer, as HTTP has it; empty before the first."""
        elsewhere: dict[str, Any] = {"base_url": api_base} if api_base else {}
        self._bot = telegram.Bot(
            token.reveal(),
            request=HTTPXRequest(
                connection_pool_size=16,
                connect_timeout=10,
                read_timeout=15,
                pool_timeout=15,
                httpx_kwargs={"event_hooks": {"response": [self._remember_date]}},
            ),
            get_updates_request=self._raw,
            **elsewhere,
        )

    async def open(self) -> Identity:
        """Connect, and learn who we are."""
        with self._errors():
            await self._bot.initialize()
            return Identity(id=str(self._bot.id), username=self._bot.username)

    async def close(self) -> None:
        """Let go of the connections; idempotent."""
        with self._errors():
            await self._bot.shutdown()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._mask)

    async def updates(self, offset: int | None, timeout: int) -> list[Json]:
        """Updates from `offset` on, as Telegram's JSON; asking confirms all before it.

        Waits up to `timeout` seconds for one.
        """
        with self._errors():
            try:
                await self._bot.get_updates(
                    offset=offset, timeout=timeout, allowed_updates=list(UPDATES)
                )
            except TelegramError:
                raise
            except Exception as error:
                # One update of a newer Bot API than the library's must not make us deaf.
                logger.warning(
                    "python-telegram-bot cannot read an update: %s", type(error).__name__
                )
        return list(items(as_json(json.loads(self._raw.payload)), "result"))

    async def send(self, message: dict[str, Any]) -> int:
        """sendMessage; the new message's id."""
        with self._errors():
            return (await self._bot.send_message(**self._typed(message))).message_id

    async def edit(self, message: dict[str, Any]) -> None:
        """editMessageText; the same text again is fine."""
        with self._errors():
            try:
                await self._bot.edit_message_text(**self._typed(message))
            except BadRequest as error:
                if "not modified" not in error.message:
                    raise

    async def delete(self, chat_id: int, message_id: int) -> None:
        """deleteMessage."""
        with self._errors():
            await self._bot.delete_message(chat_id, message_id)

    async def typing(self, chat_id: int, thread: int | None) -> None:
        """sendChatAction: "typing", which clients show for five seconds."""
        with self._errors():
            await self._bot.send_chat_action(chat_id, "typing", message_thread_id=thread)

    async def answer(self, query_id: str, text: str) -> None:
        """answerCallbackQuery: a toast for the one who pressed; without text the spinner ends."""
        with self._errors():
            await self._bot.answer_callback_query(query_id, text or None)

    async def publish_commands(self) -> None:
        """setMyCommands: what clients suggest after a slash."""
        with self._errors():
            await self._bot.set_my_commands(COMMANDS)

    async def commands(self) -> tuple[tuple[str, str], ...]:
        """getMyCommands: what clients suggest now, as pairs like `COMMANDS`."""
        with self._errors():
            return tuple((c.command, c.description) for c in await self._bot.get_my_commands())

    async def delete_commands(self) -> None:
        """deleteMyCommands."""
        with self._errors():
            await self._bot.delete_my_commands()

    async def webhook(self) -> str:
        """getWebhookInfo: the address that updates are sent to, empty when they are polled for."""
        with self._errors():
            return (await self._bot.get_webhook_info()).url

    @property
    def reads_groups(self) -> bool:
        """Whether Telegram sends all that is said in groups (no privacy mode). After `open`."""
        return bool(self._bot.bot.can_read_all_group_messages)

    async def _remember_date(self, response: Any) -> None:
        self.date = response.headers.get("date", "")

    def _typed(self, message: dict[str, Any]) -> dict[str, Any]:
        typed = dict(message)
        for name, kind in _TYPES.items():
            if name in typed:
                typed[name] = kind(typed[name], self._bot)
        return typed

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Telegram's errors as ours. `from None`: the originals' texts may name the token."""
        try:
            yield
        except RetryAfter as error:
            pause: int | timedelta = error.retry_after
            seconds = pause.total_seconds() if isinstance(pause, timedelta) else pause
            raise FloodError("Telegram asks for a pause", retry_after=seconds) from None
        except InvalidToken:
            raise FatalConnectorError(
                f"Telegram does not know the token ({TOKEN}): copy it again from @BotFather, or let "
                "it make a new one"
            ) from None
        except Conflict as error:
            raise FatalConnectorError(
                "somebody else reads this bot's updates; stop the other program, or remove its "
                f"webhook ({self._said(error)})"
            ) from None
        except (Forbidden, BadRequest, ChatMigrated) as error:
            raise ConnectorError(f"Telegram refused: {self._said(error)}") from None
        except NetworkError as error:
            raise RetriableError(f"Telegram cannot be reached: {self._said(error)}") from None
        except TelegramError as error:
            raise RetriableError(f"Telegram failed: {self._said(error)}") from None

    def _said(self, error: TelegramError) -> str:
        return error.message.replace(self._token.reveal(), "***")


_TYPES: dict[str, Any] = {
    "entities": telegram.MessageEntity.de_list,
    "link_preview_options": telegram.LinkPreviewOptions.de_json,
    "reply_markup": telegram.InlineKeyboardMarkup.de_json,
    "reply_parameters": telegram.ReplyParameters.de_json,
}


class _RawRequest(HTTPXRequest):
    """Keeps the last answer as it came over the wire."""

    payload = b"{}"

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        code, self.payload = await super().do_request(*args, **kwargs)
        return code, self.payload


class _Mask(logging.Filter):
    """Drops records that name the token (httpx logs every URL) or that quote whole updates."""

    def __init__(self, token: Secret) -> None:
        super().__init__()
        self._token = token

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.CRITICAL and self._token.reveal() not in record.getMessage()
