# SPDX-License-Identifier: Apache-2.0
"""Every error that goodbot raises on purpose, in one tree.

::

    GoodbotError                 exit 1   something a person should read; str(error) is one sentence
    ├── UsageError               exit 2   the words on the command line, or in the chat, are off
    ├── ConfigError              exit 2   a config file or a setting is wrong; carries file and line
    ├── MissingExtraError        exit 1   an optional package is not installed; says the pip line
    ├── BusyError                exit 75  another daemon holds this state directory (EX_TEMPFAIL)
    ├── NewerDataError           exit 78  the data was written by a newer goodbot (EX_CONFIG)
    ├── StoreError               exit 1   the database cannot be used
    │   ├── StoreDamagedError    exit 1   the file itself is damaged
    │   └── StoreFullError       exit 1   no space left: nothing was acknowledged
    ├── AdapterError             exit 1   an adapter is missing, altered or malformed
    ├── ServerError              exit 1   the model server failed
    ├── TrainingError            exit 1   a run failed; its reason says why
    └── ConnectorError           exit 1   a platform failed
        ├── RetriableError       exit 1   try again after `retry_after` seconds
        └── FatalConnectorError  exit 1   a person must act (bad token, missing grant)
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from goodbot.base.worded import Worded

TYPE_CHECKING = False  # `typing` and `logging` are slow to import, and `goodbot status` needs neither
if TYPE_CHECKING:
    import logging


class GoodbotError(Exception):
    """Root of the tree. `str(error)` is a sentence that says what to do next."""

    exit_code = 1


class UsageError(GoodbotError):
    """The words of a command are off. `english`: what is kept of it, where people read it otherwise."""

    exit_code = 2

    def __init__(self, message: str = "", *, english: str = "") -> None:
        self.english = english or message
        super().__init__(message)


class ConfigError(GoodbotError):
    """A setting is wrong. `path` and `line` (1-based) say where, if they are known."""

    exit_code = 2

    def __init__(self, message: str, *, path: Path | None = None, line: int | None = None) -> None:
        self.path = path
        self.line = line
        if path and line:
            message = Worded("{path}:{line}: {what}", path=path, line=line, what=message)
        elif path:
            message = Worded("{path}: {what}", path=path, what=message)
        super().__init__(message)


class MissingExtraError(GoodbotError):
    """A plugin needs packages that are not installed. `extra` is its distribution's."""

    def __init__(self, what: str, extra: str) -> None:
        from goodbot.base.packages import install_line  # reads what is installed: only where it is said

        self.extra = extra
        needs = "{what} needs packages that are not installed: {line}"
        super().__init__(Worded(needs, what=what, line=install_line(extra)))


class BusyError(GoodbotError):
    """Another process owns the state directory. `pid` is that process, if it could be read."""

    exit_code = 75

    def __init__(self, message: str, *, pid: int | None = None) -> None:
        self.pid = pid
        super().__init__(message)


class NewerDataError(GoodbotError):
    """The database is from a newer goodbot than this one."""

    exit_code = 78


class StoreError(GoodbotError):
    """The database cannot be opened, read or written."""


class StoreDamagedError(StoreError):
    """The database's file is damaged, and not only unread: a check of all of it has said so."""


class StoreFullError(StoreError):
    """No space is left where the database lives; what was being written is not acknowledged."""


class AdapterError(GoodbotError):
    """An adapter cannot be trusted or loaded."""


class ServerError(GoodbotError):
    """The model server refused, failed or died."""

    refused = False
    """Whether it is well, and does not take what it was asked."""


class TrainingError(GoodbotError):
    """A training run failed.

    `kind` is one of nan, oom (it ran out), memory (refused before the start), disk (full), killed (SIGKILL),
    died, silent, endless (it computed for longer than it may), data, error.
    """

    def __init__(self, message: str, *, kind: str = "error") -> None:
        self.kind = kind
        super().__init__(message)


class ConnectorError(GoodbotError):
    """A chat platform failed."""


class RetriableError(ConnectorError):
    """Try again, not before `retry_after` seconds have passed."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class FatalConnectorError(ConnectorError):
    """Trying again will not help: a person must act."""


def message_of(error: BaseException) -> str:
    """What an error of anybody's says, in one line, for the end of a sentence; never empty."""
    if said := " ".join(str(error).split()):
        return said
    if isinstance(error, MemoryError):
        return "there was not enough memory"
    if isinstance(error, TimeoutError):
        return "it took too long"
    return f"{type(error).__name__} without a message"


def unexpected(error: BaseException) -> str:
    """A programming error in one line, with its type: `KeyError: 'id'`; of several the first."""
    if isinstance(error, BaseExceptionGroup):
        return unexpected(error.exceptions[0])  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return ": ".join(part for part in (type(error).__name__, " ".join(str(error).split())) if part)


@contextmanager
def boundary(logger: logging.Logger, what: str, *args: object) -> Generator[None]:
    """Keep one plugin's or one task's failure away from the rest: log it, swallow it.

    `what` and `args` are a lazy log message. Cancellation passes through.
    """
    try:
        yield
    except GoodbotError as error:
        logger.error(what + ": %s", *args, error)
    except Exception:
        logger.exception(what, *args)
