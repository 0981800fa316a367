# SPDX-License-Identifier: Apache-2.0
"""Errors of the rooms below the catalogue: English to logs and programs, a person's language to people."""

from __future__ import annotations

import copy
import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot import config
from goodbot.api.adapters import manifest
from goodbot.api.sentences import because, in_words, words
from goodbot.api.texts import LANGUAGES, catalogue, reworded, say
from goodbot.base.checks import Range
from goodbot.base.errors import (
    AdapterError,
    ConfigError,
    GoodbotError,
    NewerDataError,
    ServerError,
    StoreError,
    TrainingError,
    UsageError,
)
from goodbot.base.suggest import Offered, instead
from goodbot.base.worded import Worded, said_by
from goodbot.base.worded_parts import parts_of, reason_in, reasons_in, together
from goodbot.cli import main
from goodbot.config.described import described
from goodbot.config.secrets import Secrets
from goodbot.inference.models import directory
from goodbot.inference.servers import sampler_lines
from goodbot.inference.servers.upstream import Upstream, UpstreamResponse
from goodbot.learning import worker_process
from goodbot.learning.training import outcome
from goodbot.store import backup, codec
from goodbot.store.commit_queue import explain


def wrong(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as error:
        config.parse(text, home=Path("/state"), path=Path("/state/config.toml"))
    return error.value


def test_in_english_it_is_the_text_that_it_was() -> None:
    said = Worded("{path} cannot be read: {why}", path=Path("/a b"), why="no {braces} here")
    assert said == "/a b cannot be read: no {braces} here"
    assert str(StoreError(said)) == said
    assert UsageError(said).english == said
    assert Worded("{no values}") == "{no values}"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_can_be_said_in_other_languages_too(again: Callable[[Worded], Worded]) -> None:
    said = again(Worded("{path} cannot be read: {why}", path="x", why="{y}"))
    assert said == "x cannot be read: {y}"
    assert reworded(said, "de") == say("err_path_unread", "de", path="x", why="{y}")


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_a_wrong_setting_is_told_in_the_readers_language(language: str) -> None:
    error = wrong("[model]\npth = 'x'")
    hint = say("instead_near", language, name="'path'")
    said = say("err_unknown_key", language, key="'pth'", hint=hint)
    assert reworded(error, language) == f"/state/config.toml:2: [model] {said}"
    assert str(error) == "/state/config.toml:2: [model] unknown key 'pth'; did you mean 'path'?"
    assert reworded(error, "en") == reworded(error) == str(error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serving]\nmax_tokens = 0", "max_tokens muss mindestens 1 sein"),
        ("[training]\nmax_load = 7", "max_load muss größer als 0 und höchstens 1 sein"),
        ("[training]\nreplay_share = 1.0", "replay_share muss zwischen 0 und 0.9 liegen"),
        ("[privacy]\nunrated_days = 0", say("err_says_at_once", "de")),
        ("[training]\nquiet_hours = '23-7'", say("err_window", "de")),
        ("[model]\npath = 3", "path muss ein Text in Anführungszeichen sein, nicht 3"),
        ("[serving.sampling]\ntop_k = -2", say("err_says_top_k", "de")),
    ],
)
def test_a_value_that_does_not_fit_is_told_so(text: str, said: str) -> None:
    assert said in reworded(wrong(text), "de-AT")


def test_each_end_of_a_range_has_words_in_every_language() -> None:
    ends: tuple[dict[str, Any], ...] = ({}, {"least": 1}, {"above": 1}, {"most": 1}, {"below": 1})
    ranges = [Range(**lower, **upper) for lower in ends[:3] for upper in (ends[0], *ends[3:])]
    for one in ranges:
        with pytest.raises(ValueError, match=r"^x must ") as error:
            one("x", float("nan"))
        assert reworded(error.value, "fr").startswith("x doit être")


def test_what_is_meant_instead_is_told_too() -> None:
    assert reworded(instead("a", []), "de") == f"es gibt: {reworded(Worded('none'), 'de')}"
    off = instead("x", Offered[int](["x"]))
    assert reworded(off, "es") == say("instead_off", "es", name="'x'", switch='`[plugins] enable = ["x"]`')


def test_an_error_in_an_error_is_told_in_the_same_language() -> None:
    inner = ConfigError(Worded("this session has no keyring"))
    outer = StoreError(Worded("the key file {path} cannot be used: {why}", path="k", why=inner))
    said = say("err_keyring_none", "ja")
    assert reworded(outer, "ja") == say("err_key_unusable", "ja", path="k", why=said)
    assert say("no_start", "ja", why=inner) == say("no_start", "ja", why=said), "also within other texts"


def test_peoples_words_stay_what_they_are() -> None:
    name = "{path}\u202ex"
    said = reworded(Worded("{path} cannot be read: {why}", path="p", why=name), "de")
    assert said.endswith(": {path}x")


@pytest.mark.parametrize(
    "error", [GoodbotError("somebody's own words"), OSError(2, "No such file"), KeyError()]
)
def test_anybody_elses_error_stays_as_it_is(error: Exception) -> None:
    assert reworded(error, "de") == str(error) == said_by(error)


def test_the_command_line_tells_it_as_the_terminal_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[sreving]\n")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert main(["--home", str(tmp_path), "status"]) == 2
    assert (
        capsys.readouterr().err
        == f"goodbot: {path}:1: unbekannter Schlüssel 'sreving'; meintest du 'serving'?\n"
    )


def test_what_sqlite_says_stands_in_the_readers_words() -> None:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    found = explain(error)
    assert str(found) == "the database is locked by another program (database is locked)"
    assert reworded(found, "de") == f"{say('st_locked', 'de')} (database is locked)"
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert reworded(explain(error, reading=True), "fr").startswith(say("st_disk_read", "fr"))
    assert reworded(explain(error), "fr").startswith(say("st_disk_write", "fr"))


def test_data_of_a_newer_goodbot_are_told_so() -> None:
    with pytest.raises(NewerDataError) as error:
        backup.require_schema(9, 8)
    assert reworded(error.value, "es") == say("st_newer", "es", found=9, known=8)


def test_a_model_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        directory.read_config(tmp_path)
    assert str(error.value) == f"{tmp_path} is no model directory: it has no config.json"
    assert reworded(error.value, "pt") == say("mod_no_config", "pt", path=tmp_path)


def test_an_adapter_of_another_file_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(AdapterError) as error:
        manifest.inspect(tmp_path, "../x")
    assert reworded(error.value, "zh") == say("ad_no_name", "zh", name="'../x'")


def test_what_each_setting_is_for_is_told_in_every_language() -> None:
    """The core's own; what a backend or a connector takes is told in English."""
    sections = {**config._SECTIONS, "grants": config.Grants}
    told = {
        one.told for name, cls in sections.items() for one in described(name, cls) if one.kind != "section"
    }
    keys = {key: text for key, text in catalogue("en").items() if key.startswith("setting_")}
    assert told == set(keys.values())
    assert reworded(Worded(keys["setting_training_reward"]), "de") == say("setting_training_reward", "de")


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_what_a_model_server_answers_is_told_in_the_readers_language(language: str) -> None:
    server = Upstream("vLLM", "http://127.0.0.1:8000", Secrets(("KEY",), {}).get("KEY"))
    error = server.refused(UpstreamResponse(status=500, body={"error": "no room"}))
    assert str(error) == "vLLM at http://127.0.0.1:8000 answers with status 500: no room"
    place = say("model_at", language, title="vLLM", url="http://127.0.0.1:8000")
    said = say("err_answers_status", language, place=place, status=500)
    assert reworded(error, language) == f"{said}: no room"


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_how_a_training_failed_is_kept_so_that_each_reads_it_in_their_language(language: str) -> None:
    """A child that a signal has ended, in a sentence about the memory: one worded text in another."""
    died = worker_process._death("trainer", -9)
    out = "it ran out of memory {times} times, at last with the smallest plan there is ({why})"
    error = TrainingError(Worded(out, times=3, why=said_by(died)), kind="oom")
    kept = codec.load_reasons(codec.dump_reasons(outcome.failed(1, error).ending))
    english = (
        "it ran out of memory 3 times, at last with the smallest plan there is (the trainer was killed by"
    )
    assert words(*kept) == str(error)
    assert str(error).startswith(english)
    inner = say("err_child_killed", language, who=say("err_trainer", language))
    assert words(*kept, language=language) == say("err_memory_out", language, times=3, why=inner)


def test_why_a_version_did_not_go_live_is_kept_likewise() -> None:
    [kept] = codec.load_reasons(
        codec.dump_reasons((because("ended_not_live", why=Worded("v{version} is not loaded", version=3)),))
    )
    assert kept.facts["why"] == "v3 is not loaded"
    assert "v3 ist nicht geladen" in words(kept, language="de")


def test_a_text_without_values_may_hold_braces() -> None:
    found = (because("check_few", count=8), because("ended_not_live", why=Worded("no {braces} here")))
    assert codec.load_reasons(codec.dump_reasons(found)) == found


def test_that_a_trainer_reported_no_verdict_is_told_in_the_readers_language() -> None:
    assert outcome.verdict_of({}, 0) == (outcome.NO_VERDICT,)
    told = words(*outcome.verdict_of({}, 2), language="de")
    assert told.startswith("Das Trainingsprogramm hat kein Ergebnis gemeldet. 2 Antworten warten")
    assert words(*outcome.verdict_of({"reason": "no better"}, 2)).startswith("no better. 2 answers wait")


@pytest.mark.parametrize("text", ["{a.__class__.x}", "{a} {b}", "{a:>9}", "{a!r}", "{"])
def test_what_is_kept_and_fits_no_text_is_shown_as_it_lies_there(text: str) -> None:
    odd = json.dumps([["text", {"text": {"worded": [text, {"a": 1}]}}]], separators=(",", ":"))
    assert codec.load_reasons(odd) == in_words(odd)


def test_a_sentence_of_a_child_that_the_catalogue_knows_is_told_in_the_readers_language() -> None:
    """It comes as a plain text."""
    said = "The loss or its gradient is not a finite number."
    assert reworded(TrainingError(said), "fr") == reworded(said, "fr") == say("err_not_finite", "fr")
    assert words(*in_words(said), language="fr") == say("err_not_finite", "fr")
    assert reworded(ServerError("The moon is full."), "fr") == "The moon is full."


# -- what a child says

INNER = Worded("{name} holds {number} tensors", name="w", number=3)
SAID = Worded(
    "The adapter in {directory} cannot be read: {why}", directory=Path("/a b"), why=AdapterError(INNER)
)


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_what_a_child_says_in_parts_is_told_in_the_readers_language(language: str) -> None:
    line = json.dumps({"event": "error", "kind": "adapter", "reason": SAID, **parts_of(SAID)})
    found = sampler_lines.answer(line.encode())["reason"]
    assert found == reason_in(json.loads(line)) == "The adapter in /a b cannot be read: w holds 3 tensors"
    inner = say("child_tensors", language, name="w", number=3)
    assert reworded(found, language) == say("child_unread", language, directory="/a b", why=inner)


def test_a_plain_text_of_a_child_stays_one() -> None:
    assert parts_of("The moon is full.") == parts_of(Worded("it is not UTF-8")) == {}
    assert reason_in({"reason": "The moon is full."}) == "The moon is full."
    assert sampler_lines.answer(b'{"event": "ok"}') == {"event": "ok"}
    assert len(reason_in({"reason": "x" * 10_000})) == 500
    clause = {"reason": SAID, **parts_of(Worded(f"{SAID.text}.", **SAID.values))}
    assert isinstance(reason_in(clause), Worded), "whether a stop stands behind it is no difference"


@pytest.mark.parametrize(
    "parts",
    [
        ["{name} holds {number} tensors", {"name": "w", "number": 4}],
        ["{name} holds {number} tensors", {"name": "w"}],
        ["{name} holds 3 tensors", {"name": "w", "more": "what somebody has said"}],
        ["{name.__class__} holds 3 tensors", {"name.__class__": "w", "name": "w"}],
        ["{name:>999} holds 3 tensors", {"name": "w"}],
        ["w holds 3 tensors", 7],
        {"w": "w holds 3 tensors"},
        "w holds 3 tensors",
    ],
)
def test_a_child_says_no_more_with_parts_than_without(parts: object) -> None:
    assert type(reason_in({"reason": str(INNER), "worded": parts})) is str
    assert reason_in({"reason": str(INNER), "worded": parts}) == INNER


def test_parts_of_parts_stay_as_short_as_what_is_told() -> None:
    """A line of a kilobyte would become gigabytes, and a deep one end whoever tells it."""
    many: dict[str, Any] = {"worded": ["x" * 20, {}]}
    for _ in range(10):
        many = {"worded": ["{a}" * 10, {"a": many}]}
    assert reason_in({"reason": "x", **many}) == "x"
    deep: dict[str, Any] = {"worded": ["x", {}]}
    for _ in range(50):
        deep = {"worded": ["{a}", {"a": deep}]}
    assert type(reason_in({"reason": "x", **deep})) is str
    with pytest.raises(ValueError, match="too deep"):
        together(deep)
    assert type(reason_in({"reason": "x", "worded": ["x" + "{a}", {"a": "." * 1000}]})) is str


def test_a_list_of_reasons_has_the_parts_of_each_beside_it() -> None:
    notes = [INNER, "its moon is full"]
    line = json.loads(json.dumps({"notes": notes, "parts": [*map(parts_of, notes)]}))
    told = [reworded(one, "de") for one in reasons_in(line, "notes")]
    assert told == [say("child_tensors", "de", name="w", number=3), "its moon is full"]
    assert reasons_in({"notes": ["one", "two"], "parts": [{}]}, "notes") == ["one", "two"]
    assert reasons_in({"notes": ["one"], "parts": ["x"]}, "notes") == ["one"]
    assert reasons_in({"notes": ["one"], "parts": 1}, "notes") == ["one"]
    assert reasons_in({}, "notes") == []
