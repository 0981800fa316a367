"""Logging: ids and numbers, never the text of a message."""

from __future__ import annotations

import logging

_NOISY = ("httpx", "httpcore", "aiosqlite", "telegram", "asyncio")


def to_stderr(level: int = logging.INFO) -> None:
    """Log to stderr; libraries that log requests (with tokens in their URLs) only warn."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
