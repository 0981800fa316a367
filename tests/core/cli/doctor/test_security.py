# SPDX-License-Identifier: Apache-2.0
"""`doctor --security`: who may what, and what can be reached; ids only, never a token."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef
from goodbot.cli.doctor import security
from goodbot.store import channels, people, settings

from tests.core.cli.doctor.examining import examined, store
from tests.support import require

TOKEN = "123456789:AAvery-secret-indeed"
TOML = """
[connectors.telegram]
owners = [11]
raters = [22]
talkers = [33]
rater_groups = ["the-lab"]
channels = ["-100"]
[http]
port = 18100
host = "0.0.0.0"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("goodbot.config.secrets.keyring_usable", lambda: False)

    async def fill(db: Any) -> None:
        await people.grant(db, "telegram:44", "owner", people.PAIRING, 1.0)
        room = ChannelRef(connector="telegram", account="1", id="-200", kind=ChannelKind.SHARED)
        await channels.enable(db, room, "telegram:44", 1.0)
        await settings.set_share(db, "telegram:33", True, 1.0)

    store(tmp_path / "home", fill)
    secrets = tmp_path / "home" / "secrets.env"
    secrets.write_text(f"GOODBOT_TELEGRAM_TOKEN={TOKEN}\n")
    secrets.chmod(0o600)
    return tmp_path / "home"


def test_everybody_and_every_door_is_listed(home: Path) -> None:
    seen = examined(home, TOML, environ={"GOODBOT_TELEGRAM_TOKEN": TOKEN})
    report = security.report(seen, ())
    data = report["data"]
    assert {(p["connector"], p["role"], p["id"]) for p in data["people"]} == {
        ("terminal", "owner", str(os.geteuid())),
        ("telegram", "owner", "11"),
        ("telegram", "rater", "22"),
        ("telegram", "talker", "33"),
        ("telegram", "rater (group)", "the-lab"),
        ("telegram", "owner", "44"),
    }
    assert {(c["id"], c["source"]) for c in data["channels"]} == {
        ("-100", "config"),
        ("-200", "enabled by telegram:44"),
    }
    # Whoever set it up, also as the browser knows who was paired, and whoever has agreed.
    paired = ["telegram:44", "web:telegram:44"]
    assert data["shares"] == ["telegram:11", "telegram:33", paired[0], f"terminal:{os.geteuid()}", paired[1]]
    store(home, lambda db: settings.set_share(db, "telegram:11", False, 1.0))
    assert "telegram:11" not in security.report(seen, ())["data"]["shares"]
    assert any("0.0.0.0:18100" in row["what"] and "OTHER" in row["who"] for row in data["listens"])
    assert data["tokens"] == [{"name": "GOODBOT_TELEGRAM_TOKEN", "where": "file"}]
    assert {"path": str(home / "secrets.env"), "mode": "600", "uid": os.geteuid()} in data["files"]
    assert data["leaves"] == ["messages and answers, to telegram"]
    for id_ in ("11", "22", "33", "44", "-100", "-200", "the-lab"):
        assert f"  {id_}" in report["text"]
    assert TOKEN not in repr(report)


def test_an_empty_goodbot_lets_in_nobody_but_its_user(tmp_path: Path) -> None:
    report = security.report(examined(tmp_path / "none"), ())
    [person] = report["data"]["people"]
    assert (person["connector"], person["id"]) == ("terminal", str(os.geteuid()))
    assert (report["data"]["listens"], report["data"]["leaves"]) == ([], [])
    assert list(tmp_path.iterdir()) == []


def test_the_browser_and_whoever_is_called_are_doors_too(tmp_path: Path) -> None:
    require("botbuilder.core")
    from goodbot_connectors import teams, web

    toml = "[connectors.web]\n[connectors.teams]\nport = 3999\n"
    data = security.report(examined(tmp_path / "home", toml, web, teams), ())["data"]
    assert {row["what"] for row in data["listens"]} == {"127.0.0.1:8321", "127.0.0.1:3999"}
    assert all(row["who"].startswith("all programs here") for row in data["listens"])
    assert [(p["role"], p["id"]) for p in data["people"] if p["connector"] == "web"] == [("owner", "owner")]
    assert data["leaves"] == ["messages and answers, to teams"]


def test_s2_files_with_programs_tokens_are_listed(home: Path) -> None:
    files = {
        "undo.key",
        "exports/a.jsonl",
        "connectors/codex/connection",
        "connectors/openclaw/plugin.token",
        "connectors/claude_code/before/settings.json-0.before",
    }
    for name in files:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch(mode=0o600)
    (home.parent / "home.before-restore-20261121-101500").mkdir()
    report = security.report(examined(home, TOML), ())
    listed = {Path(row["path"]).name for row in report["data"]["files"]}
    assert {Path(name).name for name in files} <= listed
    assert "home.before-restore-20261121-101500" in listed
    assert "no token of these is in a backup" in report["text"]


def test_s3_what_an_older_backup_has_left_is_listed(home: Path) -> None:
    """Nothing seals its note, so that goodbot does not delete it: a person has to."""
    note = home / "backups" / "tmp1"
    note.mkdir(parents=True, mode=0o700)
    work = home.parent / f".goodbot-backup-{note.name}"
    work.mkdir(mode=0o700)
    (note / "place").symlink_to(work)
    listed = security.report(examined(home, TOML), ())["data"]["files"]
    assert {"path": str(work), "mode": "700", "uid": os.geteuid()} in listed
