# SPDX-License-Identifier: Apache-2.0
"""What a connector may ask of the core."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from goodbot.api.commands import Command
from goodbot.api.completions import OwnModel
from goodbot.api.events import Event, Receipt, UserRef, Waiting
from goodbot.base.clock import Clock
from goodbot.config.secrets import Secrets

if TYPE_CHECKING:
    from goodbot.api.overview import Overview
    from goodbot.api.turns import OwnNote, OwnTurn
    from goodbot.api.versions import Versions


class ConnectorHost(Protocol):
    """What a connector may ask of the core."""

    clock: Clock
    secrets: Secrets
    stopping: asyncio.Event
    state_dir: Path
    """The connector's own directory, 0700."""

    @property
    def address(self) -> str:
        """The daemon's base URL, where `Connector.routes` are: `http://127.0.0.1:8321`."""
        ...

    @property
    def model(self) -> OwnModel:
        """Our own model, for a connector that hands on what other programs ask."""
        ...

    async def submit(self, events: Sequence[Event], *, cursor: str | None = None) -> tuple[Receipt, ...]:
        """Take events in; returns after ONE commit of the events and the connector's cursor.

        The platform's acknowledgement must leave after this returns, never before.
        Raises `StoreError` when nothing was stored: do not acknowledge, try again.
        """
        ...

    async def cursor(self) -> str | None:
        """The last committed cursor (an offset, a sync token)."""
        ...

    async def get(self, key: str) -> str | None:
        """A small durable value of the connector's own."""
        ...

    async def set(self, key: str, value: str) -> None:
        """Store a small durable value; returns after the commit. `""` deletes it, and its key."""
        ...

    def spawn(self, task: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a task that the host owns: it is cancelled at stop, its failure is reported."""
        ...

    def told_time(self, seconds: float) -> None:
        """The platform's own time, as it has just told; `status` and the log say where ours is another."""
        ...

    def trouble(self, text: str) -> None:
        """Say in `status` why a running connector does not work at the moment; `""` takes it back.

        A sentence for the owner (`another program polls with this token`), without ids and tokens.
        """
        ...

    async def inbox(
        self,
        user: UserRef,
        *,
        connector: str = "",
        since: float | None = None,
        text: str = "",
        rated: bool = False,
        before: str = "",
        limit: int = 50,
    ) -> Sequence[Waiting]:
        """Answers of every connector that this person may see, newest first. Needs INBOX.

        Those that they have not rated, with `rated` those that they have. `connector` narrows it
        down, and so does `text` in the question or the answer, whatever its case, of the newest 5000;
        `since` is seconds since the epoch, `before` the last turn of the page before. At most 200.
        """
        ...

    async def inbox_connectors(self, user: UserRef) -> Sequence[str]:
        """The connectors of all answers that this person may see there, rated or not. Needs INBOX."""
        ...

    def learning(self) -> str:
        """What a training does now, as `learning: 12/32, 2 min left`; empty while there is none."""
        ...

    def may_rate(self, user: UserRef) -> bool:
        """Whether this person may teach the bot, now: their ratings are refused otherwise."""
        ...

    def commands(self, user: UserRef) -> Sequence[Command]:
        """What this person may type to the bot in private, in the order in which it is shown."""
        ...

    async def own_turn(self, user: UserRef, turn: str, *, all_here: bool = False) -> OwnTurn | None:
        """An answer that this person of ours has asked for or reported; None for any other.

        `all_here`: an owner is shown those of the connector's other people, too.
        """
        ...

    async def notes(self, user: UserRef, *words: str) -> Sequence[OwnNote]:
        """What answers to this person of ours follow, after `/rl notes` was told these words, if any.

        Raises UsageError with a sentence for them.
        """
        ...

    async def overview(self, user: UserRef) -> Overview:
        """How far the bot is in learning, with nothing that this person of ours may not ask for.

        Raises UsageError with a sentence for them.
        """
        ...

    async def versions(self, user: UserRef, *two: int) -> Versions:
        """All versions, and `two` of them compared, for somebody of ours who may list them.

        Raises UsageError with a sentence for them.
        """
        ...

    async def log_in(self, code: str) -> str:
        """The user id that a one-time code of `goodbot web` or `/rl web` stands for; it is used up.

        Empty when it is none that holds. Raises `RetriableError` while codes are being guessed at.
        """
        ...
