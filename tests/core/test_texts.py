# SPDX-License-Identifier: Apache-2.0
"""The catalogue of sentences: whole in every language, in plain words, and safe with people's names."""

from __future__ import annotations

import re
import string
import typing
from collections.abc import Iterator
from importlib.resources import files

import pytest
from goodbot.api.sentences import because, words
from goodbot.api.texts import BY, LANGUAGES, catalogue, joined, language_of, part, say, terminal
from goodbot.config import ServingConfig

from tests.architecture.plain import bent, house

OTHERS = [language for language in LANGUAGES if language != "en"]
CATEGORIES = {
    **{language: {"one", "other"} for language in ("en", "de", "es", "fr", "pt")},
    "ja": {"other"},
    "zh": {"other"},
}
"""CLDR's, without that of whole millions."""
ONE = {"en": {1}, "de": {1}, "es": {1}, "fr": {0, 1}, "pt": {0, 1}, "ja": set[int](), "zh": set[int]()}
"""Which of 0, 1, 2, 5 and 40 are `one` there, by CLDR."""
NUMBERS = (0, 1, 2, 5, 40)
LONGEST = 25
"""Words of an English sentence."""
COUNTED = "rating|answer|message|day|minute|second|time|note|question|example|version"
SAME = {
    "de": {
        *("page_asked_in", "page_browser", "page_chat", "page_name", "page_person"),
        *("page_section_plugins", "page_version_badge", "page_version_head"),
    },
    "es": {"page_base", "page_chat", "page_no", "page_section_plugins"},
    "fr": {
        *(
            "model_licence",
            "page_base",
            "page_code",
            "page_code_of",
            "page_conversation",
            "page_conversations",
            "demo_question",
        ),
        *("page_message", "page_pages", "page_question", "page_version", "page_version_badge"),
        *("page_section_plugins", "page_version_head", "page_versions"),
    },
    "pt": {"page_base", "page_section_plugins"},
}
"""Texts that a language has the English word for."""
NEVER_ONE = {
    "capture_messages",
    "changes_seen",
    "check_on_rounds",
    "compare_live",
    "compare_lost",
    "dry_steps",
    "changes_apart",
    "learnt_people",
    "answers_now",
    "status_answers",
    "pause_over",
    "who_answers",
    "own_back",
    "train_few",
    "withdrawn",
    "page_agreement_how",
    "page_opposite",
    "report_long",
    "page_times",
    "answers_resumed",
    "alone_runs",
    "alone_runs_on",
    "run_answers",
    "chat_now",
    "doc_answers",
    "doc_answers_but",
    "doc_answers_adapters",
    "doc_port_starts",
    "doc_port_odd",
    "doc_port_well",
    "switch_back",
    "switch_until",
    "switch_done",
    "demo_owner",
    "demo_trains",
    "demo_new",
    "ago_days",
    "ago_minutes",
    "probe_other",
    "probe_well",
    "probe_unlike",
    "probe_same",
    "measured_both",
    "report_predict_bin",
    "err_answers_status",
    "fault_adapter",
    "err_ended_often",
    "err_ended_often_at",
    "err_memory_out",
    "err_stays",
    *(f"child_host_{name}" for name in ("late", "busy", "no_result", "no_step", "foreign")),
}
"""Texts with a number that is never 1."""


def lines(language: str) -> Iterator[tuple[str, str]]:
    """Each line of a file, with its key."""
    for key, text in catalogue(language).items():
        yield from (
            [(key, text)] if isinstance(text, str) else [(key, one) for c, one in text.items() if c != BY]
        )


def names(line: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(line) if name is not None}


def needed(key: str, language: str) -> set[str]:
    text = catalogue(language)[key]
    if isinstance(text, str):
        return names(text)
    return {text[BY]}.union(*(names(line) for category, line in text.items() if category != BY))


def shown(key: str, language: str, number: int) -> str:
    """A text with this number at every place that a number or a word may have."""
    return say(key, language, **dict.fromkeys(needed(key, language), number))


def test_there_is_a_file_for_each_language_and_no_other() -> None:
    for package in ("goodbot.api.texts", "goodbot.api.texts.terminal"):
        there = {entry.name for entry in files(package).iterdir() if entry.name.endswith(".toml")}
        assert there == {f"{language}.toml" for language in LANGUAGES}
    assert set(typing.get_args(typing.get_type_hints(ServingConfig)["language"])) == set(LANGUAGES)


def test_no_text_stands_in_two_files() -> None:
    assert part("en").keys() & part("en", terminal.FOLDER).keys() == set()


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_every_text(language: str) -> None:
    assert list(catalogue(language)) == list(catalogue("en")), "in the order of en.toml"


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_translated_with_the_same_places(language: str) -> None:
    english = catalogue("en")
    same = {key for key, text in catalogue(language).items() if text == english[key]}
    assert same == SAME.get(language, set())
    for key in english:
        assert needed(key, language) <= needed(key, "en"), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_line_leaves_a_value_out(language: str) -> None:
    """But the one of a single thing, which need not give its number."""
    for key, text in catalogue(language).items():
        wanted = needed(key, "en")
        for category, line in ({"": text} if isinstance(text, str) else text).items():
            spared = {text[BY]} if category == "one" and not isinstance(text, str) else set[str]()
            assert category == BY or wanted - spared <= names(line) <= wanted, (key, category)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_place_is_a_name_and_nothing_more(language: str) -> None:
    """Neither an attribute nor an index nor a format: what is put in is data."""
    for key, line in lines(language):
        for _, name, form, conversion in string.Formatter().parse(line):
            assert name is None or (name.isidentifier() and not form and not conversion), (key, line)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_plural_categories_are_whole(language: str) -> None:
    for key, text in catalogue(language).items():
        assert isinstance(text, str) or set(text) == {BY, *CATEGORIES[language]}, key
    assert {n for n in NUMBERS if LANGUAGES[language].category(n) == "one"} == ONE[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_can_be_said_with_any_number(language: str) -> None:
    for key in catalogue(language):
        for number in NUMBERS:
            said = shown(key, language, number)
            assert said.strip() == said != "", key
            assert "{" not in said, key
            if language == "en" and key not in NEVER_ONE:
                assert not re.search(rf"\b1 (?:{COUNTED})s\b", said), said


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ["1 more rating and I train.", "2 more ratings and I train."]),
        ("de", ["Noch 1 Bewertung, dann trainiere ich.", "Noch 2 Bewertungen, dann trainiere ich."]),
        ("es", ["Con 1 valoración más, entreno.", "Con 2 valoraciones más, entreno."]),
        ("fr", ["Encore 1 note et je m’entraîne.", "Encore 2 notes et je m’entraîne."]),
        ("ja", ["あと 1 件の評価で学習を始めます。", "あと 2 件の評価で学習を始めます。"]),
        ("pt", ["Mais 1 avaliação e eu treino.", "Mais 2 avaliações e eu treino."]),
        ("zh", ["再有 1 个评价我就训练。", "再有 2 个评价我就训练。"]),
    ],
)
def test_one_is_not_many(language: str, said: list[str]) -> None:
    facts = {"schedule": "auto", "seconds": 0.0}
    assert [words(because("soon", more=n, **facts), language=language) for n in (1, 2)] == said


def test_english_is_short_and_plain() -> None:
    for key, line in lines("en"):
        prose = re.sub(r"`[^`]*`", "`", line)
        for sentence in re.split(r"(?<=[.!?])\s+", prose):
            assert len(sentence.split()) <= LONGEST, (key, sentence)
            assert bent(sentence) == [], (key, sentence)
        assert house(line) == [], key


def test_french_has_no_break_before_its_marks() -> None:
    assert [line for _, line in lines("fr") if re.search(r" [:;?!»]|« ", line)] == []


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_where_there_are_no_spaces_none_stands_between_sentences(language: str) -> None:
    said = words(because("bad"), because("not_yet"), language=language)
    assert said == say("bad", language) + say("not_yet", language)
    assert joined("de-AT", "A.", "", "B.") == "A. B."


# -- what people are called


@pytest.mark.parametrize(
    "name", ["{person}", "{0}", "{name.__class__}", "{", "}", "%(name)s", "$name", "`rm`"]
)
def test_a_name_with_braces_stays_a_name(name: str) -> None:
    for language in LANGUAGES:
        assert name in say("no_talker", language, person=name)


@pytest.mark.parametrize("name", ["דנה", "علي", "a\u202eb دا"])
def test_a_name_that_is_read_backwards_turns_nothing_around(name: str) -> None:
    said = say("no_owner", "en", command=name)
    safe = name.replace("\u202e", "")
    assert said == f"`\u2068{safe}\u2069` is for the owners of this bot."


@pytest.mark.parametrize(
    "sign", ["\u2066", "\u2067", "\u2068", "\u2069", "\u202a", "\u202b", "\u202d", "\u202e"]
)
def test_nobody_breaks_out_of_their_place(sign: str) -> None:
    assert sign not in say("no_owner", "en", command=f"é{sign}x")
    assert say("no_owner", "en", command=f"ע{sign}").count(sign) == (sign in "\u2068\u2069")


@pytest.mark.parametrize("name", ["telegram:1003", "José", "中文", "ada@example.org"])
def test_what_is_read_forwards_is_left_as_it_is(name: str) -> None:
    """Else what people copy from it would have signs in it that nobody sees."""
    assert f"grant talker {name}`" in say("no_talker", person=name)


# -- whose language


@pytest.mark.parametrize(
    ("tags", "language"),
    [
        (["de"], "de"),
        (["pt-BR"], "pt"),
        (["pt_PT.UTF-8"], "pt"),
        (["zh-Hant-TW"], "zh"),
        (["ZH-cn"], "zh"),
        (["fr_CA@euro"], "fr"),
        (["nl", "ja-JP", "de"], "ja"),
        (["C.UTF-8"], ""),
        (["POSIX", ""], ""),
        (["den"], ""),
        (["../../etc/passwd"], ""),
        (["x" * 100_000], ""),
        ([], ""),
    ],
)
def test_the_language_that_a_platform_tells(tags: list[str], language: str) -> None:
    assert language_of(*tags) == language


@pytest.mark.parametrize("language", ["", "nl", "tlh-Latn"])
def test_who_reads_none_of_them_is_told_in_english(language: str) -> None:
    assert say("good", language) == "Good."


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError):
        say("stars", "de", stars=3)
    with pytest.raises(KeyError):
        say("nobody wrote this")


def test_of_another_goodbots_codes_nothing_is_said() -> None:
    assert words(because("good"), because("of the future", x=1), because("stars"), language="de") == "Gut."


def test_a_language_is_no_path() -> None:
    with pytest.raises(KeyError):
        catalogue("../texts/en")


# -- in a terminal


def settings() -> str:
    return "fr"


@pytest.mark.parametrize(
    ("locale", "programs", "language"),
    [("de_AT.UTF-8", False, "de"), ("C", False, "fr"), ("nl_NL", False, "fr"), ("de_DE", True, "en")],
)
def test_a_terminal_speaks_its_locale_else_as_the_config_says_and_english_to_programs(
    locale: str, programs: bool, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    try:
        terminal.speak(programs=programs, setting=settings)
        assert terminal.here() == language
        assert terminal.phrase("not_changed") == say("not_changed", language)
        assert terminal.phrase("base_model") == say("base_model", language), "of the other file"
        assert terminal.told_here() == ("" if language == "fr" else language), "what a daemon is told"
    finally:
        terminal.speak()


def test_without_a_locale_and_a_config_it_speaks_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    terminal.speak()
    assert (terminal.told_here(), terminal.here()) == ("", "en")
    assert terminal.rephrased("Talk and rate") == "Talk and rate"
    monkeypatch.setenv("LC_ALL", "es_MX")
    assert terminal.rephrased("Talk and rate") == say("group_talk", "es")
    assert terminal.rephrased("of somebody's plugin") == "of somebody's plugin"
