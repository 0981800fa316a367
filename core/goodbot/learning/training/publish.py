# SPDX-License-Identifier: Apache-2.0
"""From a trained candidate that has passed its gate to the version that answers.

Files published → row recorded → loaded, probed and made active, each unless something speaks against it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.api.adapters.manifest import AdapterManifest, publish
from goodbot.api.sentences import Reason, because, in_words
from goodbot.base import full_disk, trees
from goodbot.base.errors import AdapterError, GoodbotError, ServerError
from goodbot.base.worded import said_by
from goodbot.learning.adapters.deployment import NotServedError
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.learning.training.outcome import RunOutcome
from goodbot.store import adapters, canaries, comparisons, objections, runs, settings

logger = logging.getLogger(__name__)

_TRIES = 2  # how often it is tried again after the model has ended under it
_LONG = 86_400.0  # seconds that it waits for a disk that has room, but for what a child says


class _Step(Enum):
    """What becomes of a recorded version next."""

    MOVED = "another version answers than the one it was to follow"
    WAITS = "it waits"
    GOES = "it goes live"


@dataclass(frozen=True, kw_only=True, slots=True)
class _New:
    """A recorded version on its way."""

    run: int
    version: int
    parent: int
    active: int
    """What must answer when it goes live."""
    old: int
    """The nearest usable ancestor of that, which it is compared with."""
    gate: Mapping[str, Any]
    verdict: tuple[Reason, ...]
    """What the gate has said."""
    kept: float = 0.0
    """Since when it fails for a full disk that has room; 0: it does not, or there was none the last time."""

    def activated(self, *waits: Reason) -> RunOutcome:
        """The run's end, with what it waits for."""
        ending = (*self.verdict, *waits)
        return RunOutcome(run=self.run, state="activated", ending=ending, version=self.version)

    def failed(self, error: Exception) -> RunOutcome:
        """The run's end, where it could not be made to answer."""
        why = because("ended_not_live", why=said_by(error))
        return RunOutcome(run=self.run, state="failed", ending=(why,))


class Publisher:
    """The last part of a run; every decision is made in a transaction that compares the run's id."""

    def __init__(self, core: Core, registry: AdapterRegistry, *, ask: str) -> None:
        """`ask` as in `[serving]`: when owners are asked which version is better."""
        self._store, self._clock, self._plugins, self._pool = core.store, core.clock, core.plugins, core.pool
        self._registry, self._ask, self._home = registry, ask, core.config.home
        self._kept: _New | None = None
        """What a full disk has kept from going live."""

    async def go(
        self,
        run: int,
        *,
        active: int,
        parent: int,
        output: Path,
        metrics: Mapping[str, Any],
        baseline: Mapping[str, float],
        gate: Mapping[str, Any],
        verdict: tuple[Reason, ...],
    ) -> RunOutcome:
        """Publish what lies in `output` and make it the active version, if it was `active` until now.

        `verdict` is what the gate has said. Raises AdapterError for files that are no adapter.
        """
        if objection := await self._store.read(lambda db: objections.objection(db, self._pool, run)):
            return RunOutcome(run=run, state="superseded", ending=objection)
        version = await self._store.read(adapters.next_version)
        if veto := self._plugins.veto_activation(version, dict(metrics)):
            return RunOutcome(run=run, state="refused", ending=in_words(veto))
        manifest = AdapterManifest(
            version=version,
            parent=parent,
            run=run,
            model=self._pool.model,
            files={},
            metrics=dict(metrics),
            ratings=await self._store.read(lambda db: runs.learnt(db, run)),
        ).on(await asyncio.to_thread(self._registry.base))
        directory, manifest = await self._published(output, manifest)
        row = adapters.AdapterRow(
            version=version,
            parent=parent,
            run=run,
            directory=directory.name,
            sha256=manifest.files["adapter_model.safetensors"],
            model=self._pool.model,
            tainted="",
            baseline=dict(baseline),
            metrics=dict(metrics),
            created_at=self._clock.now(),
        )
        if objection := await self._commit(run, row, directory):
            return RunOutcome(run=run, state="superseded", ending=objection)
        new = _New(
            run=run, version=version, parent=parent, active=active, old=active, gate=gate, verdict=verdict
        )
        return await self._live(new)

    def waits(self, run: int) -> bool:
        """Whether a run's version is recorded, and a full disk has kept it from going live."""
        return self._kept is not None and self._kept.run == run

    async def again(self, run: int) -> RunOutcome | None:
        """Go on from there; None where it does not wait."""
        return await self._live(self._kept) if self._kept is not None and self.waits(run) else None

    def drop(self) -> None:
        """It starts over: what was recorded is not to go live."""
        self._kept = None

    async def _live(self, new: _New) -> RunOutcome:
        """`_activate`; where the disk is full, `again` goes on."""
        try:
            outcome = await self._activate(new)
        except Exception as error:
            if full_disk.is_full(error):
                lacking = full_disk.lacking(self._home)
                self._kept = replace(new, kept=0.0 if lacking else new.kept or self._clock.now())
            raise
        self._kept = None
        return outcome

    async def _published(self, output: Path, manifest: AdapterManifest) -> tuple[Path, AdapterManifest]:
        """`publish`; who ends the run meanwhile, since somebody is forgotten perhaps, leaves no files."""
        publishing = asyncio.ensure_future(asyncio.to_thread(publish, output, self._registry.root, manifest))
        try:
            return await asyncio.shield(publishing)
        except asyncio.CancelledError:
            with contextlib.suppress(GoodbotError, OSError):
                await asyncio.to_thread(trees.remove, (await publishing)[0])
            raise

    async def _commit(self, run: int, row: adapters.AdapterRow, directory: Path) -> tuple[Reason, ...]:
        """Record the adapter, unless there is an objection; returns that, and removes the files."""

        async def operation(db: aiosqlite.Connection) -> tuple[Reason, ...]:
            objection = await objections.objection(db, self._pool, run)
            if not objection:
                await adapters.add(db, row, self._pool.scope)
            return objection

        objection = (because("ended_unrecorded"),)
        try:
            objection = await self._store.write(operation)
        except asyncio.CancelledError:
            objection = ()  # it may have been recorded; if not, the next start sweeps it away
            raise
        finally:
            if objection:
                await asyncio.to_thread(trees.remove, directory)
        return objection

    async def _activate(self, new: _New, left: int = _TRIES) -> RunOutcome:
        """Make it live; the run ends in the transaction that moves the pointer, or not at all.

        The pointer must be where it was when the run began, or at what that continues: a rollback wins.
        """
        if await self._registry.active() == new.parent:
            new = replace(new, active=new.parent)  # what it continues has waited, and went live meanwhile
        new = replace(new, old=await self._registry.usable_ancestor(new.active))
        life = self._registry.lives
        try:
            step, waits = await self._store.write(lambda db: self._hold(db, new))
            if step is _Step.WAITS:
                if self._share(new):
                    await self._registry.refresh()
                return new.activated(*waits)
            if step is _Step.MOVED and await self._is_behind(new):
                return await self._activate(new)
            live = await self._registry.activate(
                new.version,
                expected=new.active,
                guard=lambda db: self._ends(db, new, ask=self._ask != "never"),
            )
        except (AdapterError, ServerError) as error:
            if hindered := await self._hindered(new, error, left, life):
                return hindered
            live = False
        if live:
            return new.activated()
        objection = await self._store.read(lambda db: objections.objection(db, self._pool, new.run))
        overtaken = (because("ended_overtaken"),)
        return RunOutcome(run=new.run, state="superseded", ending=objection or overtaken)

    async def _hindered(
        self, new: _New, error: AdapterError | ServerError, left: int, life: int
    ) -> RunOutcome | None:
        """What comes of one that cannot be loaded; None: something speaks against it. Raises if it waits."""
        said: BaseException | None = error
        while isinstance(said, AdapterError | ServerError):  # its words may be a server's, of another disk
            said = said.__cause__
        lacking = full_disk.lacking(self._home)
        late = new.kept and self._clock.now() - new.kept > _LONG and not lacking
        if full_disk.is_full(error if lacking else said) and not late:
            raise error
        if isinstance(error, NotServedError):  # nothing is wrong with what was learnt
            return await self._wait(new, adapters.UNSERVED, said_by(error))
        if isinstance(error, ServerError):
            return await self._unreachable(new, error, left, life)
        return new.failed(error)

    async def _unreachable(self, new: _New, error: ServerError, left: int, life: int) -> RunOutcome:
        """The model may have ended under it, which says nothing of what was learnt."""
        try:
            logger.warning("v%d: %s; %s", new.version, error, await self._registry.reconcile())
        except ServerError as gone:
            logger.error("the model does not come back: %s", gone)
            if waiting := await self._wait(new, adapters.AWAY, adapters.AWAY):
                return waiting
        if left and self._registry.lives != life:
            return await self._activate(new, left - 1)
        return new.failed(error)

    async def _is_behind(self, new: _New) -> bool:
        """Whether what it continues went live in this moment, and not somebody rolled back."""
        return new.active != new.parent and await self._registry.active() == new.parent

    def _share(self, new: _New) -> float:
        """Of the conversations, that meet it first; a tainted version is replaced at once."""
        return self._registry.share if new.old == new.active else 0.0

    async def _ends(self, db: aiosqlite.Connection, new: _New, *, ask: bool) -> bool:
        """End the run, and `ask` which version is better; False: something speaks against it."""
        if await objections.objection(db, self._pool, new.run):
            return False
        now = self._clock.now()
        await settings.set_switch(db, adapters.retrain_switch(self._pool.scope, self._pool.model), "")
        ended = await runs.finish(db, new.run, "activated", new.verdict, new.gate, now)
        if ended and ask:
            old, held = await self._registry.otherwise(db, new.old), self._held(new)
            await comparisons.open_(db, self._pool, run=new.run, old=old, new=new.version, held=held, now=now)
        return ended

    def _held(self, new: _New) -> bool:
        """Whether owners are asked before it goes live."""
        return self._ask == "before" and new.old == new.active

    async def _hold(self, db: aiosqlite.Connection, new: _New) -> tuple[_Step, tuple[Reason, ...]]:
        """End the run with a version that waits, if it has to; and for what."""
        if await adapters.pointer(db, self._pool.scope, self._pool.model) != new.active:
            return _Step.MOVED, ()
        pinned, share = await adapters.stays(db, new.active), self._share(new)
        must = pinned or share or self._held(new)
        if not must or not await self._ends(db, new, ask=not (pinned or share)):
            return _Step.GOES, ()
        if share and not pinned:
            pool, now = self._pool, self._clock.now()
            await canaries.begin(db, pool.scope, pool.model, new.version, new.active, now)
            return _Step.WAITS, (because("waits_on_trial", share=share, version=new.version),)
        await adapters.hold(db, new.version, adapters.PINNED if pinned else comparisons.COMPARED)
        if pinned:
            return _Step.WAITS, (because("waits_for_unpin", version=new.version, active=new.active),)
        return _Step.WAITS, (because("waits_compared", version=new.version, why=comparisons.COMPARED),)

    async def _wait(self, new: _New, why: str, told: str) -> RunOutcome | None:
        """End the run with a version that waits; None: something speaks against it."""

        async def operation(db: aiosqlite.Connection) -> bool:
            if ended := await self._ends(db, new, ask=False):
                await adapters.hold(db, new.version, why)
            return ended

        ended = await self._store.write(operation)
        return new.activated(because("waits_now", why=told)) if ended else None
