# SPDX-License-Identifier: Apache-2.0
"""What setup and `doctor` say of a platform is in the reader's language."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.setup import ConnectorSetup
from goodbot.api.texts import LANGUAGES, part, reworded
from goodbot.api.texts.terminal import FOLDER, speaking
from goodbot.base.clock import SystemClock
from goodbot.cli.setup.ending import _told
from goodbot_connectors.api.setup import ApiSetup
from goodbot_connectors.claude_code import examining
from goodbot_connectors.claude_code.setup import ClaudeCodeSetup
from goodbot_connectors.codex.setup import CodexSetup
from goodbot_connectors.discord import permissions
from goodbot_connectors.discord.setup import DiscordSetup
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.openclaw.setup import OpenClawSetup
from goodbot_connectors.slack import manifest as slack
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET
from goodbot_connectors.teams import manifest as teams
from goodbot_connectors.teams.setup import TeamsSetup
from goodbot_connectors.web.setup import WebSetup

from tests.support import require

require("slack_sdk")
require("telegram")

from goodbot_connectors.slack.setup import SlackSetup  # noqa: E402  needs slack_sdk
from goodbot_connectors.telegram.setup import TelegramSetup  # noqa: E402  needs python-telegram-bot

OTHERS = [language for language in LANGUAGES if language != "en"]
MISTAKES: list[tuple[type[ConnectorSetup], str, str]] = [
    *((TelegramSetup, "", value) for value in ("", "good morning", "token", "123:ä", "123:short")),
    *((DiscordSetup, "", value) for value in ("", "Bot abc", "ä.b.c", "1440000", "x" * 32, "a.b")),
    *((SlackSetup, BOT_TOKEN, value) for value in ("", "xapp-1", "nothing", "xoxb-1")),
    *((SlackSetup, name, "?") for name in (APP_TOKEN, SIGNING_SECRET)),
    *((TeamsSetup, "", value) for value in ("", "0d5e5f0e-0000-4000-8000-00000000000b", "abc")),
]


@pytest.mark.parametrize("language", OTHERS)
def test_what_a_token_cannot_be_is_said_in_the_readers_language(language: str) -> None:
    for setup, name, value in MISTAKES:
        english = setup.malformed(name, value)
        with speaking(language):
            said = setup.malformed(name, value)
        assert english, (setup, value)
        assert said not in ("", english), (setup, value)


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("setup", [TelegramSetup, DiscordSetup, SlackSetup, TeamsSetup, OpenClawSetup])
def test_what_is_no_user_id_is_said_so_too(setup: type[ConnectorSetup], language: str) -> None:
    english = setup.wrong_user_id("ada")
    with speaking(language):
        assert setup.wrong_user_id("ada") not in ("", english)


@pytest.mark.parametrize("language", OTHERS)
def test_where_one_gets_what_is_needed_is_said_so_too(language: str) -> None:
    chats = (TelegramSetup, DiscordSetup, SlackSetup, TeamsSetup)
    for setup in (*chats, WebSetup, ApiSetup, ClaudeCodeSetup, CodexSetup, OpenClawSetup):
        assert reworded(setup.guide, language) != setup.guide
        assert len(reworded(setup.guide, language).splitlines()) == len(setup.guide.splitlines())


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_changed_ends_as_sentences_do_there(language: str) -> None:
    line = str(part(language, FOLDER)["cx_next"]).partition("\n")[0]
    assert _told(line, language) == line + ("。" if language in ("ja", "zh") else ".")
    assert _told(f"{line}：", language) == f"{line}："
    assert _told("it was linked!", language) == "it was linked!"


def test_what_the_doctor_finds_of_a_program_is_said_so_too(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"disableAllHooks": true}', encoding="utf-8")
    with speaking("de"):
        [check] = examining.restrictions(tmp_path, http=False)
    assert check.text == f"{tmp_path / 'settings.json'} schaltet alle Hooks aus (disableAllHooks)"
    assert check.fix == "nimm disableAllHooks heraus"


def test_what_each_permission_is_for_is_in_the_catalogue() -> None:
    known = {text for text in part("en", FOLDER).values() if isinstance(text, str)}
    whys = (permissions.WHY, slack.WHY, teams.WHY, teams.PERMISSIONS)
    assert {why for one in whys for why in one.values()} - known == set()


def test_a_clock_that_is_another_is_told_so_too() -> None:
    dates = Dates(SystemClock())
    dates.take("Thu, 01 Jan 1970 00:00:00 GMT")
    with speaking("de"):
        [check] = dates.checks("Slack")
    assert check.text.startswith("dieser Rechner ist Slack um ")
    assert check.fix.startswith("stell die Uhr nach dem Netz: `timedatectl")
