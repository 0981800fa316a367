# SPDX-License-Identifier: Apache-2.0
"""Every name in the config, with the line where it stands; and what could not be plugged in."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot import hookimpl
from goodbot.api.plugins import PluginInfo
from goodbot.api.setup import CheckState
from goodbot.cli.doctor import settings

from tests.core.cli.doctor.examining import examined, only


async def test_all_defaults(tmp_path: Path) -> None:
    check = await only(settings.config(examined(tmp_path)))
    assert (check.state, check.text) == (CheckState.OK, "no config file, all defaults")


@pytest.mark.parametrize(
    ("toml", "line", "sentence"),
    [
        ('\n[training]\nbackend = "cuda"\n', 3, "no training backend is named 'cuda'"),
        ('[training]\n# best?\nreward = "best"\n', 3, "no reward policy is named 'best'"),
        ("[model]\n\n[connectors.discrod]\nowners = []\n", 3, "no connector is named 'discrod'"),
        ("[connectors.telegram]\nowner = 3\n", 2, "did you mean 'owners'?"),
        ('[connectors.telegram]\nowners = "me"\n', 2, "owners must be a list"),
        ("[training.settings]\nlearning_rat = 1\n", 2, "did you mean 'learning_rate'?"),
    ],
)
async def test_what_is_off_is_named_with_its_line(
    toml: str, line: int, sentence: str, tmp_path: Path
) -> None:
    check = await only(settings.config(examined(tmp_path, toml)))
    assert (check.state, check.exit_code) == (CheckState.FAIL, 2)
    assert check.text.startswith(f"{tmp_path}/config.toml:{line}: ")
    assert sentence in check.text


async def test_everything_that_is_off_is_told_at_once(tmp_path: Path) -> None:
    toml = '[training]\nbackend = "cuda"\nreward = "best"\n[connectors.x]\n[connectors.y]\n'
    assert len(await settings.config(examined(tmp_path, toml))) == 4


async def test_plugins_that_failed_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        @hookimpl
        def register_connector(self) -> list[object]:
            return []

    seen = examined(tmp_path, "", Silent())
    broken = PluginInfo(
        name="lamp", distribution="goodbot-lamp", version="1", state="failed", error="no bulb"
    )
    monkeypatch.setattr(seen.plugins, "_infos", [broken])
    check = await only(settings.plugins(seen))
    assert (check.state, "no bulb" in check.text) == (CheckState.WARN, True)
    assert "[plugins] enable" in check.fix
