# SPDX-License-Identifier: Apache-2.0
"""How an answer is drawn: a temperature, and what is taken out of the distribution before.

A model's makers say in its `generation_config.json` what it is to be drawn with; `[serving.sampling]` may
say otherwise, key by key. Where neither says how the distribution is cut, it is cut at `top_p` .9: out of
the whole of it one answer in four of a small chat model holds a token that the model itself gives less than
a thousandth.

The order is that of transformers' `generate`, by which makers find their values: the repetition penalty, the
temperature, then `top_k`, `top_p` and `min_p`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from goodbot.base.worded import Worded

TEMPERATURE = 0.7
TOP_P = 0.9
"""Where nobody names one."""
LOOK_BACK = 1 << 20
"""Tokens that a penalty looks back, for servers that look back 64 by themselves: all that a model has seen.
To say so with -1, llama.cpp refuses since August of 2026, and so do those that hand it on. It takes 4 bytes a
token."""
_HUGE = 1e9
_UNCUT = 1.0
"""The temperature of a file that names only how to cut: what is not named is off."""
_CUTS = ("top_k", "top_p", "min_p")
_MUST_VARY = "without any randomness the bot cannot learn"


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """What is done to a distribution beside the temperature. By default nothing."""

    top_k: int = 0
    """So many of the likeliest tokens stay; 0: all."""
    top_p: float = 1.0
    """The likeliest tokens stay whose chances together reach it, of what `top_k` has left."""
    min_p: float = 0.0
    """Tokens stay that are at least so likely, times the chance of the likeliest."""
    repetition_penalty: float = 1.0
    """By it the logit of a token that stands in the prompt or the answer is divided; a negative one is
    multiplied."""

    def __bool__(self) -> bool:
        """Whether they change anything."""
        return bool(self.told())

    @property
    def cuts(self) -> bool:
        """Whether tokens are taken out."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def told(self) -> dict[str, float]:
        """Those that change anything, by name."""
        return {name: value for name, value in asdict(self).items() if value != _OFF[name]}

    @classmethod
    def parse(cls, told: Mapping[str, Any]) -> Filters:
        """Those of a mapping that may hold other keys. Raises ValueError with a sentence."""
        return cls(**{name: checked(name, told[name]) for name in _OFF if told.get(name) is not None})


UNFILTERED = Filters()
_OFF: Mapping[str, float] = asdict(UNFILTERED)


def unlifted(logprobs: Sequence[float], lifts: Sequence[float]) -> tuple[float, ...]:
    """The log-probs of the policy itself: those of a filtered draw without what the filters added."""
    if not lifts:
        return tuple(logprobs)
    return tuple(min(0.0, told - lift) for told, lift in zip(logprobs, lifts, strict=True))


FILTERS = tuple(_OFF)
"""Their names."""
_RULES: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "temperature": (lambda n: n > 0, "must be above 0: without any randomness the bot cannot learn"),
    "top_k": (lambda n: n >= -1 and n == int(n), "must be a whole number, 0 for all tokens"),
    "top_p": (lambda n: 0 < n <= 1, "must be above 0 and at most 1, which is all tokens"),
    "min_p": (lambda n: 0 <= n < 1, "must be 0 (off) or a share below 1"),
    "repetition_penalty": (lambda n: n > 0, "must be above 0; 1 is none"),
}


def checked(name: str, value: object) -> Any:
    """A value as `name` takes it. Raises ValueError with a sentence."""
    fits, words = _RULES[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(Worded("{name} {what}", name=name, what=Worded(words)))
    if not (abs(value) < _HUGE and fits(value)):
        raise ValueError(Worded("{name} {what}", name=name, what=Worded(words)))
    return max(0, int(value)) if name == "top_k" else float(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """What answers are drawn with."""

    temperature: float
    filters: Filters
    source: str = "goodbot's default"
    """Who says so, in words."""
    notes: tuple[str, ...] = ()
    """What the model's files say that cannot be done, a sentence each."""

    def __str__(self) -> str:
        named = [f"{name} {value:g}" for name, value in self.filters.told().items()]
        return f"{self.source}: " + ", ".join([f"T {self.temperature:g}", *named])

    def data(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {"temperature": self.temperature, **asdict(self.filters), "notes": list(self.notes)}


def of(model: Path, wanted: Mapping[str, float]) -> Sampling:
    """What answers of the model in a directory are drawn with; `wanted` is what the config says."""
    named, notes = recommended(model)
    own = dict(wanted)
    cut = any(name in named for name in _CUTS)
    varies = named.get("do_sample") is not False
    found: dict[str, Any] = {
        "temperature": _UNCUT if cut and varies else TEMPERATURE,
        **({} if cut else {"top_p": TOP_P}),
        **{name: value for name, value in named.items() if name in _RULES},
        **own,
    }
    source = "goodbot's default, for the model's files name nothing"
    if any(name in named for name in _RULES):
        source = "as the model's makers say"
    if own:
        source = f"{source}, but for [serving.sampling]" if set(found) - set(own) else "as configured"
    temperature = found.pop("temperature")
    return Sampling(
        temperature=temperature,
        filters=Filters.parse(found),
        source=source,
        notes=tuple(words for name, words in notes.items() if name not in own),
    )


def recommended(model: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """What `generation_config.json` names, and by name what of it is of no use, in a sentence."""
    try:
        raw: object = json.loads((model / "generation_config.json").read_bytes())
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, RecursionError):
        words = "its generation_config.json cannot be read: answers are drawn by goodbot's default"
        return {}, {"": words}
    told = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    greedy = told.get("do_sample") is False
    named: dict[str, Any] = {"do_sample": False} if greedy else {}
    notes: dict[str, str] = {}
    if greedy:
        notes["temperature"] = (
            f"its files say do_sample: false, and {_MUST_VARY}: it is drawn at temperature {TEMPERATURE:g}"
        )
    for name in _RULES:
        if name not in told or (name == "temperature" and greedy):
            continue
        if told[name] is None and name != "temperature":
            continue
        try:
            named[name] = checked(name, told[name])
        except ValueError as error:
            given = json.dumps(told[name])[:40]
            notes[name] = f"its generation_config.json says {name} {given}, which is not taken: {error}"
    return named, notes


def merged(filters: Filters, asked: Mapping[str, Any]) -> Filters:
    """Filters with what a program asks for in their place."""
    return replace(filters, **{k: v for k, v in asked.items() if k in _OFF}) if asked else filters
