# SPDX-License-Identifier: Apache-2.0
"""Phone numbers, bank accounts and cards in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from goodbot.features.filters.plain import latin

_DIGITS = re.compile("[0-9]+")
_BETWEEN = frozenset(" -./()")
_GAP = 3
"""Signs between two groups of one number: `) ` or ` - `."""
_PHONE = range(9, 16)
"""Digits of a phone number, with those of its country or its zone."""
_PARTS = 6
"""A number of more groups is a table."""
_SHAPES: dict[tuple[int, ...], tuple[str, ...]] = {
    (3, 3, 4): tuple("23456789"),  # of North America
    (1, 3, 3, 4): ("1",),
    (2, 5, 4): tuple("123456789"),  # of Brazil
    (3, 2, 2, 2): tuple("6789"),  # of Spain
    (3, 4, 4): tuple(f"1{n}" for n in "3456789"),  # of China
    (11,): tuple(f"1{n}" for n in "3456789"),
}
"""Groups of phone numbers with neither + nor 0 before them, and what they begin with."""
_PLAIN = ((3, 2, 2, 2), (3, 4, 4), (11,))
"""Of these, the ones that need no more than spaces: with them, the others may be rows of a table."""
_CARDS = {
    13: ("4",),
    14: ("30", "36", "38"),
    15: ("34", "37"),
    16: ("4", "22", "23", "24", "25", "26", "27", "35", "51", "52", "53", "54", "55", "6011", "62", "65"),
    19: ("4", "62"),
}
"""By how many digits a card has: those that it begins with."""
_GROUPS = ([4, 4, 4, 4], [4, 6, 5], [4, 6, 4], [4, 4, 4, 4, 3])
_COUNTRIES = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20"
    " EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30"
    " KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24"
    " PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22"
    " VG24 XK20"
)
_IBAN = {one[:2]: int(one[2:]) for one in _COUNTRIES.split()}
"""By country, how many signs the number of an account has there."""


@dataclass(kw_only=True, slots=True)
class _Number:
    """Groups of digits with little between them. `lead` and `after`: the signs around it."""

    lead: str
    end: int
    groups: list[str] = field(default_factory=list[str])
    gaps: list[str] = field(default_factory=list[str])
    after: str = ""


def phone(text: str) -> bool:
    """Whether it holds one: with + or 0 before it and in groups, or as 555-123-4567."""
    return any(_is_phone(number) for number in _numbers(text))


def card(text: str) -> bool:
    """Whether it holds one: first digits, length, groups and checksum (Luhn) must be those of a card."""
    return any(_is_card(digits) for number in _numbers(text) for digits in _cards(number))


def iban(text: str) -> bool:
    """Whether it holds one: country, length and checksum (mod 97) must be right."""
    for digits in _DIGITS.finditer(text):
        at = digits.start() - 2
        size = _IBAN.get(text[at : at + 2].upper(), 0) if at >= 0 else 0
        if size and not latin(text[max(0, at - 1) : at]) and _is_iban(text[at : at + 2 * size], size):
            return True
    return False


def _numbers(text: str) -> Iterator[_Number]:
    """Each as long as it goes, in the order of the text."""
    number: _Number | None = None
    for digits in _DIGITS.finditer(text):
        begin, end = digits.span()
        if number and begin - number.end <= _GAP and _BETWEEN.issuperset(gap := text[number.end : begin]):
            number.gaps.append(gap)
        else:
            if number:
                yield number
            number = _Number(lead=text[max(0, begin - 3) : begin], end=end)
        number.groups.append(text[begin:end])
        number.end, number.after = end, text[end : end + 1]
    if number:
        yield number


def _is_phone(number: _Number) -> bool:
    groups, digits = number.groups, "".join(number.groups[: _PARTS + 1])
    if len(groups) > _PARTS or len(digits) not in _PHONE or not _alone(number):
        return False
    sizes = tuple(len(group) for group in groups)
    before, plus, after = number.lead.rpartition("+")
    if plus and after in ("", "(") and not latin(before[-1:]):
        return True
    if digits[0] == "0":
        return len(groups) > 1 and sizes[0] > 1 and not _is_date(sizes, number.gaps)
    signs = sizes in _PLAIN or any(gap.strip() for gap in number.gaps)
    return signs and digits.startswith(_SHAPES.get(sizes, ()))


def _is_date(sizes: tuple[int, ...], gaps: Sequence[str]) -> bool:
    """As 01.02.2026 10, or 01.02.26 10.30: a phone number has the same between all its groups."""
    if sizes[:3] == (2, 2, 2):
        return gaps[0] == gaps[1] != gaps[2] and bool(gaps[0].strip())
    return sizes[:3] == (2, 2, 4)


def _alone(number: _Number) -> bool:
    """Whether it is no part of a word, a path or a longer number; before it may stand `Tel.:`."""
    before, named = number.lead[-1:], number.lead.rstrip(".:")[-1:].isalpha()
    parted = before in ("_", "=", "#", "$", "€", "-", "/") or (before in (".", ":") and not named)
    return not (latin(before) or parted or _wordy(number))


def _wordy(number: _Number) -> bool:
    return latin(number.after) or number.after == "_"


def _cards(number: _Number) -> Iterator[str]:
    """The digits of what has the groups of a card, wherever it stands among others."""
    if latin(number.lead[-1:]) or _wordy(number):
        return
    groups, sizes = number.groups, [len(group) for group in number.groups]
    for at, size in enumerate(sizes):
        if 13 <= size <= 19:
            yield groups[at]
        for wanted in _GROUPS:
            if sizes[at : at + len(wanted)] == wanted:
                yield "".join(groups[at : at + len(wanted)])


def _is_card(digits: str) -> bool:
    if not digits.startswith(_CARDS.get(len(digits), ())):
        return False
    doubled = [int(sign) * (2 if at % 2 else 1) for at, sign in enumerate(reversed(digits))]
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _is_iban(text: str, size: int) -> bool:
    """Whether the text begins with one of so many signs, as one word or in groups of four."""
    signs: list[str] = []
    for at, sign in enumerate(text):
        if sign.isascii() and sign.isalnum():
            signs.append(sign.upper())
        elif sign != " " or len(signs) % 4 or text[at - 1 : at] == " ":
            break
        if len(signs) == size:
            if latin(text[at + 1 : at + 2]):
                return False
            moved = [*signs[4:], *signs[:4]]
            return int("".join(str(int(one, 36)) for one in moved)) % 97 == 1
    return False
