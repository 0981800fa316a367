# SPDX-License-Identifier: Apache-2.0
"""The report for a page: made in the background, one at a time, for who asked, and not kept long."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from goodbot import hookimpl
from goodbot.api.events import UserRef
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection, ReportSeen, ReportSpec
from goodbot.base.errors import UsageError
from goodbot.commands import report_page
from goodbot.features.reports import plugin

from tests.core.builders import Bot, open_bot, until
from tests.support import patience

BEGUN, GO_ON = threading.Event(), threading.Event()


class Slow(ReportPart):
    """Waits to be told to go on."""

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        BEGUN.set()
        assert GO_ON.wait(patience(60))

    def told(self, bot: ReportedBot) -> ReportSection:
        return ReportSection(lines=["slow"], data={"answers": bot.answers})


class Late(Slow):
    """Has seen all, and waits then."""

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        pass

    def told(self, bot: ReportedBot) -> ReportSection:
        BEGUN.set()
        assert GO_ON.wait(patience(60))
        return super().told(bot)


class Broken(Slow):
    """Fails."""

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        raise KeyError("a slip")


class Offers:
    """A plugin with one of them."""

    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    def register_report(self) -> ReportSpec:
        return ReportSpec(name="own", title="Our own", factory=f"{__name__}:{self.name}")


def user(id_: str) -> UserRef:
    return UserRef(connector="loopback", account="loopback", id=id_)


async def seen(bot: Bot, by: str = "owner", *, anew: bool = False) -> ReportSeen:
    return await bot.chat.host.report(user(by), anew=anew)


async def made(bot: Bot, by: str = "owner") -> ReportSeen:
    """A new one, when it is there."""
    assert (await seen(bot, by, anew=True)).making

    async def done() -> bool:
        return not (await seen(bot, by)).making

    await until(done)
    return await seen(bot, by)


async def test_it_is_made_beside_everything_else_and_says_how_far_it_is(tmp_path: Path) -> None:
    BEGUN.clear()
    GO_ON.clear()
    async with open_bot(tmp_path, extra=(Offers("Slow"),)) as bot:
        await bot.rated(3)
        assert await seen(bot) == ReportSeen(), "nobody has asked for one"
        begun = await seen(bot, anew=True)
        assert (begun.at, begun.making, begun.done, begun.of) == (None, True, 0, 3)
        await until(BEGUN.is_set)
        await bot.say("and this?")  # meanwhile it answers
        again = await seen(bot, anew=True)
        assert (again.making, again.of) == (True, 3), "one at a time"
        GO_ON.set()

        async def done() -> bool:
            return not (await seen(bot)).making

        await until(done)
        found = await seen(bot)
        assert found.at is not None
        assert (found.trouble, found.done) == ("", 3)
        [own] = found.parts
        assert (own.name, own.title, own.lines, own.data) == ("own", "Our own", ["slow"], {"answers": 3})


async def test_all_of_ours_is_what_a_page_can_be_sent(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        await bot.rated(8)
        await bot.train()
        found = json.loads(json.dumps(asdict(await made(bot)), allow_nan=False))
        assert [one["name"] for one in found["parts"]] == ["teachers", "groups", "versions", "pairs", "flags"]


async def test_it_is_made_in_the_language_of_who_asks(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        await bot.rated(8)
        await bot.train()
        reader = replace(user("owner"), language="de")
        await bot.chat.host.report(reader, anew=True)

        async def done() -> bool:
            return not (await seen(bot)).making

        await until(done)
        parts = {one.name: one for one in (await bot.chat.host.report(reader)).parts}
        assert parts["teachers"].title == "Wer was beigebracht hat"
        assert parts["teachers"].lines[0] == "v1 hat aus 6 von 8 gespeicherten Antworten gelernt."
        groups = parts["groups"].data
        assert groups["groups"]["place"][0]["group"] == "loopback, in private", "programs are told the same"
        assert groups["names"]["place"] == {"loopback, in private": "loopback, privat"}


async def test_what_has_failed_is_told_in_the_language_of_who_asked(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(Offers("Broken"),)) as bot:
        await bot.say("hello")
        reader = replace(user("owner"), language="es")
        await bot.chat.host.report(reader, anew=True)

        async def done() -> bool:
            return not (await seen(bot)).making

        await until(done)
        told = "No hay informe: falló su parte own; el registro dice más."
        assert (await bot.chat.host.report(reader)).trouble == told


async def test_the_version_is_asked_first_where_that_is_wanted(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        bot.fake.set(generate="held")
        begun = await bot.chat.host.report(user("owner"), anew=True, ask=True)
        assert (begun.making, begun.asking, begun.done) == (True, True, 0)

        async def asking() -> bool:
            return (await seen(bot)).of > 16

        await until(asking)
        assert (await seen(bot)).done == 0
        bot.fake.set(generate="ok")

        async def done() -> bool:
            return not (await seen(bot)).making

        await until(done)
        found = await seen(bot)
        assert (found.trouble, found.asking) == ("", False)
        [pairs] = [one for one in found.parts if one.name == "pairs"]
        assert pairs.data["versions"][0]["pairs"] >= 8


async def test_a_part_that_fails_is_told_in_a_sentence_and_another_try_is_possible(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(Offers("Broken"),)) as bot:
        await bot.rated(1)
        found = await made(bot)
        assert (found.at, found.parts) == (None, ())
        assert found.trouble.startswith("There is no report: its part own has failed")
        assert "loopback" not in bot.app.connectors.errors, "the platform goes on"
        assert (await made(bot)).trouble


async def test_it_goes_when_anybody_is_forgotten_also_while_it_is_made(tmp_path: Path) -> None:
    BEGUN.clear()
    GO_ON.set()
    async with open_bot(tmp_path, extra=(Offers("Late"),)) as bot:

        async def forget(who: str) -> None:
            await bot.say("mine", user=who)
            for said in ("me", "me yes"):
                await bot.command("forget", said, user=who)

        await bot.rated(1)
        assert (await made(bot)).parts
        await forget("rater")
        assert await seen(bot) == ReportSeen(done=1, of=1), "it may name them"
        BEGUN.clear()
        GO_ON.clear()
        assert (await seen(bot, anew=True)).making
        await until(BEGUN.is_set)
        await forget("talker")
        GO_ON.set()

        async def done() -> bool:
            return not (await seen(bot)).making

        await until(done)
        assert (await seen(bot)).parts == (), "it has seen them before"
        assert (await made(bot)).parts


async def test_nobody_else_sees_it_and_it_is_not_kept_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        assert (await made(bot)).parts
        for by in ("rater", "talker", "stranger"):
            for anew in (False, True):
                with pytest.raises(UsageError, match="Only owners see a report"):
                    await seen(bot, by, anew=anew)
        await bot.command("people", "grant owner loopback:second")
        other = await seen(bot, "second")
        assert (other.at, other.parts) == (None, ()), "what one owner may read is not another's"
        assert (await seen(bot)).parts
        monkeypatch.setattr(report_page, "KEPT_SECONDS", -1)
        assert await seen(bot) == ReportSeen()
