# SPDX-License-Identifier: Apache-2.0
"""One rated answer of a job, as a frozen, checked value. Errors name its field and carry no message text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.events import Message
from goodbot.api.hindsight import BETTER, LONGEST, RATERS
from goodbot.base.sampling import Filters

from goodbot_training.job.settings import as_number, data_error, is_whole

TRAIN = "train"
HELD_OUT = "held_out"
COLDEST = 0.01
"""A temperature below it draws the likeliest token as 0 does, and gradients grow with its inverse."""


def turn_of(id_: str) -> str:
    """The turn that an item is about. A better answer is about the turn that it corrects.

    Turns are what a run has claimed: whatever is set aside is told by its turn, and all of that turn with it.
    Or a version would have learnt words of a turn that its run has let go.
    """
    return id_.removesuffix(BETTER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What is taught beside a rating, and what that weighs: a part of the item's weight."""

    text: str
    weight: float

    @classmethod
    def parse(cls, raw: object, where: str) -> Said:
        """An entry of an item's field, as `where` names it. Raises TrainingError(kind="data")."""
        said = as_mapping(raw, f"{where}: an entry")
        text, weight = said.get("text"), as_number(said.get("weight"), f"{where}: weight")
        if not isinstance(text, str) or len(text) > LONGEST:
            raise data_error(f"{where}: text must be text of at most {LONGEST} characters.")
        if weight < 0:
            raise data_error(f"{where}: weight must not be negative.")
        return cls(text=text, weight=weight)


def _said(item: Mapping[str, Any], field: str) -> tuple[Said, ...]:
    """The entries of a field; a text alone weighs as the item."""
    given: Any = item.get(field)
    alone: Any = [given] if given else []
    if isinstance(given, str):
        alone = [{"text": given, "weight": item.get("weight", 1.0)}] if given else []
    entries = as_list(alone if isinstance(given, str | dict) else given, field)
    return tuple(Said.parse(one, field) for one in entries)


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
    hindsight: tuple[Said, ...] = ()
    """What people said of the response, one text a rater; see `goodbot_training.round.hindsight`."""
    demonstration: bool = False
    """Whether a person has written the response: what it should have been. Its reward is no rating."""
    judged: bool = False
    """Whether a judge, and no person, has said what the response is worth."""
    reported: bool = False
    """Whether another program has told us the answer and its tokens: they may be of other words."""
    note: Said | None = None
    """What a prompt says of the notes that are taught on it; see `goodbot_training.round.notes`."""
    unscored: bool = False
    """Whether its log-probs are of another temperature than it is read at: they are computed anew."""

    @property
    def by_people(self) -> bool:
        """Whether people have rated the response."""
        return not (self.demonstration or self.judged)

    @property
    def captured(self) -> bool:
        """Whether the server gave us its own token ids and log-probs."""
        return bool(self.prompt_tokens and self.tokens and self.logprobs)

    @property
    def scored(self) -> bool:
        """Whether the policy's own log-probs are known, and need not be computed: see `filtering`."""
        return self.captured and not self.unscored and (bool(self.lifts) or not self.filters)

    @classmethod
    def parse(cls, raw: object) -> RatedSample:
        """One item of the job's JSON. Raises TrainingError(kind="data"), which does not name the item."""
        item = as_mapping(raw, "An item")
        identity = item.get("id")
        if not isinstance(identity, str) or not identity:
            raise data_error("An item has no id.")
        split = item.get("split", TRAIN)
        if split not in (TRAIN, HELD_OUT):
            raise data_error(f"split must be {TRAIN} or {HELD_OUT}.")
        version = item.get("version")
        if version is not None and not is_whole(version):
            raise data_error("version must be a whole number or null.")
        texts = {name: item.get(name, "") for name in ("response", "thought")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise data_error(f"{', '.join(texts)} must be text.")
        temperature = as_number(item.get("temperature", 1.0), "temperature")
        parsed = cls(
            id=identity,
            messages=parse_messages(item.get("messages"), "The item"),
            **texts,
            prompt_tokens=_ids(item.get("prompt_tokens"), "prompt_tokens"),
            tokens=_ids(item.get("tokens"), "tokens"),
            logprobs=_numbers(item.get("logprobs"), "logprobs"),
            temperature=0.0 if 0 <= temperature < COLDEST else temperature,
            filters=parse_filters(item.get("filters"), "The item"),
            lifts=_numbers(item.get("lifts"), "lifts"),
            version=version,
            reward=as_number(item.get("reward"), "reward"),
            weight=as_number(item.get("weight", 1.0), "weight"),
            split=split,
            hindsight=_said(item, "hindsight"),
            note=next(iter(_said(item, "note")), None),
            demonstration=item.get("demonstration") is True,
            judged=item.get("judged") is True,
            reported=item.get("reported") is True,
            unscored=item.get("unscored") is True,
        )
        for wrong, sentence in (
            (abs(parsed.reward) > 1, "reward must lie between -1 and 1"),
            (parsed.weight < 0, "weight must not be negative"),
            (len(parsed.hindsight) > RATERS, f"hindsight must have at most {RATERS} texts"),
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
                raise data_error(f"{sentence}.")
        return parsed


def parse_messages(raw: object, where: str) -> tuple[Message, ...]:
    """A non-empty conversation in the OpenAI shape, text only."""
    messages = tuple(as_mapping(one, f"{where}: a message") for one in as_list(raw, where))
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


def as_list(value: object, what: str) -> Sequence[Any]:
    """A JSON list; null is an empty one. Raises TrainingError(kind="data")."""
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
    ids = as_list(value, what)
    if not all(is_whole(one) and one >= 0 for one in ids):
        raise data_error(f"{what} must be token ids.")
    return tuple(ids)


def _numbers(value: object, what: str) -> tuple[float, ...]:
    return tuple(as_number(one, what) for one in as_list(value, what))
