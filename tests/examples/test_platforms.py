# SPDX-License-Identifier: Apache-2.0
"""examples/*.toml and docs/platforms.md say what the code does."""

from __future__ import annotations

import re
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
from goodbot import config
from goodbot.api.connector import ConnectorSpec
from goodbot.config.sections import Grants
from goodbot.daemon.app import open_plugins

from tests.examples.support import ROOT
from tests.support import require

PAGE = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
NAMES = ("slack", "telegram", "discord", "teams", "web")
OWN = {"teams": ("app_id", "tenant")}
"""Settings that are nobody else's, so that an example has its own."""


def spec_of(name: str, home: Path) -> ConnectorSpec:
    return open_plugins(config.Config(home=home)).connectors()[name]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_shows_every_setting_and_is_the_default_but_for_its_people(
    name: str, tmp_path: Path
) -> None:
    spec = spec_of(name, tmp_path)
    shutil.copy(ROOT / "examples" / f"{name}.toml", tmp_path / "config.toml")
    text = (tmp_path / "config.toml").read_text(encoding="utf-8")
    grants, settings = config.load(tmp_path).connector(name, spec.settings)
    assert grants.owners
    own = {key: getattr(settings, key) for key in OWN.get(name, ())}
    assert all(own.values())
    assert settings == spec.settings(**own)
    set_ = re.sub(r"^# (?=\w+ = )", "", text, flags=re.M)
    parsed = config.parse(set_, home=tmp_path)
    assert parsed.connector(name, spec.settings) == (grants, settings), "what is commented out"
    shown = set(parsed.connectors[name])
    people = {field.name for field in fields(Grants)}
    assert {field.name for field in fields(spec.settings)} <= shown
    assert {"owners", "raters", "talkers", "channels"} <= shown & people


@pytest.mark.parametrize("name", NAMES)
def test_the_page_names_every_setting_and_every_token(name: str, tmp_path: Path) -> None:
    spec = spec_of(name, tmp_path)
    title = spec.title[:1].upper() + spec.title[1:]
    part = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert part
    for word in (*spec.secrets, *(field.name for field in fields(spec.settings))):
        assert f"`{word}`" in part, f"{name}: {word}"
    assert f"`goodbot connect {name}`" in part or f"goodbot connect {name}\n" in part


def test_the_page_lists_the_scopes_of_the_manifest_with_their_reasons() -> None:
    require("slack_bolt")
    from goodbot_connectors.slack import manifest

    listed = dict(re.findall(r"^\| `([a-z_]+:[a-z]+|commands)` \| (.+) \|$", PAGE, flags=re.M))
    assert listed == {scope: manifest.WHY[scope] for scope in manifest.scopes()}


def test_the_page_lists_discords_permissions_with_their_reasons() -> None:
    from goodbot_connectors.discord import permissions

    listed = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", PAGE, flags=re.M))
    assert listed == {one.name: one.why for one in permissions.explained()}
