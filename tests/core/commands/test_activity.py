# SPDX-License-Identifier: Apache-2.0
"""The audit trail for a page: what is on it, by pages and filters, whether it is whole, and who gets it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from goodbot.api.activity import ActivityPage, ActivityWanted, TrailChecked
from goodbot.api.commands import OLD, TABLE, Grant
from goodbot.api.events import UserRef
from goodbot.api.texts import catalogue
from goodbot.base.errors import UsageError
from goodbot.store import trail

from tests.core.builders import Bot, open_bot


def user(id_: str) -> UserRef:
    return UserRef(connector="loopback", account="loopback", id=id_)


async def page(bot: Bot, by: str = "owner", **wanted: Any) -> ActivityPage:
    return await bot.chat.host.activity(user(by), ActivityWanted(**wanted))


async def whats(bot: Bot, **wanted: Any) -> list[str]:
    return [one.what for one in (await page(bot, **wanted)).acts]


async def check(bot: Bot) -> TrailChecked:
    return await bot.chat.host.check_activity(user("owner"))


async def acted(bot: Bot) -> None:
    """The owner lets somebody in and stops trainings; a rater tries to."""
    await bot.command("people", "grant talker loopback:carl")
    await bot.command("pause")
    await bot.command("pause", user="rater")


async def test_the_newest_first_with_who_what_and_whether_it_was_done(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await acted(bot)
        found = await page(bot)
        refused, paused, let_in = found.acts
        assert (refused.who, refused.you, refused.what) == ("loopback:rater", False, "Stop trainings for now")
        assert (refused.refused, refused.where) == ("not on the allowlist", "private")
        assert (paused.who, paused.you, paused.refused) == ("loopback:owner", True, "")
        assert (let_in.what, let_in.typed) == ("Let somebody in", "people grant talker loopback:carl")
        assert found.actions == ["pause", "people"]
        assert (found.before, [one.number for one in found.acts]) == (0, [3, 2, 1])


async def test_each_choice_and_pages_that_are_looked_through_a_piece_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await acted(bot)
        assert await whats(bot, result="refused", action="pause") == ["Stop trainings for now"]
        assert await whats(bot, result="done", person="loopback:owner", action="people") == [
            "Let somebody in"
        ]
        assert await whats(bot, person="loopback:carl") == ["Let somebody in"]
        assert await whats(bot, person="loopback:rater") == ["Stop trainings for now"]
        assert await whats(bot, person="loopback:car") == await whats(bot, until=1.0) == []
        assert len(await whats(bot, since=1.0)) == 3
        with pytest.raises(UsageError):
            await page(bot, result="great")
        monkeypatch.setattr(trail, "PAGE", 1)
        monkeypatch.setattr(trail, "_SEARCHED", 2)
        seen: list[int] = []
        before = 0
        while True:
            found = await page(bot, person="loopback:owner", before=before)
            seen += [one.number for one in found.acts]
            before = found.before
            if not before:
                break
        assert seen == [2, 1]


async def test_what_was_asked_back_or_broke_off_is_not_called_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(_: object) -> None:
        raise RuntimeError("a fault of ours")

    async with open_bot(tmp_path) as bot:
        await bot.command("rollback", "all")
        monkeypatch.setitem(bot.app.commands._run, "pause", breaks)
        with pytest.raises(RuntimeError):
            await bot.app.commands.execute(bot.chat.typed("pause"))
        asked, broken = (await page(bot, result="asked")).acts, (await page(bot, result="refused")).acts
        assert [(one.action, one.asked, one.refused) for one in asked] == [("rollback", True, "")]
        assert [(one.action, one.refused) for one in broken] == [("pause", "it was not finished")]
        assert (await page(bot, result="done")).acts == []


async def test_whoever_was_an_owner_is_found_under_both_names(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:carl")
        await bot.command("pause", user="carl")
        await bot.command("people", "revoke loopback:carl")
        await bot.command("people", "grant talker loopback:carl")  # else they are one of all strangers
        await bot.command("resume", user="carl")
        found = await page(bot, person="loopback:carl")
        assert {one.action for one in found.acts} == {"people", "pause", "resume"}


async def tamper(bot: Bot, sql: str) -> None:
    async with aiosqlite.connect(bot.store.path) as db:
        await db.execute(sql)
        await db.commit()


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT 1", TrailChecked(entries=3)),
        ("UPDATE audit SET actor = 'loopback:else' WHERE seq = 2", TrailChecked(entries=3, changed=2)),
        ("UPDATE audit SET detail = 'x' WHERE seq = 3", TrailChecked(entries=3, changed=3)),
        ("DELETE FROM audit WHERE seq = 1", TrailChecked(entries=2, changed=2)),
        ("DELETE FROM audit WHERE seq = 3", TrailChecked(entries=2, missing=3)),
        ("DELETE FROM audit", TrailChecked(entries=0, missing=3)),
    ],
)
async def test_what_was_changed_or_taken_away_is_found_and_still_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, found: TrailChecked
) -> None:
    monkeypatch.setattr(trail, "_PIECE", 2)
    async with open_bot(tmp_path) as bot:
        await acted(bot)
        await tamper(bot, sql)
        assert await check(bot) == found
        assert len((await page(bot)).acts) == found.entries
        assert (await page(bot, person="loopback:nobody", result="done")).acts == []


async def test_who_was_forgotten_is_called_by_no_name(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await acted(bot)
        await bot.command("forget", "me", user="rater")
        await bot.command("forget", "me yes", user="rater")
        acts = (await page(bot)).acts
        assert [one.what for one in acts][:1] == ["Delete all that is stored of somebody"]
        assert acts[0].who.startswith("person-")
        assert acts[0].facts["ratings"] == "0"
        assert "loopback:rater" not in repr(acts)


async def test_nobody_but_an_owner_gets_any_of_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await acted(bot)
        for by in ("rater", "talker", "stranger"):
            with pytest.raises(UsageError):
                await page(bot, by)
            with pytest.raises(UsageError):
                await bot.chat.host.check_activity(user(by))


def audited() -> Iterator[str]:
    """Each command that leaves a line, and each first word behind it."""
    commands = (one for one in (*TABLE, *OLD) if one.run and one.grant is Grant.ADMINISTER)
    for command in commands:
        yield command.name
        choices = [word for one in command.arguments for word in one.choices]
        yield from (f"{command.name} {word}" for word in (*choices, *(one.name for one in command.actions)))


def plainly() -> Iterator[str]:
    """What there are plain words for, as keys say it."""
    yield from (key.removeprefix("did_") for key in catalogue("en") if key.startswith("did_"))


def test_every_command_that_leaves_a_line_has_plain_words() -> None:
    plain = {"adapters list", "import jsonl", "import open-webui", "import reinforceclaw"}
    there = {*plainly()}
    assert {one for one in audited() if one.replace(" ", "_") not in there} == plain


def test_no_words_are_left_of_a_command_that_is_gone() -> None:
    others = {"forget", "leave_out", "link", "log_in", "notes", "paired", "restore", "settings", "take_in"}
    names = {one.partition(" ")[0] for one in audited()} | others | {"queue", "unlink"}
    assert [one for one in plainly() if one not in names and one.partition("_")[0] not in names] == []


async def test_an_owner_reads_it_in_the_language_of_the_browser_else_of_the_platform(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await acted(bot)
        ask = bot.chat.host.activity
        found = await ask(replace(user("owner"), language="de"), ActivityWanted(result="refused"))
        assert [(one.what, one.refused) for one in found.acts] == [
            ("Trainings vorerst anhalten", "steht nicht auf der Erlaubnisliste")
        ]
        bot.app.courier.readers.heard(
            [replace(bot.chat.typed("pause"), user=replace(user("owner"), language="fr"))]
        )
        assert [one.what for one in (await page(bot, action="people")).acts] == ["Laisser entrer quelqu’un"]
        with pytest.raises(UsageError, match="Nur Besitzer"):
            await ask(replace(user("rater"), language="de"), ActivityWanted())
