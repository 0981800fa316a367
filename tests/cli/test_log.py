"""What is logged: no token, in whatever form it comes."""

from __future__ import annotations

import logging

from goodbot.log import MaskingFormatter

TOKEN = "123456:AAH-canary_Token"


def record(message: str, *args: object, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    return logging.LogRecord("x", logging.ERROR, __file__, 1, message, args, info)


def test_a_token_is_masked_everywhere() -> None:
    formatter = MaskingFormatter([TOKEN, ""])
    for text in (
        formatter.format(record(f"GET /bot{TOKEN}/getMe")),
        formatter.format(record("GET %s", f"/bot{TOKEN}/getMe")),
        formatter.format(record("GET %s", "/bot123456%3AAAH-canary_Token/getMe")),
        formatter.format(record("failed", error=ValueError(TOKEN))),
    ):
        assert "canary" not in text
        assert "***" in text


def test_without_tokens_nothing_is_changed() -> None:
    assert MaskingFormatter([""]).format(record("plain")).endswith("x: plain")
