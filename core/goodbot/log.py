"""Logging: ids and numbers, never the text of a message, never a token."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from urllib.parse import quote

_NOISY = ("httpx", "httpcore", "aiosqlite", "telegram", "asyncio", "aiohttp")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class MaskingFormatter(logging.Formatter):
    """Writes `***` for every secret, wherever it stands: message, arguments or traceback."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_FORMAT)
        known = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        self._secrets = sorted(known, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def to_stderr(level: int = logging.INFO, secrets: Iterable[str] = ()) -> None:
    """Log to stderr; libraries that log requests (with tokens in their URLs) only warn.

    Calling it again, once the tokens are known, replaces the formatter.
    """
    logging.basicConfig(level=level)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(MaskingFormatter(secrets))
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
