# SPDX-License-Identifier: Apache-2.0
"""What the pages of the browser say stands in the catalogue (`goodbot.api.texts`), and nowhere else."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from goodbot.api.texts import BY, catalogue

from tests.architecture.source import ROOT

PAGES = ROOT / "connectors/goodbot_connectors/web/pages"
FILES = sorted(one for one in PAGES.iterdir() if one.suffix in (".js", ".html"))
COMMENT = re.compile(r"^\s*//.*$|(?<=[;{,)(\]]) // .*$", re.M)
LITERAL = re.compile(r'"([^"\n]*)"|`([^`\n]*)`')
PLACE = re.compile(r"\$\{[^{}]*\}")
SMALL = "a|an|and|are|at|by|for|in|is|it|not|of|or|the|than|to|with|yet"
PROSE = re.compile(rf"^\W*[A-Z][a-z]|\b[a-z]+ (?:{SMALL})\b")
"""A text for people begins with a capital letter, or has a small word in it."""
NAMES = {
    *("ArrowDown", "ArrowUp", "Content-Type", "Enter", "Esc", "Escape", "Notification", "Tab"),
    *("Files", "X-Goodbot-User"),
}
"""What browsers call keys, headers and what is dropped."""
TELLING = {"alt", "aria-label", "placeholder", "title"}
"""Attributes that people see, or hear."""
GIVEN = {"language", "texts"}
"""Places of a page that hold no single text."""
CALL = re.compile(r'\bsay\("(page_\w+)"(?:, \{([^{}]*)\})?')


class Told(HTMLParser):
    """What stands in an HTML file for people to read."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within = tag
        self.found += [value for name, value in attrs if name in TELLING and value]

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within not in ("kbd", "code"):
            self.found.append(data)


def own_words(path: Path) -> list[str]:
    """Texts for people that stand in a file itself."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        told = Told()
        told.feed(PLACE.sub("", text))
        # A key in brackets, an address, a place and our name are the same everywhere.
        plain = [re.sub(r"\(\w+\)|https?://\S+|goodbot|slack(?::U\d+)?", "", one) for one in told.found]
        return [one.strip() for one in plain if re.search(r"[A-Za-z]{2}", one)]
    return [*of_script(text)]


def of_script(text: str) -> Iterator[str]:
    for quoted, filled in LITERAL.findall(COMMENT.sub("", text)):
        said = PLACE.sub("…", quoted or filled)
        if PROSE.search(said) and said not in NAMES and "[" not in said:
            yield said


def keys_of(path: Path) -> set[str]:
    """The texts that a file names."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        return {name[2:-1] for name in PLACE.findall(text)} - GIVEN
    return set(re.findall(r'"(page_\w+)"', text))


def test_a_page_has_no_words_of_its_own() -> None:
    found = {one.name: words for one in FILES if (words := own_words(one))}
    assert found == {}, "a text for people stands in goodbot/api/texts, with a key"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('button("Sign out")', ["Sign out"]),
        ('el("p", {}, `${count} answers of ${all}`)', ["… answers of …"]),
        ('el("p", {}, "not rated yet")', ["not rated yet"]),
        ('say("page_sign_out")', []),
        ('event.key === "Escape"', []),
        ('el("p", { class: "chip small" })', []),
        ('// "Not this one"', []),
    ],
)
def test_words_are_seen(line: str, found: list[str]) -> None:
    assert [*of_script(line)] == found


def test_every_text_that_a_page_names_is_there() -> None:
    for one in FILES:
        assert keys_of(one) <= catalogue("en").keys(), one.name


def test_no_text_of_the_pages_is_left_over() -> None:
    named = {key for one in FILES for key in keys_of(one)}
    assert [key for key in catalogue("en") if key.startswith("page_") and key not in named] == []


def test_every_value_that_a_text_has_is_given_with_it() -> None:
    for one in FILES:
        for key, values in CALL.findall(one.read_text(encoding="utf-8")):
            text = catalogue("en")[key]
            lines = [text] if isinstance(text, str) else [line for name, line in text.items() if name != BY]
            wanted = {name for line in lines for _, name, _, _ in string.Formatter().parse(line) if name}
            wanted |= set() if isinstance(text, str) else {text[BY]}
            given = {part.partition(":")[0].strip() for part in values.split(",")}
            assert wanted <= given, (one.name, key)


def test_what_is_put_into_html_has_no_places() -> None:
    """Nobody fills them in there."""
    for one in FILES:
        if one.suffix == ".html":
            for key in keys_of(one):
                text = catalogue("en")[key]
                assert isinstance(text, str), key
                assert "{" not in text, key
