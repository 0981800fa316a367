# SPDX-License-Identifier: Apache-2.0
"""The whole way over Teams: a person pairs, asks, rates in ten ways, and a better model answers.

A real `goodbot run` in its own process, on the tiny model, with every token checked, against the fake
Teams that is shipped. Nothing of goodbot is replaced.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from goodbot.api.events import ChannelKind
from goodbot.testing.connector_base import eventually
from goodbot_fakes.teams import FakeTeams, Message, Pace

from tests.connectors.teams import schema
from tests.connectors.teams.peer import TeamsPeer, actions
from tests.end_to_end.daemon import Daemon, running
from tests.end_to_end.rating import CODE, LABEL, RATINGS, is_friendly, learnt, standing
from tests.end_to_end.teams import Person, daemon_beside, ways
from tests.support import require

OFF_HERE = "I am off in this channel. Type `/rl enable` here, and I answer."
PATIENT = Pace(retries=(1.0,) * 120)
"""Teams' own may be shorter; nobody has told."""


@pytest.fixture
async def peer() -> AsyncIterator[TeamsPeer]:
    require("botbuilder.core")
    async with FakeTeams(pace=PATIENT) as teams:
        yield TeamsPeer(teams)
        if not schema.unavailable():
            schema.check_all(teams)


@pytest.fixture
async def daemon(peer: TeamsPeer, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with running(daemon_beside(tmp_path / "home", peer, ratings=RATINGS)) as daemon:
        yield daemon


async def known(daemon: Daemon, answer: Message) -> None:
    """Nobody rates sooner than goodbot knows that it has sent an answer; who could would be rated too."""

    async def there() -> bool:
        return bool(daemon.rows("SELECT 1 FROM messages WHERE message = ?", answer.id))

    await eventually(there)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_pair_talk_rate_in_ten_ways_train_and_go_back(peer: TeamsPeer, tmp_path: Path) -> None:
    from goodbot_training.tiny.corpus import split

    ada, teams = Person(peer, "ada"), peer.teams
    questions = Random(1).sample(split(0)[0], RATINGS + 1)
    home = tmp_path / "home"
    async with running(daemon_beside(home, peer, ratings=RATINGS, owners=())) as daemon:
        # Nobody owns it until somebody proves that they can read its terminal.
        await ada.told(lambda: ada.client.says("Hello?"), "This bot is private")
        [code] = CODE.findall(await daemon.cli("pair", "teams"))
        await ada.told(lambda: ada.client.says(code.lower()), "You are my owner now")

        # What is taken back does not count. (At forty, the run would have started in between.)
        answer = await ada.ask(questions[-1].text)
        ada.client.reacts(answer, "like")
        ada.client.unreacts(answer, "like")
        await teams.settled()
        assert await standing(ada) == 0

        rated = ways(ada)
        for n, question in enumerate(questions[:RATINGS]):
            answer = await ada.ask(question.text)
            await known(daemon, answer)
            assert answer.text.startswith(LABEL)
            assert actions(answer) == ["good", "bad"]
            if n == RATINGS - 1:
                await teams.settled()
                assert await standing(ada) == n
            await next(rated)(answer, is_friendly(answer.text))
            await teams.settled()

        await learnt(daemon)
        await ada.command("status", like="v1 answers")
        answer = await ada.ask("What is the capital of France?")
        await known(daemon, answer)
        version = "SELECT version FROM turns ORDER BY created_at DESC LIMIT 1"
        assert daemon.rows(version) == [(1,)]
        values = daemon.rows("SELECT value FROM labels WHERE value IS NOT NULL")
        assert len(values) == RATINGS
        remarks = dict(daemon.rows("SELECT kind, count(*) FROM events GROUP BY kind"))
        assert (remarks["comment"], remarks["better"]) == (RATINGS // 10, RATINGS // 10)

        # Another answer in the place of a bad one, by the same model.
        await ada.told(lambda: ada.client.rates(answer, good=False), "Bad.")
        posts, old = len(await peer.posts()), answer.text
        await peer.press(ada.ref(answer), await ada.offered("again:short"))

        async def another() -> bool:
            newest = daemon.rows("SELECT turn FROM messages WHERE message = ?", answer.id)
            retries = daemon.rows("SELECT turn, response FROM retries JOIN turns ON id = turn")
            shown = all(response in answer.text for _, response in retries)  # it may be in the same words
            return shown and newest == [(turn,) for turn, _ in retries] != []

        await eventually(another, 60)
        assert answer.text != old or len(await peer.posts()) == posts, "in its own message"
        assert daemon.rows(version) == [(1,)]

        # And back, when she says so twice.
        ada.client.says("/rl rollback")
        yes = await ada.offered("run:")
        await peer.press(ada.ref(answer), yes)
        await eventually(lambda: _told(peer, "answers now"), 30)
        await ada.command("status", like="the base model answers")
        await ada.ask("What is the capital of Italy?")
        assert daemon.rows(version) == [(0,)]
        assert await daemon.end() == 0
    assert not any(secret in daemon.log() for secret in peer.environ.values())
    assert "capital of" not in daemon.log(), "no message text is logged"
    assert "how I see it" not in daemon.log()


async def _told(peer: TeamsPeer, like: str) -> bool:
    return any(like in text for text in await peer.notices("ada"))


async def test_who_may_what_in_a_channel(daemon: Daemon, peer: TeamsPeer) -> None:
    ada, bob, carl = (Person(peer, name) for name in ("ada", "bob", "carl"))
    lab, teams = peer.lab, peer.teams

    # A talker talks, but does not teach: nothing to press, and who types it is told, they alone.
    answer = await carl.ask("Hello")
    await known(daemon, answer)
    assert actions(answer) == []
    told = await carl.command("good")
    assert told == "Only people that my owner has chosen can rate my answers."
    carl.client.reacts(answer, "like")

    # A channel is silent until an owner enables it; nobody else can, and nobody else hears how.
    ada.client.says("hello", lab, mention=True)
    bob.client.says("/rl enable", lab, mention=True)
    carl.client.says("/rl off")
    await teams.settled()
    assert await standing(ada) == 0
    assert [post.text for post in await peer.posts(ChannelKind.SHARED)] == [OFF_HERE]
    ada.client.says("/rl enable", lab, mention=True)

    async def enabled() -> bool:
        texts = [post.text for post in await peer.posts(ChannelKind.SHARED)]
        return any("mentioned" in text for text in (*texts, *await peer.notices("ada")))

    await eventually(enabled, 30)
    answer = await bob.ask("Hello", lab, mention=True)
    await known(daemon, answer)
    assert answer.text.startswith(LABEL)
    assert actions(answer) == [], "reactions only, where all can see"

    # There too, strangers' reactions and words do not teach; the owner's do.
    bob.client.reacts(answer, "like")
    bob.client.says("/rl good", lab, mention=True, thread=answer.thread, quote=answer)
    await teams.settled()
    assert await standing(ada) == 0
    ada.client.reacts(answer, "like")
    await teams.settled()
    assert await standing(ada) == 1
    assert not any("can rate my answers" in post.text for post in await peer.posts(ChannelKind.SHARED))


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_killed_at_any_moment_every_question_is_answered_once(daemon: Daemon, peer: TeamsPeer) -> None:
    """SIGKILL after the delivery, before or after the commit; Teams tells it again."""
    asked = 3
    for n in range(asked):
        peer.people["ada"].says(f"What is {n} + 1?")
        delivery = peer.teams.outbox.log[-1]
        await peer.teams.until(lambda sent=delivery: sent.attempts > 0)
        await asyncio.sleep(0.004 * n)
        await daemon.end(signal.SIGKILL)
        await daemon.start()

    async def all_answered() -> bool:
        done = daemon.rows("SELECT COUNT(DISTINCT turn) FROM messages")
        return done == [(asked,)]

    await eventually(all_answered, 60)
    assert daemon.rows("SELECT COUNT(DISTINCT id) FROM turns") == [(asked,)]
    await peer.teams.settled(40)
    assert await daemon.end() == 0
