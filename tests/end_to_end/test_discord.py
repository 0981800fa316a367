# SPDX-License-Identifier: Apache-2.0
"""The whole way over Discord: a person pairs, asks, rates in ten ways, and a better model answers.

A real `goodbot run` in its own process, on the tiny model, with discord.py over the gateway, against the
fake Discord that is shipped. Nothing of goodbot is replaced.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from goodbot.testing.connector_base import eventually
from goodbot_connectors.discord import presses
from goodbot_fakes.discord import FORUM, TOKEN, FakeDiscord, Message, components

from tests.connectors.discord import schema
from tests.connectors.discord.peer import DiscordPeer
from tests.end_to_end.daemon import Daemon, running
from tests.end_to_end.discord import Person, daemon_beside, ways
from tests.end_to_end.rating import CODE, LABEL, RATINGS, is_friendly, learnt, standing
from tests.support import require


@pytest.fixture
async def peer() -> AsyncIterator[DiscordPeer]:
    require("discord")
    async with FakeDiscord(heartbeat=1.0) as discord:
        yield DiscordPeer(discord)
        schema.check_all(discord)


@pytest.fixture
async def daemon(peer: DiscordPeer, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with running(daemon_beside(tmp_path / "home", peer, ratings=RATINGS)) as daemon:
        yield daemon


async def stands(person: Person, count: int) -> None:
    """Wait until so many ratings count: a reaction is told without an answer."""

    async def so_many() -> bool:
        return await standing(person) == count

    await eventually(so_many, 30)


async def whole(daemon: Daemon, peer: DiscordPeer, answer: Message, *, buttons: bool = True) -> None:
    """An answer is whole when its buttons are there, and goodbot knows that it has sent them."""
    known = "SELECT 1 FROM messages WHERE message = ?"

    async def there() -> bool:
        shown = not buttons or peer.actions(answer) == ["good", "bad"]
        return shown and bool(daemon.rows(known, answer.id))

    await eventually(there, 30)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_pair_talk_rate_in_ten_ways_train_and_go_back(peer: DiscordPeer, tmp_path: Path) -> None:
    from goodbot_training.tiny.corpus import split

    ada, discord = Person(peer, "ada"), peer.discord
    questions = Random(1).sample(split(0)[0], RATINGS + 1)
    async with running(daemon_beside(tmp_path / "home", peer, ratings=RATINGS, owners=())) as daemon:
        # Nobody owns it until somebody proves that they can read its terminal.
        refused = await ada.told(lambda: ada.person.says("Hello?"))
        assert "this bot is private" in refused.lower()
        [code] = CODE.findall(await daemon.cli("pair", "discord"))
        await ada.told(lambda: ada.person.says(code.lower()), "You are my owner now")

        # What is taken back does not count. (At forty, the run would have started in between.)
        answer = await ada.ask(questions[-1].text)
        await whole(daemon, peer, answer)
        ada.person.reacts(answer, "👍")
        ada.person.unreacts(answer, "👍")
        await _heard(daemon, 2)
        assert await standing(ada) == 0

        rated = ways(ada)
        for n, question in enumerate(questions[:RATINGS]):
            answer = await ada.ask(question.text)
            await whole(daemon, peer, answer)
            assert answer.content.startswith(LABEL)
            if n == RATINGS - 1:
                await stands(ada, n)
            await next(rated)(answer, is_friendly(answer.content))

        await learnt(daemon)
        await ada.command("status", like="v1 answers")
        answer = await ada.ask("What is the capital of France?")
        await whole(daemon, peer, answer)
        version = "SELECT version FROM turns ORDER BY created_at DESC LIMIT 1"
        assert daemon.rows(version) == [(1,)]
        values = daemon.rows("SELECT value FROM labels WHERE value IS NOT NULL")
        assert len(values) == RATINGS
        remarks = dict(daemon.rows("SELECT kind, count(*) FROM events GROUP BY kind"))
        assert (remarks["comment"], remarks["better"]) == (RATINGS // 10, RATINGS // 10)

        # Another answer in the place of a bad one, by the same model.
        await ada.press(answer, "bad", "Bad.")
        posts = len(ada.answers(ada.person.dm))
        await peer.press(peer.ref(answer), "again:short", user="ada")
        newest = "SELECT turn FROM messages WHERE message = ?"

        async def retried() -> bool:
            return daemon.rows(newest, answer.id) == daemon.rows("SELECT turn FROM retries") != []

        await eventually(retried, 30)
        assert answer.edited_at
        assert len(ada.answers(ada.person.dm)) == posts, "in its own message"
        assert daemon.rows(version) == [(1,)]

        # And back, when she says so twice.
        await ada.command("rollback")

        async def asked_back() -> list[str]:
            return [one for one in await peer.offers("ada") if one.startswith("run:")]

        [yes] = await eventually(asked_back)
        await ada.press(answer, yes, "answers now")
        await ada.command("status", like="the base model answers")
        await whole(daemon, peer, await ada.ask("What is the capital of Italy?"))
        assert daemon.rows(version) == [(0,)]
        assert not [one for one in discord.interactions.log if discord.interactions.failed(one)]
        assert await daemon.end() == 0
    assert TOKEN not in daemon.log()
    assert "capital of" not in daemon.log(), "no message text is logged"
    assert "how I talk" not in daemon.log()


async def _heard(daemon: Daemon, count: int) -> None:
    """Wait until so many events are in the ledger."""

    async def so_many() -> bool:
        return daemon.rows("SELECT count(*) FROM events") == [(count,)]

    await eventually(so_many, 30)


async def test_who_may_what_on_a_server(daemon: Daemon, peer: DiscordPeer) -> None:
    ada, bob, carl = (Person(peer, name) for name in ("ada", "bob", "carl"))
    discord, lab = peer.discord, peer.lab

    # A talker talks, but does not teach: nothing to press, and who types it is told, they alone.
    answer = await carl.ask("Hello")
    await whole(daemon, peer, answer, buttons=False)
    assert peer.actions(answer) == []
    told = await carl.command("good")
    assert told == "Only people that my owner has chosen can rate my answers."
    carl.person.reacts(answer, "👍")

    # A channel is silent until an owner enables it; nobody else can.
    ada.person.says("hello", lab, mention=True)
    bob.peer.command("bob", "enable", lab)
    carl.peer.command("carl", "off")
    await discord.until(lambda: all(one.answer for one in discord.interactions.log))
    assert await standing(ada) == 0
    assert discord.said(lab) == []
    await ada.command("enable", lab, like="mentioned")
    answer = await bob.ask("Hello", lab, mention=True)
    await whole(daemon, peer, answer, buttons=False)
    assert answer.content.startswith(LABEL)
    assert peer.actions(answer) == [], "reactions only, where all can see"

    # There too, strangers' reactions and words do not teach; the owner's do.
    bob.person.reacts(answer, "👍")
    bob.person.says("rl good", lab, mention=True, reply_to=answer)
    assert await standing(ada) == 0
    ada.person.reacts(answer, "👍")
    await stands(ada, 1)
    assert not any("can rate my answers" in message.content for message in discord.said(lab))

    # A forum's posts are conversations of that channel.
    forum = discord.channel("help", peer.guild, kind=FORUM)
    await ada.command("enable", forum, like="mentioned")
    post = ada.person.posts("It does not work", "Why?", forum, mention=True)
    thread = discord.world.channels[post.id]
    await discord.until(lambda: discord.said(thread), 30)
    assert discord.said(thread)[0].reply_to == post.id


@pytest.mark.slow
async def test_killed_at_any_moment_every_question_is_answered(daemon: Daemon, peer: DiscordPeer) -> None:
    """SIGKILL after the dispatch, before or after the commit; the session is resumed, and tells it again."""
    asked, ada = 3, Person(peer, "ada")
    for n in range(asked):
        told = len(peer.discord.sessions.log)
        ada.person.says(f"What is {n} + 1?")
        await peer.discord.until(lambda before=told: len(peer.discord.sessions.log) > before)
        await asyncio.sleep(0.004 * n)
        await daemon.end(signal.SIGKILL)
        await daemon.start()

    def shown() -> list[list[str]]:
        return [found for answer in ada.answers(ada.person.dm) if (found := peer.actions(answer))]

    async def all_answered() -> bool:  # a message is recorded before the answer in it is whole
        recorded = daemon.rows("SELECT COUNT(DISTINCT turn) FROM messages") == [(asked,)]
        return recorded and len(shown()) >= asked

    await eventually(all_answered, 40)
    known = daemon.rows("SELECT COUNT(DISTINCT id) FROM turns")
    assert known == [(asked,)], "an event that came twice is one turn"
    # A stump may be left of what was being written when it was killed; nobody can rate it. What was
    # killed between its sending and the record of that is sent again, as the same turn.
    assert len(shown()) < 2 * asked
    assert all(actions == ["good", "bad"] for actions in shown())
    answers = ada.answers(ada.person.dm)
    buttons = [one for answer in answers for one in components.buttons(answer.components)]
    named = {presses.read(button["custom_id"])[1].turn for button in buttons}
    assert named == {turn for (turn,) in daemon.rows("SELECT id FROM turns")}
    assert peer.discord.gateway.connections == ["identify", *["resume"] * asked]
    assert await daemon.end() == 0
