"""A command: its names, what it needs, what it does."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goodbot.access.authorization import Authorization, Grant
from goodbot.api.events import Button, ChannelKind, CommandEvent, UserRef
from goodbot.base.clock import Clock
from goodbot.base.platform_time import PlatformTime
from goodbot.base.sampling import Sampling
from goodbot.config import Config
from goodbot.store import Store

if TYPE_CHECKING:
    from goodbot.access.direct_message import Courier
    from goodbot.access.login import Logins
    from goodbot.access.notices import Notices
    from goodbot.api.connector import Connector
    from goodbot.api.plugins import PluginHost
    from goodbot.api.server import Server
    from goodbot.commands.confirm import Confirmations
    from goodbot.conversation.ingest import Dispatcher
    from goodbot.conversation.notifications import OwnerNews
    from goodbot.conversation.presence import Presence
    from goodbot.daemon.http.http import Http
    from goodbot.learning.adapters import AdapterRegistry
    from goodbot.learning.adapters.erasure import Eraser
    from goodbot.learning.canary import Canary
    from goodbot.learning.evaluation.ab_test import AbTest
    from goodbot.learning.evaluation.idle import SpareTime
    from goodbot.learning.evaluation.side_by_side import SideBySide
    from goodbot.learning.model_switch import ModelSwitch
    from goodbot.learning.training.memory_sharing import MemorySharing
    from goodbot.learning.training.scheduler import Scheduler
    from goodbot.learning.training.trainer import Trainer


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
    memory: MemorySharing
    presence: Presence
    model_switch: ModelSwitch
    plugins: PluginHost
    courier: Courier
    news: OwnerNews
    connectors: Mapping[str, Connector]
    connector_errors: Mapping[str, str]
    platform_time: PlatformTime
    model: str
    backend: str
    learning: str
    """How boldly it learns and what decided that, in one line."""
    sampling: Sampling
    thinks: str
    """Whether the model thinks before it answers, in a sentence; empty for one that does not."""
    started_at: float
    confirmations: Confirmations
    notices: Notices
    eraser: Eraser
    logins: Logins
    http: Http
    canary: Canary
    spare: SpareTime
    ab_test: AbTest
    side_by_side: SideBySide


@dataclass(frozen=True, kw_only=True)
class Call:
    """One use of a command."""

    event: CommandEvent
    args: tuple[str, ...]
    services: Services
    direct: bool = False
    """It came from a program, which asks back by itself, not out of a chat."""

    @property
    def user(self) -> UserRef:
        return self.event.user

    @property
    def confidential(self) -> bool:
        """Whether nobody but an owner reads the answer."""
        shared = self.event.channel.kind is ChannelKind.SHARED
        return not shared and self.services.authorization.may(self.user, Grant.ADMINISTER)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a command answers: a text for people, and data for `--json`."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    once: bool = False
    """Its text is shown and not kept: it holds a one-time code."""
    turn: str = ""
    """The answer that it is about."""
    offer: tuple[Button, ...] = ()
    """What that person may press next."""
    later: Callable[[], Awaitable[Result]] | None = None
    """What it comes to in the end, for somebody who waits; the commands behind it do not."""


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
    plain: bool = False
    """No look-alike of its name is taken for it. So it is with all that needs ADMINISTER."""
    personal: bool = False
    """What it answers is for the one who typed it: in a shared channel they are told privately."""
    quotes: bool = False
    """What is typed behind it may be anybody's words: the audit trail leaves them out."""
    own: bool = False
    """It is about what is stored of the person, who may use it for as long as anything is."""


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
            strict = command.plain or command.grant is Grant.ADMINISTER
            if strict and not (word.isascii() and word.isprintable()):
                return None
            return command
    return None
