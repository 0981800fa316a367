# SPDX-License-Identifier: Apache-2.0
"""Every sentence that people read, by a key: one file a language, beside this module.

Whoever changes a sentence edits `en.toml`, and the same key in the other files. A text is a line with
`{names}` in it, or one line for each plural category of the number that `by` names. docs/decisions/0019
says why it is TOML.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from goodbot.base.text import one_way

Text = str | Mapping[str, str]
"""As it stands in a file: a line, or lines by plural category."""
ENGLISH = "en"
BY = "by"
"""Beside the categories: the name of the number that decides."""

_BACKWARDS = {"R", "AL", "AN"}
_ISOLATE, _END = "\u2068", "\u2069"


class Language(NamedTuple):
    """How a language counts and sets its sentences.

    `category` is CLDR's plural category of a whole number. Spanish, French and Portuguese have one for whole
    millions, too, which no number of ours reaches. `joint` stands between two sentences, `stop` ends one.
    """

    category: Callable[[int], str]
    joint: str = " "
    stop: str = "."


def _one(number: int) -> str:
    return "one" if number == 1 else "other"


def _none_or_one(number: int) -> str:
    return "one" if number in (0, 1) else "other"


def _same(_number: int) -> str:
    return "other"


LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        ENGLISH: Language(_one),
        "de": Language(_one),
        "es": Language(_one),
        "fr": Language(_none_or_one),
        "ja": Language(_same, joint="", stop="。"),
        "pt": Language(_none_or_one),
        "zh": Language(_same, joint="", stop="。"),
    }
)


@cache
def catalogue(language: str) -> Mapping[str, Text]:
    """All texts of one of `LANGUAGES`, by key. Raises KeyError for another language."""
    LANGUAGES[language]  # nothing but these names ever becomes a path
    text = files(__name__).joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return cast("Mapping[str, Text]", tomllib.loads(text))


def language_of(*tags: str) -> str:
    """The first of these that there are texts in: `pt-BR`, `de_DE.UTF-8`, `zh-Hant`; empty: none of them."""
    for tag in tags:
        name = tag[:35].replace("_", "-").partition(".")[0].partition("-")[0].lower()
        if name in LANGUAGES:
            return name
    return ""


def language_here(environ: Mapping[str, str]) -> str:
    """The language of a terminal, by its locale; empty: none of ours, or none is set."""
    return language_of(next(filter(None, map(environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), ""))


def say(key: str, language: str = "", /, **values: Any) -> str:
    """Look up a text of the catalogue.

    People's words among the values are data: what they hold is not looked into, and cannot turn the
    direction in which the rest is read.

    Args:
        key: Names the text.
        language: What the reader reads; English where there is no text in it.
        values: What is put into the text, by name.

    Returns:
        The text with its values.

    Raises:
        KeyError: The key is unknown, or a value is missing.
    """
    language = language_of(language) or ENGLISH
    text = catalogue(language)[key]
    if not isinstance(text, str):
        text = text[LANGUAGES[language].category(values[text[BY]])]
    return text.format_map({name: _shown(value) for name, value in values.items()})


def joined(language: str, *sentences: str) -> str:
    """Sentences one after the other, as the language sets them; empty ones are left out."""
    return LANGUAGES[language_of(language) or ENGLISH].joint.join(filter(None, sentences))


def ended(clause: str, language: str) -> str:
    """A clause as a sentence; one that is still in English ends like English."""
    return f"{clause}{'.' if clause.isascii() else LANGUAGES[language_of(language) or ENGLISH].stop}"


def _shown(value: object) -> str:
    """A value as text; what is read from right to left stands apart from what is around it."""
    if not isinstance(value, str) or value.isascii():
        return str(value)
    safe = one_way(value)
    backwards = any(unicodedata.bidirectional(sign) in _BACKWARDS for sign in safe)
    return f"{_ISOLATE}{safe}{_END}" if backwards else safe
