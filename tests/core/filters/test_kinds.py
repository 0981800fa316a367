# SPDX-License-Identifier: Apache-2.0
"""What our own filters find, what looks like it and is none, and that no text takes long.

The values are made up, and put together here: what scans repositories for personal data shall find none.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from goodbot.api.content_filter import FilterCase
from goodbot.features.filters import addresses, numbers, plain
from goodbot.features.filters.personal import PersonalData
from goodbot.features.filters.plain import figures, words
from goodbot.features.filters.plugin import BlockedSettings, PersonalSettings
from goodbot.features.filters.words import BlockedWords

from tests.core.builders import turn
from tests.support import within

HOLDS = {
    "email": addresses.email,
    "phone": numbers.phone,
    "iban": numbers.iban,
    "card": numbers.card,
    "ip": addresses.ip,
}
AT = "@"
GERMAN = "DE89 3704 0044 " + "0532 0130 00"
VISA = "4111 1111 " + "1111 1111"
FOUND = {
    "email": (
        f"ada{AT}mail.de",
        f"<ada.b+list{AT}mail.co.uk>,",
        f"mailto:ada_b{AT}sub.mail.io",
        f"müller{AT}bücher.de",
        "ada＠mail.de",  # as wide letters
        f"(ada{AT}mail.museum).",
        f"ada{AT}mail.xn--p1ai",
    ),
    "phone": (
        "+49 30 " + "1234567",
        "+1 (555) " + "123-4567",
        "+4930" + "1234567",
        "(555) " + "123-4567",
        "555-123-" + "4567",
        "030 " + "1234567",
        "0171/" + "1234567",
        "01 23 45 " + "67 89",
        "+٤٩ ٣٠ " + "١٢٣٤٥٦٧",
        "+49\u00a030\u2011123" + "4567",
        "1-555-123-" + "4567",
        "(11) 91234-" + "5678",
        "612 34 " + "56 78",
        "138 1234 " + "5678",
        "1381234" + "5678",
        "06-12 34 " + "56 78",
        "090-1234-" + "5678",
    ),
    "iban": (GERMAN, GERMAN.replace(" ", ""), GERMAN.lower(), "GB82 WEST 1234 " + "5698 7654 32"),
    "card": (VISA, VISA.replace(" ", ""), VISA.replace(" ", "-"), "3782 822463 " + "10005", f"12 {VISA}"),
    "ip": (
        "93.184." + "216.34",
        "Adresse:93.184." + "216.34",
        "IPv6:2a00:1450:4001:" + "81b::200e",
        "93.184." + "216.34:80",
        "2a00:1450:4001:" + "81b::200e",
        "[2a00:1450" + "::1]",
    ),
}
NOT_FOUND = (
    f"me{AT}example.org and ada{AT}mail.example",
    f"git{AT}github.com:owner/repository.git",
    f"icon{AT}2x.png, package{AT}1.2.3, {AT}app.route, {AT}ada, x{AT}localhost",
    "2026-11-27 10:30:00 and 01/02/2026 10:30, 27.11.2026, 01.02.26 10.30, 01/02/26 - 03/04/26, 10/2025-2026",
    "1 000 000 000 or 0.123456789 or 200 300 4000",
    "ISBN 978-3-16-148410-0 and 0-306-40615-2",
    "550e8400-e29b-41d4-a716-446655440000",
    "id=4111111111111112 1234567890123456",
    "DE89 3704 0044 0532 0130 01",
    "192.168.1.1, 10.0.0.1, 127.0.0.1:8080, version 1.2.3 and v1.2.3.4",
    "std::vector a::b 2001:db8::1 fe80::1",
    "#0123456789 $0123 456 789 /0123/456789",
    "Pi is 3.14159265358979, 2 + 3 = 5",
)


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts])
def test_it_is_found_wherever_it_stands(kind: str, text: str) -> None:
    for around in (
        text,
        f"Look: {text} is it.",
        f"({text})",
        f"{text}\n",
        f"Nr.:{text}",
        f"これは{text}です",
    ):
        assert HOLDS[kind](figures(around)), around


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_looks_like_it_is_none(text: str) -> None:
    assert [kind for kind, holds in HOLDS.items() if holds(figures(text))] == []


def case(answer: str, **changes: Any) -> FilterCase:
    return FilterCase(turn=turn("t", response=answer), **changes)


def test_only_the_kinds_that_are_on_are_looked_for() -> None:
    text = f"ada{AT}mail.de, {VISA}"
    assert PersonalData(PersonalSettings()).reasons(case(text)) == ["email", "card"]
    assert PersonalData(PersonalSettings(email=False)).reasons(case(text)) == ["card"]
    assert PersonalData(PersonalSettings()).reasons(case("", said=[text])) == ["email", "card"]


@pytest.mark.parametrize(
    ("block", "text", "named"),
    [
        ("acme", "Ask ACME.", True),
        ("acme", "ＡＣＭＥ", True),
        ("acme", "ac\u200bme", True),
        ("acme", "acmeist", False),
        ("acme", "a c m e", False),
        ("straße", "STRASSE", True),
        ("café", "cafe\u0301", True),
        ("house of cards", "House, of\ncards!", True),
        ("house of cards", "house of card", False),
        ("house of cards", "house of house of cards", True),
        ("黄色", "我喜欢黄色的", True),
        ("黄色", "黄的色", False),
        ("किताब", "यह किताब है", True),
        ("किताब", "किताबें", False),
        ("ไทย", "ภาษาไทยง่าย", True),
        ("c++", "in C++", True),
    ],
)
def test_words_are_whole_in_any_case_and_script(block: str, text: str, named: bool) -> None:
    found = BlockedWords(BlockedSettings(block=(block,))).reasons(case(text))
    assert found == (["word"] if named else [])


PARTS = (
    "@",
    "a@",
    "a.@a.",
    "1",
    "1 ",
    "1-",
    "DE89 ",
    "DE89",
    "4111 ",
    "1.",
    "a:",
    "::",
    "0123 ",
    "+1(",
    "x",
    "\u0301\u0316",
    "ﷺ",
    "黄",
)


def steps(text: str) -> int:
    """Lines of our filters that run on a text."""
    count = 0

    def counting(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return counting if "features/filters" in frame.f_code.co_filename else None

    found, before = case(text), sys.gettrace()
    blocked = BlockedWords(BlockedSettings(block=("a a a a a b", "x y")))
    sys.settrace(counting)
    try:
        blocked.reasons(found)
        PersonalData(PersonalSettings()).reasons(found)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("part", PARTS)
def test_twice_the_text_takes_about_twice_the_steps(part: str) -> None:
    small, large = (steps((part * size)[:size]) for size in (4_000, 8_000))
    assert large <= 2.5 * small + 200


@pytest.mark.parametrize(
    "part", ["@", "1 ", "DE89 ", "::", "+1(", "\u0301\u0316", "\u0f73", "\u0301\uff9e", "黄"]
)
def test_a_million_characters_do_not_take_long(part: str) -> None:
    """What runs in C is not counted above."""
    text = (part * 1_000_000)[:1_000_000]
    with within(30.0):  # quadratic would be hours
        plain = figures(text)
        for holds in HOLDS.values():
            holds(plain)
        words(text)


def test_no_text_makes_it_remember_all_signs_there_are() -> None:
    rare = "".join(map(chr, range(0x20000, 0x20100)))
    words(rare)
    figures(rare)
    tables = (plain._APART, plain._FIGURES)
    assert all(code < 0x10000 for table in tables for code in table)
    assert plain._is_mark.cache_info().maxsize
