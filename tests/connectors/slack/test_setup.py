# SPDX-License-Identifier: Apache-2.0
"""Setting up, examining and leaving Slack, on a Slack of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pytest
from goodbot.api.setup import Check, CheckState
from goodbot.api.texts.terminal import speaking
from goodbot.base.errors import FatalConnectorError, RetriableError
from goodbot.config.secrets import Secrets
from goodbot_connectors.slack import SPEC, manifest
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackSettings
from goodbot_fakes.slack import FakeSlack

from tests.support import require

require("slack_sdk")

from goodbot_connectors.slack.setup import SlackSetup  # noqa: E402  needs slack_sdk


def setup_of(slack: FakeSlack, environ: Mapping[str, str] | None = None, mode: str = "socket") -> SlackSetup:
    given = {BOT_TOKEN: slack.app.bot_token, APP_TOKEN: slack.app.app_token} if environ is None else environ
    settings = SlackSettings(api_base=slack.api_url, mode=mode)
    return SlackSetup(Secrets(SPEC.secrets, given), settings)


def by_part(checks: Sequence[Check]) -> dict[str, Check]:
    return {check.part: check for check in checks}


async def test_the_token_says_whose_it_is(slack: FakeSlack) -> None:
    me = await setup_of(slack).identify()
    assert me.account == f"T0G00DB0T:{slack.app.user.id}"
    assert me.name == "@goodbot in Good Bots"
    assert slack.app.user.id in me.link


async def test_all_is_well_with_the_apps_own_tokens(slack: FakeSlack) -> None:
    checks = await setup_of(slack).examine()
    assert [check.state for check in checks] == [CheckState.OK, CheckState.OK]
    assert {check.part for check in checks} == {"slack scopes", "slack app token"}


@pytest.mark.parametrize("gone", manifest.scopes())
async def test_a_missing_scope_is_named_with_what_it_is_for(slack: FakeSlack, gone: str) -> None:
    slack.app.scopes.discard(gone)
    check = by_part(await setup_of(slack).examine())["slack scopes"]
    assert check.state is CheckState.FAIL
    assert check.text == f"missing: {gone}: {manifest.WHY[gone]}"
    assert "goodbot manifest slack" in check.fix


async def test_it_is_named_in_the_language_of_who_looks(slack: FakeSlack) -> None:
    slack.app.scopes.discard("im:history")
    with speaking("de"):
        check = by_part(await setup_of(slack).examine())["slack scopes"]
    assert check.text == "es fehlt: im:history: liest, was man ihm direkt schreibt"
    assert check.fix.startswith("setz das Manifest von `goodbot manifest slack`")


async def test_a_wrong_bot_token_is_told_without_it(slack: FakeSlack) -> None:
    wrong = "xoxb-100000000001-999999999999-AnotherTokenOfSomebody"
    setup = setup_of(slack, {BOT_TOKEN: wrong, APP_TOKEN: slack.app.app_token})
    for ask in (setup.identify, setup.examine):
        with pytest.raises(FatalConnectorError, match=BOT_TOKEN) as told:
            await ask()
        assert wrong not in str(told.value)
        assert told.value.__suppress_context__


async def test_a_missing_bot_token_says_what_to_do(slack: FakeSlack) -> None:
    with pytest.raises(FatalConnectorError, match=f"set {BOT_TOKEN}"):
        await setup_of(slack, {}).identify()


async def test_a_wrong_app_token_fails_its_own_check(slack: FakeSlack) -> None:
    wrong = "xapp-1-A0G00DB0T-300000000003-" + "f" * 64
    setup = setup_of(slack, {BOT_TOKEN: slack.app.bot_token, APP_TOKEN: wrong})
    check = by_part(await setup.examine())["slack app token"]
    assert check.state is CheckState.FAIL
    assert APP_TOKEN in check.text
    assert wrong not in check.text


async def test_an_app_token_without_its_scope(slack: FakeSlack) -> None:
    slack.app.app_scopes.clear()
    check = by_part(await setup_of(slack).examine())["slack app token"]
    assert check.text == f"{APP_TOKEN} lacks the permission connections:write"
    assert check.fix


async def test_socket_mode_that_is_off(slack: FakeSlack) -> None:
    slack.app.socket_mode = False
    check = by_part(await setup_of(slack).examine())["slack app token"]
    assert check.state is CheckState.FAIL
    assert "Socket Mode" in check.fix


async def test_http_mode_asks_for_no_socket(slack: FakeSlack) -> None:
    checks = by_part(await setup_of(slack, {BOT_TOKEN: slack.app.bot_token}, "http").examine())
    assert "127.0.0.1:3000/slack/events" in checks["slack requests"].text
    assert not slack.called("apps.connections.open")


async def test_a_network_that_is_down_is_no_wrong_token(slack: FakeSlack) -> None:
    slack.cut()
    with pytest.raises(RetriableError, match="cannot be reached"):
        await setup_of(slack).identify()


async def test_there_is_nothing_that_tokens_can_take_away(slack: FakeSlack) -> None:
    for dry_run in (True, False):
        assert await setup_of(slack).remove(dry_run=dry_run) == ()
    assert slack.calls == []


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (BOT_TOKEN, "", "nothing was typed"),
        (BOT_TOKEN, "xapp-1-A0G00DB0T-300000000003-0123456789abcdef", "other token"),
        (APP_TOKEN, "xoxb-100000000001-200000000002-LoopbackTokenOnly", "other token"),
        (BOT_TOKEN, "hello", "must start with xoxb-"),
        (BOT_TOKEN, "xoxb-1", "not copied whole"),
        (BOT_TOKEN, "xoxb-100000000001 200000000002-Loopback", "not copied whole"),
        (SIGNING_SECRET, "8f742231", "32 of 0-9 and a-f"),
        (SIGNING_SECRET, "Zf742231b10e8888abcd99bbbccc85a5", "32 of 0-9 and a-f"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_unasked(name: str, value: str, why: str) -> None:
    told = SlackSetup.malformed(name, value)
    assert why in told
    assert not value or value not in told


def test_what_may_be_a_secret_passes() -> None:
    slack = FakeSlack()
    good = {BOT_TOKEN: slack.app.bot_token, APP_TOKEN: slack.app.app_token, SIGNING_SECRET: "0af1" * 8}
    assert [SlackSetup.malformed(name, f" {value}\n") for name, value in good.items()] == [""] * 3
    assert len({SlackSetup.called(name) for name in good}) == 3


def test_each_mode_needs_its_own_secrets() -> None:
    assert SPEC.needs(SlackSettings()) == (BOT_TOKEN, APP_TOKEN)
    assert SPEC.needs(SlackSettings(mode="http")) == (BOT_TOKEN, SIGNING_SECRET)


def test_the_manifest_comes_with_its_reasons() -> None:
    setup = SlackSetup(Secrets(SPEC.secrets, {}), SlackSettings())
    made = setup.manifest()
    assert made.text == manifest.to_yaml(manifest.manifest(SlackSettings()))
    assert {one.name: one.why for one in made.permissions} == manifest.WHY
    page, _, given = made.link.partition("&manifest_json=")
    assert page == manifest.NEW_APP
    assert json.loads(unquote(given)) == manifest.manifest(SlackSettings()), "nothing is left to paste"
    assert len(made.link) < 8000, "what browsers and servers take"
    http = SlackSetup(Secrets(SPEC.secrets, {}), SlackSettings(mode="http")).manifest()
    assert (http.link, http.filled) == (manifest.NEW_APP, False), "its addresses are to be filled in first"
