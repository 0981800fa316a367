# SPDX-License-Identifier: Apache-2.0
"""`goodbot run --insecure-local`: Teams without a registration, for this run only."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.cli import main, run
from goodbot.cli.parser import parse
from goodbot.config.lock import prepare_home
from goodbot_connectors.teams.config import TeamsSettings

from tests.support import require

SECTION = '[connectors.teams]\nport = 3979\nowners = ["29:ada"]\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOODBOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GOODBOT_TEAMS_APP_PASSWORD", raising=False)
    return tmp_path / "home"


def configured(home: Path, toml: str) -> None:
    prepare_home(home)
    (home / "config.toml").write_text(toml)


@pytest.mark.parametrize("asked", [True, False])
def test_it_is_the_setting_for_this_run_only(home: Path, *, asked: bool) -> None:
    configured(home, SECTION)
    read = run.load(parse(["run", *(["--insecure-local"] if asked else [])]))
    grants, settings = read.connector("teams", TeamsSettings)
    assert (settings.insecure_local, settings.port) == (asked, 3979)
    assert grants.owners == ("29:ada",)
    assert bool(settings.needed_secrets) is not asked
    assert (home / "config.toml").read_text() == SECTION


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('[connectors.teams]\napp_id = "6b00d807"\n', "take out either it or app_id"),
        ("[connectors.terminal]\n", "--insecure-local is for [connectors.teams]"),
    ],
)
def test_where_it_cannot_be_it_says_so(
    toml: str, sentence: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("botbuilder.core")
    configured(home, toml)
    assert main(["run", "--demo-model", "--insecure-local"]) == 2
    assert sentence in capsys.readouterr().err
