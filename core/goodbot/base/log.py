# SPDX-License-Identifier: Apache-2.0
"""Logging to stderr: ids and numbers, never the text of a message, never a token.

As lines for people, or (`[log] format = "json"`) as one object a line for a collector. A call says which
ids it is about with `extra={"run": 3}`; the names are in `IDS`, and nothing else passes.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from goodbot.base.printing import printable

IDS = ("run", "version", "turn", "event_id", "connector", "plugin")
"""What a record may carry beside its message. Never add one that can hold what a person wrote."""

_NOISY = ("httpx", "httpcore", "aiosqlite", "telegram", "asyncio", "aiohttp")
_REPEAT_SECONDS = 60.0
_REMEMBERED = 1000
_WORDINGS = 10
_NEVER = -math.inf, 0
_NUMBER = re.compile(r"\b\d+")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Mask:
    """Replaces every secret, as it is and as it stands in an URL, by `***`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        self._secrets = sorted(known, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


class MaskingFormatter(logging.Formatter):
    """Writes `***` for every secret, wherever it stands: message, arguments or traceback.

    Further lines of a record are indented.
    """

    def __init__(self, secrets: Iterable[str] = (), format: str = _FORMAT) -> None:
        super().__init__(format)
        self._mask = Mask(secrets)

    def format(self, record: logging.LogRecord) -> str:
        # What others wrote must neither move a terminal's cursor nor begin a line that looks like ours.
        return printable(self._mask(super().format(record))).replace("\n", "\n  ")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `ts`, `level`, `logger`, `msg`, the ids, `exception`. Masked too."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._mask = Mask(secrets)

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "ts": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": self._mask(record.getMessage()),
        }
        for name in IDS:
            if (value := getattr(record, name, None)) is not None:
                line[name] = value if isinstance(value, int) else self._mask(str(value))
        if record.exc_info:
            line["exception"] = self._mask(self.formatException(record.exc_info))
        return json.dumps(line)


class OnceAMinute(logging.Filter):
    """Lets what is said again and again through once a minute, and says how often it was.

    A disk that fails or a want of descriptors is met by every event; the log must not fill the disk too.
    Lines that differ in their numbers alone, as in a pause before the next try, say the same. One line of
    the code may tell of ten things in a minute, as of several platforms; all that is beyond is one thing.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._said: dict[tuple[str, str], tuple[float, int]] = {}
        """When, and how often it was kept back since."""
        self._fresh: dict[tuple[str, str], list[float]] = {}
        """When a line of the code was let through within the last minute."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        try:
            text = record.getMessage()
        except Exception:  # it does not fit its arguments: whoever logs is never stopped by that
            text = str(record.msg)
            record.msg, record.args = text, ()
        said = f"{text} {record.exc_info[1]!r}" if record.exc_info else text
        what = record.name, _NUMBER.sub("0", said)
        line = record.name, f"{record.pathname}:{record.lineno}"
        now = self._now()
        fresh = [at for at in self._fresh.get(line, ()) if now - at < _REPEAT_SECONDS]
        if len(fresh) >= _WORDINGS and now - self._said.get(what, _NEVER)[0] >= _REPEAT_SECONDS:
            what = line
        last, kept_back = self._said.get(what, _NEVER)
        if now - last < _REPEAT_SECONDS:
            self._said[what] = last, kept_back + 1
            return False
        for known in (self._said, self._fresh):
            if len(known) >= _REMEMBERED:
                known.clear()
        self._said[what], self._fresh[line] = (now, 0), [*fresh, now]
        if kept_back:
            record.msg, record.args = f"{text} (and {kept_back} times before)", ()
        return True


_FORMATTERS = {"text": MaskingFormatter, "json": JsonFormatter}


def to_stderr(level: str = "info", format: str = "text", secrets: Iterable[str] = ()) -> None:
    """Log to stderr; libraries that log requests (with tokens in their URLs) only warn.

    `level` and `format` as in `[log]`. Calling it again, once the config and the tokens are known,
    replaces them.
    """
    logging.basicConfig()
    root = logging.getLogger()
    root.setLevel(level.upper())
    for handler in root.handlers:
        if type(handler) is not logging.StreamHandler:
            continue  # not ours: what looks on, such as a test, hears everything
        if not any(isinstance(one, OnceAMinute) for one in handler.filters):
            handler.addFilter(OnceAMinute())
        handler.setFormatter(_FORMATTERS[format](secrets))
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
