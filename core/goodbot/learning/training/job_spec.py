# SPDX-License-Identifier: Apache-2.0
"""A claimed run as the job that its child gets: texts, tokens, paths (`docs/worker-protocol.md`)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goodbot.api.hindsight import BETTER
from goodbot.api.manners import formed
from goodbot.api.server import BASE
from goodbot.api.turns import Turn
from goodbot.base import trees
from goodbot.base.errors import AdapterError, TrainingError
from goodbot.base.worded import Worded
from goodbot.learning.adapters.catalogue import Catalogue
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.learning.training import distilling
from goodbot.learning.training.distilling import NoteLines
from goodbot.store import asked, importing, judgements, runs, turns, verdicts, words

logger = logging.getLogger(__name__)

_ANCHORS = 256
_UNRATED = 32
"""With the held-out ones some 40 questions: enough to tell what was learnt."""
_AT_ONE: dict[str, Any] = {"temperature": 1.0, "unscored": True}
"""How a server elsewhere reads answers: it tells log-probs at no other temperature."""


async def make_job(
    core: Core,
    registry: AdapterRegistry,
    lines: NoteLines | None = None,
    *,
    run: int,
    parent: int,
    items: Sequence[runs.RunItem],
    folder: Path,
    background: bool = False,
) -> dict[str, Any]:
    """The job of a run, the same each time. `folder` gets `output` and `checkpoints`, both 0700.

    It teaches notes of `lines`.
    The core's `anchors` are what the gate asks; without any, it asks what the items ask, and those of the
    rounds before: what is lost may be what nobody asked this time. What nobody has rated shows what was
    learnt: this, and the notes that are tried or compared, may differ when a run is taken up again.
    Raises TrainingError when an answer is gone, and AdapterError.
    """
    store, pool = core.store, core.pool
    output, checkpoints = folder / "output", folder / "checkpoints"
    # A run that was ended while it was published has left more there than a trainer makes, and may.
    await asyncio.to_thread(trees.remove, output, ignore_errors=True)
    await asyncio.to_thread(_ready, (registry.root, folder, output, checkpoints))
    rows, behaviour = await _rows(core, registry, items)
    if core.backend.remote and not core.backend.driver:
        rows = [{**row, **_AT_ONE} for row in rows]
    noted = await store.read(lambda db: distilling.told(db, lines, items))
    rows = [{**row, "note": noted[row["id"]]} if row["id"] in noted else row for row in rows]
    anchors = [list(messages) for messages in core.anchors]
    if not anchors:
        now = [row["messages"] for row in rows if "demonstration" not in row][:_ANCHORS]
        before = await store.read(lambda db: asked.earlier(db, pool, run, _ANCHORS - len(now)))
        anchors = [*now, *before]
    return {
        "protocol": 1,
        "run": run,
        "model": str(core.model.path),
        **await (Catalogue.begins(registry, parent) if core.backend.remote else registry.begins(parent)),
        "output": str(output),
        "checkpoints": str(checkpoints),
        "seed": core.config.serving.seed,
        "settings": dict(core.settings),
        "sampling": {"temperature": core.sampling.temperature, **core.sampling.filters.told()},
        "baseline": (await registry.row(parent)).baseline if parent != BASE else {"mean": 0.0, "weight": 0.0},
        "behaviour": behaviour,
        "items": rows,
        "anchors": anchors,
        "unrated": await store.read(lambda db: asked.unrated(db, pool, _UNRATED)),
        "notes": await store.read(lambda db: distilling.tried(db, core, lines, run, items)),
        "lines": await store.read(lambda db: distilling.compared(db, core, lines, items)),
        "background": background,
        "judged": await store.read(lambda db: verdicts.judged(db, pool, run)),
    }


async def _rows(
    core: Core, registry: AdapterRegistry, items: Sequence[runs.RunItem]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The items, and where the versions of ours lie that wrote them."""
    rows: list[dict[str, Any]] = []
    behaviour: dict[str, str] = {}
    found = await core.store.read(lambda db: turns.some(db, [item.turn for item in items]))
    said = await core.store.read(lambda db: words.texts(db, {item.turn: item.words for item in items}))
    for item in items:
        if (turn := found.get(item.turn)) is None:
            gone = Worded("an answer was deleted before it could be trained on")
            raise TrainingError(gone, kind="data")
        if turn.channel.account == importing.ACCOUNT:  # its ids may spell other words than people read
            turn = turn.in_words()
        own = turn.model == core.pool.model and not turn.answered_by
        version = turn.version if own else None
        if version and str(version) not in behaviour:
            try:
                behaviour[str(version)] = str(await registry.written_by(version))
            except AdapterError:
                logger.warning("v%d is gone; its answers count as the base model's", version)
                version = BASE
        rows.append({**_row(turn, item, version), "hindsight": _said(said[turn.id])})
        shown = [(text, weight * abs(item.reward)) for text, weight in said[turn.id].better]
        rows += [_demonstration(turn, text, weight) for text, weight in shown if weight]
    return rows, behaviour


def _said(texts: words.Texts) -> list[dict[str, Any]]:
    return [{"text": text, "weight": weight} for text, weight in texts.said]


def _demonstration(turn: Turn, text: str, weight: float) -> dict[str, Any]:
    """A better answer to the same question, as an item of its own: it weighs as the rating that it came with.

    No model has written it, so that there are no tokens of it and no version.
    """
    return {
        "id": turn.id + BETTER,
        "messages": formed(turn.messages),
        "response": text,
        "temperature": turn.temperature,
        "version": None,
        "reward": 1.0,
        "weight": weight,
        "split": "train",
        "demonstration": True,
    }


def _ready(directories: Sequence[Path]) -> None:
    """Make what is missing, and see that it can be written: before hours of training, not after them."""
    for directory in directories:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            cannot = Worded("{path} cannot be made: {why}", path=directory, why=error.strerror)
            raise TrainingError(cannot) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            closed = Worded("{path} cannot be written: check its permissions", path=directory)
            raise TrainingError(closed)


def _row(turn: Turn, item: runs.RunItem, version: int | None) -> dict[str, Any]:
    """One item of the job. `version` None: another model wrote the answer."""
    # Its tokens are of another vocabulary, and no log-prob of its author says anything about this
    # model. So its words are read as if this base had written them: the importance ratio of each
    # token starts at 1 and the KL term holds it there, which is all that "off-policy" can mean here.
    own = version is not None
    return {
        "id": turn.id,
        "messages": formed(turn.messages),
        "response": turn.response,
        "thought": turn.thought if own else "",
        "prompt_tokens": turn.prompt_tokens if own else (),
        "tokens": turn.tokens if own else (),
        "logprobs": turn.logprobs if own else (),
        "lifts": turn.lifts if own else (),
        "temperature": turn.temperature,
        "filters": turn.filters.told(),
        "version": version,
        "reward": item.reward,
        "weight": item.weight,
        "split": item.split,
        **({"judged": True} if judgements.is_judged(item.labels) else {}),
        **({"reported": True} if own and turn.origin == "captured" else {}),
    }
