# SPDX-License-Identifier: Apache-2.0
"""Queues of answers to rate: who makes them, who sees what of them, and what a rating does there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot.access.authorization import Authorization
from goodbot.access.queues import shared_with
from goodbot.api.activity import ActivityWanted
from goodbot.api.queues import QueueShare, QueuesSeen, QueueWaiting, QueueWanted
from goodbot.base.errors import UsageError
from goodbot.config import Grants
from goodbot.store import people, queues
from goodbot.store.review_queue import Viewer

from tests.core.builders import Bot, open_bot, rows
from tests.core.commands.test_people_page import user
from tests.security.test_forgetting import on_disk

ALL = QueueShare(kind="all")


def to(who: str, kind: str = "person") -> QueueShare:
    return QueueShare(kind=kind, who=who)


async def answers(bot: Bot) -> list[Any]:
    """Three in a shared channel, then one of the owner's own chat."""
    await bot.command("enable", channel="#team")
    shared = [await bot.say(f"shared {number}", channel="#team") for number in range(3)]
    return [*shared, await bot.say("my secret")]


async def make(
    bot: Bot,
    turns: Sequence[str],
    *shared: QueueShare,
    by: str = "owner",
    name: str = "Look",
    newest: int = 0,
) -> str:
    wanted = QueueWanted(do="make", name=name, turns=turns, shared=shared or [ALL], newest=newest)
    return await bot.chat.host.change_queue(user(by), wanted)


async def seen(bot: Bot, who: str) -> QueuesSeen:
    return await bot.chat.host.queues(user(who))


async def names(bot: Bot, who: str) -> list[str]:
    return [one.name for one in (await seen(bot, who)).waiting]


async def test_a_rater_sees_their_part_and_a_rating_counts_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        told = await make(bot, [one.turn for one in said])
        assert told == (
            "The queue is made: 4 answers."
            " 1 of them is from a private chat. Only people who may see it get it."
        )
        mine = QueueWaiting(id=1, name="Look", done=0, answers=3)
        assert await seen(bot, "rater") == QueuesSeen(waiting=[mine]), "neither the secret nor who made it"
        assert await seen(bot, "talker") == await seen(bot, "guest") == QueuesSeen()
        for sign in ("👍", "👎"):
            await bot.react(said[0], sign, user="rater")
            assert [one.done for one in (await seen(bot, "rater")).waiting] == [1]
        [made] = (await seen(bot, "owner")).made
        assert (made.answers, made.raters, made.shared, made.closed) == (
            4,
            [("loopback:rater", 1)],
            [ALL],
            False,
        )
        assert [(one.done, one.answers) for one in (await seen(bot, "owner")).waiting] == [(0, 4)]
        await bot.react(said[3], "👍")
        await bot.command("people", "grant owner loopback:ada")
        [other] = (await seen(bot, "ada")).made
        assert (other.answers, other.raters) == (3, [("loopback:rater", 1)]), "of the secret nothing"
        await bot.store.write(lambda db: db.execute("DELETE FROM turns WHERE id = ?", (said[0].turn,)))
        assert [(one.done, one.answers) for one in (await seen(bot, "rater")).waiting] == [(0, 2)]


async def test_what_is_private_alone_is_no_queue_for_others(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        await make(bot, [said[3].turn])
        assert await names(bot, "rater") == []
        assert await names(bot, "owner") == ["Look"]
        of_rater = await bot.say("what I ask", user="rater")
        with pytest.raises(UsageError, match="no such answer"):
            await make(bot, [of_rater.turn, "unknown"])


async def test_a_queue_is_named_people_s_whichever_of_their_accounts_was_named(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        await bot.command("people", "grant rater loopback:guest")
        await make(bot, [said[0].turn], to("loopback:guest"))
        assert (await names(bot, "guest"), await names(bot, "rater")) == (["Look"], [])
        await bot.store.write(lambda db: people.link(db, "loopback:guest", "loopback:rater", 1.0))
        assert await names(bot, "rater") == ["Look"]
        await bot.command("people", "revoke loopback:guest")
        assert await names(bot, "guest") == [], "who may not rate any more sees nothing"


async def test_a_group_s_queue_is_for_its_members_now(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        authorization = Authorization({"slack": Grants(owners=("U0",), rater_groups=("S1",))})
        authorization.set_members("slack", "S1", {"U1"}, float("inf"))

        async def made(db: Any) -> int:
            about: dict[str, Any] = {"by": "slack:U0", "now": 1.0, "turns": []}
            return await queues.add(db, name="Look", shared=[to("slack:S1", "group")], **about)

        await bot.store.write(made)
        found: list[int] = []
        for who in ("slack:U1", "slack:U2", "telegram:U1"):
            viewer = Viewer(person=who, accounts=(who,), owner=False)
            found.append(len(await bot.store.read(lambda db, v=viewer: shared_with(db, authorization, v))))
        assert found == [1, 0, 0]
        authorization.set_members("slack", "S1", set(), float("inf"))
        viewer = Viewer(person="slack:U1", accounts=("slack:U1",), owner=False)
        assert await bot.store.read(lambda db: shared_with(db, authorization, viewer)) == []


async def test_the_newest_that_nobody_rated_are_of_shared_channels(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        await bot.react(said[2], "👍")
        assert await make(bot, (), newest=2) == "The queue is made: 2 answers."
        chosen = await rows(bot.store, "SELECT turn FROM queue_answers")
        assert {turn for (turn,) in chosen} == {said[0].turn, said[1].turn}


async def test_an_owner_closes_a_queue_and_opens_it_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        await make(bot, [said[0].turn])
        host = bot.chat.host
        assert "closed" in await host.change_queue(user("owner"), QueueWanted(do="close", id=1))
        assert await names(bot, "rater") == await names(bot, "owner") == []
        assert [one.closed for one in (await seen(bot, "owner")).made] == [True]
        for wrong in (QueueWanted(do="close", id=1), QueueWanted(do="open", id=2), QueueWanted(do="x", id=1)):
            with pytest.raises(UsageError, match="no such queue"):
                await host.change_queue(user("owner"), wrong)
        await host.change_queue(user("owner"), QueueWanted(do="open", id=1))
        assert await names(bot, "rater") == ["Look"]
        trail = await rows(bot.store, "SELECT detail FROM audit WHERE action = 'queue' ORDER BY seq")
        assert [json.loads(detail)["args"] for (detail,) in trail] == ["make", "close", "open"]


async def test_what_was_closed_long_ago_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MOST_CLOSED", 1)
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        for name in ("First", "Second", "Third"):
            await make(bot, [said[0].turn], name=name)
        for id_ in (1, 2):
            await bot.chat.host.change_queue(user("owner"), QueueWanted(do="close", id=id_))
        assert [one.name for one in (await seen(bot, "owner")).made] == ["Third", "Second"]
        assert await rows(bot.store, "SELECT DISTINCT queue FROM queue_answers ORDER BY 1") == [(2,), (3,)]


async def test_the_trail_says_in_plain_words_what_was_done(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        await make(bot, [said[0].turn], name="Moustache-7731")
        for do in ("close", "open"):
            await bot.chat.host.change_queue(user("owner"), QueueWanted(do=do, id=1))
        acts = (await bot.chat.host.activity(user("owner"), ActivityWanted(action="queue"))).acts
        assert [one.what for one in acts] == ["Open a queue again", "Close a queue", "Make a queue"]
        assert [one.facts for one in acts] == [{"queue": "1"}] * 3
        assert "Moustache" not in repr(acts), "the trail is for ever"


async def test_nobody_else_changes_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        await make(bot, [said[0].turn])
        for who in ("rater", "talker", "guest"):
            with pytest.raises(UsageError, match="Only owners"):
                await make(bot, [said[0].turn], by=who)
            for do in ("close", "open"):
                with pytest.raises(UsageError, match="Only owners"):
                    await bot.chat.host.change_queue(user(who), QueueWanted(do=do, id=1))
        assert await names(bot, "rater") == ["Look"]


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ({"name": " \n"}, "Give the queue a name"),
        ({"name": "x" * 81}, "Give the queue a name"),
        ({"turns": ["x"] * 201}, "Choose what is in the queue"),
        ({"turns": []}, "Choose what is in the queue"),
        ({"turns": [], "newest": 201}, "Choose what is in the queue"),
        ({"turns": [], "newest": -1}, "Choose what is in the queue"),
        ({"shared": []}, "Choose whom"),
        ({"shared": [ALL] * 51}, "Choose whom"),
        ({"shared": [to("loopback:talker")]}, "Nobody there may rate: 'loopback:talker'"),
        ({"shared": [to("loopback:staff", "group")]}, "Nobody there may rate"),
        ({"shared": [to("x", "king")]}, "Nobody there may rate"),
    ],
)
async def test_what_makes_no_queue_is_refused(tmp_path: Path, about: dict[str, Any], says: str) -> None:
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        wanted: dict[str, Any] = {"name": "Look", "turns": [said[0].turn], "shared": [ALL], **about}
        with pytest.raises(UsageError, match=says):
            await bot.chat.host.change_queue(user("owner"), QueueWanted(do="make", **wanted))
        assert await rows(bot.store, "SELECT * FROM queues") == []


async def test_so_many_are_open_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MOST_OPEN", 1)
    async with open_bot(tmp_path) as bot:
        said = await answers(bot)
        await make(bot, [said[0].turn])
        with pytest.raises(UsageError, match="So many queues are open: 1"):
            await make(bot, [said[1].turn])


async def test_forgetting_its_maker_leaves_nothing_of_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:ada")
        said = await answers(bot)
        assert "made" in await make(bot, [said[0].turn], by="ada", name="Moustache-7731")
        await make(bot, [said[0].turn], to("loopback:ada"), ALL, name="Stays")
        assert on_disk(tmp_path, "Moustache-7731")
        await bot.command("forget", "me", user="ada")
        await bot.command("forget", "me yes", user="ada")
        assert await rows(bot.store, "SELECT name FROM queues") == [("Stays",)]
        assert await rows(bot.store, "SELECT kind FROM queue_shares") == [("all",)]
        assert on_disk(tmp_path, "Moustache-7731") == []
