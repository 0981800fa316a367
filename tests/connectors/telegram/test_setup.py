# SPDX-License-Identifier: Apache-2.0
"""Setting up, examining and leaving Telegram, on a Telegram of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import goodbot.cli.doctor.parts as doctor
import pytest
from goodbot.api.setup import Check, CheckState, Identity
from goodbot.base.errors import ConfigError, FatalConnectorError, RetriableError
from goodbot.config import parse
from goodbot.config.secrets import Secrets
from goodbot.testing.host import VirtualClock
from goodbot_connectors.telegram import SPEC
from goodbot_connectors.telegram.config import TOKEN, TelegramSettings
from goodbot_connectors.telegram.menus import menus

from tests.connectors.telegram.peer import GROUP, SECRET, TelegramPeer, called
from tests.connectors.telegram.schema import check_call
from tests.core.cli.doctor.examining import examined
from tests.support import require

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector
    from goodbot_connectors.telegram.setup import TelegramSetup

ME = Identity(account="4200001", name="@the_good_bot", link="https://t.me/the_good_bot")


def setup_of(settings: TelegramSettings, environ: dict[str, str]) -> TelegramSetup:
    require("telegram")
    from goodbot_connectors.telegram.setup import TelegramSetup

    return TelegramSetup(Secrets(SPEC.secrets, environ), settings)


def test_the_pairing_link_opens_the_bot_with_the_code() -> None:
    require("telegram")
    from goodbot_connectors.telegram.setup import TelegramSetup

    link = TelegramSetup.pairing_link(ME, "ABCD-2345")
    assert link == "https://t.me/the_good_bot?start=ABCD-2345"
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", link.partition("?start=")[2]), "what Telegram takes there"
    assert TelegramSetup.pairing_link(replace(ME, link=""), "ABCD-2345") == ""


@pytest.fixture
def setup(peer: TelegramPeer) -> TelegramSetup:
    return setup_of(peer.settings, peer.environ)


def by_part(checks: Sequence[Check]) -> dict[str, Check]:
    return {check.part: check for check in checks}


async def test_the_token_says_whose_it_is(setup: TelegramSetup, peer: TelegramPeer) -> None:
    assert await setup.identify() == ME
    for call in (await peer.control("calls"))["calls"]:
        check_call(call["method"], call["params"])


async def test_a_wrong_token_is_told_without_it(peer: TelegramPeer) -> None:
    setup = setup_of(peer.settings, peer.wrong_environ)
    for ask in (setup.identify, setup.examine):
        with pytest.raises(FatalConnectorError, match="does not know the token") as told:
            await ask()
        assert peer.wrong_environ[TOKEN] not in str(told.value)
        assert told.value.__suppress_context__


async def test_no_network_is_no_wrong_token(peer: TelegramPeer) -> None:
    settings = replace(peer.settings, api_base="http://127.0.0.1:9/bot")
    with pytest.raises(RetriableError) as told:
        await setup_of(settings, peer.environ).identify()
    assert SECRET not in str(told.value)


@pytest.mark.parametrize("name", ["ALL_PROXY", "HTTPS_PROXY"])
@pytest.mark.parametrize("proxy", ["socks5://ada:hush@127.0.0.1:9", "ftp://ada:hush@127.0.0.1:9"])
async def test_a_proxy_that_cannot_be_used_is_told_in_a_sentence(
    proxy: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = setup_of(TelegramSettings(), {TOKEN: SECRET})
    if proxy.startswith("socks") and find_spec("socksio"):
        pytest.skip("with socksio, SOCKS works")
    for variable in (name, name.lower()):
        monkeypatch.setenv(variable, proxy)
    with pytest.raises(FatalConnectorError, match="set HTTPS_PROXY to http://") as told:
        await setup.identify()
    assert "hush" not in str(told.value)


async def test_all_is_well(setup: TelegramSetup, peer: TelegramPeer) -> None:
    checks = await setup.examine()
    assert {check.state for check in checks} == {CheckState.OK}
    assert "administrator" in by_part(checks)["telegram groups"].text
    calls = (await peer.control("calls"))["calls"]
    assert {call["method"] for call in calls} == {"getMe", "getWebhookInfo"}, "it only asks"
    for call in calls:
        check_call(call["method"], call["params"])


async def test_somebody_elses_webhook_is_in_the_way(setup: TelegramSetup, peer: TelegramPeer) -> None:
    await peer.control("set", webhook="https://user:word@bots.example/secret-path")
    updates = by_part(await setup.examine())["telegram updates"]
    assert updates.state is CheckState.FAIL
    assert "at bots.example;" in updates.text
    assert "secret-path" not in updates.text
    assert "word" not in updates.text
    assert updates.fix.startswith("if this was goodbot's own webhook, `goodbot run` takes it back")
    assert "deleteWebhook" in updates.fix


async def test_a_bot_that_reads_whole_groups_is_worth_a_word(
    setup: TelegramSetup, peer: TelegramPeer
) -> None:
    await peer.control("set", readsGroups=True)
    groups = by_part(await setup.examine())["telegram groups"]
    assert (groups.state, "/setprivacy" in groups.fix) == (CheckState.WARN, True)


@pytest.mark.parametrize(("hours", "word"), [(2, "ahead of"), (-2, "behind")])
async def test_a_clock_that_is_off(hours: int, word: str, setup: TelegramSetup) -> None:
    from goodbot.base.clock import SystemClock

    setup.clock = VirtualClock(now=SystemClock().now() + hours * 3600)
    clock = by_part(await setup.examine())["clock"]
    assert clock.state is CheckState.WARN
    assert f"s {word} Telegram" in clock.text


async def test_leaving_takes_the_menus_away(
    setup: TelegramSetup, connector: TelegramConnector, peer: TelegramPeer
) -> None:
    """Only those that are still as we made them."""
    every = list(menus())
    await called(peer, "setMyCommands", len(every))
    weather = [{"command": "weather", "description": "Rain or not"}]
    scope = {"type": "all_group_chats"}
    await peer.control("menu", commands=weather, scope=scope, language_code="de")
    assert list(await setup.remove(dry_run=True)) == ["the command menus of @the_good_bot"]
    assert await peer.calls("deleteMyCommands") == []
    assert list(await setup.remove(dry_run=False)) == ["the command menus of @the_good_bot"]
    calls = await peer.calls("deleteMyCommands")
    assert len(calls) == len(every) - 1
    assert {"scope": scope, "language_code": "de"} not in calls
    for params in calls:
        check_call("deleteMyCommands", params)
    assert list(await setup.remove(dry_run=False)) == [], "nothing is left to remove"


@pytest.mark.parametrize("ours", [True, False])
async def test_leaving_takes_our_webhook_away(ours: bool, peer: TelegramPeer) -> None:
    settings = replace(peer.settings, mode="webhook", webhook_url="https://bots.example/goodbot")
    setup = setup_of(settings, peer.environ)
    url = settings.webhook_url if ours else "https://other.example/"
    await peer.control("set", webhook=url)
    expected = ["the webhook of @the_good_bot"] if ours else []
    assert list(await setup.remove(dry_run=False)) == expected
    assert len(await peer.calls("deleteWebhook")) == ours


@pytest.mark.parametrize(
    ("webhook", "info", "state", "word"),
    [
        ("https://bots.example/goodbot", {}, CheckState.OK, "brings them to bots.example"),
        ("", {}, CheckState.WARN, "the webhook is not set in Telegram yet"),
        ("https://other.example/x", {}, CheckState.WARN, "other.example, until goodbot starts"),
        (
            "https://bots.example/goodbot",
            {"pending_update_count": 7, "last_error_message": "Connection refused"},
            CheckState.WARN,
            "7 wait at Telegram",
        ),
    ],
)
async def test_in_webhook_mode_the_webhook_is_looked_at(
    webhook: str, info: dict[str, object], state: CheckState, word: str, peer: TelegramPeer
) -> None:
    settings = replace(peer.settings, mode="webhook", webhook_url="https://bots.example/goodbot")
    await peer.control("set", webhook=webhook, webhookInfo=info)
    updates = by_part(await setup_of(settings, peer.environ).examine())["telegram updates"]
    assert updates.state is state
    assert word in updates.text
    assert bool(updates.fix) == (state is not CheckState.OK)


async def test_our_own_webhook_is_no_other_program(peer: TelegramPeer) -> None:
    """After the mode was set back to polling, and before the next start."""
    settings = replace(peer.settings, webhook_url="https://bots.example/goodbot")
    await peer.control("set", webhook=settings.webhook_url)
    updates = by_part(await setup_of(settings, peer.environ).examine())["telegram updates"]
    assert (updates.state, "takes it back" in updates.text) == (CheckState.WARN, True)


@pytest.mark.parametrize("admin", [True, False])
async def test_reactions_need_an_administrator(admin: bool, setup: TelegramSetup, peer: TelegramPeer) -> None:
    await peer.chats(admin=admin)
    setup.channels = [str(GROUP), "-1009", "no number"]
    checks = by_part(await setup.examine())
    group = checks[f"telegram group {GROUP}"]
    assert group.state is (CheckState.OK if admin else CheckState.WARN)
    assert ("make it an administrator" in group.fix) == (not admin)
    assert "cannot see the group" in checks["telegram group -1009"].text
    assert checks["telegram group no number"].state is CheckState.WARN
    for call in (await peer.control("calls"))["calls"]:
        check_call(call["method"], call["params"])


async def test_a_restricted_bot_is_in_the_group(
    setup: TelegramSetup, peer: TelegramPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goodbot_connectors.telegram.api import Api

    async def restricted(self: Api, chat_id: int) -> str:
        return "restricted"

    monkeypatch.setattr(Api, "status_in", restricted)
    setup.channels = [str(GROUP)]
    group = by_part(await setup.examine())[f"telegram group {GROUP}"]
    assert group.state is CheckState.WARN
    assert "restricted" in group.text
    assert "not in the group" not in group.text


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("1001", True),
        ("ada", False),
        ("-1001", False),
        ("١٢٣", False),
        ("0", False),
        ("0042", False),
        ("9" * 17, False),
    ],
)
def test_an_id_is_a_number(value: str, right: bool) -> None:
    require("telegram")
    from goodbot_connectors.telegram.setup import TelegramSetup

    assert (TelegramSetup.wrong_user_id(value) == "") is right


async def test_the_doctor_knows_the_groups_of_the_config(peer: TelegramPeer, tmp_path: Path) -> None:
    await peer.chats(admin=False)
    base = peer.settings.api_base
    toml = f'[connectors.telegram]\nowners = [1]\nchannels = [{GROUP}]\napi_base = "{base}"\n'
    seen = examined(tmp_path, toml, environ=peer.environ)
    [probe] = doctor.connectors.probes(seen)
    group = by_part(await probe.run(seen))[f"telegram group {GROUP}"]
    assert group.state is CheckState.WARN


@pytest.mark.parametrize(
    ("section", "word"),
    [
        ('mode = "push"', '"polling" or "webhook"'),
        ('mode = "webhook"', "needs webhook_url"),
        ('api_base = "http://127.0.0.1:8081"', "api_base ends in /bot"),
        ('mode = "webhook"\nwebhook_url = "http://bots.example/"', "https://"),
    ],
)
def test_a_mode_that_cannot_be_is_told_with_its_line(section: str, word: str, tmp_path: Path) -> None:
    config = parse(f"[connectors.telegram]\n{section}\n", home=tmp_path, path=tmp_path / "c.toml")
    with pytest.raises(ConfigError, match=r"c\.toml:\d+: .*" + re.escape(word)):
        config.connector("telegram", TelegramSettings)


@pytest.mark.parametrize("known", [True, False])
async def test_the_doctor_asks_telegram(known: bool, peer: TelegramPeer, tmp_path: Path) -> None:
    environ = peer.environ if known else peer.wrong_environ
    toml = f'[connectors.telegram]\nowners = [1]\napi_base = "{peer.settings.api_base}"\n'
    seen = examined(tmp_path, toml, environ=environ)
    [probe] = doctor.connectors.probes(seen)
    checks = by_part(await probe.run(seen))
    token = checks["telegram token"]
    if known:
        assert token.text.startswith("@the_good_bot (account 4200001); ")
        assert {check.state for check in checks.values()} == {CheckState.OK}
    else:
        assert (token.state, token.fix) == (CheckState.FAIL, "goodbot connect telegram")
        assert "does not know the token" in token.text
    assert environ[TOKEN] not in repr(checks)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (SECRET, ""),
        ("123456789:" + "A" * 35, ""),
        (f"  {SECRET}\n", ""),
        ("", "empty"),
        ("   ", "empty"),
        (f"Use this token: {SECRET}", "spaces"),
        ("AAEabc", "starts with a number"),
        ("x123:" + "A" * 35, "starts with a number"),
        ("١٢٣:" + "A" * 35, "starts with a number"),
        ("123456789:" + "A" * 20, "not copied whole: 20"),
        ("123456789:" + "A" * 80, "not copied whole: 80"),
        ("123456789:" + "é" * 35, "characters that no token has"),
        ("1" * 1_000_000, "starts with a number"),
        ("1:" + "A" * 1_000_000, "not copied whole"),
    ],
)
def test_what_cannot_be_a_token_is_known_without_asking(value: str, word: str) -> None:
    require("telegram")
    from goodbot_connectors.telegram.setup import TelegramSetup

    why = TelegramSetup.malformed(TOKEN, value)
    assert bool(why) == bool(word)
    assert word in why
    assert len(value.strip()) < 8 or value.strip() not in why


def test_the_guide_fits_into_five_lines() -> None:
    require("telegram")
    from goodbot_connectors.telegram.setup import TelegramSetup

    lines = TelegramSetup.guide.splitlines()
    assert len(lines) <= 5
    assert max(map(len, lines)) <= 90
    assert "BotFather" in TelegramSetup.guide
