# SPDX-License-Identifier: Apache-2.0
"""`telegram.Bot` with goodbot's errors, its own view of the wire, and a token that stays secret.

The token is part of every URL: no error and no log record that names it may leave this module.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import telegram
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.base.proxies import proxy_url
from goodbot.config.secrets import Secret
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

from goodbot_connectors.kit.backoff import FloodError
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.telegram.config import TOKEN
from goodbot_connectors.telegram.normalize import BotIdentity

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
BASE = "https://api.telegram.org/bot"
REFUSED_PAUSE = 60.0
"""Seconds between two questions for updates that Telegram will not give us now."""
PATIENCE: dict[str, Any] = dict.fromkeys(("read_timeout", "write_timeout", "pool_timeout"), 15.0)
PATIENCE["connect_timeout"] = 10.0
"""Seconds for the steps of one call."""
_LOGGERS = ("httpx", "telegram.Bot")


class RefusedError(ConnectorError):
    """Telegram will not do this, now or later: the message is gone, the person has blocked us."""


class MovedError(RefusedError):
    """The group has become a supergroup, with the id `to`."""

    def __init__(self, to: int) -> None:
        self.to = to
        super().__init__("the group has become a supergroup, with another id")


class Client:
    """One bot account. What is done inside `errors` raises a `ConnectorError` of the fitting kind."""

    def __init__(self, token: Secret, dates: Dates, api_base: str = "") -> None:
        if not _TOKEN.fullmatch(token.reveal()):
            raise FatalConnectorError(
                f"{TOKEN} holds no Telegram bot token"
                if token
                else f"set {TOKEN} to the token of your bot; @BotFather on Telegram gives one"
            )
        self._token = token
        self._dates = dates
        elsewhere: dict[str, Any] = {"base_url": api_base} if api_base else {}
        proxy, options = proxy_url(api_base or BASE), _options()
        self.raw = _RawRequest(connection_pool_size=1, proxy=proxy, httpx_kwargs=options, **PATIENCE)
        hooks = {"event_hooks": {"response": [self._remember_date]}}
        requests = HTTPXRequest(
            connection_pool_size=16, proxy=proxy, httpx_kwargs={**options, **hooks}, **PATIENCE
        )
        self._mask = _Mask(token)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._mask)
        self.bot = telegram.Bot(token.reveal(), request=requests, get_updates_request=self.raw, **elsewhere)

    async def open(self) -> BotIdentity:
        """Connect, and learn who we are."""
        with self.errors():
            await self.bot.initialize()
            return BotIdentity(id=str(self.bot.id), username=self.bot.username)

    async def close(self) -> None:
        """Let go of the connections; idempotent."""
        with self.errors():
            await self.bot.shutdown()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._mask)

    async def _remember_date(self, response: Any) -> None:
        self._dates.take(response.headers.get("date", ""))

    @contextmanager
    def errors(self) -> Generator[None]:
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
            raise RetriableError(
                "somebody else reads this bot's updates; stop the other program, or remove its "
                f"webhook ({self._said(error)})",
                retry_after=REFUSED_PAUSE,
            ) from None
        except ChatMigrated as error:
            raise MovedError(error.new_chat_id) from None
        except (Forbidden, BadRequest) as error:
            raise RefusedError(f"Telegram refused: {self._said(error)}") from None
        except NetworkError as error:
            raise RetriableError(f"Telegram cannot be reached: {self._said(error)}") from None
        except TelegramError as error:
            raise RetriableError(f"Telegram failed: {self._said(error)}") from None

    def _said(self, error: TelegramError) -> str:
        return error.message.replace(self._token.reveal(), "***")


def _options() -> dict[str, Any]:
    """httpx reads no proxy of the environment, we do; certificates that are named there it still takes."""
    options: dict[str, Any] = {"trust_env": False}
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        options["verify"] = ssl.create_default_context()
    return options


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
