# SPDX-License-Identifier: Apache-2.0
"""What a training job is made of: the worker protocol's JSON as frozen, checked values.

Everything that is wrong with a job is a `TrainingError` of kind `data`, one sentence that names the
field. No error carries message text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any

from goodbot.api.events import Message
from goodbot.api.sentences import clause
from goodbot.base.errors import TrainingError
from goodbot.base.sampling import FILTERS, Filters, checked

from goodbot_training.job.rated import (
    COLDEST,
    HELD_OUT,
    TRAIN,
    RatedSample,
    as_list,
    as_mapping,
    parse_filters,
    parse_messages,
    turn_of,
)
from goodbot_training.job.settings import TrainingSettings, as_number, as_whole, data_error
from goodbot_training.job.trials import NoteTrial, RatedLine

__all__ = [
    "COLDEST",
    "HELD_OUT",
    "TRAIN",
    "Baseline",
    "HeldOutSums",
    "Job",
    "RatedSample",
    "TrainingSettings",
    "as_mapping",
    "data_error",
    "parse_filters",
    "parse_messages",
    "turn_of",
]

PROTOCOL = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """The reward baseline's state; `weight` is 0 before the first reward."""

    mean: float = 0.0
    weight: float = 0.0
    base_n: float = 0.0
    """The sum of the weights of the base's own answers that were trained on."""
    base_mean: float = 0.0
    """Their mean reward; see `goodbot_training.round.restart`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOutSums:
    """What the held-out ratings of one round say of its candidate; see `goodbot_training.gate.margin`."""

    n: int
    xx: float
    xy: float
    yy: float

    @classmethod
    def parse(cls, raw: object) -> HeldOutSums:
        """One entry of the job's `judged`. Raises TrainingError(kind="data")."""
        entry = as_mapping(raw, "An entry of judged")
        n = as_whole(entry.get("n"), "judged: n")
        xx, xy, yy = (as_number(entry.get(name), f"judged: {name}") for name in ("xx", "xy", "yy"))
        if n < 0 or xx < 0 or yy < 0:
            raise data_error("judged: n, xx and yy must not be negative.")
        return cls(n=n, xx=xx, xy=xy, yy=yy)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One training run, as the daemon asks for it."""

    run: int
    model: Path
    parent: Path | None
    output: Path
    seed: int
    settings: TrainingSettings
    baseline: Baseline
    behaviour: Mapping[int, Path]
    items: tuple[RatedSample, ...]
    anchors: tuple[tuple[Message, ...], ...]
    unrated: tuple[tuple[Message, ...], ...] = ()
    """Conversations whose answers nobody has rated: no round has trained on them."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Turns of which nothing can be made, and why: the round goes without them."""
    judged: tuple[HeldOutSums, ...] = ()
    """Of earlier rounds on this base, passed or not: the gate's claims rest on all of them."""
    trials: tuple[NoteTrial, ...] = ()
    """The notes that the candidate is tried without."""
    lines: tuple[RatedLine, ...] = ()
    """What people have asked for, which is compared with their ratings; see `round.refuting`."""
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the bot's answers are drawn with: `temperature` and filters, checked. Empty: not told."""
    checkpoints: Path | None = None
    """A directory to go on from, and to write into; None: nothing is kept."""
    attempt: int = 0
    """How often the memory did not suffice: each time the plan is a smaller one."""
    frozen: Path | None = None
    """An adapter that stands still under what is trained, which is a sum with it; None: there is none."""
    rests_on: Path | None = None
    """The one under which the parent was trained; None: none."""
    afresh: bool = False
    """Whether it starts from the base instead of the parent that the daemon named. Only
    `goodbot_training.round.restart` says so."""

    @property
    def rated(self) -> tuple[RatedSample, ...]:
        """The answers that somebody rated, without what was written in their place."""
        return tuple(item for item in self.items if not item.demonstration)

    @property
    def usual(self) -> float:
        """The temperature of most answers, whatever a few others say of theirs; 0: the likeliest tokens."""
        return median_low(item.temperature for item in self.rated or self.items)

    @property
    def temperature(self) -> float:
        """At which it is tried: as the bot answers, whoever else's answers were rated."""
        told = float(self.sampling.get("temperature", 0.0))
        return (told if told >= COLDEST else self.usual) or 1.0

    @property
    def filters(self) -> Filters:
        """With which it is tried: the bot's own, or those of most answers."""
        if self.sampling:
            return Filters.parse(self.sampling)
        return Counter(item.filters for item in self.rated or self.items).most_common(1)[0][0]

    @classmethod
    def parse(cls, raw: object) -> Job:
        """The first line of `train`. Raises TrainingError(kind="data").

        What is wrong with one item is that item's: it is in `refused`. An anchor that is no conversation
        is not asked.
        """
        job = as_mapping(raw, "The job")
        if job.get("protocol") != PROTOCOL:
            raise data_error(f"The job speaks another protocol than {PROTOCOL}.")
        baseline = as_mapping(job.get("baseline") or {}, "baseline")
        behaviour = as_mapping(job.get("behaviour") or {}, "behaviour")
        if not all(str(version).isdecimal() for version in behaviour):
            raise data_error("behaviour must map version numbers to paths.")
        settings = TrainingSettings.from_mapping(as_mapping(job.get("settings") or {}, "settings"))
        items, refused = _items(job.get("items"))
        if not settings.hindsight_weight:  # then no words teach, a better answer's neither
            items = tuple(item for item in items if not item.demonstration)
        parent, checkpoints = job.get("parent"), job.get("checkpoints")
        frozen, rests_on = job.get("frozen"), job.get("rests_on")
        return cls(
            run=as_whole(job.get("run", 0), "run"),
            model=_path(job.get("model"), "model"),
            parent=None if parent is None else _path(parent, "parent"),
            output=_path(job.get("output"), "output"),
            seed=as_whole(job.get("seed", 0), "seed"),
            settings=settings,
            baseline=Baseline(
                **{
                    name: as_number(baseline.get(name, 0.0), f"baseline.{name}")
                    for name in ("mean", "weight", "base_n", "base_mean")
                }
            ),
            behaviour={int(key): _path(path, "behaviour") for key, path in behaviour.items()},
            items=items,
            refused=refused,
            anchors=tuple(_conversations(job.get("anchors"), "anchors")),
            unrated=tuple(_conversations(job.get("unrated"), "unrated")),
            judged=tuple(HeldOutSums.parse(entry) for entry in as_list(job.get("judged"), "judged")),
            trials=tuple(NoteTrial.parse(entry) for entry in as_list(job.get("notes"), "notes")),
            lines=tuple(RatedLine.parse(entry) for entry in as_list(job.get("lines"), "lines")),
            sampling=_sampling(job.get("sampling") or {}),
            checkpoints=None if checkpoints is None else _path(checkpoints, "checkpoints"),
            attempt=as_whole(job.get("attempt", 0), "attempt"),
            frozen=None if frozen is None else _path(frozen, "frozen"),
            rests_on=None if rests_on is None else _path(rests_on, "rests_on"),
        )


def _items(raw: object) -> tuple[tuple[RatedSample, ...], dict[str, str]]:
    """What can be read of them, and why the others cannot. Each must have an id: else TrainingError."""
    items: list[RatedSample] = []
    refused: dict[str, str] = {}
    for one in as_list(raw, "items"):
        identity = as_mapping(one, "An item").get("id")
        if not isinstance(identity, str) or not identity:
            raise data_error("An item has no id.")
        try:
            items.append(RatedSample.parse(one))
        except TrainingError as error:
            refused[turn_of(identity)] = clause(str(error))
    return tuple(item for item in items if turn_of(item.id) not in refused), refused


def _conversations(raw: object, what: str) -> Iterator[tuple[Message, ...]]:
    """Those that can be read."""
    for conversation in as_list(raw, what):
        with suppress(TrainingError):
            yield parse_messages(conversation, f"One of {what}")


def _sampling(raw: object) -> Mapping[str, Any]:
    told = as_mapping(raw, "sampling")
    try:
        return {name: checked(name, told[name]) for name in ("temperature", *FILTERS) if name in told}
    except ValueError as error:
        raise data_error(f"sampling: {error}.") from error


def _path(value: object, what: str) -> Path:
    if not isinstance(value, str) or not value:
        raise data_error(f"{what} is not a path.")
    return Path(value)
