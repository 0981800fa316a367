"""What goodbot says, made of codes and facts: whoever translates it does so here. Pure.

A code names a thing to be said, its facts are the numbers and names in it. What is stored and what programs
decide by is these two; words are made of them where somebody reads them, and nobody takes words apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_NEXT_TRY = "{wanted} new ratings until another try"
_CAUSES = {
    "paused": "training is paused",
    "off": "goodbot is off",
    "quiet_hours": "these are quiet hours",
    "battery": "the machine runs on its battery",
    "processors": "other programs use {load:.0%} of the processors",
    "gpu": "other programs use {load:.0%} of the GPU",
}
_UNTIL = {
    "quiet_hours": "{until}",
    "battery": "it is plugged in",
    "processors": "they are down to {limit:.0%}",
    "gpu": "it is down to {limit:.0%}",
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
    **{name: f"{{cause}}: training waits{{at}} until {end}" for name, end in _UNTIL.items()},
    "plugin": "{said}",
    "plugin_again": "training waits{at}: {said}",
    "goes_on": "the interrupted training goes on{at}",
    "replaces": "{said}",
    "enough": "{available} ratings",
}
_FOR_EVERYBODY = {"unsuccessful": _NEXT_TRY}
"""Where it says less, to whoever may not know all facts."""


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
    end = "" if clause[-1:] in ".…!?" else "."
    return f"{clause[:1].upper()}{clause[1:]}{end}"


def clause(sentence: str, *, small: bool = False) -> str:
    """A sentence without its stop, to go on with; `small`: to stand within another one."""
    begun = f"{sentence[:1].lower()}{sentence[1:]}" if small else sentence
    return begun.rstrip(".")


def _clause(words: str, name: str, facts: Mapping[str, Any]) -> str:
    where = at(facts.get("step", 0), facts.get("steps", 0))
    return words.format(cause=_CAUSES.get(name, "").format(**facts), at=where, **facts)
