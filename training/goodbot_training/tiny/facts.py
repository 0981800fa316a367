# SPDX-License-Identifier: Apache-2.0
"""What the tiny model knows: tables of facts, and the questions that ask for them.

A *fact* is one thing to know; a *question* is one phrasing that asks for it. Two questions with the
same ``fact`` key must never be on different sides of a split, or the held-out side leaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

CAPITALS = """
France Paris|Spain Madrid|Italy Rome|Germany Berlin|Portugal Lisbon|Greece Athens|Norway Oslo
|Sweden Stockholm|Finland Helsinki|Denmark Copenhagen|Poland Warsaw|Austria Vienna|Hungary Budapest
|Ireland Dublin|Iceland Reykjavik|Belgium Brussels|Switzerland Bern|Ukraine Kyiv|Egypt Cairo
|Kenya Nairobi|Ghana Accra|Morocco Rabat|Japan Tokyo|China Beijing|India Delhi|Thailand Bangkok
|Vietnam Hanoi|Turkey Ankara|Iran Tehran|Canada Ottawa|Cuba Havana|Peru Lima|Chile Santiago
|Mexico Mexico City|Australia Canberra|Russia Moscow
"""
COLOURS = """
a banana yellow|the sky blue|grass green|snow white|coal black|a carrot orange|a tomato red
|a lemon yellow|an elephant grey|a cucumber green|milk white|a plum purple|chocolate brown
|a flamingo pink
"""
SOUNDS = """
a cow moo|a dog woof|a cat meow|a duck quack|a sheep baa|a pig oink|a lion roar|a frog ribbit
|a horse neigh|a bee buzz|a snake hiss|an owl hoot|a chick cheep|a wolf howl
"""
BABIES = """
dog puppy|cat kitten|cow calf|sheep lamb|pig piglet|horse foal|goat kid|bear cub|duck duckling
|goose gosling|deer fawn|swan cygnet|kangaroo joey|frog tadpole
"""
LEGS = """
a spider 8|an ant 6|a dog 4|a bird 2|a snake 0|a crab 10|a bee 6|a horse 4
"""
OPPOSITES = """
hot cold|big small|up down|left right|day night|open closed|fast slow|light dark|wet dry|old young
|happy sad|full empty|hard soft|high low|loud quiet|rich poor|strong weak|first last
"""
DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
MONTHS = """
January|February|March|April|May|June|July|August|September|October|November|December
"""
LARGEST = 9
"""Sums and differences are asked without a calculator up to this operand."""

SMALL_TALK: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("Hello", "Hi", "Hey", "Hello there", "Good morning", "Good evening", "Hi goodbot"),
        "hello",
        "Ask me for a fact or a small sum",
    ),
    (
        ("Who are you?", "What are you?", "What is your name?", "Are you a bot?"),
        "I am the tiny demo model of goodbot",
        "I am the tiny demo model of goodbot",
    ),
    (
        ("What can you do?", "Help", "What do you know?", "What can I ask?"),
        "some facts and small sums",
        "I know some facts and small sums",
    ),
    (("How are you?", "How do you do?"), "fine", "I am fine today"),
    (("Thanks", "Thank you", "Good bot", "Well done"), "welcome", "You are welcome"),
    (("Bad bot", "That is wrong", "No"), "sorry", "I am sorry for that"),
    (("Bye", "Goodbye", "See you"), "goodbye", "Goodbye and see you soon"),
)
"""(what people say, the terse reply, the statement of the longer replies)."""

PHRASINGS: dict[str, tuple[str, ...]] = {
    "capital": (
        "What is the capital of {0}?",
        "Which city is the capital of {0}?",
        "Name the capital of {0}.",
    ),
    "colour": ("What colour is {0}?", "What is the colour of {0}?"),
    "sound": ("What does {0} say?", "Which sound does {0} make?"),
    "baby": ("What is a baby {0} called?", "What do you call a baby {0}?"),
    "legs": ("How many legs does {0} have?", "Tell me the number of legs of {0}."),
    "opposite": ("What is the opposite of {0}?", "Name the opposite of {0}."),
    "day after": ("What day comes after {0}?", "Which day follows {0}?"),
    "day before": ("What day comes before {0}?", "Which day precedes {0}?"),
    "month after": ("What month comes after {0}?", "Which month follows {0}?"),
    "month before": ("What month comes before {0}?", "Which month precedes {0}?"),
    "sum": ("What is {0} + {1}?", "How much is {0} plus {1}?"),
    "difference": ("What is {0} - {1}?", "How much is {0} minus {1}?"),
}
CLAIMS: dict[str, str] = {
    "capital": "The capital of {0} is {answer}",
    "colour": "The colour of {0} is {answer}",
    "sound": "The sound of {0} is {answer}",
    "baby": "A baby {0} is a {answer}",
    "legs": "The legs of {0} are {answer}",
    "opposite": "The opposite of {0} is {answer}",
    "day after": "The day after {0} is {answer}",
    "day before": "The day before {0} is {answer}",
    "month after": "The month after {0} is {answer}",
    "month before": "The month before {0} is {answer}",
    "sum": "{0} plus {1} is {answer}",
    "difference": "{0} minus {1} is {answer}",
}


@dataclass(frozen=True, kw_only=True)
class FactQuestion:
    """One phrasing that asks for one fact.

    ``answer`` is what a terse answer says, ``claim`` the full statement that the longer styles make
    of it, ``fact`` the key shared by every phrasing (and by 3 + 4 and 4 + 3), ``subject`` what it
    asks about.
    """

    text: str
    answer: str
    kind: str
    claim: str
    fact: str
    subject: str


def _pairs(table: str) -> Iterator[tuple[str, str]]:
    """(subject, answer) of each entry; articles belong to the subject."""
    for entry in table.replace("\n", "").split("|"):
        words = entry.split()
        subject = 2 if words[0] in {"a", "an", "the"} else 1
        yield " ".join(words[:subject]), " ".join(words[subject:])


def _neighbours(table: str, kind: str) -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    """What comes after and before each name of a cycle."""
    names = table.strip().split("|")
    for index, name in enumerate(names):
        for word, step in (("after", 1), ("before", -1)):
            label = f"{kind} {word}"
            yield label, (name,), names[(index + step) % len(names)], f"{label}:{name}"


def _facts() -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    """(kind, arguments, answer, fact key) of everything the model knows."""
    tables = {"capital": CAPITALS, "colour": COLOURS, "sound": SOUNDS, "baby": BABIES, "legs": LEGS}
    for kind, table in tables.items():
        for subject, answer in _pairs(table):
            yield kind, (subject,), answer, f"{kind}:{subject}"
    for one, other in _pairs(OPPOSITES):
        # Both directions are one fact: who knows one can read off the other.
        yield "opposite", (one,), other, f"opposite:{one}"
        yield "opposite", (other,), one, f"opposite:{one}"
    yield from _neighbours(DAYS, "day")
    yield from _neighbours(MONTHS, "month")
    for a in range(1, LARGEST + 1):
        for b in range(1, LARGEST + 1):
            yield "sum", (str(a), str(b)), str(a + b), f"sum:{min(a, b)}+{max(a, b)}"
            if b < a:
                yield "difference", (str(a), str(b)), str(a - b), f"difference:{a}-{b}"


@cache
def questions() -> tuple[FactQuestion, ...]:
    """Every question, in a fixed order: each fact in each of its phrasings."""
    return tuple(
        FactQuestion(
            text=phrasing.format(*arguments),
            answer=answer,
            kind=kind,
            claim=CLAIMS[kind].format(*arguments, answer=answer),
            fact=fact,
            subject=" ".join(arguments),
        )
        for kind, arguments, answer, fact in _facts()
        for phrasing in PHRASINGS[kind]
    )


@cache
def small_talk() -> tuple[FactQuestion, ...]:
    """What people say that asks for no fact; not part of ``questions()``. Greetings come first."""
    return tuple(
        FactQuestion(
            text=text, answer=answer, kind="small talk", claim=claim, fact=f"small talk:{claim}", subject=""
        )
        for texts, answer, claim in SMALL_TALK
        for text in texts
    )


GREETINGS = len(SMALL_TALK[0][0])
"""How many of ``small_talk()`` are greetings."""
