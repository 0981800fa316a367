# SPDX-License-Identifier: Apache-2.0
"""What people read in a terminal only: a part of the catalogue, with files of its own beside this module.

A command that says two lines need not read all that chats are told. Whoever reads is the one who started
this program; so it speaks one language, and no call names it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import cache
from typing import Any

from goodbot.api.texts import (
    ENGLISH,
    beside,
    catalogue,
    commas,
    filled,
    joined,
    language_here,
    language_of,
    part,
    say,
)
from goodbot.base.suggest import suggested

FOLDER = "terminal"


def _by_locale() -> str:
    return language_here(os.environ)


_ASKED: dict[str, Callable[[], str]] = {}


def speak(*, programs: bool = False, setting: Callable[[], str] = str) -> None:
    """Settle how this program finds its language.

    Args:
        programs: Whether what it prints is for programs: they are told everything in English.
        setting: Asked once, where the locale names none of ours: what `[serving] language` says.
    """
    _ASKED["told"] = (lambda: ENGLISH) if programs else _by_locale
    _ASKED["setting"] = cache(setting)


@contextlib.contextmanager
def speaking(language: str) -> Generator[None]:
    """Speak that language until the end of the block, to somebody whose page tells it; empty: English."""
    before = _ASKED.get("told", _by_locale)
    _ASKED["told"] = lambda: language or ENGLISH
    try:
        yield
    finally:
        _ASKED["told"] = before


def told_here() -> str:
    """The language that this terminal tells; empty: none of ours. What is asked of a daemon goes with it."""
    return _ASKED.get("told", _by_locale)()


def here() -> str:
    """The language in which this program speaks."""
    return told_here() or language_of(_ASKED.get("setting", str)()) or ENGLISH


def phrase(key: str, /, **values: Any) -> str:
    """Look up a text of the catalogue, in the language of whoever started this program.

    Args:
        key: Names the text.
        values: What is put into the text, by name.

    Returns:
        The text with its values.

    Raises:
        KeyError: The key is unknown, or a value is missing.
    """
    language = here()
    own = part(language, FOLDER)
    return filled(own[key] if key in own else catalogue(language)[key], language, values)


def rephrased(text: str) -> str:
    """What the code has in English, as a table of commands does, in the language of this terminal.

    Anything else stays as it is.
    """
    if here() == ENGLISH:
        return text
    key = _known().get(text)
    return phrase(key) if key else text


def sentences(*said: str) -> str:
    """Sentences one after the other, as the language sets them; empty ones are left out."""
    return joined(here(), *said)


def instead(wanted: str, known: Iterable[str], language: str | None = None) -> str:
    """The end of a sentence about a name that nothing in `known` has: the one that was meant, or all.

    Args:
        wanted: The name.
        known: The names that there are.
        language: What the reader reads; None: as this program speaks.

    Returns:
        A clause.
    """
    language = here() if language is None else language
    found = suggested(wanted, known)
    if found.is_off:
        return say("instead_off", language, name=repr(wanted), switch=found.switch)
    names = commas(language, *found.names) or say("setup_none", language)
    hint = say("instead_all", language, names=names)
    if found.near:
        hint = say("instead_near", language, name=repr(found.near))
    if not found.switch:
        return hint
    return beside(hint, say("instead_maybe", language, switch=found.switch), language)


@cache
def _known() -> Mapping[str, str]:
    """The keys of what is the same for everything, by their English words."""
    return {text: key for key, text in part(ENGLISH, FOLDER).items() if isinstance(text, str)}
