# SPDX-License-Identifier: Apache-2.0
"""The next run without running it: what it would claim, and what its child says that it would cost.

Nothing is claimed and no version is used up. The child works in a folder of the staging directory,
which is gone afterwards (and is swept at the next start, should goodbot be killed meanwhile).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiosqlite

from goodbot.api.model_shape import Architecture
from goodbot.api.sentences import Reason, because
from goodbot.base import trees
from goodbot.base.errors import GoodbotError, TrainingError
from goodbot.base.worded import said_by
from goodbot.config import clear
from goodbot.learning import worker_process
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.learning.training import batch, cluster, distilling
from goodbot.learning.training.distilling import NoteLines
from goodbot.learning.training.filtering import Screening
from goodbot.learning.training.job_spec import make_job
from goodbot.learning.training.memory_sharing import MemorySharing, Plan
from goodbot.learning.training.settings import shape
from goodbot.store import judgements, progress, quarantined, runs, turns
from goodbot.store.progress import Underway

logger = logging.getLogger(__name__)

_NEXT = 2**62
"""In place of a run's number: every run there is came before it."""


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """What a run that began now would be."""

    parent: int
    settings: Mapping[str, Any]
    train: int
    held_out: int
    unheard: int
    """Answers to train on but for their raters, whom the others' ratings contradict."""
    ties: int
    """Rated answers to which the reward policy gives no reward."""
    replayed: int
    """Of `train`, those that an earlier run has learnt from."""
    set_aside: Sequence[quarantined.SetAside]
    """What trainings and filters leave out."""
    off_policy: int
    """Of `train` and `held_out`, those that another model has written."""
    interrupted: str
    """Where the run stands that would go on, as a clause; empty: a new one."""
    step: int = 0
    steps: int = 0
    """The same as numbers."""
    parameters: int = 0
    lora: int = 0
    """Weights of the model, and of an adapter on `projections` matrices in `layers`; 0: not known."""
    projections: int = 0
    layers: int = 0
    estimate: Mapping[str, Any] | None
    """As the worker protocol has it (`docs/worker-protocol.md`)."""
    unknown: tuple[Reason, ...]
    """Why there is no estimate."""
    tenancy: Plan
    """How it would share the memory with the model that answers."""
    remote: Mapping[str, Any] | None = None
    """What would go where its steps are computed: `host`, `tokens` that are read, and trained on as often,
    and what these cost (`price`, 0: not known). Of a cluster: `workers`, how many `rows` of a step each has
    at least and at most, the `hosts` that an owner has named, and its `machines`, or why these are
    `unknown`."""


async def look(
    core: Core,
    registry: AdapterRegistry,
    memory: MemorySharing,
    lines: NoteLines | None = None,
    *,
    parent: int,
    waiting: Underway | None,
    busy: bool,
) -> Prospect:
    """What a run from `parent`, or the one that is `waiting`, would do: it teaches notes of `lines`. `busy`:
    one trains now, and nothing is computed beside it. Raises StoreError, AdapterError."""
    store, pool = core.store, core.pool
    screening = Screening(core.filtering)
    items, ties = await screening.through(
        lambda: store.snapshot(lambda db: _items(db, core, lines, waiting, parent, screening))
    )
    aside = await store.read(lambda db: quarantined.listed(db, pool))
    heard = [item for item in items if item.weight]
    others = await store.read(lambda db: turns.off_policy(db, pool.model, [item.turn for item in heard]))
    train = sum(item.split == "train" for item in heard)
    estimate: Mapping[str, Any] | None = None
    unknown: tuple[Reason, ...] = ()
    if busy:
        unknown = (because("not_estimated_busy"),)
    elif train:
        try:
            estimate = await _estimate(core, registry, lines, parent, items)
        except GoodbotError as error:
            unknown = (because("not_estimated", why=said_by(error)),)
    return Prospect(
        parent=parent,
        settings=core.settings,
        train=train,
        held_out=len(heard) - train,
        unheard=len(items) - len(heard),
        ties=ties,
        replayed=sum(item.replayed for item in heard),
        set_aside=screening.listed(aside),
        off_policy=others,
        interrupted=waiting.progress.where if waiting else "",
        step=waiting.progress.step if waiting else 0,
        steps=waiting.progress.steps if waiting else 0,
        **_sizes(shape(core.model.path), int(core.settings.get("rank", 8))),
        estimate=estimate,
        unknown=unknown,
        tenancy=await memory.look(core.model.path, core.settings),
        remote=await _remote(core, estimate),
    )


async def _remote(core: Core, estimate: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Each answer that is learnt is read once without a gradient and once with one, each time."""
    if not core.backend.remote or not estimate:
        return None
    config, rated = core.config.training.remote, estimate["train"] + estimate["held_out"]
    tokens = estimate["passes"] * estimate["tokens"] * estimate["train"] / max(rated, 1)
    return {
        **(await _cluster(core) if core.backend.driver else {}),
        "host": urlsplit(config.url).hostname,
        "tokens": round(tokens),
        "price": tokens * (config.price_read + config.price_trained) / 1e6,
    }


async def _cluster(core: Core) -> dict[str, Any]:
    """Who would share each step, and what there is for it."""
    found = await asyncio.to_thread(cluster.allowed, core.config, core.backend)
    found.model, workers = core.model.path, found.config.workers
    rows = cluster.rows(int(core.settings.get("batch_size", workers)), workers)
    share = {"workers": workers, "hosts": list(found.config.hosts), "rows": rows}
    try:
        return {**share, "machines": await found.machines(), "unknown": ""}
    except TrainingError as error:
        return {**share, "machines": [], "unknown": said_by(error)}
    finally:
        await found.close()


async def _items(
    db: aiosqlite.Connection,
    core: Core,
    lines: NoteLines | None,
    waiting: Underway | None,
    parent: int,
    screening: Screening,
) -> tuple[Sequence[runs.RunItem], int]:
    """What it would learn from, and how many more get no reward."""
    if waiting is not None:
        return await progress.items(db, waiting.run), 0
    available, items = await batch.take(db, batch.usual(core, screening, parent=parent))
    rated = sum(not (item.replayed or judgements.is_judged(item.labels)) for item in items)
    if lines and batch.takes_notes(core):
        items = await distilling.expected(db, core, lines, items)
    return items, available - rated


def _sizes(model: Architecture | None, rank: int) -> dict[str, int]:
    if model is None:
        return {}
    return {
        "parameters": model.parameters,
        "lora": model.lora(rank),
        "projections": sum(p.count for p in model.projections if p.adapted),
        "layers": model.layers,
    }


async def _estimate(
    core: Core, registry: AdapterRegistry, lines: NoteLines | None, parent: int, items: Sequence[runs.RunItem]
) -> Mapping[str, Any]:
    folder = clear.of(core.config.home / "staging") / "dry-run"
    await asyncio.to_thread(trees.remove, folder, ignore_errors=True)
    try:
        made = await make_job(core, registry, lines, run=_NEXT, parent=parent, items=items, folder=folder)
        done = await worker_process.train(core.backend, {**made, "run": 0}, _ignore, mode="plan")
    finally:
        await asyncio.to_thread(trees.remove, folder, ignore_errors=True)
    return dict(done.get("estimate", {}))


async def _ignore(event: Mapping[str, Any]) -> None:
    """What a plan says before its end is of no interest."""
