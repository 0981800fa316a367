"""From a trained candidate that has passed its gate to the version that answers.

Files published → row recorded → loaded, probed and made active, each unless something speaks against it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.adapters import AdapterRegistry, Manifest, publish
from goodbot.clock import Clock
from goodbot.errors import AdapterError, ServerError
from goodbot.plugins import PluginHost
from goodbot.server import BASE
from goodbot.store import Store, access, adapters, claimable, runs


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
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
        self, *, store: Store, registry: AdapterRegistry, plugins: PluginHost, clock: Clock,
        pool: claimable.Pool,
    ) -> None:  # fmt: skip
        self._store = store
        self._registry = registry
        self._plugins = plugins
        self._clock = clock
        self._pool = pool

    async def go(
        self, run: int, *, active: int, parent: int, output: Path, metrics: Mapping[str, Any],
        baseline: Mapping[str, float], gate: Mapping[str, Any],
    ) -> Verdict:  # fmt: skip
        """Publish what lies in `output` and make it the active version, if it was `active` until now.

        Raises AdapterError for files that are no adapter.
        """
        if objection := await self._store.read(lambda db: runs.objection(db, run)):
            return Verdict(run=run, state="superseded", reason=objection)
        version = await self._store.read(adapters.next_version)
        if objection := self._plugins.veto_activation(version, dict(metrics)):
            return Verdict(run=run, state="refused", reason=objection)
        manifest = Manifest(
            version=version, parent=parent, run=run, model=self._pool.model, files={},
            metrics=dict(metrics),
        )  # fmt: skip
        directory, manifest = await asyncio.to_thread(
            publish, output, self._registry.root, manifest
        )
        row = adapters.AdapterRow(
            version=version, parent=parent, run=run, directory=directory.name,
            sha256=manifest.files["adapter_model.safetensors"], model=self._pool.model, tainted="",
            baseline=dict(baseline), metrics=dict(metrics), created_at=self._clock.now(),
        )  # fmt: skip
        if objection := await self._commit(run, row, directory):
            return Verdict(run=run, state="superseded", reason=objection)
        return await self._activate(run, active, version, gate)

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
        self, run: int, active: int, version: int, gate: Mapping[str, Any]
    ) -> Verdict:
        """Make it live; the run ends in the transaction that moves the pointer, or not at all.

        The pointer must still be where it was when the run began: a rollback meanwhile wins.
        """
        reason = str(gate["reason"])
        verdict = Verdict(run=run, state="activated", reason=reason, version=version)

        async def guard(db: aiosqlite.Connection) -> bool:
            if await runs.objection(db, run):
                return False
            await access.set_switch(db, adapters.retrain_switch(self._pool.model), "")
            return await runs.finish(db, run, "activated", reason, gate, self._clock.now())

        try:
            live = await self._registry.activate(version, expected=active, guard=guard)
        except (AdapterError, ServerError) as error:
            return Verdict(run=run, state="failed", reason=f"it did not go live: {error}")
        if not live:
            objection = await self._store.read(lambda db: runs.objection(db, run))
            reason = objection or "another version was made active while it was trained"
            return Verdict(run=run, state="superseded", reason=reason)
        return verdict
