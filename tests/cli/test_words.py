# SPDX-License-Identifier: Apache-2.0
"""What is off in words, files and states: one sentence on stderr, and the right exit code."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from pathlib import Path

import pytest
from goodbot.api.commands import OLD
from goodbot.base.printing import printable
from goodbot.cli import main, parser
from goodbot.cli.words import typed
from goodbot.config.lock import HomeLock, prepare_home

from tests.cli.program import need_backend
from tests.support import within

COMMANDS = (
    "run",
    "chat",
    "demo",
    "status",
    "good",
    "bad",
    "stars",
    "undo",
    "reason",
    "better",
    "reset",
    "export",
    "history",
    "why",
    "compare",
    "train",
    "pause",
    "resume",
    "cancel",
    "release",
    "off",
    "rollback",
    "adapters",
    "plugins",
    "doctor",
    "connect",
    "manifest",
    "disconnect",
)
HIDDEN = {command.name for command in OLD}
REPORTS = ("status", "history", "adapters", "plugins")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("GOODBOT_HOME", str(home))
    monkeypatch.delenv("GOODBOT_TELEGRAM_TOKEN", raising=False)
    return home


def fails(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> str:
    """Run; the sentence on stderr."""
    assert main(argv) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("goodbot: ")
    assert said.err.count("\n") == 1, "one sentence"
    assert "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_there_and_has_a_help(
    command: str, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"goodbot {command}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["help"], ["--home", "/x", "help"], ["help", "train"]])
def test_help_is_a_word_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert told.startswith(f"usage: goodbot {'train' if words[-1] == 'train' else '['}")


def test_the_help_names_each_command_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(re.search(rf"\b{command}\b", said) for command in COMMANDS if command not in HIDDEN)
    assert not [command for command in HIDDEN if re.search(rf"\b{command}\b", said)]
    first, _, _ = said.partition("all commands:")
    assert len(re.findall(r"^  [a-z]+ ", first, flags=re.M)) == 8
    assert len(said.splitlines()) <= 40


def test_the_help_explains_all_or_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    told: dict[str, str] = {}
    for topic in ("all", "fix", "data"):
        with pytest.raises(SystemExit) as ended:
            main(["help", topic])
        assert ended.value.code == 0
        told[topic] = capsys.readouterr().out
    assert all(f"\n  {command} " in told["all"] for command in COMMANDS if command not in HIDDEN)
    assert re.findall(r"^  ([a-z]+) ", told["fix"], flags=re.M) == [
        "doctor",
        "pause",
        "resume",
        "rollback",
        "upgrade",
    ]
    assert told["fix"].strip() in told["all"]
    assert told["data"].strip() in told["all"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["statsu"], "did you mean `goodbot status`?"),
        (["chatt"], "did you mean `goodbot chat`?"),
        (["xyzzy"], "there is no command 'xyzzy'"),
        (["status", "--jsn"], "unrecognized arguments: --jsn"),
        (["good", "a", "b"], "unrecognized arguments: b (`goodbot good --help` tells more)"),
        (["init", "telegram"], "to say it at once: `goodbot init --platform telegram`;"),
        (["--home"], "expected one argument"),
        (["version"], "did you mean `goodbot --version`?"),
        (["--home", "", "status"], "--home names no directory"),
        (["--home", "/dev/null", "status"], "/dev/null is not a directory"),
        (["--home", "~nobody-of-that-name/x", "status"], "home directory"),
        (["--config", "/nowhere.toml", "run"], "/nowhere.toml: there is no such file"),
        (["--config", "/", "run"], "cannot be read"),
        (["run"], "no model is configured"),
        (["good"], "there is no answer here yet to rate"),
        (["undo"], "there is nothing to undo here"),
        (["bad", "nonsense"], "there is no answer 'nonsense'"),
        (["train"], "0 ratings are not enough"),
    ],
)
def test_what_is_off_is_said_in_one_sentence(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    if argv == ["train"]:
        need_backend()
    assert sentence in fails(capsys, 2, *argv)


@pytest.mark.parametrize(
    ("toml", "code", "sentence"),
    [
        ("[training\n", 2, "is not valid TOML"),
        ("[training]\nmin_rating = 4\n", 2, "did you mean 'min_ratings'?"),
        ('[model]\npath = "/no/such/model"\n', 2, "/no/such/model does not exist"),
        ("[connectors.telegram]\n", 2, "GOODBOT_TELEGRAM_TOKEN"),
        ("[connectors.discrod]\n", 2, "config.toml:1: no connector is named 'discrod'"),
        ('[training]\nbackend = "cuda"\n', 2, "toml:2: no training backend is named 'cuda'"),
        ('\n[training]\nreward = "best"\n', 2, "toml:3: no reward policy is named 'best'"),
        ('[plugins]\nenable = ["nothing"]\n', 2, "toml:2: [plugins] enable names 'nothing', which"),
        (
            '[training.settings]\nobjective = "taperd"\n',
            2,
            "toml:2: no objective is named 'taperd'; did you mean 'tapered'?",
        ),
        ("[tracking.wandbb]\n", 2, "toml:1: no tracker is named 'wandbb'; did you mean 'wandb'?"),
    ],
)
def test_a_config_that_is_off(
    toml: str, code: int, sentence: str, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    prepare_home(home)
    (home / "config.toml").write_text(toml)
    demo = () if "[model]" in toml else ("--demo-model",)
    assert sentence in fails(capsys, code, "run", *demo)


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[training\n", "is not valid TOML"),
        ("[training]\nmin_rating = 4\n", "did you mean 'min_ratings'?"),
        ('[plugins]\nenable = ["nothing"]\n', "enable names 'nothing', which is not installed"),
        ('[training]\nreward = "best"\n', "no reward policy is named 'best'"),
    ],
)
def test_plugins_are_shown_beside_a_config_that_is_off(
    toml: str, sentence: str, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    prepare_home(home)
    (home / "config.toml").write_text(toml)
    assert main(["plugins"]) == 2
    said = capsys.readouterr().out
    assert "telegram" in said
    assert "loaded" in said
    assert sentence in said.splitlines()[-1]
    assert main(["plugins", "--json"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert sentence in data["config_error"]
    assert {info["state"] for info in data["plugins"]} == {"loaded"}


def test_a_config_that_cannot_be_decoded(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    prepare_home(home)
    (home / "config.toml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in fails(capsys, 2, "status")


def test_a_missing_extra_is_named(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_home(home)
    (home / "config.toml").write_text("[connectors.telegram]\n")
    monkeypatch.setenv("GOODBOT_TELEGRAM_TOKEN", "1:x")
    monkeypatch.setattr("goodbot.daemon.connectors.missing_modules", lambda requires: tuple(requires))
    said = fails(capsys, 1, "run", "--demo-model")
    assert " install 'python-telegram-bot>=" in said


def test_newer_data_is_left_alone(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert main(["history"]) == 0
    capsys.readouterr()
    with sqlite3.connect(home / "goodbot.db") as db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    assert "newer goodbot" in fails(capsys, 78, "status")
    assert "newer goodbot" in fails(capsys, 78, "run", "--demo-model")


def test_a_database_of_something_else_is_left_alone(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    prepare_home(home)
    (home / "goodbot.db").write_bytes(b"not a database, but somebody's letters" * 100)
    assert "goodbot: " in fails(capsys, 1, "status")
    assert (home / "goodbot.db").read_bytes().startswith(b"not a database")


def test_a_directory_that_is_held_is_busy(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    """As it is while a daemon still loads its model and has no socket yet."""
    prepare_home(home)
    lock = HomeLock(home)
    lock.acquire()
    try:
        assert f"process {os.getpid()}" in fails(capsys, 75, "history")
    finally:
        lock.release()


@pytest.mark.parametrize("command", REPORTS)
def test_reports_without_a_daemon(command: str, capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert main([command, "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)
    assert main([command]) == 0
    assert capsys.readouterr().out.strip()


def test_status_says_that_nothing_runs(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    assert "goodbot is not running" in said
    assert "started again" not in said
    assert main(["status", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["server"], data["pid"]) == ("stopped", None)


def test_options_may_stand_after_the_command(tmp_path: Path) -> None:
    before = parser.parse(["--home", str(tmp_path), "status"])
    after = parser.parse(["status", "--home", str(tmp_path)])
    plugin = parser.parse(["chat", "--home", str(tmp_path)])
    assert before.home == after.home == plugin.home == tmp_path


def test_a_directory_named_like_a_command(tmp_path: Path) -> None:
    assert parser.parse(["--home", "run", "chat"]).run.endswith("client:main")
    assert parser.parse(["--home", "run"]).run == "goodbot.cli.alone:main"


def test_what_a_model_wrote_does_not_reach_the_terminal_raw() -> None:
    nasty = "a\x1b[31mred\x1b[0m\x1b]0;title\x07 \x9b2J\r\x08b\tc\nd\u202eabc\ud800"
    assert printable(nasty) == "ared 2Jb\tc\ndabc\ufffd"
    assert printable("👍🏽 é 漢字 \u200d") == "👍🏽 é 漢字 \u200d"


def test_sequences_without_an_end_take_linear_time() -> None:
    for text in ("\x1b]" * 200_000, "\x1b[" * 200_000):
        with within(2):
            assert len(printable(text)) == 200_000


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["model", "use", "--yes", "DIR"], {"action": "use", "name": "DIR", "yes": True}),
        (["model", "--yes", "use", "DIR"], {"action": "use", "name": "DIR", "yes": True}),
        (["people", "grant", "--json", "rater", "x:1"], {"words": ["grant", "rater", "x:1"], "json": True}),
        (["reason", "too", "--json", "long"], {"answer": "too", "text": ["long"], "json": True}),
        (
            ["rollback", "--json", "since", "--home", "/nowhere/x", "2026-11-21"],
            {"words": ["since", "2026-11-21"]},
        ),
        (["adapters", "export", "--format", "gguf", "3", "--out", "F"], {"version": "3", "format": "gguf"}),
        (["good", "--json"], {"answer": None, "json": True}),
        (["reason", "--", "--weird"], {"answer": None, "text": ["--weird"]}),
    ],
)
def test_options_may_stand_between_words(argv: list[str], expected: dict[str, object]) -> None:
    arguments = vars(parser.parse(argv))
    assert {name: arguments[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["status"], []),
        (["good"], []),
        (["good", "5f1e"], ["5f1e"]),
        (["stars", "4", "--json", "5f1e"], ["4", "5f1e"]),
        (["reason", "wrong"], ["wrong"]),
        (["reason", "too", "--json", "long", "by", "far"], ["too", "long", "by", "far"]),
        (["reason", "--", "--weird"], ["--weird"]),
        (["people", "grant", "--json", "rater", "x:1"], ["grant", "rater", "x:1"]),
        (["rollback", "--since", "2026-11-21"], []),
        (["rollback", "since", "2026-11-21"], ["since", "2026-11-21"]),
        (["adapters"], []),
        (["adapters", "list"], ["list"]),
        (["adapters", "show"], ["show"]),
        (["adapters", "diff", "2", "3"], ["diff", "2", "3"]),
        (["adapters", "rollback", "base"], ["rollback", "base"]),
        (["forget", "--yes", "x:1"], ["x:1"]),
    ],
)
def test_what_the_daemon_is_asked_is_what_would_be_typed_in_a_chat(argv: list[str], words: list[str]) -> None:
    arguments = parser.parse(argv)
    assert (arguments.command, typed(arguments)) == (argv[0], words)
