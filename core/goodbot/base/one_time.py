# SPDX-License-Identifier: Apache-2.0
"""One-time codes that people type: eight characters that nobody mixes up, about 39 bits.

There is a letter and a digit among them, so that no plain word or number is taken for one.
"""

from __future__ import annotations

import itertools
import secrets

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
LENGTH = 8
_HYPHENS = "-\u2010\u2011\u2012\u2013\u2014"
_BETWEEN = str.maketrans("", "", f" \t\r\n\u00a0{_HYPHENS}")
"""What people and their keyboards put between the halves."""
_AROUND = ".,;:!?()[]{}<>*_~`|/\"'"
"""What people put around a code."""
_JOINED = str.maketrans("", "", _HYPHENS)


def fresh() -> str:
    """A new one, without the hyphen that it is shown with."""
    while True:
        code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
        if _mixed(code):
            return code


def _mixed(code: str) -> bool:
    return not code.isdecimal() and not code.isalpha()


def read(text: str) -> str:
    """The code that a message consists of, in its stored spelling; empty if it is none."""
    if len(text) > 4 * LENGTH:
        return ""
    code = text.translate(_BETWEEN)
    if len(code) != LENGTH or not code.isascii():
        return ""
    code = code.upper()
    return code if all(c in ALPHABET for c in code) and _mixed(code) else ""


def within(text: str) -> set[str]:
    """What in a text may be a code, in its stored spelling: one word, or two that make it up."""
    words = [word.strip(_AROUND) for word in text.split()]
    pairs = (f"{one}{two}" for one, two in itertools.pairwise(words) if len(one) + len(two) == LENGTH)
    return {code for one in (*words, *pairs) if len(one) >= LENGTH and (code := read(one))}


def is_like(text: str) -> bool:
    """Whether somebody may have meant a code: a wrong character, or one too many or too few, is no matter.

    Two words are one only at its exact length, and more are none: “Room 101”, “see you at 5”.
    """
    if len(text) > 4 * LENGTH:
        return False
    parts = text.translate(_JOINED).split()
    code = "".join(parts)
    near = abs(len(code) - LENGTH) <= (len(parts) == 1)
    return len(parts) <= 2 and near and code.isascii() and code.isalnum() and _mixed(code)
