# SPDX-License-Identifier: Apache-2.0
"""Texts as filters compare them: one spelling for what looks alike, words apart. Linear in their length."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_REMEMBERED = 0x10000
"""Signs below it are looked up once: nobody's text makes goodbot remember a million others."""
_MARKS = 16
"""Marks on one letter; more are no writing, and would take long to be put in order."""
_NO_SPACES = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Burmese
    ("\u1780", "\u17ff"),  # Khmer
    ("\u3040", "\u30ff"),  # kana
    ("\u3400", "\u9fff"),  # Chinese characters
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)
"""Letters of scripts that put no space between words: each stands for itself."""


class _Apart(dict[int, str]):
    """For `str.translate`: letters, digits and marks stay, all else parts words; what has no width goes."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)
        if kind == "Cf":
            told = ""
        elif kind[0] not in "LMN":
            told = " "
        else:
            told = f" {sign} " if any(low <= sign <= high for low, high in _NO_SPACES) else sign
        if code < _REMEMBERED:
            self[code] = told
        return told


class _Figures(dict[int, str]):
    """For `str.translate`: digits of every script as 0 to 9, every dash as -, each space as one of width."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)
        told = {"Nd": "", "Pd": "-", "Zs": " ", "Cf": ""}.get(kind, sign)
        if kind == "Nd":
            told = str(unicodedata.decimal(sign))
        if code < _REMEMBERED:
            self[code] = told
        return told


_APART, _FIGURES = _Apart(), _Figures()


def words(text: str) -> list[str]:
    """The words of a text, whatever their case and however they are typed."""
    return _alike(_alike(text).casefold()).translate(_APART).split()


def figures(text: str) -> str:
    """The text with plain digits, dashes and spaces; letters stay as they are."""
    return _alike(text).translate(_FIGURES)


def latin(sign: str) -> bool:
    """Whether a number or an address next to it is a part of a word: other scripts write both together."""
    return sign.isascii() and sign.isalnum()


def _alike(text: str) -> str:
    """In the form NFKC."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _tamed(text))


@lru_cache(maxsize=_REMEMBERED)
def _is_mark(sign: str) -> bool:
    """Whether it belongs to the sign before it, also once it is written out: some are none until then."""
    return unicodedata.combining(unicodedata.normalize("NFKD", sign)[0]) > 0


def _tamed(text: str) -> str:
    """Without marks beyond `_MARKS` in a row: to put n of them in order takes n² steps."""
    kept: list[str] = []
    row = 0
    for sign in text:
        row = row + 1 if _is_mark(sign) else 0
        if row <= _MARKS:
            kept.append(sign)
    return text if len(kept) == len(text) else "".join(kept)
