# SPDX-License-Identifier: Apache-2.0
"""What is logged: no token, in whatever form it comes, and never what a person wrote."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from goodbot.base import log
from goodbot.base.log import IDS, JsonFormatter, MaskingFormatter

from tests.cli.program import Bot, need_backend
from tests.core.builders import open_bot
from tests.support import patience

TOKEN = "123456:AAH-canary_Token"
CANARY = "xylophone-canary-4711"


def record(message: str, *args: object, error: Exception | None = None, **extra: object) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    made = logging.LogRecord("x", logging.ERROR, __file__, 1, message, args, info)
    vars(made).update(extra)
    return made


@pytest.mark.parametrize("kind", [MaskingFormatter, JsonFormatter])
def test_a_token_is_masked_everywhere(kind: type[MaskingFormatter | JsonFormatter]) -> None:
    formatter = kind([TOKEN, "", 'with "quotes" canary'])
    for text in (
        formatter.format(record(f"GET /bot{TOKEN}/getMe")),
        formatter.format(record("GET %s", f"/bot{TOKEN}/getMe")),
        formatter.format(record("GET %s", "/bot123456%3AAAH-canary_Token/getMe")),
        formatter.format(record("failed", error=ValueError(TOKEN))),
        formatter.format(record('it is with "quotes" canary')),
    ):
        assert "canary" not in text
        assert "***" in text


def test_a_token_is_masked_in_an_id_too() -> None:
    assert "canary" not in JsonFormatter([TOKEN]).format(record("x", event_id=f"e-{TOKEN}"))


def test_without_tokens_nothing_is_changed() -> None:
    assert MaskingFormatter([""]).format(record("plain")).endswith("x: plain")


def test_a_line_of_json() -> None:
    error = ValueError("two\nlines")
    text = JsonFormatter().format(
        record("run %d: é\n", 3, error=error, run=3, connector="telegram", text=CANARY)
    )
    assert text.count("\n") == 0
    line = json.loads(text)
    at = line.pop("ts")
    assert datetime.fromisoformat(at).utcoffset() is not None
    assert (at[-1], len(at)) == ("Z", len("2026-11-21T13:47:47.123Z"))
    assert line.pop("exception").endswith("ValueError: two\nlines")
    assert line == {"level": "error", "logger": "x", "msg": "run 3: é\n", "run": 3, "connector": "telegram"}
    assert "text" not in IDS


@pytest.fixture
def handler() -> Iterator[logging.Handler]:
    """A handler on the root logger; afterwards the loggers are as they were."""
    root = logging.getLogger()
    names = [root, *(logging.getLogger(name) for name in ("aiosqlite", "aiohttp", "telegram"))]
    before = [logger.level for logger in names]
    formatters = [handler.formatter for handler in root.handlers]
    handler = logging.StreamHandler(io.StringIO())
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)
    for logger, level in zip(names, before, strict=True):
        logger.setLevel(level)
    for kept, formatter in zip(root.handlers, formatters, strict=True):
        kept.setFormatter(formatter)


def test_the_config_chooses_level_and_format(handler: logging.Handler) -> None:
    log.to_stderr("warning", "json")
    assert isinstance(handler.formatter, JsonFormatter)
    assert logging.getLogger().level == logging.WARNING
    log.to_stderr("debug", "text", [TOKEN])
    assert isinstance(handler.formatter, MaskingFormatter)
    assert logging.getLogger("goodbot").getEffectiveLevel() == logging.DEBUG
    assert logging.getLogger("aiosqlite").level == logging.WARNING, "it would log every parameter"
    log.to_stderr("error")
    assert logging.getLogger("aiosqlite").getEffectiveLevel() == logging.ERROR


@pytest.mark.parametrize("format", ["text", "json"])
async def test_no_log_holds_what_a_person_wrote(
    tmp_path: Path, handler: logging.StreamHandler[io.StringIO], format: str
) -> None:
    """A whole goodbot through good and bad days, at the most talkative level."""

    async def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("it broke")

    log.to_stderr("debug", format)
    async with open_bot(tmp_path) as bot:
        for number in range(8):
            answer = await bot.say(f"{CANARY} {number}")
            assert CANARY in answer.text
            await bot.react(answer, "👍" if number % 2 else "👎")
        await bot.command(f"{CANARY}")
        await bot.command(f"good {CANARY}")
        await bot.command(f"rollback {CANARY}")
        bot.fake.set(train="nan")
        await bot.command("train")
        await bot.settle()
        bot.fake.set(train="ok")
        await bot.command("train")
        await bot.settle()
        for mode in ("garbage", "die"):
            bot.fake.set(generate=mode)
            await bot.say(CANARY)
        bot.fake.set(generate="ok")
        bot.app.commands.execute = broken
        await bot.command(f"status {CANARY}")
    said = handler.stream.getvalue()
    assert "run 1: " in said
    assert "no answer: " in said
    assert "a command failed" in said
    assert CANARY not in said
    if format == "json":
        lines = [json.loads(line) for line in said.splitlines()]
        assert {"ts", "level", "logger", "msg"} <= set.intersection(*map(set, lines))
        assert any(line.get("run") == 1 for line in lines)
        [unanswered] = [line for line in lines if line["msg"].startswith("no answer: ")][:1]
        assert {"event_id", "turn", "connector"} <= unanswered.keys()
        assert "it broke" in next(line for line in lines if "exception" in line)["exception"]


def test_a_daemon_writes_json_and_nothing_else(bot: Bot) -> None:
    need_backend()
    bot.home.mkdir(mode=0o700)
    (bot.home / "config.toml").write_text('[log]\nformat = "json"\nlevel = "debug"\n')
    bot.start()
    assert "Good." in bot.call("chat", input=f"{CANARY}?\ng\n").stderr
    assert bot.stop() == 0
    text = bot.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert any("tiny answers on terminal" in line["msg"] for line in lines)
    assert {line["level"] for line in lines} <= {"debug", "info", "warning"}
    assert CANARY not in text


REPEATS = """
import logging, sys
from goodbot.base import log
log.to_stderr()  # as `goodbot run` begins, and once its config is known
logging.getLogger("x").info("it begins")
log.to_stderr("info", sys.argv[1], ["secret"])
for number in range(100):
    logging.getLogger("goodbot.store").error("the disk fails for the %dth time: secret", number)
    logging.getLogger("y").info("quiet %d", number)
"""


@pytest.mark.parametrize("format", ["text", "json"])
def test_b5_b9_b15_the_log_of_a_daemon_keeps_equal_lines_back(format: str) -> None:
    """The filter was tried by itself, and nothing saw to it that the log has it."""
    done = subprocess.run(
        [sys.executable, "-c", REPEATS, format],
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(60),
    )
    assert done.stderr.count("the disk fails") == 1
    assert done.stderr.count("quiet") == 100, "what is no trouble is told each time"
    assert "secret" not in done.stderr


def test_b5_b9_b15_what_is_said_again_and_again_is_one_line_a_minute() -> None:
    """A disk that fails met every event: 227 tracebacks in 12 s; want of descriptors, 39,216."""
    now = 0.0
    once = log.OnceAMinute(lambda: now)

    def said(text: str, level: int = logging.ERROR) -> str:
        record = logging.LogRecord("goodbot", level, "", 0, "%s", (text,), None)
        return record.getMessage() if once.filter(record) else ""

    assert [said("the disk failed") for _ in range(200)] == ["the disk failed"] + [""] * 199
    assert said("another thing") == "another thing"
    assert said("the disk failed", logging.INFO) == "the disk failed", "what is well is no flood"
    now = 61.0
    assert said("the disk failed") == "the disk failed (and 199 times before)"
    assert said("the disk failed") == ""
    for number in range(5000):
        said(f"different {number}")
    assert len(once._said) <= 1000, "it remembers within bounds"


def test_26_11_numbers_make_no_other_line_and_other_words_at_most_ten_a_minute() -> None:
    """A poll that failed named its random pause, so every line passed; what others wrote may vary, too."""
    now = 0.0
    once = log.OnceAMinute(lambda: now)

    def passes(text: str, line: int = 1, error: Exception | None = None) -> str:
        info = (type(error), error, None) if error else None
        made = logging.LogRecord("goodbot", logging.WARNING, "a.py", line, "%s", (text,), info)
        return made.getMessage() if once.filter(made) else ""

    assert passes("the disk is full; trying again in 0.7 s")
    assert not passes("the disk is full; trying again in 13.2 s")
    assert passes("failed", error=ValueError("row 7 of 12"))
    assert not passes("failed", error=ValueError("row 8 of 13"))
    assert passes("v3 does not go live")
    assert passes("v4 does not go live"), "a version is a name"
    many = ["word " + "x" * n for n in range(1, 1000)]
    assert len([text for text in many if passes(text)]) == 7, (
        "11 with those above: the last stands for the rest"
    )
    assert passes("the disk is full", line=2), "another line of the code has its own"
    now = 61.0
    assert passes("the disk is full; trying again in 2.0 s").endswith("(and 1 times before)")
    said = [text for text in map(passes, many) if text]
    assert len(said) == 10
    assert said[-1].endswith(f"(and {999 - 7} times before)")


def test_what_does_not_fit_its_arguments_stops_nobody_and_is_no_flood() -> None:
    now = 0.0
    once = log.OnceAMinute(lambda: now)

    def said() -> str:
        record = logging.LogRecord("goodbot", logging.ERROR, "", 0, "%d of %d", ("one",), None)
        return MaskingFormatter().format(record) if once.filter(record) else ""

    assert "%d of %d" in said()
    assert said() == ""
    now = 61.0
    assert "%d of %d (and 1 times before)" in said()
