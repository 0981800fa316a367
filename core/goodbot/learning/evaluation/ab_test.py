# SPDX-License-Identifier: Apache-2.0
"""Asks the owners which of old and new answers better, and does what they say.

Everything is decided by the store, so that a restart goes on where the last process ended, and what
happens meanwhile wins: a rollback or a newer round ends the question, `pause` and `pause all`
leave everything as it is until `resume`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import aiosqlite

from goodbot.access.direct_message import Courier
from goodbot.api.hookspecs import hookimpl
from goodbot.api.notice import Notice
from goodbot.api.sentences import clause_of
from goodbot.base.clock import Clock, Reached, woken
from goodbot.base.errors import AdapterError, ServerError, boundary
from goodbot.base.worded import said_by
from goodbot.learning.adapters.deployment import NotServedError
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.evaluation import blind
from goodbot.learning.evaluation.electorate import Electorate
from goodbot.learning.evaluation.preparing import Preparing
from goodbot.learning.evaluation.rule import is_certain, loses
from goodbot.learning.evaluation.weekly import Week
from goodbot.learning.training.scheduler import Scheduler
from goodbot.store import Store, adapters, comparisons, people, settings
from goodbot.store.comparisons import Comparison, Pair
from goodbot.store.training_pool import Pool

logger = logging.getLogger(__name__)

_LOOK_SECONDS, _OPEN_SECONDS = 60.0, 86400.0
"""Who has not chosen in a day leaves it to the gate."""


class AbTest:
    """One goodbot's blind question."""

    def __init__(
        self,
        *,
        store: Store,
        registry: AdapterRegistry,
        scheduler: Scheduler,
        courier: Courier,
        preparing: Preparing,
        who: Electorate,
        clock: Clock,
        pool: Pool,
    ) -> None:
        self.pool, self.who = pool, who
        self._store = store
        self._registry = registry
        self._scheduler = scheduler
        self._courier = courier
        self._preparing = preparing
        self._clock, self._reached = clock, Reached(clock)
        self._week = Week(store=store, courier=courier, clock=clock, pool=pool, owners=who.owners)
        self._wake = asyncio.Event()
        self._looking = asyncio.Lock()
        self._deciding = asyncio.Lock()
        self.unasked: tuple[int, str] | None = None
        """Which question could not be prepared, and why, as it was logged."""
        self._began: tuple[int, float] = (0, 0.0)
        """Which question is being prepared, and since when that is tried."""

    @hookimpl
    def on_training_finished(self) -> None:
        """Look soon."""
        self._wake.set()

    on_adapter_activated = on_training_finished

    async def loop(self) -> None:
        """Until cancelled."""
        while True:
            self._wake.clear()
            with boundary(logger, "comparing the new version with the one before"):
                await self.look()
            with boundary(logger, "telling the owners of the week"):
                await self._week.look()
            await woken(self._wake, self._clock, _LOOK_SECONDS)

    async def look(self) -> None:
        """Do what is to be done next about the open question, if there is one."""
        async with self._looking:
            await self._look()
            await self._tell_what_came_of_it()

    async def _look(self) -> None:
        found = await self.current()
        if found is None or found.state == "asking":
            self._began = (0, 0.0)
        if found is None or await self.rests():
            return
        prepares = found.state == "preparing" and not self._is_late(found)
        if prepares and (await self._scheduler.pressure() or not await self._prepared(found)):
            return
        if await self.decide() is None:
            await self._ask()

    async def _prepared(self, found: Comparison) -> bool:
        """Whether all pairs are made that can be."""
        try:
            if not await self._preparing.prepare(found, await self._owners()):
                return False
        except ServerError as error:
            if self.unasked != (found.id, said_by(error)):  # it is looked at every minute
                logger.info("v%d is compared later: %s", found.new, error)
            self.unasked = (found.id, said_by(error))
            return False
        except AdapterError as error:  # without an answer of both there is nothing to ask
            logger.error("v%d cannot be compared with v%d: %s", found.new, found.old, error)
        await self._store.write(lambda db: comparisons.ask(db, found.id, self._clock.now()))
        return True

    async def current(self) -> Comparison | None:
        """The open question. One that something else has overtaken is closed."""
        found = await self._store.read(lambda db: comparisons.current(db, self.pool))
        if found is None or not (why := await self._overtaken(found)):
            return found
        await self._close(found, "superseded")
        logger.info("v%d is not compared: %s", found.new, why, extra={"version": found.new})
        return None

    async def _overtaken(self, found: Comparison) -> str:
        if await self._registry.active() != await self.who.place(found.old if found.held else found.new):
            return "another version was made active"
        if why := await self._store.read(lambda db: adapters.tainted(db, found.new)):
            return clause_of(why)
        if not found.held and await self._store.read(lambda db: adapters.stays(db, found.new)):
            return "it is pinned"
        return ""

    async def rests(self) -> bool:
        """Whether nothing is decided: goodbot is paused or off."""
        return await self._store.read(settings.rests)

    def _is_late(self, found: Comparison) -> bool:
        """Whether its day is over: owners had it, or its answers could not be written in one."""
        now, since = self._clock.now(), self._reached.past(found.opened_at)
        if found.state == "preparing":  # paused, or not running, nobody has tried
            before, since = self._began
            if before != found.id and not (before and found.held):
                since = now  # else nobody was asked about the one that it has replaced
            since = min(since, now)
            self._began = (found.id, since)
        return now >= since + _OPEN_SECONDS

    # -- asking

    async def _owners(self) -> Mapping[str, Sequence[str]]:
        """Each owner once, with all accounts that are theirs (`connector:id`)."""
        found: dict[str, Sequence[str]] = {}
        for owner in await self.who.asked():
            accounts = await self.accounts(owner)
            if not any(owner in others for others in found.values()):
                found[owner] = accounts
        return found

    async def accounts(self, who: str) -> Sequence[str]:
        """The accounts of the person whose account this is."""
        return await self._store.read(lambda db: people.accounts(db, who))

    async def pairs(self, found: Comparison, who: str) -> Sequence[Pair]:
        """What this person is asked, answered and not."""
        accounts = await self.accounts(who)
        return await self._store.read(lambda db: comparisons.pairs(db, found, accounts))

    async def _ask(self) -> None:
        """Tell each owner of their first open pair, at every account at which they are one."""
        found = await self.current()
        if found is None:
            return
        for owner, accounts in (await self._owners()).items():
            pairs = await self.pairs(found, owner)
            waiting = next((pair for pair in pairs if not pair.choice), None)
            if waiting is None:
                continue
            for account in filter(self.who.may, accounts):
                language = self._courier.readers.language(account)
                asks = blind.question(pairs, waiting, language)
                text = f"{self.who.invitation(found, language)}\n\n{asks}"
                await self._courier.tell(
                    Notice(
                        key=comparisons.invited(found, account),
                        person=account,
                        text=text,
                        buttons=blind.buttons(waiting, language),
                    )
                )

    async def dismiss(self) -> None:
        """Ask no more: an owner has said which version answers."""
        if (found := await self.current()) is not None:
            await self._close(found, "superseded")

    # -- deciding

    async def decide(self, *, told: str = "", language: str = "") -> str | None:
        """Close the question if that can be: what owners are told then, None while it stays open.

        `told` is an account (`connector:id`) whose person the caller tells.
        """
        async with self._deciding:
            found = await self.current()
            if found is None or await self.rests():
                return None
            tally = await self._store.read(lambda db: comparisons.tally(db, found.id))
            pinned = await self._store.read(lambda db: adapters.stays(db, found.new))
            state = "lost" if loses(tally) and (found.held or not pinned) else "passed"
            # One that is live has time: all its pairs are asked, unless it has lost already.
            early = is_certain(tally) and (found.held or state == "lost")
            certain = found.state == "asking" and (early or not tally.open)
            if not (certain or self._is_late(found)):
                return None
            if not await self._carry_out(found, state):
                return None
        logger.info("v%d was compared with v%d: %s", found.new, found.old, state)
        for account in await self.accounts(told) if told else ():
            key = _key(found, account)
            await self._store.write(lambda db, k=key: settings.tell_once(db, k))
        self._wake.set()  # the others are to hear of it
        return blind.outcome(found, tally, state, language)

    async def _carry_out(self, found: Comparison, state: str) -> bool:
        """Let the version that won answer; the question ends in the same transaction, or stays open."""

        async def guard(db: aiosqlite.Connection) -> bool:
            return await comparisons.close(db, found, state, self._clock.now())

        if not await self._moved(found, state, guard):
            return False
        if state == "lost":  # only now: while the server is away this is tried again and again
            await self.who.stop(self._scheduler)
        return True

    async def _moved(
        self, found: Comparison, state: str, guard: Callable[[aiosqlite.Connection], Awaitable[bool]]
    ) -> bool:
        """Whether the right version answers now, or waits for a reason, and the question is closed."""
        if found.held is (state == "lost"):  # nothing changes which version answers
            return await self._store.write(guard)
        old, new = await self.who.place(found.old), found.new
        if found.held and await self._store.read(lambda db: adapters.stays(db, old)):
            return await self._store.write(lambda db: self._waits(db, found, adapters.PINNED))
        try:
            if found.held:
                return await self._registry.activate(new, expected=old, guard=guard)
            target = await self.who.place(await self._registry.usable_ancestor(found.old))
            return await self._registry.activate(target, expected=new, guard=guard)
        except NotServedError as error:
            if not found.held:
                logger.error("v%d has lost, and stays: %s", new, error, extra={"version": new})
                await self._close(found, "superseded")
                return False
            logger.error("v%d has won, and waits: %s", new, error, extra={"version": new})
            return await self._store.write(lambda db: self._waits(db, found, adapters.UNSERVED))
        except AdapterError as error:
            logger.error("v%d does not go live: %s", new, error, extra={"version": new})
            await self._close(found, "superseded")
            return False
        except ServerError as error:
            logger.error("v%d and v%d: it is tried again: %s", old, new, error)
            return False

    async def _waits(self, db: aiosqlite.Connection, found: Comparison, why: str) -> bool:
        """It has won, and something else keeps it from going live."""
        closed = await comparisons.close(db, found, "passed", self._clock.now())
        if closed:
            await adapters.hold(db, found.new, why)
        return closed

    async def _close(self, found: Comparison, state: str) -> None:
        await self._store.write(lambda db: comparisons.close(db, found, state, self._clock.now()))

    async def _tell_what_came_of_it(self) -> None:
        """Of the last question, to owners who have not heard; what is a day old is an old story."""
        since = self._clock.now() - _OPEN_SECONDS
        last = await self._store.read(lambda db: comparisons.last(db, self.pool, since))
        if last is None or last.state == "superseded":
            return
        tally = await self._store.read(lambda db: comparisons.tally(db, last.id))
        for owner in await self.who.asked():
            language = self._courier.readers.language(owner)
            if text := blind.outcome(last, tally, last.state, language):
                await self._courier.tell(Notice(key=_key(last, owner), person=owner, text=text))


def _key(comparison: Comparison, account: str) -> str:
    """Under which it is kept that somebody knows what came of it."""
    return f"compared {comparison.id} {account}"
