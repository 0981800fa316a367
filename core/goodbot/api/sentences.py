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

from goodbot.api.texts import ENGLISH, after, catalogue, commas, figure, joined, percent, reworded, say, size
from goodbot.api.texts import ended as stopped
from goodbot.base.text import begun

_SAID = ("server", "plugin", "replaces")
"""Conditions that are told by a code of their own (`kept`), or that somebody else has put into words."""
_SHARES = ("load", "limit")
_OF_ONE = ("share", "strength", "level")
"""Figures of reasons that are shares of one;"""
_ENDS = ("change", "low", "high")
"""that are a difference and the ends of its interval;"""
_FULLER = ("check_full", "check_part")
"""Codes that say what was wrong with more of a change than is kept."""
_HARM = "harm_"
"""So begin the codes of what speaks against a new version: their texts are clauses."""
_KEPT = "kept_"
"""So begin the codes that the store keeps alone, in a column of their own; their texts are clauses, too."""


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


def _text(language: str, *, text: str) -> str:
    return reworded(text, language)


def _trial_figures(language: str, *, good: int, rated: int, then: int, of: int, old: int) -> str:
    new = say("rated_good", language, good=good, rated=rated)
    return commas(language, new, say("trial_before", language, then=then, of=of, name=version(old, language)))


def _kept(language: str, *, share: float, what: Sequence[Any]) -> str:
    code, facts = what
    told = percent(share, language)
    if code != "harm_knowledge":
        return say("kept_less", language, share=told)
    odd = max(1, int(facts["foreign"]) - int(facts["before"]))
    return say("kept_odd", language, share=told, count=odd)


def _full(language: str, *, needed: int, name: str, facts: Mapping[str, Any]) -> str:
    waits_for = _condition(name, facts, language)
    return ended(say("status_counter", language, available=needed, needed=needed, next=waits_for), language)


def _met(language: str, *, name: str, facts: Mapping[str, Any]) -> str:
    return _condition(name, facts, language)


_MADE: dict[str, Callable[..., str]] = {
    "until": _until,
    "soon": _soon,
    "stranger": _stranger,
    "text": _text,
    "trial_figures": _trial_figures,
    "full_waits": _full,
    "kept": _kept,
    "met": _met,
}
"""Codes whose sentence needs more than the facts that are kept with them."""

_COUNTS = ("until", "at_least", "can_start", "rests", "full_asked", "full_later", "full_waits")
"""Codes that say how far the next training is."""


def version(number: int, language: str = "", *, begins: bool = False) -> str:
    """Name a version in a sentence.

    Args:
        number: The version; 0 is the base model.
        language: What the reader reads.
        begins: Whether it is the first word.

    Returns:
        `v3`, or `the base model`.
    """
    return f"v{number}" if number else say("base_model_first" if begins else "base_model", language)


def findings(found: str, language: str = "") -> str:
    """What filters find in an answer: our codes in words, a plugin's words as they are."""
    keys = {one: f"finding_{one}" for one in found.split(", ")}
    known = catalogue(ENGLISH)
    return commas(language, *(say(key, language) if key in known else one for one, key in keys.items()))


class Reason(NamedTuple):
    """Why, or what came of it, as data."""

    code: str
    facts: Mapping[str, Any] = {}


def because(code: str, **facts: Any) -> Reason:
    """A reason by its code and facts."""
    return Reason(code, facts)


def in_words(text: str) -> tuple[Reason, ...]:
    """What has no code of its own, as an error of somebody else's; nothing of an empty text."""
    return (Reason("text", {"text": text}),) if text else ()


def kept(code: str) -> tuple[Reason, ...]:
    """What a column holds of one code, or of words that are none of ours; nothing of an empty one."""
    text = catalogue(ENGLISH).get(code) if code.startswith(_KEPT) else None
    return (Reason(code),) if isinstance(text, str) and "{" not in text else in_words(code)


def clause_of(code: str, language: str = "") -> str:
    """The same in words."""
    return words(*kept(code), language=language)


def words(*reasons: Reason | None, language: str = "") -> str:
    """Reasons as sentences of a language, by default English.

    Nothing of one whose code another goodbot wrote, or without its facts.
    """
    found: list[str] = []
    for code, facts in filter(None, reasons):
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
            made = _MADE.get(code)
            found.append(made(language, **facts) if made else _worded(code, facts, language))
    return joined(language, *found)


def brief(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """A verdict for whoever reads the news: why only a part of a change is kept, without the figures."""
    kept = next((one for one in reasons if one.code == "check_kept"), None)
    fuller = [one for one in reasons if one.code in _FULLER]
    if kept is None or not fuller:
        return tuple(reasons)
    why = Reason("kept", {**kept.facts, "what": fuller[0].facts.get("what")})
    return tuple(why if one is kept else one for one in reasons if one not in fuller)


def _worded(code: str, facts: Mapping[str, Any], language: str) -> str:
    told = say(code, language, **_shown(facts, language))
    return sentence(told, language) if code.startswith(_HARM) else told


def _shown(facts: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Figures as the language writes them, and with those that belong together in one piece."""
    shown = {name: _figure(name, value, language) for name, value in facts.items()}
    if "what" in facts:  # a reason within one
        code, inner = facts["what"]
        made = _MADE.get(code)
        shown["what"] = made(language, **inner) if made else say(code, language, **_shown(inner, language))
    if "change" in facts:
        shown["interval"] = say("check_interval", language, **shown)
        on = "check_on_rounds" if facts.get("rounds", 0) > 1 else "check_on"
        shown["found"] = say(on, language, **shown)
    return shown


def _figure(name: str, value: Any, language: str) -> Any:
    if name in _OF_ONE:
        return percent(value, language)
    if name in _ENDS:
        return f"{'-' if value < 0 else '+'}{figure(abs(value), language, digits=2)}"
    if name == "by" and isinstance(value, float):
        return figure(value, language, digits=2)
    if name == "limit":
        digits = len(f"{value:g}".partition(".")[2])
        return figure(value, language, digits=digits)
    if name == "room":
        return size(value, language)
    return clause_of(value, language) if name == "why" and isinstance(value, str) else value


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

    def for_everybody(self, language: str = "") -> str:
        """As a clause, of the public facts alone."""
        return _condition(self.name, self.facts, language)

    def for_owners(self, language: str = "") -> str:
        """As a clause, with all that is known of it."""
        return _condition(self.name, {**self.facts, **self.private}, language)

    def reason(self) -> Reason:
        """The same as it is kept of what has begun by it."""
        return Reason("met", {"name": self.name, "facts": {**self.facts, **self.private}})

    def cause(self, language: str = "") -> str:
        """What is in the way, without what would change it."""
        return say(f"cause_{self.name}", language, **_shares(self.facts, language))


def waits(name: str, **facts: Any) -> Condition:
    """A condition that is not met."""
    return Condition(name=name, facts=facts)


def met(name: str, **facts: Any) -> Condition:
    """A condition that is."""
    return Condition(name=name, met=True, facts=facts)


def at(step: int, steps: int, language: str = "") -> str:
    """Say where a training is, to be put behind words.

    Args:
        step: What is done.
        steps: What is planned; 0 while nothing is.
        language: What the reader reads.

    Returns:
        ` at step 12 of 32`, with the space before it; empty while nothing is planned.
    """
    return after(say("at_step", language, step=step, steps=steps), language) if steps else ""


def sentence(clause: str, language: str = "") -> str:
    """A clause, which may end like a sentence, as one."""
    return ended(begun(clause), language)


def ended(clause: str, language: str = "") -> str:
    """A clause with the stop of a sentence; it may have one."""
    return clause if clause[-1:] in ".…!?。！？" else stopped(clause, language)


def clause(sentence: str, *, small: bool = False) -> str:
    """A sentence without its stop, to go on with; `small`: to stand within another one."""
    within = f"{sentence[:1].lower()}{sentence[1:]}" if small else sentence
    return within.rstrip(".。")


def _condition(name: str, facts: Mapping[str, Any], language: str) -> str:
    if name in _SAID:
        return clause_of(facts["said"], language)
    if "ending" in facts:
        facts = {**facts, "reason": clause(words(*facts["ending"], language=language))}
    if name == "ratings":
        facts = {**facts, "more": int(facts["needed"]) - int(facts["available"])}
    where = at(facts.get("step", 0), facts.get("steps", 0), language)
    again = say("again", language, wanted=facts["wanted"]) if "wanted" in facts else ""
    if name == "unsuccessful":  # what became of it is for owners
        if "state" not in facts:
            return again
        name = facts["state"]
    return say(f"wait_{name}", language, **{**_shares(facts, language), "at": where, "again": again})


def _shares(facts: Mapping[str, Any], language: str) -> dict[str, Any]:
    """With shares as they are written."""
    return {**facts, **{name: percent(facts[name], language) for name in _SHARES if name in facts}}
