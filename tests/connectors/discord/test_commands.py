"""`/rl` and the context menu: what Discord is told of them, and that it is told once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from goodbot.commands import TABLE, find
from goodbot.testing.connector_base import build
from goodbot.testing.fakes.discord import FakeDiscord
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC, words

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
    there = words.ENGLISH | words.OTHERS.get(locale, {})
    for word, (name, does) in there.items():
        assert NAME.fullmatch(name), word
        assert name == name.lower()
        assert 0 < len(does) <= 100
    names = [there[name].name for name in commands.OPTIONS]
    assert len(set(names)) == len(names)
    for options in commands.OPTIONS.values():
        mine = [there[option.name].name for option in options]
        assert len(set(mine)) == len(mine)


def test_what_people_use_every_day_is_in_each_language() -> None:
    everyday = {"rl", "good", "bad", "stars", "reason", "better", "undo", "status", "history", "help"}
    for locale, there in words.OTHERS.items():
        assert everyday <= set(there) <= set(words.ENGLISH), locale
        assert all(locale in names for names in words.MENUS.values())


def test_discord_knows_the_locales() -> None:
    known = {locale.value for locale in require("discord").Locale}
    assert set(words.OTHERS) <= known


def test_every_subcommand_is_a_command_of_the_core() -> None:
    for name in commands.OPTIONS:
        assert name == "do" or find(TABLE, name) is not None, name
    assert len(commands.OPTIONS) <= 25


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
    monkeypatch.setitem(words.ENGLISH, "good", words.OptionText("good", "It was good"))
    assert await start() == 1, "another description"
    await host.close()
