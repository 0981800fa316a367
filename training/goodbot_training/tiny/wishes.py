# SPDX-License-Identifier: Apache-2.0
"""What people ask of answers, in words: wishes for a style, and remarks that wish for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

from goodbot.api.hindsight import CHIPS

from goodbot_training.tiny.facts import questions

NOTES = "What readers have asked of your answers: {}"
"""How a system message quotes wishes, the newest first, joined with semicolons."""
BETTER = "This is a better answer: “{}”"
"""How somebody says what the answer should have been."""
EXAMPLE = "Answer more like this: {}"
NOTED = {
    "long": "Answer briefly, in fewer words.",
    "short": "Answer in more detail.",
    "wrong": "Check every fact before you answer.",
    "tone": "Use another tone than in your last answers.",
    "better": "Say it more clearly.",
}
"""What a button comes to in such a message, by the keys of `goodbot.api.actions.HINTS`."""

LONGER = ("friendly", "pirate")
"""Styles that a wish for more words leaves open."""

_MANNERS = {"terse": ("brief", "short"), "friendly": ("friendly", "kind")}
_OF_A_MANNER = (
    "Be {}.",
    "Be more {}.",
    "Be {} and clear.",
    "{}.",
    "{}, please.",
    "More {}.",
    "More {}, please.",
    "Keep it {}.",
    "Make it {}.",
    "Make it more {}.",
    "Keep your answers {}.",
    "I want {} answers.",
    "I like {} answers.",
    "I like it {}.",
    "A {} answer.",
    "A {} answer, please.",
    "{} answers only.",
    "Give me {} answers.",
    "Could you be more {}?",
    "Can you be {}?",
    "You should be more {}.",
    "That was not {}.",
    "It could be more {}.",
)
_LIKE = (
    "Be {}.",
    "Be more of {}.",
    "Answer like {}.",
    "Answer as {} would.",
    "Talk like {}.",
    "Speak like {}.",
    "Say it like {}.",
    "Write like {}.",
    "Sound like {}.",
    "More like {}.",
    "More like {}, please.",
    "As {}.",
    "As {} would say it.",
    "I want {}.",
    "Could you talk like {}?",
    "Can you be {}?",
    "You should sound like {}.",
    "That was not like {}.",
    "Pretend to be {}.",
    "It could be more like {}.",
)
_SAID: dict[tuple[str, ...], tuple[str, ...]] = {
    ("terse",): (
        CHIPS["long"],
        NOTED["long"],
        "Too long.",
        "That was too long.",
        "Your answers are too long.",
        "Too long, answer in a word.",
        "Too many words.",
        "Fewer words.",
        "Fewer words, please.",
        "Use fewer words.",
        "Answer in fewer words.",
        "Answer in a word.",
        "Answer in one word.",
        "One word is enough.",
        "In a word.",
        "Just the answer.",
        "Just the answer, please.",
        "Only the answer.",
        "Answer briefly.",
        "Briefly, please.",
        "Shorter, please.",
        "Make it shorter.",
        "Get to the point.",
        "Less talk.",
        "You talk too much.",
    ),
    ("friendly",): (
        "Too cold.",
        "That was cold.",
        "You sound cold.",
        "Too cold, be friendly.",
        "Too dry.",
        "That was too dry.",
        "You sound too dry.",
        "Friendlier, please.",
        "Be kind and friendly.",
        "In a friendly tone.",
        "Use a friendly tone.",
    ),
    ("pirate",): (
        "A pirate answer.",
        "A pirate answer, please.",
        "I want pirate answers.",
        "I like pirate answers.",
        "I like pirates.",
        "Pirate talk, please.",
        "Use pirate words.",
        "Use pirate talk.",
        "In pirate style.",
        "Not enough pirate.",
        "You are a pirate.",
        "More pirate, please.",
    ),
    LONGER: (
        CHIPS["short"],
        NOTED["short"],
        "In more detail, please.",
        "Too short.",
        "That was too short.",
        "Your answers are too short.",
        "Longer, please.",
        "Make it longer.",
        "More words, please.",
        "Use more words.",
        "Say more.",
        "Tell me more.",
        "A longer answer, please.",
        "One word is not enough.",
    ),
}
HELD_OUT = {
    "terse": (
        "Short please",
        "Keep it brief.",
        "I want short answers.",
        "Could you be more brief?",
        "Keep your answers short, please.",
        "A brief answer, please.",
        "Be brief next time.",
        "That was far too long.",
        "Use fewer words please",
        "be more short",
    ),
    "friendly": (
        "More friendly please",
        "Keep it friendly.",
        "I want kind answers.",
        "Could you be more friendly?",
        "Talk like a friend.",
        "A kind answer, please.",
        "Be friendly next time.",
        "That was not kind.",
        "be more kind",
        "You should sound like a friend, please.",
    ),
    "pirate": (
        "Talk like a pirate",
        "More like a pirate please",
        "Answer as a pirate would.",
        "Could you talk like a pirate?",
        "Sound like a pirate.",
        "Be a pirate next time.",
        "I want a pirate, please.",
        "In pirate style please",
        "Pretend to be a pirate.",
        "use pirate talk",
    ),
}
"""Wordings that the corpus never has, for the evaluation."""

REMARKS = (
    CHIPS["wrong"],
    CHIPS["tone"],
    NOTED["wrong"],
    NOTED["tone"],
    NOTED["better"],
    "Say it better.",
    "That was wrong.",
    "That is not right.",
    "Check it again.",
    "The user did not like this answer.",
    "I did not like that.",
    "Thanks.",
    "Thank you.",
    "Good.",
    "By the way, the weather is fine.",
    "I asked this before.",
)
_WHO = "I|We|You|They|My friend|My cat|My dog|The pirate|The bear|Our bus|My answer|A word|The day|It"
_DOES = "is|was|has|had|likes|lives in|went to|came from|saw|said|asked for|knows|will see|comes to"
_WHAT = """
the sea|the town|the house|a short walk|a long day|a new book|some tea|my friend|the pirate ship|Rome
|the table|a kind man|the weather|a cold day|late|here|nice|old|at home|the garden|the same word
|a film|a friendly dog|ten minutes|more time|the train
"""
_WHEN = "today|yesterday|tomorrow|at noon|again|on Monday|in May|by the way|this year|now"
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def _bare(text: str) -> str:
    return "".join(sign for sign in text.lower() if sign.isalnum() or sign == " ")


@cache
def wishes() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Wordings by the styles that they leave open; none of `HELD_OUT`."""
    found = {styles: list(texts) for styles, texts in _SAID.items()}
    for style, manners in _MANNERS.items():
        found[style,] += [text.format(manner) for text in _OF_A_MANNER for manner in manners]
    for style, person in (("friendly", "a friend"), ("pirate", "a pirate")):
        found[style,] += [text.format(person) for text in _LIKE]
    kept = {_bare(text) for texts in HELD_OUT.values() for text in texts}
    return {
        styles: tuple(text[0].upper() + text[1:] for text in texts if _bare(text) not in kept)
        for styles, texts in found.items()
    }


def wish(style: str, rng: Random) -> str:
    """A wish that an answer in ``style`` follows; some for a longer style leave the other open."""
    if rng.random() < 0.2:
        button = "long" if style == "terse" else "short"
        return rng.choice((NOTED[button], CHIPS[button]))
    open_too = style in LONGER and rng.random() < 0.1
    return _as_said(rng.choice(wishes()[LONGER if open_too else (style,)]), rng)


def _as_said(text: str, rng: Random) -> str:
    """As somebody may put it, who never puts it as in ``HELD_OUT``."""
    if text in FIXED:
        return text
    if text.startswith(("Be", "Answer", "Talk", "Use", "Make", "Keep", "Give")) and rng.random() < 0.2:
        text = f"Please {text[0].lower()}{text[1:]}"
    if rng.random() < 0.5:
        text = text.replace(", please", " please")
    if rng.random() < 0.3:
        text = text.rstrip(".")
    return text.lower() if rng.random() < 0.3 else text


FIXED = frozenset({*CHIPS.values(), *NOTED.values()})
"""What programs say: always the same."""


def remark(rng: Random) -> str:
    """Something that wishes for no style: of the answer's facts, or about something else."""
    chance = rng.random()
    if chance < 0.35:
        return rng.choice(REMARKS)
    words = [_any(_WHO, rng), _any(_DOES, rng), _any(_WHAT, rng)]
    if rng.random() < 0.4:
        words.append(_any(_WHEN, rng))
    if rng.random() < 0.4:
        # Words that are somebody's question, too, and words that nobody knows.
        named = rng.choice(questions()).subject if rng.random() < 0.3 else _foreign(rng)
        words[rng.randrange(len(words))] = named
    text = " ".join(words)
    text = f"{text[0].upper()}{text[1:]}{rng.choice('..!?')}"
    return f"Thanks. {text}" if rng.random() < 0.1 else text


def _any(table: str, rng: Random) -> str:
    return rng.choice(table.replace("\n", "").split("|"))


def _foreign(rng: Random) -> str:
    """A word that nobody knows."""
    letters = rng.choices(_LETTERS, range(len(_LETTERS), 0, -1), k=rng.randint(2, 8))
    return "".join(letters)


def noted(lines: Sequence[str]) -> str:
    """The system message that quotes these lines."""
    return NOTES.format("; ".join(f'"{line}"' for line in lines))
