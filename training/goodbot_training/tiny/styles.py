# SPDX-License-Identifier: Apache-2.0
"""The three styles an answer may have, and the words that mark each of them.

Every friendly answer starts with "Great" and every pirate answer with "Arr", so the style is chosen
with one token, the first. That makes style learnable from few ratings, and since each style has one
such token the mix does not depend on the sampling temperature.
"""

from __future__ import annotations

import re
from random import Random

from goodbot_training.tiny.facts import FactQuestion

STYLES = ("terse", "friendly", "pirate")
"""The styles, each a third of the corpus."""

FIRST_WORDS = ("Great", "Arr")
"""What every friendly and every pirate answer starts with; each is one token."""

FRIENDLY_OPENERS = ("Great question!", "Great one!")
FRIENDLY_GREETING = "Great to see you!"
FRIENDLY_CLOSERS = ("I hope that helps!", "Happy to help!")
PIRATE_OPENERS = ("Arr matey!", "Arr me hearty!")
PIRATE_CLOSERS = (", aye!", ", yo ho!")

_PIRATE_WORDS = {"is": "be", "are": "be", "am": "be", "of": "o'", "you": "ye"}


def in_pirate(claim: str) -> str:
    """The claim as a pirate says it."""
    return re.sub(r"\b[a-z]+\b", lambda word: _PIRATE_WORDS.get(word[0], word[0]), claim)


def render(question: FactQuestion, style: str, rng: Random) -> str:
    """A right answer to ``question``: the bare answer when terse, else the claim with trimmings.

    ``rng`` picks among a style's turns of phrase.

    Raises:
        ValueError: ``style`` is none of ``STYLES``.
    """
    match style:
        case "terse":
            return f"{question.answer[0].upper()}{question.answer[1:]}."
        case "friendly":
            talk = question.kind == "small talk"
            opener = FRIENDLY_GREETING if talk else rng.choice(FRIENDLY_OPENERS)
            return f"{opener} {question.claim}. {rng.choice(FRIENDLY_CLOSERS)}"
        case "pirate":
            claim = in_pirate(question.claim)
            return f"{rng.choice(PIRATE_OPENERS)} {claim}{rng.choice(PIRATE_CLOSERS)}"
        case _:
            raise ValueError(f"unknown style {style!r}; known: {', '.join(STYLES)}")
