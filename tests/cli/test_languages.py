# SPDX-License-Identifier: Apache-2.0
"""The command line in the reader's language: by the locale, else by the config; English for programs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

import pytest
from goodbot.api.texts import LANGUAGES, part, terminal
from goodbot.api.texts.terminal import FOLDER
from goodbot.base.columns import wide
from goodbot.base.suggest import Offered
from goodbot.cli import asking, main, parser
from goodbot.cli.model import described
from goodbot.cli.setup.dialogue import Dialogue
from goodbot.config.lock import prepare_home
from goodbot.inference.models.proposal import Proposal
from goodbot_connectors.terminal import words
from goodbot_connectors.terminal.live import status_line

from tests.cli.program import PROGRAM, need_backend
from tests.cli.terminal import Person
from tests.core.cli.service.manager import FakeManager
from tests.support import patience, require


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("GOODBOT_HOME", str(home))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")
    return home


def helped(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 0
    return capsys.readouterr().out


def meanings(of: argparse.ArgumentParser) -> set[str]:
    """All that a parser and what is in it say of themselves."""
    found = {of.description or ""}
    for action in of._actions:
        found.add(action.help or "")
        if isinstance(action, argparse._SubParsersAction):
            more = cast("argparse._SubParsersAction[argparse.ArgumentParser]", action)
            found |= {choice.help or "" for choice in more._choices_actions}
            found |= {text for choice in more.choices.values() for text in meanings(choice)}
    return found - {"", argparse.SUPPRESS}


def test_what_every_command_and_option_means_is_in_the_catalogue(home: Path) -> None:
    known = {text for text in part("en", FOLDER).values() if isinstance(text, str)}
    assert meanings(parser.whole(home, None)) - known == set()


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_the_help_is_in_the_language_of_the_locale_and_fits(
    language: str, capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", f"{language}.UTF-8")
    own = part(language, FOLDER)
    for argv in (["--help"], ["help", "all"], ["train", "--help"], ["adapters", "export", "--help"]):
        told = helped(capsys, *argv)
        assert all(wide(line) <= 80 for line in told.splitlines()), argv
        assert len(told.splitlines()) <= 45 or "all" in argv
    assert str(own["cmd_adapters_which"]) in told
    assert str(own["help_options"]) in told
    assert f"{own['help_usage']}" in told
    assert "goodbot adapters export [-h]" in told, "its name is whole"


def test_what_is_wrong_is_said_in_it_too(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert main(["statsu"]) == 2
    said = capsys.readouterr().err
    assert said == "goodbot: es gibt keinen Befehl 'statsu'; meintest du `goodbot status`?\n"


def test_goodbot_alone_is_in_it_with_what_the_daemon_counts(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "goodbot ist hier noch nicht eingerichtet."
    assert {line.index("goodbot ") for line in said[1:]} == {said[1].index("goodbot ")}
    prepare_home(home)
    (home / "config.toml").write_text('[model]\npath = "demo"\n')
    assert main(["pause"]) == 0
    capsys.readouterr()
    assert main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "goodbot ist hier eingerichtet und läuft nicht."
    assert said[1].endswith("; das Training ist pausiert; mit `resume` geht es weiter.")
    assert main(["status"]) == 0
    assert "das Training ist pausiert" in capsys.readouterr().out


def test_where_the_locale_names_none_of_ours_the_config_decides(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "nl_NL.UTF-8")
    prepare_home(home)
    (home / "config.toml").write_text('[serving]\nlanguage = "es"\n')
    assert main([]) == 0
    assert "goodbot aún no tiene un modelo con el que responder." in capsys.readouterr().out


def test_programs_are_told_everything_in_english(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    prepare_home(home)
    (home / "config.toml").write_text('[model]\npath = "demo"\n[serving]\nlanguage = "es"\n')
    assert main(["pause", "--json"]) == 0
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["next"] == "training is paused; `resume` lets it go on"
    assert main(["forget", "x:1", "--json"]) == 2
    assert "nobody can be asked here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("locale", "first", "wrong", "left"),
    [
        (
            "de_DE.UTF-8",
            "Schritt 1 von 8: Wo spricht man mit ihm?",
            "b für zurück, q zum Verlassen.",
            "Abgebrochen. Nichts wurde gespeichert.",
        ),
        (
            "zh_CN.UTF-8",
            "第 1 步，共 8 步：大家在哪里和它聊天？",
            "b 返回，q 退出。",
            "已退出，什么都没有保存。",
        ),
    ],
)
def test_the_questions_of_the_setup_are_in_it(
    home: Path, locale: str, first: str, wrong: str, left: str
) -> None:
    with Person(home, "init", LC_ALL=locale) as person:
        person.until(lambda _: first in person.raw)
        person.type("99\n")
        person.until(lambda _: wrong in person.raw)
        person.type("q\n")
        person.until(lambda _: left in person.raw)


@pytest.mark.parametrize(("typed", "agreed"), [("j", True), ("yes", True), ("", False), ("n", False)])
def test_yes_is_said_in_it_or_in_english(
    typed: str, agreed: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return typed

    monkeypatch.setattr(asking, "somebody", lambda: True)
    monkeypatch.setattr(asking, "_answer", answer)
    assert asking.agrees("Sicher?", yes=False) is agreed
    assert asked == ["Sicher? [j/N] "]


def test_a_name_that_nothing_has_is_answered_in_it(home: Path) -> None:
    assert terminal.instead("telegramm", ["telegram", "slack"]) == "meintest du 'telegram'?"
    assert terminal.instead("x", ["telegram", "slack"]) == "es gibt: slack, telegram"
    assert terminal.instead("x", []) == f"es gibt: {terminal.phrase('setup_none')}"
    assert terminal.instead("x", ["a"], "fr") == "il y a\N{NO-BREAK SPACE}: a"
    offered = Offered[int](("mine", "yours"))
    assert terminal.instead("mine", offered).endswith("schaltet es ein")
    assert '`[plugins] enable = ["mine", "yours"]`)' in terminal.instead("other", offered)


def test_a_page_is_spoken_to_in_the_language_of_its_browser(home: Path) -> None:
    with terminal.speaking("ja"):
        assert Dialogue({}, asks=False, out=sys.stdout).phrase("not_changed") == "何も変更していません。"
    with terminal.speaking(""):
        assert terminal.here() == "en"
    assert terminal.here() == "de"


def test_a_backup_and_what_it_gives_are_told_in_it(
    capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    prepare_home(home)
    config, backup = home / "config.toml", str(tmp_path / "b.tar")
    config.write_text('[model]\npath = "demo"\n[connectors.api]\nowners = ["mallory"]\n')
    assert main(["pause"]) == 0
    assert main(["backup", backup]) == 0
    said = capsys.readouterr().out
    assert "0 Antworten, 0 Bewertungen, 0 Adapter. Die Sicherung wurde zurückgelesen" in said
    assert "Nicht darin: Token, Sitzungen, Codes" in said
    config.write_text('[model]\npath = "demo"\n[connectors.api]\n')
    assert main(["restore", backup, "--yes"]) == 2
    assert "andere besitzen dieses goodbot" in capsys.readouterr().err
    assert main(["restore", backup, "--yes", "--accept", "owners"]) == 0
    said = capsys.readouterr().out
    assert "  Was danach sein darf und jetzt nicht so ist:\n    api:mallory wird Besitzer\n" in said
    assert f"{home} ist wieder, was es am " in said


def test_the_service_is_told_in_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    FakeManager(tmp_path, monkeypatch, ("systemctl", "loginctl"))
    assert main(["service", "status"]) == 1
    assert capsys.readouterr().out.startswith("kein Dienst ist installiert: `goodbot service install`")
    assert main(["service", "install"]) == 0
    said = capsys.readouterr().out
    assert "goodbot.service ist active seit Sat 2026-11-21 13:47:47 UTC, Prozess 4711, und es" in said
    assert "Es hält an, wenn du dich abmeldest" in said
    assert main(["service", "uninstall", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("entfernt würde der systemd-Dienst goodbot (")


def test_the_model_is_told_in_it(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    proposal = Proposal(
        source="a/b",
        name="a/b",
        backend="torch",
        device="cpu",
        parameters=1_700_000_000,
        download=4_100_000_000,
        disk=10**11,
        licence="mit",
        gated=True,
        estimate=None,
    )
    told = described(proposal).splitlines()
    assert told[0] == "a/b  (1,7 Milliarden Parameter, torch auf dem Prozessor)"
    assert told[1] == "  Download   4.1 GB; 100.0 GB sind auf der Platte frei"
    assert told[2].endswith("mit, zugangsbeschränkt: Es braucht ein Token")
    assert main(["model", "use"]) == 2
    assert "sag, welches: `goodbot model use auto`" in capsys.readouterr().err
    prepare_home(home)
    assert main(["model", "use", "demo", "--yes"]) == 0
    assert "Das winzige Demomodell wird antworten" in capsys.readouterr().out


def test_what_cannot_be_done_is_told_in_it(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(home.parent))  # else what other tests run just now is there
    prepare_home(home)
    assert main(["uninstall", "--dry-run", "--keep-data"]) == 0
    assert f"Außerhalb von {home} ist nichts von goodbot zu entfernen." in capsys.readouterr().out
    assert main(["upgrade"]) == 2
    assert "tippe `goodbot upgrade --check`" in capsys.readouterr().err
    assert main(["adapters", "import", str(home / "none")]) == 2
    assert f"{home / 'none'} gibt es nicht" in capsys.readouterr().err


def test_what_is_not_encrypted_is_told_in_it(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    require("sqlcipher3")
    prepare_home(home)
    assert main(["decrypt", "--yes"]) == 2
    assert f"nichts in {home} ist verschlüsselt" in capsys.readouterr().err


def test_a_chat_is_in_it(home: Path) -> None:
    status = {"ratings": 1, "needed": 40, "version": 0, "off": False, "paused": True, "training": None}
    now = {**status, "server": "down"}
    counted, *rest = status_line(now).split(" · ")
    assert counted == "1 von 40 Bewertungen, noch 39 bis zum nächsten Training"
    assert rest == ["Basismodell", "pausiert", "das Modell startet neu"]
    ready = {**now, "ratings": 40, "server": "up", "condition": {"met": False}, "next": "es ruht"}
    assert status_line(ready).startswith("40 Bewertungen für das nächste Training: es ruht · ")
    assert words.hint("gb") == "g gut · b schlecht"
    assert words.nothing("u").startswith("hier gibt es nichts zurückzunehmen")
    helped = words.help_()
    assert "/good, /bad, /undo meinen die letzte Antwort" in helped
    assert terminal.phrase("cmd_reason") in helped


def test_what_is_typed_in_a_chat_is_answered_in_it(home: Path) -> None:
    need_backend()
    prepare_home(home)
    (home / "config.toml").write_text('[model]\npath = "demo"\n')
    done = subprocess.run(
        [*PROGRAM, "chat"],
        input="u\n/undo\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(100),
    )
    assert "das Modell wird gestartet…" in done.stderr
    assert "hier gibt es nichts zurückzunehmen" in done.stderr
    assert "nichts zurückzunehmen" in done.stdout, "a command of the daemon's"
