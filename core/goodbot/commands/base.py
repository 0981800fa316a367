"""What a command is given, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goodbot.access.authorization import Authorization
from goodbot.api.commands import Grant
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
