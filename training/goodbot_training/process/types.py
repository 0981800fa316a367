# SPDX-License-Identifier: Apache-2.0
"""What a training job is made of: the worker protocol's JSON as frozen, checked values.

Everything that is wrong with a job is a `TrainingError` of kind `data`, one sentence that names the
field. No error carries message text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goodbot.api.events import Message
from goodbot.api.hindsight import LONGEST
from goodbot.base.errors import TrainingError
from goodbot.base.sampling import Filters

from goodbot_training.process.settings import TrainingSettings, as_number, as_whole, data_error, is_whole

__all__ = [
    "Baseline",
    "HeldOutSums",
    "Job",
    "RatedSample",
    "TrainingSettings",
    "as_mapping",
    "data_error",
    "parse_messages",
]

PROTOCOL = 1
TRAIN = "train"
HELD_OUT = "held_out"
COLDEST = 0.01
"""A temperature below it draws the likeliest token as 0 does, and gradients grow with its inverse."""


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
class RatedSample:
    """One rated turn. `version` wrote the answer (0: the base; None: not known)."""

    id: str
    messages: tuple[Message, ...]
    response: str
    prompt_tokens: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Of the filtered distribution, by the server that drew them."""
    temperature: float
    filters: Filters
    lifts: tuple[float, ...]
    """By how many nats `filters` made each token likelier."""
    version: int | None
    reward: float
    weight: float
    split: str
    thought: str = ""
    """What came before the response; it is read, and not learnt."""
    hindsight: str = ""
    """What people said of the response, as one text; see `goodbot_training.round.hindsight`."""

    @property
    def captured(self) -> bool:
        """Whether the server gave us its own token ids and log-probs."""
        return bool(self.prompt_tokens and self.tokens and self.logprobs)

    @property
    def scored(self) -> bool:
        """Whether the policy's own log-probs are known, and need not be computed: see `filtering`."""
        return self.captured and (bool(self.lifts) or not self.filters)

    @classmethod
    def parse(cls, raw: object) -> RatedSample:
        """One item of the job's JSON. Raises TrainingError(kind="data")."""
        item = as_mapping(raw, "An item")
        identity = item.get("id")
        if not isinstance(identity, str) or not identity:
            raise data_error("An item has no id.")
        where = f"Item {identity[:80]}"
        split = item.get("split", TRAIN)
        if split not in (TRAIN, HELD_OUT):
            raise data_error(f"{where}: split must be {TRAIN} or {HELD_OUT}.")
        version = item.get("version")
        if version is not None and not is_whole(version):
            raise data_error(f"{where}: version must be a whole number or null.")
        texts = {name: item.get(name, "") for name in ("response", "thought", "hindsight")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise data_error(f"{where}: {', '.join(texts)} must be text.")
        temperature = as_number(item.get("temperature", 1.0), f"{where}: temperature")
        parsed = cls(
            id=identity,
            messages=parse_messages(item.get("messages"), where),
            **texts,
            prompt_tokens=_ids(item.get("prompt_tokens"), f"{where}: prompt_tokens"),
            tokens=_ids(item.get("tokens"), f"{where}: tokens"),
            logprobs=_numbers(item.get("logprobs"), f"{where}: logprobs"),
            temperature=0.0 if 0 <= temperature < COLDEST else temperature,
            filters=parse_filters(item.get("filters"), where),
            lifts=_numbers(item.get("lifts"), f"{where}: lifts"),
            version=version,
            reward=as_number(item.get("reward"), f"{where}: reward"),
            weight=as_number(item.get("weight", 1.0), f"{where}: weight"),
            split=split,
        )
        for wrong, sentence in (
            (abs(parsed.reward) > 1, "reward must lie between -1 and 1"),
            (parsed.weight < 0, "weight must not be negative"),
            (len(parsed.hindsight) > LONGEST, f"hindsight must have at most {LONGEST} characters"),
            (parsed.temperature < 0, "temperature must not be negative"),
            (
                parsed.captured and len(parsed.tokens) != len(parsed.logprobs),
                "tokens and logprobs differ in length",
            ),
            (
                bool(parsed.lifts) and len(parsed.lifts) != len(parsed.logprobs),
                "lifts and logprobs differ in length",
            ),
            (any(value > 1e-3 for value in parsed.logprobs), "a log-probability is above 0"),
        ):
            if wrong:
                raise data_error(f"{where}: {sentence}.")
        return parsed


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
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Items of which nothing can be made, and why: the round goes without them."""
    judged: tuple[HeldOutSums, ...] = ()
    """Of earlier rounds on this base, passed or not: the gate's claims rest on all of them."""
    checkpoints: Path | None = None
    """A directory to go on from, and to write into; None: nothing is kept."""
    attempt: int = 0
    """How often the memory did not suffice: each time the plan is a smaller one."""
    afresh: bool = False
    """Whether it starts from the base instead of the parent that the daemon named. Only
    `goodbot_training.round.restart` says so."""

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
        items, refused = _items(job.get("items"))
        parent, checkpoints = job.get("parent"), job.get("checkpoints")
        return cls(
            run=as_whole(job.get("run", 0), "run"),
            model=_path(job.get("model"), "model"),
            parent=None if parent is None else _path(parent, "parent"),
            output=_path(job.get("output"), "output"),
            seed=as_whole(job.get("seed", 0), "seed"),
            settings=TrainingSettings.from_mapping(as_mapping(job.get("settings") or {}, "settings")),
            baseline=Baseline(
                **{
                    name: as_number(baseline.get(name, 0.0), f"baseline.{name}")
                    for name in ("mean", "weight", "base_n", "base_mean")
                }
            ),
            behaviour={int(key): _path(path, "behaviour") for key, path in behaviour.items()},
            items=items,
            refused=refused,
            anchors=tuple(_anchors(job.get("anchors"))),
            judged=tuple(HeldOutSums.parse(entry) for entry in _list(job.get("judged"), "judged")),
            checkpoints=None if checkpoints is None else _path(checkpoints, "checkpoints"),
            attempt=as_whole(job.get("attempt", 0), "attempt"),
        )


def _items(raw: object) -> tuple[tuple[RatedSample, ...], dict[str, str]]:
    """What can be read of them, and why the others cannot. Each must have an id: else TrainingError."""
    items: list[RatedSample] = []
    refused: dict[str, str] = {}
    for one in _list(raw, "items"):
        identity = as_mapping(one, "An item").get("id")
        if not isinstance(identity, str) or not identity:
            raise data_error("An item has no id.")
        try:
            items.append(RatedSample.parse(one))
        except TrainingError as error:
            refused[identity] = str(error).removeprefix(f"Item {identity[:80]}: ").rstrip(".")
    return tuple(items), refused


def _anchors(raw: object) -> Iterator[tuple[Message, ...]]:
    for anchor in _list(raw, "anchors"):
        with suppress(TrainingError):
            yield parse_messages(anchor, "An anchor")


def parse_messages(raw: object, where: str) -> tuple[Message, ...]:
    """A non-empty conversation in the OpenAI shape, text only."""
    messages = tuple(as_mapping(one, f"{where}: a message") for one in _list(raw, where))
    if not messages:
        raise data_error(f"{where}: there is no message.")
    for message in messages:
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise data_error(f"{where}: a message needs a role and a content, both text.")
    return messages


def as_mapping(value: object, what: str) -> dict[str, Any]:
    """A JSON object. Raises TrainingError(kind="data")."""
    if not isinstance(value, dict):
        raise data_error(f"{what} is not an object.")
    return value  # pyright: ignore[reportUnknownVariableType]


def _list(value: object, what: str) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise data_error(f"{what} is not a list.")
    return value  # pyright: ignore[reportUnknownVariableType]


def parse_filters(value: object, where: str) -> Filters:
    """What was done to a distribution. Raises TrainingError(kind="data")."""
    try:
        return Filters.parse(as_mapping(value or {}, f"{where}: filters"))
    except ValueError as error:
        raise data_error(f"{where}: {error}.") from None


def _ids(value: object, what: str) -> tuple[int, ...]:
    ids = _list(value, what)
    if not all(is_whole(one) and one >= 0 for one in ids):
        raise data_error(f"{what} must be token ids.")
    return tuple(ids)


def _numbers(value: object, what: str) -> tuple[float, ...]:
    return tuple(as_number(one, what) for one in _list(value, what))


def _path(value: object, what: str) -> Path:
    if not isinstance(value, str) or not value:
        raise data_error(f"{what} is not a path.")
    return Path(value)
