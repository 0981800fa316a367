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
    from goodbot.api.activity import ActivityPage, ActivityWanted, TrailChecked
    from goodbot.api.overview import Overview
    from goodbot.api.people import PeoplePage, PeopleWanted
    from goodbot.api.queues import QueuesSeen, QueueWanted
    from goodbot.api.rated import RatedPage, RatedTaught, RatedTopic, RatedWanted
    from goodbot.api.report import ReportSeen
    from goodbot.api.settings_page import SettingsSeen, SettingWanted
    from goodbot.api.turns import OwnNote, OwnTurn
    from goodbot.api.versions import Versions


class ConnectorHost(Protocol):
    """What a connector may ask of the core."""

    clock: Clock
    secrets: Secrets
    stopping: asyncio.Event
    state_dir: Path
    """The connector's own directory, 0700."""
    language: str
    """What people read of whom the platform says nothing: `[serving] language`."""

    @property
    def address(self) -> str:
        """The daemon's base URL, where `Connector.routes` are: `http://127.0.0.1:8321`."""
        ...

    @property
    def model(self) -> OwnModel:
        """Our own model, for a connector that hands on what other programs ask."""
        ...

    @property
    def steady(self) -> bool:
        """Whether the clock may be believed: while it may not, drop nothing for its age.

        It may not for an hour after it has jumped ahead, or where it may have, while we did not run.
        """
        ...

    async def submit(self, events: Sequence[Event], *, cursor: str | None = None) -> tuple[Receipt, ...]:
        """Take events in; returns after ONE commit of the events and the connector's cursor.

        The platform's acknowledgement must leave after this returns, never before.
        Raises `StoreError` when nothing was stored: do not acknowledge, try again.
        """
        ...

    async def cursor(self) -> str | None:
        """Return the last committed cursor (an offset, a sync token)."""
        ...

    async def get(self, key: str) -> str | None:
        """Return a small durable value of the connector's own; None where there is none."""
        ...

    async def set(self, key: str, value: str) -> None:
        """Store a small durable value; returns after the commit. `""` deletes it, and its key."""
        ...

    def spawn(self, task: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a task that the host owns: it is cancelled at stop, its failure is reported."""
        ...

    def told_time(self, seconds: float) -> None:
        """Pass on the platform's own time; `status` and the log say where ours is another."""
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
        queue: int = 0,
        unsure: bool = False,
    ) -> Sequence[Waiting]:
        """List answers of every connector that a person may see, newest first. Needs INBOX.

        Args:
            user: The person.
            connector: Only answers of this connector; empty: of all.
            since: Only newer ones, in seconds since the epoch.
            text: Only those with this text in the question or the answer, in any case, of the newest 5000.
            rated: Those that the person has rated, in place of those that they have not.
            before: The last turn of the page before.
            limit: How many at most; never more than 200.
            queue: Only answers of this open queue, if it is shared with the person; 0: of all.
            unsure: Only those that nobody has rated and the reward model predicts, the least sure first.

        Returns:
            The answers of one page.
        """
        ...

    async def inbox_connectors(self, user: UserRef) -> Sequence[str]:
        """List the connectors of all answers that this person may see there, rated or not. Needs INBOX."""
        ...

    def learning(self) -> str:
        """Say what a training does now, as `learning: 12/32, 2 min left`; empty while there is none."""
        ...

    def may_rate(self, user: UserRef) -> bool:
        """Say whether this person may teach the bot, now: their ratings are refused otherwise."""
        ...

    def commands(self, user: UserRef) -> Sequence[Command]:
        """List what this person may type to the bot in private, in the order in which it is shown."""
        ...

    async def own_turn(self, user: UserRef, turn: str, *, all_here: bool = False) -> OwnTurn | None:
        """Find an answer that a person has asked for or reported.

        Args:
            user: The person, of this connector.
            turn: The turn.
            all_here: Whether an owner is shown those of the connector's other people, too.

        Returns:
            The answer; None where it is somebody else's, or unknown.
        """
        ...

    async def notes(self, user: UserRef, *words: str) -> Sequence[OwnNote]:
        """Tell `/rl notes` these words, if any, and list the notes that answers to this person follow.

        Raises UsageError with a sentence for them.
        """
        ...

    async def overview(self, user: UserRef) -> Overview:
        """Say how far the bot is in learning, with nothing that this person may not ask for.

        Raises UsageError with a sentence for them.
        """
        ...

    async def versions(self, user: UserRef, *two: int) -> Versions:
        """List all versions, and compare `two` of them, for a person who may list them.

        Raises UsageError with a sentence for them.
        """
        ...

    async def rated(self, user: UserRef, wanted: RatedWanted) -> RatedPage:
        """List rated answers, newest first: to an owner those of the inbox, to others what they have rated.

        Raises UsageError with a sentence for them.
        """
        ...

    async def leave_out(self, user: UserRef, turns: Sequence[str], *, again: bool = False) -> str:
        """Take what was said of these answers out, or in `again`, by the word of an owner of ours.

        Args:
            user: The owner.
            turns: The answers: all of them, or none where one is not known.
            again: It counts again, in place of no more.

        Returns:
            A sentence on what came of it.

        Raises:
            UsageError: With a sentence for them.
        """
        ...

    async def activity(self, user: UserRef, wanted: ActivityWanted) -> ActivityPage:
        """List what owners have done and others were refused, newest first, for an owner of ours.

        Raises UsageError with a sentence for them.
        """
        ...

    async def check_activity(self, user: UserRef) -> TrailChecked:
        """Say whether each entry of that is as it was written, for an owner of ours.

        Raises UsageError with a sentence for them.
        """
        ...

    async def people(self, user: UserRef, wanted: PeopleWanted) -> PeoplePage:
        """List everybody whom the bot knows, for an owner of ours, and who asks to talk to it.

        Raises UsageError with a sentence for them.
        """
        ...

    async def queues(self, user: UserRef) -> QueuesSeen:
        """List the open queues that are shared with this person, and to an owner of ours all of them."""
        ...

    async def change_queue(self, user: UserRef, wanted: QueueWanted) -> str:
        """Make a queue of answers to rate, close one or open it again, for an owner of ours.

        Raises UsageError with a sentence for them.
        """
        ...

    async def topics(self, user: UserRef) -> Sequence[RatedTopic]:
        """List what the newest 5000 rated answers are about, to an owner; nothing to others."""
        ...

    async def taught(self, user: UserRef, turn: str) -> RatedTaught:
        """Say to an owner what one answer has taught; it may take a minute. Raises UsageError."""
        ...

    async def report(self, user: UserRef, *, anew: bool = False, ask: bool = False) -> ReportSeen:
        """Return the report that was made last, for an owner of ours.

        Args:
            user: The owner.
            anew: Begin another one, in the background; ask again to see how far it is.
            ask: For that one ask the version that answers fixed questions first, which takes minutes.

        Returns:
            What there is.

        Raises:
            UsageError: With a sentence for them.
        """
        ...

    async def settings(self, user: UserRef) -> SettingsSeen:
        """List all that can be set, with no secret in it, for an owner of ours.

        Raises UsageError with a sentence for them.
        """
        ...

    async def change_setting(self, user: UserRef, wanted: SettingWanted) -> str:
        """Write a setting into the config file, for an owner of ours, and say when it counts.

        Raises GoodbotError with a sentence for them.
        """
        ...

    async def begin_anew(self, user: UserRef) -> str:
        """Run anew with the config file as it is now, for an owner of ours, and say so.

        Raises UsageError with a sentence for them.
        """
        ...

    async def log_in(self, code: str) -> str:
        """Use up a one-time code of `goodbot web` or `/rl web`, and return the user id that it stands for.

        Empty when it is none that holds. Raises `RetriableError` while codes are being guessed at.
        """
        ...
