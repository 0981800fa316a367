# SPDX-License-Identifier: Apache-2.0
"""A host in memory: what a connector asks of the core, recorded, with failures on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from goodbot.api.commands import Command, Grant, allowed
from goodbot.api.completions import NoModel, OwnModel
from goodbot.api.connector import Connector, ConnectorSpec
from goodbot.api.events import CaptureEvent, Event, Outcome, Receipt, UserRef, Waiting
from goodbot.api.turns import OwnTurn, turn_id
from goodbot.base.clock import Clock, Steady, SystemClock
from goodbot.base.errors import StoreError
from goodbot.base.tasks import end_tasks
from goodbot.config.secrets import Secrets
from goodbot.conversation.sanitize import again
from goodbot.testing.clock import VirtualClock
from goodbot.testing.host_pages import HostPages
from goodbot.testing.http import LocalServer
from goodbot.testing.patience import patience

__all__ = ["Commit", "RecordingHost", "VirtualClock"]

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """What one `submit` stored."""

    events: tuple[Event, ...]
    cursor: str | None


class RecordingHost(HostPages):
    """`ConnectorHost` without a core behind it.

    `attempts` has the events of every `submit`, stored or not; `commits` only the stored ones;
    `events` each stored event once, as the ledger would. What a host keeps durably (commits, the
    cursor, values) outlives a connector: give the same host to a second one to test a restart.
    A connector with routes answers them at `address` once it has been given to `mount`.
    """

    def __init__(
        self,
        spec: ConnectorSpec,
        *,
        state_dir: Path,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make one for a connector.

        Args:
            spec: The connector's.
            state_dir: The directory that is its own.
            environ: Where its secrets are.
            clock: The time; by default the machine's.
        """
        super().__init__()
        self.clock: Clock = clock or SystemClock()
        self._steady = Steady(self.clock)
        self.secrets = Secrets(spec.secrets, environ or {})
        self.stopping = asyncio.Event()
        self.state_dir = state_dir
        self.attempts: list[tuple[Event, ...]] = []
        self.commits: list[Commit] = []
        self.events: list[Event] = []
        self.failures: list[BaseException] = []
        """What tasks died of that the connector had spawned."""
        self.answer: Callable[[Event], Receipt] = _accepted
        """Decides what a new event's receipt says."""
        self.troubles: list[str] = []
        """What the connector said of its state, in order; `""`: it is well again."""
        self.told: list[float] = []
        """What the platform's clock said."""
        self.model: OwnModel = NoModel()
        """What answers; a test sets another."""
        self.waiting: list[Waiting] = []
        """What is in the inbox of whoever asks, newest first."""
        self.unsure: list[str] = []
        """The turns that the reward model is least sure of, in its order."""
        self.trains = ""
        """What `learning` answers."""
        self.talkers: set[str] = set()
        """User ids of those who may talk, but not rate."""
        self.own_turns: dict[str, OwnTurn] = {}
        """What `own_turn` finds, by turn."""
        self.codes: dict[str, str] = {}
        """One-time codes that hold, and the user ids that they stand for."""
        self._server: LocalServer | None = None
        self._receipts: dict[str, Receipt] = {}
        self._values: dict[str, str] = {}
        self._refusals = 0
        self._returning = True
        self._open = asyncio.Event()
        self._open.set()
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, events: Sequence[Event], *, cursor: str | None = None) -> tuple[Receipt, ...]:
        """Store, or raise StoreError when `refuse` said so; see `hold` and `freeze`."""
        self.attempts.append(tuple(events))
        self._changed.set()
        await self._open.wait()
        if self._refusals:
            self._refusals -= 1
            raise StoreError("no space left on the device (a test says so)")
        receipts = [self._store(event) for event in events]
        self.commits.append(Commit(events=tuple(events), cursor=cursor))
        self._changed.set()
        if not self._returning:
            await asyncio.Event().wait()
        return tuple(receipts)

    def _store(self, event: Event) -> Receipt:
        known = self._receipts.get(event.event_id)
        if known is not None:
            return again(event, replace(known, duplicate=True))
        self._receipts[event.event_id] = replace(self.answer(event), digest=event.digest)
        self.events.append(event)
        return self._receipts[event.event_id]

    async def cursor(self) -> str | None:
        """Return the cursor of the last commit that had one."""
        cursors = [commit.cursor for commit in self.commits if commit.cursor is not None]
        return cursors[-1] if cursors else None

    async def get(self, key: str) -> str | None:
        """Return a small durable value."""
        return self._values.get(key)

    async def set(self, key: str, value: str) -> None:
        """Store a small durable value; `""` deletes it."""
        self._values[key] = value
        if not value:
            del self._values[key]

    def spawn(self, task: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a task until it ends or `close` is called."""

        async def guarded() -> None:
            try:
                await task
            except Exception as error:
                self.failures.append(error)
                self._changed.set()

        spawned = asyncio.create_task(guarded(), name=name)
        self._tasks.add(spawned)
        spawned.add_done_callback(self._tasks.discard)
        spawned.add_done_callback(lambda _: task.close())
        return spawned

    @property
    def address(self) -> str:
        """Where `mount` answers: a port of its own on the loopback."""
        self._server = self._server or LocalServer()
        return self._server.address

    @property
    def steady(self) -> bool:
        """Whether its clock has made no jump ahead within an hour."""
        return self._steady.look()

    def told_time(self, seconds: float) -> None:
        """Note it in `told`."""
        self.told.append(seconds)

    def trouble(self, text: str) -> None:
        """Note it in `troubles`, once."""
        if text != (self.troubles[-1] if self.troubles else ""):
            self.troubles.append(text)
            self._changed.set()

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
        """List what is asked for of `waiting`, whoever asks: see `ConnectorHost.inbox`."""
        every = self.waiting
        if unsure:
            every = sorted(every, key=lambda entry: [*self.unsure, entry.turn].index(entry.turn))
        ids = [entry.turn for entry in every]
        later = every[ids.index(before) + 1 :] if before else every
        found = [
            entry
            for entry in later
            if connector in ("", entry.connector)
            and (not queue or entry.turn in self.queued.get(queue, ()))
            and (not unsure or entry.turn in self.unsure)
            and entry.created_at >= (since or 0.0)
            and text.casefold() in f"{entry.question}\n{entry.answer}".casefold()
            and (entry.label is not None or entry.stars is not None) is rated
        ]
        return found[:limit]

    async def inbox_connectors(self, user: UserRef) -> Sequence[str]:
        """List those of `waiting`."""
        return sorted({entry.connector for entry in self.waiting})

    def learning(self) -> str:
        """Say what `trains` says."""
        return self.trains

    def may_rate(self, user: UserRef) -> bool:
        """Say so of whoever is not among `talkers`."""
        return user.id not in self.talkers

    def commands(self, user: UserRef) -> Sequence[Command]:
        """List an owner's; a talker's, if they are among `talkers`."""
        return allowed(Grant.TALK if user.id in self.talkers else Grant.ADMINISTER)

    async def own_turn(self, user: UserRef, turn: str, *, all_here: bool = False) -> OwnTurn | None:
        """Find it in `own_turns`, whoever asks: see `ConnectorHost.own_turn`."""
        return self.own_turns.get(turn)

    async def log_in(self, code: str) -> str:
        """Take a code of `codes`."""
        return self.codes.pop(code, "")

    def mount(self, connector: Connector) -> None:
        """Answer a connector's routes, if it has any, while it runs; in place of another's."""
        if routes := connector.routes():
            self._server = self._server or LocalServer()
            self._server.follow(connector)
            self.spawn(self._server.mount(connector, routes), "mount")

    def refuse(self, times: int = 1) -> None:
        """Let the next `times` submits store nothing and fail."""
        self._refusals = times

    def hold(self) -> None:
        """Let submits wait before they store anything."""
        self._open.clear()

    def freeze(self) -> None:
        """Let submits store, but never return: as if the process died right after the commit."""
        self._returning = False

    def release(self) -> None:
        """End `hold` and `freeze`."""
        self._returning = True
        self._open.set()

    async def wait(self, done: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait until `done()`, which is asked after every change; TimeoutError when it never is.

        Raises at once what a task has died of that the connector had spawned.
        """
        known = len(self.failures)
        try:
            async with asyncio.timeout(patience(seconds)):
                while not done():
                    if len(self.failures) > known:
                        raise self.failures[known]
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            stored = ", ".join(type(event).__name__ for event in self.events) or "nothing"
            raise TimeoutError(f"it did not come within {seconds:g} s; stored so far: {stored}") from None

    async def received(self, kind: type[E], count: int = 1) -> list[E]:
        """Return the stored events of one kind, as soon as there are `count`."""

        def found() -> list[E]:
            return [event for event in self.events if isinstance(event, kind)]

        await self.wait(lambda: len(found()) >= count)
        return found()

    async def close(self) -> None:
        """Cancel what was spawned."""
        self.stopping.set()
        self._open.set()
        await end_tasks(*self._tasks)
        if self._server is not None:
            await self._server.close()


def _accepted(event: Event) -> Receipt:
    """A capture becomes a turn of its own, which the core calls the same."""
    seen = f"Seen {event.event_id}."
    text, turn = ("", turn_id(event)) if isinstance(event, CaptureEvent) else (seen, "")
    return Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text, turn=turn)
