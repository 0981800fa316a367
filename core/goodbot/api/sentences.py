# SPDX-License-Identifier: Apache-2.0
"""What goodbot says, made of codes and facts: whoever translates it does so here. Pure.

A code names a thing to be said, its facts are the numbers and names in it. What is stored and what programs
decide by is these two; words are made of them where somebody reads them, and nobody takes words apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_SHOWS = "`/rl notes` shows what I keep in mind."
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


def _soon(more: int, schedule: str, seconds: float) -> str:
    train = {"auto": "I train", "manual": "my owner can train me"}.get(schedule, f"I train at {schedule}")
    takes = f"; that takes {duration(seconds)} here" if seconds else ""
    return f"{more} more and {train}{takes}."


_SAID: dict[str, str | Callable[..., str]] = {
    # an event that cannot be stored as it is
    "id_too_long": "Its {name} is too long: at most {most} characters.",
    "id_broken": "Its {name} is no text: it has half a character in it.",
    "id_missing": "It has no event_id.",
    "id_reused": "This id was used before for something else, so nothing was stored: use a new one.",
    "empty": "There was nothing in it: say it in a few words.",
    "too_long": "That is too long: at most {most} characters.",
    "capture_kind": "Its kind must be main or side.",
    "capture_messages": "Its prompt must have 1 to {most} messages.",
    "capture_role": "Each message of its prompt needs a role.",
    "capture_size": "Its prompt and answer are too much: at most {most} characters, "
    "nested {deepest} deep, without numbers that JSON has no word for.",
    "capture_temperature": "Its temperature must lie between 0 and 100.",
    "capture_version": "Its version must be a whole number, 0 for the base model.",
    "capture_logprobs": "It must have one log-prob a token.",
    "capture_lifts": "It must have one lift a log-prob.",
    "capture_numbers": "Its log-probs must be numbers.",
    "capture_tokens": "Its tokens must be whole numbers that are not negative.",
    # who is let in
    "paired": "You are my owner now: talk to me, rate my answers (the good ones too), and see `/rl help`.",
    "files": "I can read text only, so I have not looked at what you sent. Tell me in words?",
    "stranger": "This bot answers only the people its owner has named. "
    "To be named, give the owner your id: {id}",
    "no_rater": "Only the people its owner has named teach this bot.",
    "no_owner": "`{command}` is for the owners of this bot.",
    "no_talker": "{person} may not talk to this bot, so its answers are not kept: the "
    "owner can change that with `/rl people grant talker {person}`.",
    "too_often": "That was a lot at once: try again in a minute.",
    "too_much": "More than {megabytes} MB of yours came within a day, so this is not kept: try again "
    "later. Whoever owns this bot can set [serving] megabytes_per_day.",
    "no_space": "Less than {megabytes} MB of the disk are free: answers of other programs are not "
    "kept, ratings are.",
    # what became of a rating
    "not_mine": "That is not one of my answers.",
    "good": "Good.",
    "bad": "Bad.",
    "stars": "{stars} of {of} stars.",
    "outcome": "Kept.",
    "judge": "Kept, but not used for training.",
    "retract": "Taken back.",
    "comment": "Your reason is kept.",
    "better": "Your better answer is kept.",
    "nothing_said": "There is nothing of yours to take back there.",
    "not_counted": "That does not count: it was taken back, or an owner has left out its time.",
    "stands_good": "That changes nothing: another rating of yours counts, “good”.",
    "stands_bad": "That changes nothing: another rating of yours counts, “bad”.",
    "stands_neither": "That changes nothing: another rating of yours counts, “neither good nor bad”.",
    "until": "{available} of {needed} until the next training.",
    "at_least": "{available} or more of {needed} for the next training.",
    "can_start": "{needed} of {needed}: the next training can start.",
    "rests": "{needed} of {needed}: the next training can start once an owner says `/rl resume`.",
    "neither": "Three stars alone lean to neither side: they teach nothing.",
    "not_yet": "It does not count yet.",
    "tied": "Together with what others say of this answer it does not count yet.",
    "unused": "This answer is not used for training.",
    "from_others": "Another model gave this answer: it is not used for training.",
    "set_aside": "A training has left this answer out: it counts again once an owner says `/rl release`.",
    "other_model": "I was another model when I gave this answer: it is not used for training now.",
    "used": "A training has used this answer already.",
    "undone": "What I have learnt from your rating before will be undone.",
    "waits_for_you": "Ratings of your private chats wait: what they teach, others hear. `/rl share on` lets "
    "them count.",
    "waits_for_another": "This one waits until whoever asked says `/rl share on`: it was said in private.",
    "soon": _soon,
    "advice": "Rate good answers too: a bot that hears only “bad” does not learn what you like.",
    "streak": "Your last {count} ratings were all “bad”. Rate good answers too: from “bad” alone "
    "I learn what you dislike, not what you like.",
    # what the next answer will follow
    "noted_long": f"Noted: shorter answers. {_SHOWS}",
    "noted_short": f"Noted: more detail. {_SHOWS}",
    "noted_wrong": f"Noted: more care with facts. {_SHOWS}",
    "noted_tone": f"Noted: another tone. {_SHOWS}",
    "noted_better": f"Noted: clearer words. {_SHOWS}",
    "noted_words": f"Noted: your words. {_SHOWS}",
    "noted_example": f"Noted: more like your answer. {_SHOWS}",
    # another answer
    "replaced": "That answer was replaced already.",
    "late": "I was away before I had another answer: ask me once more.",
    "unsent": "I have another answer, but could not put it there: ask me once more.",
    "forgotten": "Somebody was forgotten while I answered, and this answer with them. Ask again if you like.",
    "broken": "Something went wrong here; the owner can find it in the log.",
    "no_model": "I cannot answer right now: my model is not running. Please try again in a moment.",
    "refused": "I cannot answer that: my model's server refuses it. Whoever runs me sees why with "
    "`/rl status`.",
    "no_room": "That is too long for me to read at once: send me a part of it.",
    "no_room_again": "This answer is too long for me to try again with it.",
    # what became of a command
    "shown_once": "(It was shown once.)",
    "interrupted": "goodbot stopped before this was done: look at `status`.",
}


COUNTS = ("until", "at_least", "can_start", "rests")
"""Codes that say how far the next training is."""


class Reason(NamedTuple):
    """Why, or what came of it, as data."""

    code: str
    facts: Mapping[str, Any] = {}


def because(code: str, **facts: Any) -> Reason:
    """A reason by its code and facts."""
    return Reason(code, facts)


def words(*reasons: Reason | None) -> str:
    """Reasons as sentences; nothing of one whose code another goodbot wrote, or without its facts."""
    found: list[str] = []
    for code, facts in filter(None, reasons):
        with contextlib.suppress(KeyError, TypeError):
            said = _SAID[code]
            found.append(said.format(**facts) if isinstance(said, str) else said(**facts))
    return " ".join(found)


def duration(seconds: float) -> str:
    """How long something takes, as one says it."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    return f"about {round(seconds / 60)} minutes"


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
