"""A command: its names, what it needs, what it does."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goodbot.authorization import Authorization, Grant
from goodbot.clock import Clock
from goodbot.config import Config
from goodbot.events import CommandEvent, UserRef
from goodbot.store import Store

if TYPE_CHECKING:
    from goodbot.adapters import AdapterRegistry
    from goodbot.connector import Connector
    from goodbot.dispatcher import Dispatcher
    from goodbot.plugins import PluginHost
    from goodbot.scheduler import Scheduler
    from goodbot.server import Server
    from goodbot.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class Services:
    """The parts of a running goodbot that commands work with."""

    config: Config
    store: Store
    clock: Clock
    authorization: Authorization
    dispatcher: Dispatcher
    registry: AdapterRegistry
    server: Server
    scheduler: Scheduler
    trainer: Trainer
    plugins: PluginHost
    connectors: Mapping[str, Connector]
    connector_errors: Mapping[str, str]
    model: str
    backend: str
    started_at: float


@dataclass(frozen=True, kw_only=True)
class Call:
    """One use of a command."""

    event: CommandEvent
    args: tuple[str, ...]
    services: Services

    @property
    def user(self) -> UserRef:
        return self.event.user


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a command answers: a text for people, and data for `--json`."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Command:
    """One entry of the table. Errors that `run` raises are GoodbotErrors with a sentence."""

    name: str
    grant: Grant
    summary: str
    run: Callable[[Call], Awaitable[Result]]
    aliases: tuple[str, ...] = ()
    usage: str = ""
    needs_server: bool = False
    """Without a daemon, the model is started for this command."""


def find(table: Sequence[Command], word: str) -> Command | None:
    """The command that a word names, or None.

    Rating and status words are forgiving (NFKC, invisible characters and case dropped); an
    administrative one must be plain ASCII as it stands, so that no look-alike ever reaches it.
    """
    folded = unicodedata.normalize("NFKC", word)
    folded = "".join(c for c in folded if unicodedata.category(c) not in ("Cf", "Cc", "Mn"))
    folded = folded.casefold().strip("/ \U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
    for command in table:
        if folded == command.name or folded in command.aliases:
            if command.grant is Grant.ADMINISTER and not (word.isascii() and word.isprintable()):
                return None
            return command
    return None
