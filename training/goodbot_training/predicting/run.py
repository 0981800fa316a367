# SPDX-License-Identifier: Apache-2.0
"""One job of the mode `predict`: answers, some of them rated → what would be said of each.

The base model reads each answer behind its question; no adapter counts, so that versions do not matter.
An answer whose states cannot be had, or are no numbers, is left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from goodbot.api.backend import LoraSettings, ShowsStates, TrainingBackend
from goodbot.api.events import Message
from goodbot.api.predicted import LEAST
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import TrainingError

from goodbot_training.backends.scoring import split_by_budget
from goodbot_training.job.rated import as_list, as_mapping, parse_messages
from goodbot_training.job.settings import data_error
from goodbot_training.predicting import head
from goodbot_training.predicting.head import Table, Whole

PROTOCOL = 1
LEAST_OF_EACH = 20
"""Good ratings and bad ones: of fewer nobody learns what tells them apart."""
_PROMPT, _RESPONSE = 1024, 512
"""Tokens that are read: the last of what was said before, the first of the answer."""
_BUDGET = 4096
"""Padded tokens of one pass."""
LEAST_QUESTIONS = 20
"""Groups of answers: from fewer no interval can be drawn."""
_TOO_LARGE = 0.1
"""Where one person has so many of all answers, what people were answered is not kept together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictItem:
    """One answer. `good` None: nobody has rated it."""

    id: str
    messages: tuple[Message, ...]
    response: str
    question: str
    """The same for answers to the same question;"""
    person: str
    """the same for answers to the same person. Neither says what or who."""
    good: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictJob:
    """What the daemon asks for."""

    model: Path
    bits: int | None
    seed: int
    items: tuple[PredictItem, ...]

    @classmethod
    def parse(cls, raw: object) -> PredictJob:
        """The first line of `predict`. Raises TrainingError(kind="data")."""
        job = as_mapping(raw, "The job")
        if job.get("protocol") != PROTOCOL:
            raise data_error(f"The job speaks another protocol than {PROTOCOL}.")
        return cls(
            model=Path(str(job.get("model"))),
            bits=4 if job.get("bits") == 4 else None,
            seed=int(job.get("seed", 0)),
            items=tuple(_item(one) for one in as_list(job.get("items"), "items")),
        )


def _item(raw: object) -> PredictItem:
    item = as_mapping(raw, "An item")
    messages: tuple[Message, ...] = ()
    with suppress(TrainingError):  # left out below: nothing can be made of it
        messages = parse_messages(item.get("messages"), "An item")
    good = item.get("good")
    return PredictItem(
        id=str(item.get("id")),
        messages=messages,
        response=str(item.get("response") or ""),
        question=str(item.get("question")),
        person=str(item.get("person")),
        good=good if isinstance(good, bool) else None,
    )


class TooLittleError(Exception):
    """There is too little to say anything by: `of` what, how much there is, and how much it takes."""

    def __init__(self, of: str, count: int, least: int) -> None:
        super().__init__(f"{of}: {count} of {least}")
        self.lack = {"of": of, "count": count, "least": least}


def run_predict(job: PredictJob, backend: TrainingBackend, emit: Callable[[dict[str, Any]], None]) -> None:
    """Predict, and emit it, or what it lacks, as the one event `done`. Raises TrainingError."""
    if not isinstance(backend, ShowsStates):
        raise data_error("This backend does not show the states of its model.")
    try:
        _enough(job.items)
        backend.load(job.model, lora=LoraSettings(), bits=job.bits)
        items, states = states_of(job.items, backend)
        _enough(items)
        said = {"predicted": predicted(items, states, len(job.items) - len(items), job.seed)}
    except TooLittleError as error:
        said = {"lack": error.lack}
    emit({"event": "done", **said})


def _enough(items: Sequence[PredictItem]) -> None:
    """Raises TooLittleError."""
    up, down = (sum(one.good is said for one in items) for said in (True, False))
    if up + down < LEAST:
        raise TooLittleError("ratings", up + down, LEAST)
    if min(up, down) < LEAST_OF_EACH:
        raise TooLittleError("rarer", min(up, down), LEAST_OF_EACH)


def states_of(items: Sequence[PredictItem], backend: TrainingBackend) -> tuple[list[PredictItem], Table]:
    """The answers that have usable states, and these, `(n, D)`."""
    assert isinstance(backend, ShowsStates)  # noqa: S101  it was asked before
    found = [(item, turn) for item in items if (turn := _tokens(item, backend)) is not None]
    lengths = [len(turn.prompt) + len(turn.response) for _, turn in found]
    rows: dict[int, Any] = {}
    for part in split_by_budget(lengths, _BUDGET):
        rows |= dict(zip(part, backend.states([found[n][1] for n in part], adapter=False), strict=True))
    kept = [n for n in range(len(found)) if np.isfinite(rows[n]).all()]
    return [found[n][0] for n in kept], np.array([rows[n] for n in kept], np.float64)


def _tokens(item: PredictItem, backend: TrainingBackend) -> TokenizedTurn | None:
    if not item.messages or not item.response:
        return None
    try:
        turn = backend.tokenize(item.messages, item.response)
    except MemoryError:
        raise
    except Exception:  # a template is a program: it may fail in any way
        return None
    return TokenizedTurn(prompt=turn.prompt[-_PROMPT:], response=turn.response[:_RESPONSE])


def predicted(items: Sequence[PredictItem], states: Table, left_out: int, seed: int) -> dict[str, Any]:
    """As `goodbot.api.predicted.Predicted` reads it. Raises TooLittleError."""
    parts = head.main_parts(states)
    rated = np.array([one.good is not None for one in items])
    good = np.array([one.good is True for one in items if one.good is not None], np.float64)
    groups, by_person = _groups([one for one in items if one.good is not None])
    if (count := len(np.unique(groups))) < LEAST_QUESTIONS:
        raise TooLittleError("questions", count, LEAST_QUESTIONS)
    found = head.held_out(parts[rated], good, groups, seed=seed)
    told: dict[str, Any] = {
        "answers": len(good),
        "good": int(good.sum()),
        "left_out": left_out,
        "questions": count,
        "by_person": by_person,
        **{name: round(getattr(found, name), 4) for name in ("auc", "low", "high")},
        "bins": head.bins(found.chances, good),
        "said": [],
    }
    if found.low <= 0.5:
        return told
    chances = np.zeros(len(items))
    chances[rated] = found.chances
    if not rated.all():
        chances[~rated] = head.predict(parts[rated], good, groups, parts[~rated], found, seed=seed)
    unlike = head.odd(parts)
    told["said"] = [
        {"id": one.id, "chance": round(float(chance), 4), "good": one.good, "odd": bool(far)}
        for one, chance, far in zip(items, chances, unlike, strict=True)
    ]
    return told


def _groups(rated: Sequence[PredictItem]) -> tuple[Whole, bool]:
    """What is kept together, and whether that is also all that one person was answered."""
    questions = [one.question for one in rated]
    both = head.grouped(questions, [one.person for one in rated])
    sizes = np.unique(both, return_counts=True)[1]
    if len(sizes) >= LEAST_QUESTIONS and sizes.max() <= _TOO_LARGE * len(rated):
        return both, True
    return head.grouped(questions), False
