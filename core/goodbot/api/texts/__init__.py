# SPDX-License-Identifier: Apache-2.0
"""Every sentence that people read, by a key: one file a language, beside this module.

Whoever changes a sentence edits `en.toml`, and the same key in the other files. A text is a line with
`{names}` in it, or one line for each plural category of the number that `by` names. docs/decisions/0019
says why it is TOML. What is read in a terminal only has files of its own, in `terminal/`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from goodbot.base.text import one_way
from goodbot.base.worded import Worded, said_by

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
    millions, too, which no number of ours reaches. `joint` stands between two sentences, `stop` ends one;
    `comma`, `pause` and `colon` stand between parts of one, `brackets` around what is said beside, `quotes`
    around people's words.
    """

    category: Callable[[int], str]
    joint: str = " "
    stop: str = "."
    comma: str = ", "
    pause: str = "; "
    colon: str = ": "
    brackets: tuple[str, str] = (" (", ")")
    quotes: tuple[str, str] = ("“", "”")
    thousands: str = ","
    point: str = "."
    percent: str = "%"


def _one(number: int) -> str:
    return "one" if number == 1 else "other"


def _none_or_one(number: int) -> str:
    return "one" if number in (0, 1) else "other"


def _same(_number: int) -> str:
    return "other"


_EAST: Mapping[str, Any] = {"joint": "", "stop": "。", "pause": "；", "colon": "：", "brackets": ("（", "）")}
LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        ENGLISH: Language(_one),
        "de": Language(_one, quotes=("„", "“"), thousands=".", point=",", percent="\u00a0%"),
        "es": Language(_one, quotes=("«", "»"), thousands="\u00a0", point=",", percent="\u00a0%"),
        "fr": Language(
            _none_or_one,
            pause="\u00a0; ",
            colon="\u00a0: ",
            quotes=("«\u00a0", "\u00a0»"),
            thousands="\u00a0",
            point=",",
            percent="\u00a0%",
        ),
        "ja": Language(_same, comma="、", quotes=("「", "」"), **_EAST),
        "pt": Language(_none_or_one, thousands=".", point=","),
        "zh": Language(_same, comma="，", **_EAST),
    }
)


@cache
def part(language: str, folder: str = "") -> Mapping[str, Text]:
    """The texts of one file, by key. Raises KeyError for another language than `LANGUAGES` has."""
    import tomllib  # both only where something is said: a command may say nothing
    from importlib.resources import files

    LANGUAGES[language]  # nothing but these names ever becomes a path
    text = files(__name__).joinpath(folder, f"{language}.toml").read_text(encoding="utf-8")
    return cast("Mapping[str, Text]", tomllib.loads(text))


@cache
def catalogue(language: str) -> Mapping[str, Text]:
    """All texts of one of `LANGUAGES`, by key. Raises KeyError for another language."""
    return {**part(language), **part(language, "terminal")}


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
    return filled(catalogue(language)[key], language, values)


def filled(text: Text, language: str, values: Mapping[str, Any]) -> str:
    """Put values into a text.

    Args:
        text: As it stands in a file.
        language: One of `LANGUAGES`.
        values: What is put in, by name.

    Returns:
        The text with its values.

    Raises:
        KeyError: A value is missing.
    """
    if not isinstance(text, str):
        text = text[LANGUAGES[language].category(values[text[BY]])]
    return text.format_map({name: _shown(value, language) for name, value in values.items()})


@cache
def _known() -> Mapping[str, str]:
    """The keys of the texts by their English words, places and all."""
    return {text: key for key, text in catalogue(ENGLISH).items() if isinstance(text, str)}


def reworded(said: object, language: str = "") -> str:
    """What the code says in English, in the reader's language.

    That is what is `Worded`, an error that is, and a text of the catalogue; anything else, such as a
    server's own words, stays as it is.
    """
    language = language_of(language) or ENGLISH
    found = said_by(said) if isinstance(said, BaseException) else said
    if language == ENGLISH:
        return str(found)
    worded = found if isinstance(found, Worded) else Worded(str(found))
    key = _known().get(worded.text)
    text = catalogue(language)[key] if key else worded.text
    return filled(text, language, worded.values) if worded.values else str(text)


def joined(language: str, *sentences: str) -> str:
    """Sentences one after the other, as the language sets them; empty ones are left out."""
    return _of(language).joint.join(filter(None, sentences))


def commas(language: str, *parts: str) -> str:
    """Parts of a sentence, with a comma between them; empty ones are left out."""
    return _of(language).comma.join(filter(None, parts))


def pauses(language: str, *parts: str) -> str:
    """The same with what is stronger than a comma."""
    return _of(language).pause.join(filter(None, parts))


def after(words: str, language: str) -> str:
    """Words with the space that stands before them within a sentence, where the language has one."""
    return f"{_of(language).joint}{words}"


def explained(said: str, why: str, language: str) -> str:
    """Put what was said and why together.

    Args:
        said: What stands first.
        why: What follows the colon.
        language: What the reader reads.

    Returns:
        `said: why`, with the colon of the language.
    """
    return f"{said}{_of(language).colon}{why}"


def beside(said: str, more: str, language: str) -> str:
    """Put something into brackets behind what is said.

    Args:
        said: What stands first.
        more: What stands in the brackets.
        language: What the reader reads.

    Returns:
        `said (more)`, with the brackets of the language.
    """
    begin, end = _of(language).brackets
    return f"{said}{begin}{more}{end}"


def quoted(words: str, language: str) -> str:
    """People's words between quotation marks."""
    begin, end = _of(language).quotes
    return f"{begin}{_shown(words, language)}{end}"


def ended(clause: str, language: str) -> str:
    """A clause as a sentence; one that is still in English ends like English."""
    return f"{clause}{'.' if clause.isascii() else _of(language).stop}"


def figure(number: float, language: str = "", *, digits: int = 0) -> str:
    """Write a number.

    Args:
        number: The number.
        language: What the reader reads.
        digits: How many stand behind the point.

    Returns:
        `10,000` or `3.5` as the language writes it.
    """
    of = _of(language)
    return f"{number:,.{digits}f}".translate({ord(","): of.thousands, ord("."): of.point})


def percent(share: float, language: str = "", *, signed: bool = False) -> str:
    """Write a share in percent.

    Args:
        share: Of one: 0.38.
        language: What the reader reads.
        signed: Whether it is a change: `+38%` or `−38%`.

    Returns:
        `38%` as the language writes it.
    """
    number = f"{100 * share:{'+' if signed else ''}.0f}".replace("-", "−")
    return f"{number}{_of(language).percent}"


def size(number: float, language: str = "") -> str:
    """So many bytes: `1.4 GB`, `350 MB`."""
    if number >= 1e9:
        return f"{figure(number / 1e9, language, digits=1)} GB"
    return f"{figure(number / 1e6, language)} MB"


def day(moment: datetime, language: str = "") -> str:
    """`21 Nov 2026`; in other languages `2026-11-21`."""
    if (language_of(language) or ENGLISH) == ENGLISH:
        return f"{moment.day} {moment:%b %Y}"
    return f"{moment:%Y-%m-%d}"


def _of(language: str) -> Language:
    return LANGUAGES[language_of(language) or ENGLISH]


def _shown(value: object, language: str) -> str:
    """A value as text; what is read from right to left stands apart from what is around it."""
    if isinstance(value, Worded | BaseException):
        value = reworded(value, language)
    if not isinstance(value, str) or value.isascii():
        return str(value)
    safe = one_way(value)
    backwards = any(unicodedata.bidirectional(sign) in _BACKWARDS for sign in safe)
    return f"{_ISOLATE}{safe}{_END}" if backwards else safe
