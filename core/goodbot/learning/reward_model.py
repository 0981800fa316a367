# SPDX-License-Identifier: Apache-2.0
"""Has a child predict ratings from the model's own states, while nothing else wants the machine.

The child gets answers that may teach, of people who consent to that. What it says is stored for whoever
looks: no training and no reward reads it. What is asked for a rating is chosen by it only where an owner says
so (`asks`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import aiosqlite

from goodbot.api.labels import majority
from goodbot.api.manners import formed
from goodbot.api.predicted import FEATURE, LEAST, Predicted
from goodbot.api.sentences import Reason, because, clause, in_words, words
from goodbot.api.turns import Turn
from goodbot.base.errors import TrainingError
from goodbot.base.worded import said_by
from goodbot.inference.servers import choice
from goodbot.learning import worker_process
from goodbot.learning.core import Core
from goodbot.learning.parts import LearningParts
from goodbot.learning.training.memory_sharing import Sharing
from goodbot.store import predictions, turns

logger = logging.getLogger(__name__)

RATED, UNRATED = 1000, 500
"""Answers that are read, the newest of each: it takes as long as reading them takes."""
_LOOK_SECONDS = 2.0
_FOR_A_TRAINING = "a training has the machine"
_LACKS = {"ratings": "predict_ratings", "rarer": "predict_rarer", "questions": "predict_questions"}
"""What there may be too little of, as the child calls it, and the texts that say so."""


def shown(core: Core) -> str:
    """The base model whose predictions are shown; empty: none, for the feature is off."""
    return core.model.name if FEATURE in core.config.features else ""


def asks(core: Core) -> str:
    """The base model whose predictions help to choose what people are asked to rate; empty: none."""
    return shown(core) if core.config.features.get(FEATURE, {}).get("ask") is True else ""


async def predict(parts: LearningParts) -> str:
    """Predict anew, where ratings have come since; returns why that did not go, as a clause.

    What may be different in a few minutes is returned alone. What only more ratings or another model can
    change is stored, too, and not tried again before. Raises StoreError.
    """
    store, pool, now = parts.store, parts.pool, parts.clock.now()
    if not await store.read(lambda db: predictions.due(db, pool, now)):
        return ""
    if why := await _not_now(parts):
        return why
    since = await store.read(predictions.seen)
    said = await _said(parts)
    if said is None:
        return _FOR_A_TRAINING
    await store.write(lambda db: predictions.keep(db, pool, said, since, now))
    return clause(words(said)) if isinstance(said, Reason) else ""


async def _said(parts: LearningParts) -> Predicted | Reason | None:
    """What there is to say, or why nothing is; None: a training came."""
    if choice.objection(parts.spec):
        return because("predict_server", server=parts.spec.name)
    items = await parts.store.read(lambda db: _items(db, parts))
    count = sum(item["good"] is not None for item in items)
    if count < LEAST:
        return because("predict_ratings", count=count, least=LEAST)
    return await _computed(parts, items)


async def _not_now(parts: LearningParts) -> str:
    """What else the machine is needed for, as a clause; empty: nothing."""
    if parts.scheduler.training:
        return _FOR_A_TRAINING
    plan = await parts.memory.look(parts.model.path, parts.settings)
    if plan.sharing is Sharing.TURNS:
        return "the memory does not hold the model a second time"
    pressure = await parts.scheduler.pressure()
    return pressure.for_owners() if pressure else ""


async def _items(db: aiosqlite.Connection, parts: LearningParts) -> list[dict[str, Any]]:
    """The newest answers, some of them rated; ties are of no use."""
    opinions = await predictions.rated(db, parts.pool, RATED)
    goods = {turn: good for turn, said in opinions.items() if (good := majority(said.values())) is not None}
    wanted = [*goods, *await predictions.unrated(db, parts.pool, UNRATED)]
    found = await turns.some(db, wanted)
    questions: dict[str, int] = {}
    people: dict[str, int] = {}
    return [
        _item(found[id_], goods.get(id_), questions, people) for id_ in dict.fromkeys(wanted) if id_ in found
    ]


def _item(turn: Turn, good: bool | None, questions: dict[str, int], people: dict[str, int]) -> dict[str, Any]:
    """Questions and people as numbers: which answers belong together is all that the child needs."""
    asked = " ".join(str(turn.question.get("content") or "").casefold().split())
    who = f"{turn.channel.connector}:{turn.talker}"
    return {
        "id": turn.id,
        "messages": formed(turn.messages),
        "response": turn.response,
        "question": str(questions.setdefault(asked, len(questions))),
        "person": str(people.setdefault(who, len(people))),
        "good": good,
    }


async def _computed(parts: LearningParts, items: list[dict[str, Any]]) -> Predicted | Reason | None:
    """What a child says, or why it says nothing; None: a training came, and it was ended."""
    job = {
        "protocol": 1,
        "model": str(parts.model.path),
        "bits": parts.settings.get("base_bits"),
        "seed": parts.config.serving.seed,
        "items": items,
        "background": True,
    }
    child = asyncio.create_task(
        worker_process.train(parts.backend, job, _ignore, mode="predict"), name="the reward model"
    )
    try:
        while not child.done():
            tick = asyncio.create_task(parts.clock.sleep(_LOOK_SECONDS), name="who trains?")
            try:
                await asyncio.wait({child, tick}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                tick.cancel()
            if parts.scheduler.training and not child.done():
                return None
        return _read(child.result(), parts.clock.now())
    except TrainingError as error:
        logger.warning("the reward model: %s", error)
        return [*in_words(said_by(error)), because("predict_unusable")][0]
    except (ValueError, KeyError, TypeError):
        return because("predict_unusable")
    finally:
        child.cancel()
        await asyncio.wait({child})  # whose end is its own: to await it would take our cancellation for that
        if not child.cancelled():
            child.exception()


def _read(done: Mapping[str, Any], now: float) -> Predicted | Reason:
    """The child's last word. Raises ValueError, KeyError or TypeError for what is none."""
    if lack := done.get("lack"):
        return because(_LACKS[lack["of"]], count=int(lack["count"]), least=int(lack["least"]))
    return Predicted.parse(done["predicted"], now)


async def _ignore(event: Mapping[str, Any]) -> None:
    """It says nothing before its end."""
