# SPDX-License-Identifier: Apache-2.0
"""What goodbot says, made of codes and facts. Pure.

A code names a thing to be said, its facts are the numbers and names in it. What is stored and what programs
decide by is these two; words are made of them where somebody reads them (`goodbot.api.texts`), and nobody
takes words apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from goodbot.api.texts import joined, say

_NEXT_TRY = "{wanted} new ratings until another try"
_CAUSES = {
    "paused": "training is paused",
    "off": "goodbot is paused",
    "quiet_hours": "these are quiet hours",
    "battery": "the machine runs on its battery",
    "processors": "other programs use {load:.0%} of the processors",
    "gpu": "other programs use {load:.0%} of the GPU",
}
_UNTIL = {
    "quiet_hours": "{until}: {cause}",
    "battery": "the machine is plugged in",
    "processors": "other programs use {limit:.0%} of the processors or less (now {load:.0%})",
    "gpu": "other programs use {limit:.0%} of the GPU or less (now {load:.0%})",
}
_CONDITIONS = {
    "paused": "{cause}{at}; `resume` lets it go on",
    "off": "{cause}: the base model answers; `resume` brings it back",
    "server": "{said}",
    "ratings": "{available} of {needed} ratings until the next training",
    "cancelled": f"the last run was cancelled; {_NEXT_TRY}",
    "unsuccessful": f"the last run {{state}} ({{reason}}); {_NEXT_TRY}",
    "manual": "training starts on command: `train`",
    "schedule": "training starts at {time}",
    **{name: f"training waits{{at}} until {end}" for name, end in _UNTIL.items()},
    "plugin": "{said}",
    "plugin_again": "training waits{at}: {said}",
    "goes_on": "the interrupted training goes on{at}",
    "replaces": "{said}",
    "enough": "{available} ratings",
}
_FOR_EVERYBODY = {"unsuccessful": _NEXT_TRY}
"""Where it says less, to whoever may not know all facts."""


def _until(language: str, *, available: int, needed: int) -> str:
    return say("until", language, available=available, needed=needed, more=needed - available)


def _soon(language: str, *, more: int, schedule: str, seconds: float) -> str:
    key = f"soon_{schedule}" if schedule in ("auto", "manual") else "soon_at"
    takes = _takes(language, seconds) if seconds else ""
    return joined(language, say(key, language, more=more, time=schedule), takes)


def _takes(language: str, seconds: float) -> str:
    if seconds < 90:
        return say("takes_seconds", language, count=max(1, round(seconds)))
    return say("takes_minutes", language, count=round(seconds / 60))


def _stranger(language: str, *, id: str) -> str:
    return say("private", language, person=id)


_MADE: dict[str, Callable[..., str]] = {"until": _until, "soon": _soon, "stranger": _stranger}
"""Codes whose sentence needs more than the facts that are kept with them."""

_COUNTS = ("until", "at_least", "can_start", "rests")
"""Codes that say how far the next training is."""


class Reason(NamedTuple):
    """Why, or what came of it, as data."""

    code: str
    facts: Mapping[str, Any] = {}


def because(code: str, **facts: Any) -> Reason:
    """A reason by its code and facts."""
    return Reason(code, facts)


def words(*reasons: Reason | None, language: str = "") -> str:
    """Reasons as sentences of a language, by default English.

    Nothing of one whose code another goodbot wrote, or without its facts.
    """
    found: list[str] = []
    for code, facts in filter(None, reasons):
        with contextlib.suppress(KeyError, TypeError):
            made = _MADE.get(code)
            found.append(made(language, **facts) if made else say(code, language, **facts))
    return joined(language, *found)


def counted(reasons: Sequence[Reason], language: str) -> dict[str, Any] | None:
    """`words`, `have` and `need` of the one that says how far the next training is, if one does."""
    for reason in reasons:
        if reason.code in _COUNTS:
            need = reason.facts["needed"]
            have = reason.facts.get("available", need)
            return {"words": clause(words(reason, language=language)), "have": have, "need": need}
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One thing that decides whether a training begins: met, or what it waits for."""

    name: str
    met: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    private: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Facts for owners alone: the reason of a failure may name a file or an account."""

    def for_everybody(self) -> str:
        """As a clause, of the public facts alone."""
        return _clause(_FOR_EVERYBODY.get(self.name) or _CONDITIONS[self.name], self.name, self.facts)

    def for_owners(self) -> str:
        """As a clause, with all that is known of it."""
        return _clause(_CONDITIONS[self.name], self.name, {**self.facts, **self.private})

    def cause(self) -> str:
        """What is in the way, without what would change it."""
        return _CAUSES[self.name].format(**self.facts)


def waits(name: str, **facts: Any) -> Condition:
    """A condition that is not met."""
    return Condition(name=name, facts=facts)


def met(name: str, **facts: Any) -> Condition:
    """A condition that is."""
    return Condition(name=name, met=True, facts=facts)


def at(step: int, steps: int) -> str:
    """` at step 12 of 32`; empty while nothing is planned."""
    return f" at step {step} of {steps}" if steps else ""


def sentence(clause: str) -> str:
    """A clause, which may end like a sentence, as one."""
    return ended(f"{clause[:1].upper()}{clause[1:]}")


def ended(clause: str) -> str:
    """A clause with the stop of a sentence; it may have one."""
    return clause if clause[-1:] in ".…!?" else f"{clause}."


def clause(sentence: str, *, small: bool = False) -> str:
    """A sentence without its stop, to go on with; `small`: to stand within another one."""
    begun = f"{sentence[:1].lower()}{sentence[1:]}" if small else sentence
    return begun.rstrip(".。")


def _clause(words: str, name: str, facts: Mapping[str, Any]) -> str:
    where = at(facts.get("step", 0), facts.get("steps", 0))
    return words.format(cause=_CAUSES.get(name, "").format(**facts), at=where, **facts)
