"""One training run from claim to verdict: claim → child process → gate → publish → activate.

Everything that decides is done in the store's transactions, which compare the run's id and the
labels that it claimed; whatever else happens meanwhile (an undo, a rollback) wins.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot import claims, jobs
from goodbot.adapters import AdapterRegistry, Manifest, publish
from goodbot.backend import BackendSpec
from goodbot.clock import Clock
from goodbot.config import TrainingConfig
from goodbot.errors import AdapterError, GoodbotError, ServerError, TrainingError
from goodbot.plugins import PluginHost
from goodbot.ratings import RewardPolicy
from goodbot.server import BASE
from goodbot.store import Store, access, adapters, claimable, runs, turns
from goodbot.turns import Turn

logger = logging.getLogger(__name__)

_ANCHORS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """How a run ended. `version` is the new adapter when `state` is `activated`."""

    run: int
    state: str
    reason: str
    version: int = BASE


class Trainer:
    """Runs one training at a time; `progress` is what the child said last."""

    def __init__(
        self, *, store: Store, registry: AdapterRegistry, plugins: PluginHost, clock: Clock,
        backend: BackendSpec, policy: RewardPolicy, config: TrainingConfig,
        settings: Mapping[str, Any], model: Path, seed: int, pool: claimable.Pool, staging: Path,
    ) -> None:  # fmt: skip
        self._store = store
        self._registry = registry
        self._plugins = plugins
        self._clock = clock
        self._backend = backend
        self._policy = policy
        self._config = config
        self._settings = settings
        self._model = model
        self._seed = seed
        self._pool = pool
        self._staging = staging
        self._gate: Mapping[str, Any] = {}
        self._unwritten: Verdict | None = None
        self.progress: Mapping[str, Any] | None = None

    async def run(self, why: str, *, at_least: int = 1, replay: bool = False) -> Verdict:
        """Claim all that is available, `at_least` so many answers, train on it and decide.

        With `replay` what other base models were rated for is available too. Raises TrainingError
        or StoreError when there was nothing to claim; after that nothing but cancellation, which
        ends the run and releases its ratings.
        """
        active = await self._registry.active()
        parent = await self._registry.usable_ancestor(active)
        run, items = await self._claimed(parent, why, at_least, replay)
        output = self._staging / f"run-{run}"
        self.progress = {"phase": "load", "step": 0, "steps": 0}
        self._gate = {}
        try:
            await self._plugins.on_training_started(run, len(items))
            job = await self._job(run, parent, items, output)
            verdict = await self._train(run, active, parent, job, output)
        except GoodbotError as error:
            verdict = Verdict(run=run, state="failed", reason=str(error))
        except asyncio.CancelledError:
            await self._finish(_stopped(run))
            raise
        except Exception as error:
            logger.exception("run %d", run, extra={"run": run})
            verdict = Verdict(run=run, state="failed", reason=f"{type(error).__name__}: {error}")
        finally:
            self.progress = None
            await asyncio.to_thread(shutil.rmtree, output, ignore_errors=True)
        await self._finish(verdict)
        return verdict

    async def _claimed(
        self, parent: int, why: str, at_least: int, replay: bool
    ) -> tuple[int, tuple[runs.Item, ...]]:
        """`_claim`, which once begun also commits: a run that nobody knows could never be ended."""
        claiming = asyncio.create_task(self._claim(parent, why, at_least, replay), name="claim")
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with contextlib.suppress(GoodbotError):
                run, _ = await claiming
                await self._finish(_stopped(run))
            raise

    async def _claim(
        self, parent: int, why: str, at_least: int, replay: bool = False
    ) -> tuple[int, tuple[runs.Item, ...]]:
        """Take the ratings and open the run in one transaction."""

        async def operation(db: aiosqlite.Connection) -> tuple[int, tuple[runs.Item, ...]]:
            if self._unwritten is not None:
                await self._write(db, self._unwritten)
            available = await claimable.candidates(db, self._pool, replay=replay)
            items = claims.claim(
                available,
                self._policy,
                held_out_share=self._config.held_out / self._config.min_ratings,
                rater_share=self._config.rater_share,
            )
            if not any(item.split == "train" for item in items):
                raise TrainingError(
                    "there is nothing to train on yet: rate some answers first", kind="data"
                )
            if len(items) < at_least:
                raise TrainingError(
                    f"{len(items)} of {len(available)} rated answers can train, the others are ties: "
                    f"{at_least} are needed",
                    kind="data",
                )
            run = await runs.start(
                db, pool=self._pool, parent=parent, why=why, backend=self._backend.name,
                settings={**self._settings, "reward": self._policy.name, "seed": self._seed},
                items=items, now=self._clock.now(),
            )  # fmt: skip
            return run, items

        claimed = await self._store.write(operation)
        self._unwritten = None
        return claimed

    async def _job(
        self, run: int, parent: int, items: Sequence[runs.Item], output: Path
    ) -> dict[str, Any]:
        output.mkdir(mode=0o700, parents=True)
        baseline = {"mean": 0.0, "weight": 0.0}
        behaviour: dict[str, str] = {}
        rows: list[dict[str, Any]] = []
        if parent != BASE:
            baseline = (await self._registry.row(parent)).baseline
        for item in items:
            turn = await self._store.read(lambda db, id_=item.turn: turns.get(db, id_))
            if turn is None:
                raise TrainingError(
                    "an answer was deleted before it could be trained on", kind="data"
                )
            version = turn.version if turn.model == self._pool.model else None
            if version and str(version) not in behaviour:
                try:
                    behaviour[str(version)] = str(await self._registry.path(version))
                except AdapterError:
                    logger.warning("v%d is gone; its answers count as the base model's", version)
                    version = BASE
            rows.append(_row(turn, item, version))
        return {
            "protocol": 1, "run": run, "model": str(self._model),
            "parent": str(await self._registry.path(parent)) if parent != BASE else None,
            "output": str(output), "seed": self._seed, "settings": dict(self._settings),
            "baseline": baseline, "behaviour": behaviour, "items": rows,
            "anchors": [row["messages"] for row in rows[:_ANCHORS]],
        }  # fmt: skip

    async def _train(
        self, run: int, active: int, parent: int, job: Mapping[str, Any], output: Path
    ) -> Verdict:
        done = await jobs.train(self._backend, job, lambda event: self._on_event(run, event))
        gate = self._gate
        reason = str(gate.get("reason", "the trainer reported no gate"))
        if not gate.get("passed"):
            return Verdict(run=run, state="refused", reason=reason)
        metrics: dict[str, Any] = {**done.get("metrics", {}), "gate": gate.get("metrics", {})}
        if objection := await self._store.read(lambda db: runs.objection(db, run)):
            return Verdict(run=run, state="superseded", reason=objection)
        version = await self._store.read(adapters.next_version)
        if objection := self._plugins.veto_activation(version, metrics):
            return Verdict(run=run, state="refused", reason=objection)
        directory, manifest = await asyncio.to_thread(
            publish,
            output,
            self._registry.root,
            Manifest(
                version=version, parent=parent, run=run, model=self._pool.model, files={},
                metrics=metrics,
            ),
        )  # fmt: skip
        row = adapters.AdapterRow(
            version=version, parent=parent, run=run, directory=directory.name,
            sha256=manifest.files["adapter_model.safetensors"], model=self._pool.model, tainted="",
            baseline=dict(done["baseline"]), metrics=metrics, created_at=self._clock.now(),
        )  # fmt: skip
        if objection := await self._commit(run, row, directory):
            return Verdict(run=run, state="superseded", reason=objection)
        return await self._activate(run, active, version, reason)

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

    async def _activate(self, run: int, active: int, version: int, reason: str) -> Verdict:
        """Make it live; the run ends in the transaction that moves the pointer, or not at all.

        The pointer must still be where it was when the run began: a rollback meanwhile wins.
        """
        verdict = Verdict(run=run, state="activated", reason=reason, version=version)

        async def guard(db: aiosqlite.Connection) -> bool:
            if await runs.objection(db, run):
                return False
            await access.set_switch(db, adapters.retrain_switch(self._pool.model), "")
            return await runs.finish(db, run, "activated", reason, self._gate, self._clock.now())

        try:
            live = await self._registry.activate(version, expected=active, guard=guard)
        except (AdapterError, ServerError) as error:
            return Verdict(run=run, state="failed", reason=f"it did not go live: {error}")
        if not live:
            objection = await self._store.read(lambda db: runs.objection(db, run))
            reason = objection or "another version was made active while it was trained"
            return Verdict(run=run, state="superseded", reason=reason)
        return verdict

    async def _finish(self, verdict: Verdict) -> None:
        """Write the verdict, unless the run has one already, and tell the plugins."""
        ids = {"run": verdict.run}
        try:
            await self._store.write(lambda db: self._write(db, verdict))
        except Exception:
            logger.exception("the verdict of run %d was not stored", verdict.run, extra=ids)
            self._unwritten = verdict  # the next claim does it: no run can start beside this one
        logger.info("run %d: %s: %s", verdict.run, verdict.state, verdict.reason, extra=ids)
        await self._plugins.on_training_finished(verdict.run, verdict.state, verdict.reason)

    async def _write(self, db: aiosqlite.Connection, verdict: Verdict) -> None:
        await runs.finish(
            db, verdict.run, verdict.state, verdict.reason, self._gate, self._clock.now()
        )

    async def _on_event(self, run: int, event: Mapping[str, Any]) -> None:
        if event["event"] == "gate":
            self._gate = event
        else:
            self.progress = event
            await self._plugins.on_training_progress(run, event)


def _row(turn: Turn, item: runs.Item, version: int | None) -> dict[str, Any]:
    """One item of the job. `version` None: another base model wrote the answer."""
    # Its tokens are of another vocabulary, and no log-prob of its author says anything about this
    # model. So its words are read as if this base had written them: the importance ratio of each
    # token starts at 1 and the KL term holds it there, which is all that "off-policy" can mean here.
    own = version is not None
    return {
        "id": turn.id, "messages": list(turn.messages), "response": turn.response,
        "prompt_tokens": turn.prompt_tokens if own else (),
        "tokens": turn.tokens if own else (),
        "logprobs": turn.logprobs if own else (),
        "temperature": turn.temperature, "version": version,
        "reward": item.reward, "weight": item.weight, "split": item.split,
    }  # fmt: skip


def _stopped(run: int) -> Verdict:
    return Verdict(run=run, state="superseded", reason="training was stopped")
