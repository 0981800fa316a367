# SPDX-License-Identifier: Apache-2.0
"""Setting up and examining Teams, on a Microsoft of its own."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from typing import Any

import pytest
from goodbot.api.setup import CheckState
from goodbot.base.errors import FatalConnectorError, RetriableError
from goodbot.config.secrets import Secrets
from goodbot_connectors.teams import SPEC, manifest
from goodbot_connectors.teams.config import APP_PASSWORD, TeamsSettings
from goodbot_fakes.teams import APP_ID, PASSWORD, FakeTeams

from tests.support import require

require("botbuilder.core")

from goodbot_connectors.teams.setup import TeamsSetup  # noqa: E402  needs the SDK


@pytest.fixture
async def microsoft() -> AsyncIterator[FakeTeams]:
    async with FakeTeams() as teams:
        yield teams


def setup_of(microsoft: FakeTeams, password: str = PASSWORD, **settings: Any) -> TeamsSetup:
    known = {
        "app_id": APP_ID,
        "tenant": microsoft.tenant.id,
        "openid_metadata": microsoft.openid_metadata,
        "token_endpoint": microsoft.token_endpoint,
    }
    return TeamsSetup(Secrets(SPEC.secrets, {APP_PASSWORD: password}), TeamsSettings(**{**known, **settings}))


async def test_the_secret_says_whose_it_is(microsoft: FakeTeams) -> None:
    me = await setup_of(microsoft).identify()
    assert me.account == APP_ID
    assert me.link.endswith(f"28:{APP_ID}")


async def test_all_is_well_with_the_apps_own_ids(microsoft: FakeTeams) -> None:
    checks = await setup_of(microsoft).examine()
    assert [check.state for check in checks] == [CheckState.OK] * 3
    assert "3978" in checks[-1].text


async def test_a_bot_for_everybody_is_pointed_out(microsoft: FakeTeams) -> None:
    checks = await setup_of(microsoft, tenant="").examine()
    assert [check.part for check in checks if check.state is CheckState.WARN] == ["teams tenant"]


@pytest.mark.parametrize(
    "settings", [{}, {"app_id": "0d5e5f0e-0000-4000-8000-00000000000b"}], ids=["secret", "app_id"]
)
async def test_what_does_not_fit_together_is_told_without_the_secret(
    microsoft: FakeTeams, settings: dict[str, str]
) -> None:
    wrong = "wrong~8Q.secret_for-tests-only"
    with pytest.raises(FatalConnectorError, match=APP_PASSWORD) as caught:
        await setup_of(microsoft, wrong, **settings).identify()
    assert wrong not in str(caught.value)
    assert "AADSTS" in str(caught.value)


async def test_without_an_app_id_there_is_nothing_to_ask(microsoft: FakeTeams) -> None:
    with pytest.raises(FatalConnectorError, match="app_id"):
        await setup_of(microsoft, app_id="").examine()


async def test_a_microsoft_that_is_down_is_no_wrong_secret(microsoft: FakeTeams) -> None:
    setup = setup_of(microsoft)
    microsoft.faults.network_is_down = True
    with pytest.raises(RetriableError):
        await setup.identify()


async def test_keys_that_cannot_be_read_are_a_fault(microsoft: FakeTeams) -> None:
    checks = await setup_of(microsoft, openid_metadata=f"{microsoft.url}/nowhere").examine()
    [keys] = [check for check in checks if check.part == "teams keys"]
    assert keys.state is CheckState.FAIL
    assert "login.botframework.com" in keys.fix


async def test_the_playground_needs_nothing(microsoft: FakeTeams) -> None:
    setup = TeamsSetup(Secrets(SPEC.secrets, {}), TeamsSettings(insecure_local=True))
    [check] = await setup.examine()
    assert check.state is CheckState.WARN
    assert (await setup.identify()).account == "local"
    assert not microsoft.calls


def test_the_manifest_is_the_package_of_this_app() -> None:
    setup = TeamsSetup(Secrets(SPEC.secrets, {}), TeamsSettings(app_id=APP_ID))
    made = setup.manifest()
    with zipfile.ZipFile(io.BytesIO(made.content)) as archive:
        assert archive.read("manifest.json").decode() == made.text
    assert APP_ID in made.text
    assert made.of_account
    assert {one.name for one in made.permissions} == {*manifest.WHY, *manifest.PERMISSIONS}


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("", "nothing was typed"),
        (" ", "nothing was typed"),
        ("0d5e5f0e-0000-4000-8000-00000000000b", "ID"),
        ("abc", "whole"),
        ("fake~8Q.with a space in it", "whole"),
        ("fake~8Q.üüüüüüüüüüüü", "whole"),
    ],
)
def test_what_cannot_be_a_secret_is_told(value: str, word: str) -> None:
    told = TeamsSetup.malformed(APP_PASSWORD, value)
    assert word in told
    assert not value.strip() or value not in told


def test_what_can_be_a_secret_or_an_id_is_taken() -> None:
    assert TeamsSetup.malformed(APP_PASSWORD, PASSWORD) == ""
    assert TeamsSetup.wrong_setting("app_id", APP_ID) == ""
    assert TeamsSetup.wrong_setting("tenant", "contoso.example")
    assert TeamsSetup.wrong_user_id("29:1abc-x_y") == ""
    assert "pair" in TeamsSetup.wrong_user_id("ada@contoso.example")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"path": "api/messages"}, "slash"),
        ({"feedback": "stars"}, "feedback"),
        ({"insecure_local": True, "app_id": APP_ID}, "insecure_local"),
        ({"service_urls": ("http://smba.example/",)}, "service_urls"),
        ({"openid_metadata": "http://keys.example/"}, "openid_metadata"),
        ({"token_endpoint": "ftp://tokens.example/"}, "token_endpoint"),
        ({"token_endpoint": "http://127.0.0.1.evil.example/"}, "token_endpoint"),
    ],
)
def test_settings_that_cannot_be_are_told(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        TeamsSettings(**settings)


def test_the_secret_is_needed_except_for_the_playground() -> None:
    assert SPEC.needs(TeamsSettings()) == (APP_PASSWORD,)
    assert SPEC.needs(TeamsSettings(insecure_local=True)) == ()
