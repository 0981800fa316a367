# SPDX-License-Identifier: Apache-2.0
"""`goodbot connect`, `manifest` and `disconnect` where platforms differ: Discord, Teams, the browser."""

from __future__ import annotations

import io
import json
import tomllib
import zipfile
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli.program import Bot, need_backend
from tests.cli.screens import CTRL_C, Screen
from tests.cli.setting_up import Far, call, configured, far_side, listing, tokens
from tests.support import require

require("discord")
require("botbuilder.core")
from goodbot_connectors.discord import permissions  # noqa: E402
from goodbot_connectors.teams import manifest  # noqa: E402
from goodbot_fakes import discord, teams  # noqa: E402

MODEL = '# my bot\n[model]\npath = "demo"\n\n'
TENANT = "0f3a8f6e-0000-4000-8000-000000000001"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's home directory, with nothing of goodbot's in it."""
    home = tmp_path / "ada"
    home.mkdir()
    return home


@pytest.fixture
def guild() -> Iterator[Far[discord.FakeDiscord]]:
    with far_side(discord.FakeDiscord) as far:
        yield far


@pytest.fixture
def tenant() -> Iterator[Far[teams.FakeTeams]]:
    with far_side(teams.FakeTeams) as far:
        yield far


def on_discord(home: Path, far: Far[discord.FakeDiscord]) -> Path:
    there = f'[connectors.discord]\napi_base = "{far.there.api}"\ngateway = "{far.there.gateway_url}"\n'
    return configured(home, MODEL + there)


def on_teams(home: Path, far: Far[teams.FakeTeams]) -> Path:
    there = (
        f'[connectors.teams]\nopenid_metadata = "{far.there.openid_metadata}"\n'
        f'token_endpoint = "{far.there.token_endpoint}"\n'
    )
    return configured(home, MODEL + there)


def test_discord_takes_a_token_and_shows_a_link_with_no_more_than_is_needed(
    home: Path, guild: Far[discord.FakeDiscord]
) -> None:
    file = on_discord(home, guild)
    with Screen("connect", "discord", home=home) as ada:
        ada.sees("connects the bot that is set up here to Discord", "Step 1 of 3")
        ada.sees("discord.com/developers/applications")
        ada.answer("Shall it read all words in its threads?")
        ada.answer("Bot token (not shown", discord.WRONG_TOKEN)
        ada.answer("Bot token (not shown", discord.TOKEN)
        ada.sees("It belongs to @goodbot", "What goodbot asks Discord for, and why")
        ada.sees("Open this to add it")
        ada.shoot("connect-discord")
        ada.answer("keep it?")
        ada.answer("Step 2 of 3: Who is its owner?")
        ada.answer("Step 3 of 3: Ready", "no")
        ada.sees("Rate good answers too")
        assert ada.ends() == 0
        assert discord.TOKEN not in ada.raw
        raw = ada.raw
    assert tomllib.loads(file.read_text())["connectors"]["discord"]["owners"] == []
    assert f"GOODBOT_DISCORD_TOKEN={discord.TOKEN}\n" in tokens(home)
    link = call(home, "manifest", "discord").stdout.splitlines()[0]
    assert link in raw
    asked = parse_qs(urlsplit(link).query)
    assert asked["client_id"] == [b64decode(discord.TOKEN.partition(".")[0]).decode()]
    assert asked["permissions"] == [str(permissions.bits())]
    assert not (home / ".goodbot" / "connectors").exists(), "a link needs no file"


def test_discord_by_a_script_looked_at_and_left(home: Path, guild: Far[discord.FakeDiscord]) -> None:
    file = on_discord(home, guild)
    flags = ("--yes", "--json", "--token-stdin", "--keep-token", "file", "--owner", "1" * 18)
    done = call(home, "connect", "discord", *flags, input=f"{discord.TOKEN}\n")
    assert done.returncode == 0, done.stderr
    assert "message_content" not in file.read_text(), "it is off, as it was"
    assert json.loads(done.stdout)["bot"] == "@goodbot"
    checks = json.loads(call(home, "doctor", "--json").stdout)["checks"]
    found = {check["part"]: check["state"] for check in checks}
    assert (found["discord token"], found["discord intents"]) == ("ok", "ok")
    assert found["discord people"] == "ok"
    gone = call(home, "disconnect", "discord", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert "connectors" not in tomllib.loads(file.read_text())
    assert tokens(home) == ""


def test_teams_asks_for_two_ids_and_a_secret_and_makes_the_package(
    home: Path, tenant: Far[teams.FakeTeams]
) -> None:
    file = on_teams(home, tenant)
    with Screen("connect", "teams", home=home) as ada:
        ada.sees("connects the bot that is set up here to Teams", "Step 1 of 3", "Azure Bot")
        ada.answer("Microsoft App ID:", "goodbot")
        ada.answer("App_id is like")
        ada.answer("Microsoft App ID:", teams.APP_ID)
        ada.answer("App Tenant ID (Enter: none):", TENANT)
        ada.answer("Client secret (its Value) (not shown", f"{teams.PASSWORD}-no-longer")
        ada.answer("Client secret (its Value) (not shown", teams.PASSWORD)
        ada.sees("goodbot-teams.zip", "Give it in here")
        ada.shoot("connect-teams")
        ada.answer("keep it?")
        ada.answer("Step 2 of 3: Who is its owner?")
        ada.answer("Step 3 of 3: Ready", "no")
        ada.sees("Rate good answers too")
        assert ada.ends() == 0
        assert teams.PASSWORD not in ada.raw
    section = tomllib.loads(file.read_text())["connectors"]["teams"]
    assert (section["app_id"], section["tenant"]) == (teams.APP_ID, TENANT)
    assert "# Microsoft App ID" in file.read_text()
    package = (home / ".goodbot" / "connectors" / "teams" / manifest.FILE).read_bytes()
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        assert json.loads(archive.read("manifest.json"))["id"] == teams.APP_ID
    assert call(home, "manifest", "teams", text=False).stdout == package
    assert call(home, "manifest", "teams", "--out", str(home / "app.zip")).returncode == 0
    assert (home / "app.zip").read_bytes() == package
    with Screen("manifest", "teams", home=home) as ada:
        ada.sees("it is no text: say --out FILE", manifest.FILE)
        assert ada.ends() == 2
    told = json.loads(call(home, "manifest", "teams", "--json").stdout)
    assert json.loads(told["text"])["bots"]
    assert (told["file"], "packed" in told) == (manifest.FILE, False)


def test_teams_by_a_script(home: Path, tenant: Far[teams.FakeTeams]) -> None:
    file = on_teams(home, tenant)
    before = listing(home)
    flags = ("--yes", "--token-stdin", "--keep-token", "file", "--owner", "29:1ada")
    secret = f"{teams.PASSWORD}\n"
    for words, sentence in (
        ((), "--set app_id= is needed with --yes"),
        (("--set", "app_id"), "it takes KEY=VALUE"),
        (("--set", "colour=red"), "asks for no such setting; it asks for --set app_id=, --set ten"),
        (("--set", "app_id=goodbot"), "app_id is like"),
    ):
        done = call(home, "connect", "teams", *flags, *words, input=secret)
        assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
    assert listing(home) == before
    own = ("--set", f"app_id={teams.APP_ID}", "--set", f"tenant={TENANT}")
    done = call(home, "connect", "teams", *flags, *own, input=secret)
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(file.read_text())["connectors"]["teams"]["tenant"] == TENANT
    checks = json.loads(call(home, "doctor", "--json").stdout)["checks"]
    assert {c["state"] for c in checks if c["part"].startswith("teams")} == {"ok"}
    file.write_text(file.read_text().replace(teams.APP_ID, ""))
    checks = json.loads(call(home, "doctor", "--json").stdout)["checks"]
    [unset] = [c for c in checks if c["part"] == "teams settings"]
    assert (unset["state"], unset["fix"]) == ("fail", "goodbot connect teams")


def test_the_browser_asks_for_nothing_and_a_link_logs_in(home: Path) -> None:
    need_backend()
    file = configured(home, MODEL)
    with Screen("connect", "web", home=home) as ada:
        ada.sees("connects the bot that is set up here to the browser", "Step 1 of 1: Ready")
        ada.answer("Your choice", "no")
        ada.sees("Once it runs, `goodbot web` gives you a link", "Next: goodbot run")
        assert ada.ends() == 0
    assert tomllib.loads(file.read_text())["connectors"]["web"]["owners"] == ["owner"]
    checks = json.loads(call(home, "doctor", "--json").stdout)["checks"]
    assert {c["state"] for c in checks if c["part"].startswith("web")} == {"ok"}
    assert "goodbot is not running" in call(home, "web").stderr
    done = call(home, "disconnect", "web", "--yes")
    assert done.returncode == 0, done.stderr
    assert "connectors" not in tomllib.loads(file.read_text())


def test_the_link_of_a_bot_that_was_connected_by_a_script(home: Path, unused_tcp_port: int) -> None:
    need_backend()
    configured(home, f"{MODEL}[http]\nport = {unused_tcp_port}\n")
    assert call(home, "connect", "web", "--yes").returncode == 0
    bot = Bot(home / ".goodbot")
    bot.start()
    try:
        told = bot.json("web")
        assert told["url"].startswith(f"http://127.0.0.1:{unused_tcp_port}/login#")
        assert told["user"] == "owner"
    finally:
        bot.stop()


def test_init_offers_every_platform(home: Path) -> None:
    with Screen("init", home=home) as ada:
        ada.sees("1 Telegram", "2 Discord", "3 Slack", "4 Teams")
        ada.sees("Claude Code", "Codex", "OpenClaw", "The browser", "Only this terminal")
        ada.sees("Your choice [1]")
        ada.type(CTRL_C)
        assert ada.ends() == 130
