# SPDX-License-Identifier: Apache-2.0
"""docs/glossary.md: every word is explained once, and what it names is in the code."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.architecture.plain import house
from tests.architecture.source import ROOT

ROWS = {
    word: (told, code)
    for word, told, code in re.findall(
        r"^\| ([\w ]+) \| (.+) \| (.+) \|$",
        (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"),
        flags=re.M,
    )
    if word != "word"
}
WORDS = {
    "turn",
    "label",
    "round",
    "run",
    "claim",
    "candidate",
    "version",
    "canary",
    "pin",
    "taint",
    "quarantine",
    "rollback window",
    "note",
    "scope",
    *("event", "receipt", "inbox", "late command", "review queue", "commit queue"),
    *("feature", "report", "reward model", "trace", "vault"),
}
FIRST = dict(
    re.findall(
        r"^\| ([A-Za-z ]+) \| ([^|]+) \|$",
        (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"),
        flags=re.M,
    )
)
NEWCOMERS = {
    *("adapter", "allowlist", "backend", "base model", "connector", "hub", "mention", "owner", "preset"),
    *("rater", "round", "scope", "talker", "token", "version"),
    *("API", "daemon", "flag", "GPU", "inbox", "interval", "note", "prompt", "proxy", "service", "terminal"),
    *("virtual environment", "weights"),
}
"""Words of the first pages and of the set-up that people stumbled over."""
SCHEMA = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "core/goodbot/store/migrations").glob("*.sql"))
)


def test_every_word_of_ours_is_explained() -> None:
    assert set(ROWS) >= WORDS


def test_a_newcomer_finds_the_first_words_in_one_short_sentence_each() -> None:
    assert FIRST.keys() >= NEWCOMERS
    assert list(FIRST)[1:] == sorted(list(FIRST)[1:], key=str.lower), "by the alphabet, below the heading"
    for word, told in list(FIRST.items())[1:]:
        assert len(told.split()) <= 18, word
        assert re.fullmatch(r"[A-Z][^.]+\.", told), word
        assert house(told) == [], word


@pytest.mark.parametrize("word", ROWS)
def test_what_a_word_names_is_there(word: str) -> None:
    told, code = ROWS[word]
    assert 1 <= len(re.findall(r"\.(?:\)|$| )", told)) <= 3, "one or two plain sentences"
    named = re.findall(r"(table |column |)`([\w.]+)`", code)
    assert named or code == "planned"
    for kind, name in named:
        if kind == "table ":
            assert re.search(rf"CREATE TABLE (?:IF NOT EXISTS )?{name}\b", SCHEMA), name
        elif kind == "column ":
            table, _, column = name.partition(".")
            assert re.search(
                rf"CREATE TABLE {table} \([^;]*\b{column}\b|ALTER TABLE {table} ADD COLUMN {column}\b", SCHEMA
            ), name
        else:
            _found(name)


def _found(name: str) -> object:
    """The module or definition of that dotted name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize("word", [word for word, (_, code) in ROWS.items() if code == "planned"])
def test_what_is_planned_is_not_there_yet(word: str) -> None:
    """Else it is no plan any more, and the glossary names it."""
    assert not re.search(rf"CREATE TABLE (?:IF NOT EXISTS )?{word}s\b", SCHEMA)
