"""From a trained candidate that has passed its gate to the version that answers.

Files published → row recorded → loaded, probed and made active, each unless something speaks against it.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.api.plugins import PluginHost
from goodbot.api.server import BASE
from goodbot.base.clock import Clock
from goodbot.base.errors import AdapterError, ServerError
from goodbot.learning.adapters import AdapterManifest, AdapterRegistry, publish
from goodbot.learning.adapters.lineage import waits
from goodbot.learning.adapters.registry import NotServedError
from goodbot.store import Store, adapters, canaries, comparisons, runs, settings, training_pool

logger = logging.getLogger(__name__)

_TRIES = 2
"""How often it is tried again after the model has ended under it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOutcome:
    """How a run ended. `version` is the new adapter when `state` is `activated`."""

    run: int
    state: str
    reason: str
    version: int = BASE
    kind: str = ""
    """Of a failure: `TrainingError.kind`."""


class GoingLive:
    """The last part of a run; every decision is made in a transaction that compares the run's id."""

    def __init__(
        self,
        *,
        store: Store,
        registry: AdapterRegistry,
        plugins: PluginHost,
        clock: Clock,
        pool: training_pool.Pool,
        ask: str = "never",
    ) -> None:
        """`ask` as in `[serving]`: when owners are asked which version is better."""
        self._store = store
        self._registry = registry
        self._plugins = plugins
        self._clock = clock
        self._pool = pool
        self._ask = ask

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
    ) -> RunOutcome:
        """Publish what lies in `output` and make it the active version, if it was `active` until now.

        Raises AdapterError for files that are no adapter.
        """
        if objection := await self._store.read(lambda db: runs.objection(db, run)):
            return RunOutcome(run=run, state="superseded", reason=objection)
        version = await self._store.read(adapters.next_version)
        if objection := self._plugins.veto_activation(version, dict(metrics)):
            return RunOutcome(run=run, state="refused", reason=objection)
        manifest = AdapterManifest(
            version=version,
            parent=parent,
            run=run,
            model=self._pool.model,
            files={},
            metrics=dict(metrics),
            ratings=await self._store.read(lambda db: runs.learnt(db, run)),
        ).on(await asyncio.to_thread(self._registry.base))
        directory, manifest = await asyncio.to_thread(publish, output, self._registry.root, manifest)
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
            return RunOutcome(run=run, state="superseded", reason=objection)
        return await self._activate(run, active, parent, version, gate)

    async def _commit(self, run: int, row: adapters.AdapterRow, directory: Path) -> str:
        """Record the adapter, unless there is an objection; returns that, and removes the files."""

        async def operation(db: aiosqlite.Connection) -> str:
            objection = await runs.objection(db, run)
            if not objection:
                await adapters.add(db, row, self._pool.scope)
            return objection

        objection = "it could not be recorded"
        try:
            objection = await self._store.write(operation)
        except asyncio.CancelledError:
            objection = ""  # it may have been recorded; if not, the next start sweeps it away
            raise
        finally:
            if objection:
                await asyncio.to_thread(shutil.rmtree, directory)
        return objection

    async def _activate(
        self, run: int, active: int, parent: int, version: int, gate: Mapping[str, Any], left: int = _TRIES
    ) -> RunOutcome:
        """Make it live; the run ends in the transaction that moves the pointer, or not at all.

        The pointer must still be where it was when the run began, or at what the run continues: a
        rollback meanwhile wins.
        """
        reason = str(gate["reason"])
        verdict = RunOutcome(run=run, state="activated", reason=reason, version=version)

        if await self._registry.active() == parent:
            active = parent  # what it continues has waited, and went live meanwhile
        old = await self._registry.usable_ancestor(active)
        untainted = old == active  # a tainted one is replaced at once
        share = self._registry.share if untainted else 0.0
        held = self._ask == "before" and untainted

        async def ends(db: aiosqlite.Connection, *, ask: bool) -> bool:
            if await runs.objection(db, run):
                return False
            now = self._clock.now()
            await settings.set_switch(db, adapters.retrain_switch(self._pool.model), "")
            ended = await runs.finish(db, run, "activated", reason, gate, now)
            if ended and ask:
                await comparisons.open_(db, self._pool, run=run, old=old, new=version, held=held, now=now)
            return ended

        async def guard(db: aiosqlite.Connection) -> bool:
            return await ends(db, ask=self._ask != "never")

        async def hold(db: aiosqlite.Connection) -> str | None:
            if await adapters.pointer(db, self._pool.scope, self._pool.model) != active:
                return None  # what it continues went live in this moment, or somebody rolled back
            pinned = await adapters.stays(db, active)
            if not (pinned or share or held) or not await ends(db, ask=not (pinned or share)):
                return ""
            if share and not pinned:
                await canaries.begin(
                    db, self._pool.scope, self._pool.model, version, active, self._clock.now()
                )
                return f"{share:.0%} of the conversations meet v{version} first."
            await adapters.hold(db, version, adapters.PINNED if pinned else comparisons.WAITS)
            return waits(version, active) if pinned else f"v{version} waits: {comparisons.WAITS}."

        async def wait(why: str, sentence: str) -> RunOutcome | None:
            async def operation(db: aiosqlite.Connection) -> bool:
                ended = await ends(db, ask=False)
                if ended:
                    await adapters.hold(db, version, why)
                return ended

            ended = await self._store.write(operation)
            return replace(verdict, reason=f"{reason} It waits: {sentence}.") if ended else None

        life = self._registry.lives
        try:
            sentence = await self._store.write(hold)
            if sentence is None and active != parent and await self._registry.active() == parent:
                return await self._activate(run, active, parent, version, gate)
            if sentence:
                if share:
                    await self._registry.refresh()
                return replace(verdict, reason=f"{reason} {sentence}")
            live = await self._registry.activate(version, expected=active, guard=guard)
        except NotServedError as error:  # nothing is wrong with what was learnt
            if waits_ := await wait(adapters.UNSERVED, str(error)):
                return waits_
            live = False
        except (AdapterError, ServerError) as error:
            if isinstance(error, ServerError):
                # The model may have ended under it, which says nothing of what was learnt.
                try:
                    logger.warning("v%d: %s; %s", version, error, await self._registry.reconcile())
                except ServerError as gone:
                    logger.error("the model does not come back: %s", gone)
                    if waits_ := await wait(adapters.AWAY, adapters.AWAY):
                        return waits_
                if left and self._registry.lives != life:
                    return await self._activate(run, active, parent, version, gate, left - 1)
            return RunOutcome(run=run, state="failed", reason=f"it did not go live: {error}")
        if not live:
            objection = await self._store.read(lambda db: runs.objection(db, run))
            reason = objection or "another version was made active while it was trained"
            return RunOutcome(run=run, state="superseded", reason=reason)
        return verdict
