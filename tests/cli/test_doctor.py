# SPDX-License-Identifier: Apache-2.0
"""`goodbot doctor` as a person meets it: lines, fixes, exit codes, and nothing changed."""

from __future__ import annotations

import importlib.metadata
import json
import socket
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.cli import main
from goodbot.cli.doctor import command, preparation
from goodbot.config.lock import HomeLock, prepare_home
from goodbot_training.tiny.plugin import register_model

from tests.cli.program import Bot, need_backend
from tests.core.cli.doctor.examining import store

TOKEN = "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("GOODBOT_HOME", str(home))
    monkeypatch.delenv("GOODBOT_TELEGRAM_TOKEN", raising=False)
    monkeypatch.setattr("goodbot.config.secrets.keyring_usable", lambda: False)
    return home


@pytest.fixture
def doctor_says(capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(code: int, *words: str) -> dict[str, dict[str, Any]]:
        """Run; the checks by part. The last of a part wins."""
        assert main(["doctor", "--json", *words]) == code, capsys.readouterr().out
        said = capsys.readouterr()
        assert said.err == ""
        data = json.loads(said.out)
        assert data["ok"] is (code == 0)
        assert all(c["state"] == "ok" or c["fix"] or c["text"] for c in data["checks"])
        return {check["part"]: check for check in data["checks"]}

    return ask


def write(home: Path, toml: str) -> None:
    prepare_home(home)
    (home / "config.toml").write_text(toml)


def snapshot(home: Path) -> list[tuple[str, int, int, int]]:
    found = ((str(p), p.lstat()) for p in [home, *home.rglob("*")])
    return sorted((path, s.st_mode, s.st_size, s.st_mtime_ns) for path, s in found)


def test_before_anything_is_there(home: Path, doctor_says: Any) -> None:
    need_backend()
    checks = doctor_says(2)
    assert checks["model"]["state"] == "fail"
    assert checks["model"]["fix"] == "goodbot model use auto"
    assert [c for c in checks.values() if c["state"] == "fail"] == [checks["model"]]
    assert not home.exists(), "nothing was made"
    assert doctor_says(0, "--demo-model")["model"]["state"] == "warn"


def test_lines_for_people(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_backend()
    assert main(["doctor"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok    config          no config file, all defaults"
    at = lines.index("fail  model           no model is configured")
    assert lines[at + 1] == "      → goodbot model use auto"
    assert lines[-1].startswith("1 to put right, ")
    assert max(len(line) for line in lines if str(home) not in line) <= 80
    assert "\x1b" not in "".join(lines)


def test_only_what_failed_has_an_exit_code_in_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "[servng]\n")
    assert main(["doctor", "--json"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["exit_code"]) == (False, 2)
    assert {(check["state"], check["exit_code"]) for check in data["checks"]} == {("fail", 2), ("ok", 0)}


def test_nothing_is_changed(home: Path, doctor_says: Any) -> None:
    need_backend()
    store(home)
    before = snapshot(home)
    doctor_says(0, "--demo-model")
    doctor_says(0, "serving")
    assert main(["doctor", "--security"]) == 0
    assert snapshot(home) == before


@pytest.mark.parametrize(
    ("toml", "text"),
    [
        ("[training\n", "is not valid TOML"),
        ("\n[training]\nmin_rating = 4\n", "config.toml:3: "),
        ('[plugins]\nenable = ["lava"]\n', "config.toml:2: [plugins] enable names 'lava'"),
    ],
)
def test_a_broken_config_hides_no_broken_database(toml: str, text: str, home: Path, doctor_says: Any) -> None:
    write(home, toml)
    (home / "goodbot.db").write_bytes(b"not a database" * 999)
    (home / "goodbot.db").chmod(0o600)
    checks = doctor_says(2)
    assert (checks["config"]["state"], text in checks["config"]["text"]) == ("fail", True)
    assert checks["database"]["state"] == "fail"
    assert "model" not in checks, "what the config would say is not guessed"


def test_newer_data_says_most(home: Path, doctor_says: Any) -> None:
    with sqlite3.connect(store(home)) as db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    write(home, '[model]\npath = "/no/such"\n')
    assert doctor_says(78)["database"]["exit_code"] == 78


def test_tokens_that_others_can_read(home: Path, doctor_says: Any) -> None:
    write(home, "[connectors.telegram]\nowners = [1]\n")
    (home / "secrets.env").write_text(f"GOODBOT_TELEGRAM_TOKEN={TOKEN}\n")
    (home / "secrets.env").chmod(0o644)
    checks = doctor_says(2, "--demo-model")
    assert "others can read the tokens" in checks["tokens"]["text"]
    assert checks["permissions"]["fix"] == f"chmod 600 {home}/secrets.env"
    assert TOKEN not in repr(checks)


def test_a_platform_that_cannot_be_reached_is_no_failure(
    home: Path, doctor_says: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_backend()
    monkeypatch.setenv("GOODBOT_TELEGRAM_TOKEN", TOKEN)
    write(home, '[connectors.telegram]\napi_base = "http://127.0.0.1:9/bot"\n')
    checks = doctor_says(0, "--demo-model")
    assert checks["telegram token"]["state"] == "warn"
    assert checks["telegram people"]["fix"] == "goodbot pair telegram"
    assert TOKEN not in repr(checks)


def test_truncated_weights(home: Path, tmp_path: Path, doctor_says: Any) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for file in register_model().path.iterdir():
        (model / file.name).write_bytes(file.read_bytes()[: -100 if "safe" in file.name else None])
    write(home, f'[model]\npath = "{model}"\n')
    assert "cut off" in doctor_says(1)["model"]["text"]


def _without_digits(text: str) -> str:
    return "".join(one for one in text if not one.isdigit())


def test_a_daemon_that_is_well(running: Bot) -> None:
    found = {check["part"]: check for check in running.json("doctor")["checks"]}
    assert str(running.process.pid) in found["daemon"]["text"]
    # It counts on between the two: a wait is some seconds shorter the second time.
    told, then = (
        _without_digits(one) for one in (found["next training"]["text"], running.json("status")["next"])
    )
    assert told == then != ""
    assert found["adapter"]["text"] == "the base model answers, as it should"
    assert found["database"]["state"] == "ok"
    assert "only demonstrates" in found["model"]["text"], "the model that the daemon has"


def test_a_daemon_that_hangs(home: Path, doctor_says: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    need_backend()
    monkeypatch.setattr(preparation, "_SECONDS", 0.3)
    prepare_home(home)
    lock = HomeLock(home)
    lock.acquire()
    with socket.socket(socket.AF_UNIX) as silent:
        monkeypatch.chdir(home)
        silent.bind("control.sock")
        silent.listen()
        checks = doctor_says(1, "--demo-model")
    lock.release()
    assert checks["daemon"]["state"] == "fail"
    assert "no answer within 0.3 s" in checks["daemon"]["text"]


def test_a_daemon_that_still_starts(home: Path, doctor_says: Any) -> None:
    need_backend()
    prepare_home(home)
    lock = HomeLock(home)
    lock.acquire()
    checks = doctor_says(0, "--demo-model")
    lock.release()
    assert (checks["daemon"]["state"], "may be starting" in checks["daemon"]["text"]) == ("warn", True)


class Barometer:
    """A third party's plugin with one probe that works, one that hangs and one that breaks."""

    @hookimpl
    def register_probe(self) -> list[Probe]:
        async def works(seen: Examined) -> Sequence[Check]:
            return [ok("pressure", "1013 hPa")]

        async def hangs(seen: Examined) -> Sequence[Check]:
            time.sleep(30)  # noqa: ASYNC251
            return []

        async def breaks(seen: Examined) -> Sequence[Check]:
            raise ZeroDivisionError("no air")

        return [
            Probe(name="pressure", run=works),
            Probe(name="tendency", run=hangs, seconds=0.2),
            Probe(name="vacuum", run=breaks),
        ]


@pytest.fixture
def barometer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a distribution with this entry point were installed."""
    point = importlib.metadata.EntryPoint(name="barometer", value=f"{__name__}:BAROMETER", group="goodbot")
    real = importlib.metadata.entry_points

    def points(**wanted: Any) -> Any:
        found = real(**wanted)
        return [*found, point] if wanted == {"group": "goodbot"} else found

    monkeypatch.setattr(importlib.metadata, "entry_points", points)


BAROMETER = Barometer()


def test_plugins_are_examined_too(home: Path, doctor_says: Any, barometer: None) -> None:
    need_backend()
    write(home, '[plugins]\nenable = ["barometer"]\n')
    checks = doctor_says(1, "--demo-model")
    assert checks["barometer: pressure"]["state"] == "ok"
    assert "no answer within 0.2 s" in checks["barometer: tendency"]["text"]
    assert "ZeroDivisionError: no air" in checks["barometer: vacuum"]["text"]
    assert checks["sqlite"]["state"] == "ok", "the others are there all the same"
    assert "barometer" in checks["plugins"]["text"]


def test_security_is_a_table_and_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "[connectors.telegram]\nowners = [4711]\n")
    assert main(["doctor", "--security"]) == 0
    said = capsys.readouterr().out
    assert "  telegram  owner  4711" in said
    rules = said[said.index("\nrules\n") :].splitlines()
    assert max(map(len, rules)) <= 80
    assert main(["doctor", "--security", "--json"]) == 0
    assert {"people", "channels", "listens", "tokens"} <= set(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_what_a_platform_said_is_one_tidy_paragraph(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    line = command.line(warn("a part", "said\r\n\x1b[31mthis\x1b[0m " + "and that " * 30, "do\nit"))
    assert "\x1b" not in line
    lines = line.splitlines()
    assert lines[0].startswith("warn  a part          said this and that")
    assert lines[-1] == "      → do it"
    assert max(map(len, lines)) <= min(columns, 100)
    assert all(row.startswith(" " * 22) for row in lines[1:-1])


def test_long_names_and_no_text_are_borne() -> None:
    assert command.line(ok("a name longer than its column", "text")).endswith("column text")
    assert command.line(fail("part", "")).startswith("fail  part")
