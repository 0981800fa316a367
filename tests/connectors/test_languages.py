# SPDX-License-Identifier: Apache-2.0
"""What each platform tells of the language that somebody reads, and what they are shown in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from goodbot.api.actions import retry_row
from goodbot.api.events import Event
from goodbot.api.texts import language_here
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import forms as discord_forms
from goodbot_connectors.discord import render as discord_render
from goodbot_connectors.discord.presses import AnswerRef as DiscordRef
from goodbot_connectors.slack import render as slack_render
from goodbot_connectors.slack.presses import AnswerRef as SlackRef
from goodbot_connectors.teams import feedback
from goodbot_connectors.telegram import prompts
from goodbot_connectors.telegram.keyboards import with_typed
from goodbot_connectors.terminal import SPEC, TerminalSettings
from goodbot_connectors.terminal.connector import TerminalConnector
from goodbot_connectors.web import guard, normalize

from tests.connectors.discord.test_normalize import RECORDINGS as DISCORD
from tests.connectors.discord.test_normalize import events as discord_events
from tests.connectors.teams.test_normalize import NORMALIZER as TEAMS_NORMALIZER
from tests.connectors.teams.test_normalize import RECORDINGS as TEAMS
from tests.connectors.telegram.test_normalize import NORMALIZER as TELEGRAM_NORMALIZER
from tests.connectors.telegram.test_normalize import RECORDINGS as TELEGRAM


def languages(events: Any) -> set[str]:
    return {event.user.language for event in events if isinstance(event, Event)}


def test_telegram_tells_it_of_whoever_writes_and_presses() -> None:
    update = TELEGRAM["presses: good"]["update"]
    press = {
        **update["callback_query"],
        "from": {**update["callback_query"]["from"], "language_code": "pt-br"},
    }
    assert languages(TELEGRAM_NORMALIZER.events({**update, "callback_query": press})) == {"pt-br"}


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("nl, ja;q=0.5", "ja"),
        ("*", ""),
        ("", ""),
        (",".join(["nl"] * 50_000 + ["de"]), ""),
    ],
)
def test_a_browser_lists_them(accepted: str, language: str) -> None:
    request = make_mocked_request("POST", "/", headers={"Accept-Language": accepted})
    assert guard.language(request) == language
    event = normalize.event(
        {"id": "a", "in": "main", "say": "Hi"}, user="ada", alias="x", now_ms=0, language=language
    )
    assert event.user.language == language


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({"LANG": "de_DE.UTF-8"}, "de"),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, ""),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "fr_FR"}, "fr"),
        ({"LANG": "", "LC_ALL": ""}, ""),
        ({}, ""),
    ],
)
def test_a_terminal_has_it_in_its_locale(environ: dict[str, str], language: str) -> None:
    assert language_here(environ) == language


async def test_a_chat_in_the_terminal_says_it_with_each_line(tmp_path: Path) -> None:
    connector = TerminalConnector(RecordingHost(SPEC, state_dir=tmp_path), TerminalSettings())
    for language in ("fr", ""):
        event = connector._event({"say": "Hi", "id": "x", **({"language": language} if language else {})})
        assert languages([event]) == {language}
    assert languages([connector._event({"say": "Hi", "language": ["fr"]})]) == {"['fr']"}, (
        "which is none of ours"
    )


def test_discord_tells_it_of_whoever_uses_an_interaction() -> None:
    found = [
        (case["payload"].get("locale", ""), languages(discord_events(case)))
        for name, case in DISCORD.items()
        if name.startswith("interactions:") and case["events"]
    ]
    assert found
    assert all(told in (set(), {locale}) for locale, told in found)
    assert any(told == {locale} != {""} for locale, told in found)


def test_teams_tells_it_with_each_activity() -> None:
    [case] = [case for name, case in TEAMS.items() if name == "messages: personal"]
    payload = {**case["payload"], "locale": "es-MX"}
    assert languages(TEAMS_NORMALIZER.events(payload)) == {"es-MX"}


def test_the_words_of_a_form_are_in_the_language_of_who_opens_it() -> None:
    form = discord_forms.form(DiscordRef(), rate=True, language="fr")
    assert form["title"] == "Noter la réponse"
    labels = [part["label"] for part in form["components"]]
    assert labels[0] == "La réponse était"
    assert [one["label"] for one in form["components"][0]["component"]["options"]] == [
        "👍 Bonne",
        "👎 Mauvaise",
    ]
    assert discord_render.with_form(retry_row("de"), "de")[-1].label == "Sag warum…"
    shown = slack_render.notice("Bad.", SlackRef(), retry_row("es"), "es")
    assert "Di qué estuvo mal…" in str(shown)
    assert [one.label for one in with_typed(retry_row("zh"), "zh")][-2:] == ["说说原因…", "更好的回答…"]
    opened = feedback.answer({"name": "message/fetchTask", "locale": "ja-JP"}, "t")
    assert opened["task"]["value"]["title"] == "この回答について"


def test_telegram_knows_its_question_in_every_language() -> None:
    kinds = prompts._kinds()
    assert kinds["Was war an dieser Antwort falsch?"] == "comment"
    assert kinds["应该怎样回答？"] == "better"
    assert len(kinds) == 14
