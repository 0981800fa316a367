# SPDX-License-Identifier: Apache-2.0
"""`/rl` and the context menu: what Discord is told of them, and that it is told once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC, words
from goodbot_fakes.discord import FakeDiscord

from tests.connectors.discord import schema
from tests.connectors.discord.peer import DiscordPeer
from tests.support import require

require("discord")

from goodbot_connectors.discord import commands  # noqa: E402  needs discord.py

NAME = re.compile(r"[-_'\w]{1,32}")
PUT = ("PUT", "/applications/{application_id}/commands")


def test_they_are_what_discord_takes() -> None:
    schema.require()
    for command in commands.commands():
        schema.check_object("ApplicationCommandUpdateRequest", command)


def test_each_is_offered_in_servers_in_direct_messages_and_to_whoever_installs_the_bot() -> None:
    for command in commands.commands():
        assert command["contexts"] == [0, 1, 2]
        assert command["integration_types"] == [0, 1]


@pytest.mark.parametrize("locale", ["", *words.OTHERS])
def test_names_are_such_as_discord_allows_and_told_apart(locale: str) -> None:
    def told(one: dict[str, Any]) -> tuple[str, str]:
        if not locale:
            return one["name"], one["description"]
        names, texts = one["name_localizations"], one["description_localizations"]
        return names.get(locale, one["name"]), texts.get(locale, one["description"])

    [slash, *_] = commands.commands()
    for options in (slash["options"], *(one["options"] for one in slash["options"])):
        mine = [told(one) for one in options]
        for name, does in mine:
            assert NAME.fullmatch(name)
            assert name == name.lower()
            assert 0 < len(does) <= 100, does
        assert len({name for name, _ in mine}) == len(mine)


def test_what_people_use_every_day_is_in_each_language() -> None:
    everyday = {"rl", "good", "bad", "stars", "reason", "better", "undo", "status", "history", "help"}
    for locale, there in words.OTHERS.items():
        assert everyday <= set(there), locale
        assert all(locale in names for names in words.MENUS.values())


def test_discord_knows_the_locales() -> None:
    known = {locale.value for locale in require("discord").Locale}
    assert set(words.OTHERS) <= known


def test_every_word_that_is_translated_is_there() -> None:
    [slash, *_] = commands.commands()
    there = {"rl", *(one["name"] for one in slash["options"])}
    there |= {option["name"] for one in slash["options"] for option in one["options"]}
    assert {word for words_ in words.OTHERS.values() for word in words_} <= there
    assert len(slash["options"]) <= 25


def test_what_has_no_words_of_a_menu_has_those_of_the_help() -> None:
    [slash, *_] = commands.commands()
    told = {one["name"]: one["description_localizations"] for one in slash["options"]}
    assert told["good"]["de"] == "Die Antwort war gut", "the menu's own"
    assert told["share"]["de"] == "Darf ich aus deinen privaten Chats lernen?"
    assert told["train"]["zh-CN"].endswith("（主人）"), "owners read that it is theirs"
    options = [option for one in slash["options"] for option in one["options"]]
    [choice] = [one["description_localizations"] for one in options if one["name"] == "choice"]
    assert choice["fr"].startswith("On\u00a0: je peux")
    for locale in words.OTHERS:
        english = [one["name"] for one in options if locale not in one["description_localizations"]]
        assert set(english) <= {"action", "words"}, "which are too long for Discord in some languages"
        assert all(locale in there for there in told.values())


def slash(name: str, **options: object) -> dict[str, object]:
    given = [{"name": key, "type": 3, "value": value} for key, value in options.items()]
    return {"name": "rl", "type": 1, "options": [{"name": name, "type": 1, "options": given}]}


@pytest.mark.parametrize(
    ("data", "typed"),
    [
        (slash("status"), ("status", "")),
        (slash("stars", count=4), ("stars", "4")),
        (slash("stars", answer="5f1e", count=4), ("stars", "4 5f1e")),
        (slash("reason", text="too\nlong "), ("reason", "too\nlong")),
        (slash("better", answer="5f1e", text="this"), ("better", "5f1e this")),
        (slash("train", **{"dry-run": True}), ("train", "--dry-run")),
        (slash("train", **{"dry-run": False}), ("train", "")),
        (slash("share", choice="off"), ("share", "off")),
        (slash("do", words="rollback since 2026-11-21 yes"), ("rollback", "since 2026-11-21 yes")),
        (slash("do", words="/rl status"), ("status", "")),
        (slash("do", words=" "), ("help", "")),
        (slash("good", unknown="x"), ("good", "")),
        ({}, ("help", "")),
    ],
)
def test_what_was_chosen_is_the_command_as_if_typed(data: dict[str, object], typed: tuple[str, str]) -> None:
    assert commands.typed(data) == typed


async def test_they_are_published_once_and_again_when_they_are_gone_or_others(
    discord: FakeDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = DiscordPeer(discord)
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)

    async def start() -> int:
        connector = build(SPEC, host, peer)
        before, looked = len(discord.called(*PUT)), len(discord.called("GET", PUT[1]))
        await connector.start()
        await discord.until(
            lambda: len(discord.called("GET", PUT[1])) > looked or len(discord.called(*PUT)) > before
        )
        await discord.until(lambda: not commands.missing(discord.application.commands.all()))
        await connector.stop()
        return len(discord.called(*PUT)) - before

    assert await start() == 1
    names = [command["name"] for command in discord.application.commands.all()]
    assert names == ["rl", "Good answer", "Bad answer", "Rate this answer…"]
    assert await start() == 0, "nothing has changed"
    discord.application.commands.overwrite([])
    assert await start() == 1, "somebody took them away"
    monkeypatch.setitem(words.OTHERS["de"], "good", words.OptionText("gut", "Sie war gut"))
    assert await start() == 1, "another description"
    await host.close()
