# SPDX-License-Identifier: Apache-2.0
"""The whole way over Telegram: a person pairs, asks, rates in every way, and a better model answers.

A real `goodbot run` in its own process, on the tiny model, with python-telegram-bot, against the fake
Telegram that is shipped. Nothing of goodbot is replaced.
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
from goodbot.testing.platform import Post
from goodbot_fakes.telegram import FakeTelegram

from tests.connectors.telegram.fake import Driver, check_conversation
from tests.end_to_end.daemon import Daemon, running
from tests.end_to_end.rating import CODE, LABEL, RATINGS, is_friendly, learnt, standing
from tests.end_to_end.telegram import Person, daemon_beside, ways
from tests.support import require

SHARED = ChannelKind.SHARED


@pytest.fixture
async def peer() -> AsyncIterator[Driver]:
    require("telegram")
    async with FakeTelegram() as fake:
        yield Driver(fake)
        check_conversation(fake)


@pytest.fixture
async def daemon(peer: Driver, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with running(daemon_beside(tmp_path / "home", peer, ratings=RATINGS)) as daemon:
        yield daemon


async def told(peer: Driver) -> None:
    """Wait until goodbot has confirmed all that has happened."""

    async def nothing_waits() -> bool:
        return await peer.unacknowledged() == 0

    await eventually(nothing_waits)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_pair_talk_rate_in_every_way_train_and_go_back(peer: Driver, tmp_path: Path) -> None:
    from goodbot_training.tiny.corpus import split

    peer.people["ada"].user["is_premium"] = True  # she has custom emoji
    ada = Person(peer, "ada")
    questions = Random(1).sample(split(0)[0], RATINGS + 1)
    async with running(daemon_beside(tmp_path / "home", peer, ratings=RATINGS, owners=())) as daemon:
        # Nobody owns it until somebody proves that they can read its terminal.
        assert "this bot is private" in (await ada.ask("Hello?")).text.lower()
        [code] = CODE.findall(await daemon.cli("pair", "telegram"))
        assert "You are my owner now" in (await ada.ask(code.lower())).text

        # What is taken back does not count. (At forty, the run would have started in between.)
        post = await ada.ask_for_an_answer(questions[-1].text)
        await ada.react(post, "👍")
        await ada.react(post, old="👍")
        assert await standing(ada) == 0

        rated = ways(ada)
        for n, question in enumerate(questions[:RATINGS]):
            post = await ada.ask_for_an_answer(question.text)
            assert post.buttons == ("good", "bad")
            assert post.text.startswith(LABEL)
            if n == RATINGS - 1:
                assert await standing(ada) == n
            await next(rated)(post, is_friendly(post.text))
        await told(peer)

        await learnt(daemon)
        assert "v1 answers" in await ada.command("status")
        await ada.ask_for_an_answer("What is the capital of France?")
        version = "SELECT version FROM turns ORDER BY created_at DESC LIMIT 1"
        assert daemon.rows(version) == [(1,)]
        values = daemon.rows("SELECT value FROM labels WHERE value IS NOT NULL")
        assert len(values) == RATINGS
        remarks = dict(daemon.rows("SELECT kind, count(*) FROM events GROUP BY kind"))
        assert (remarks["comment"], remarks["better"]) == (RATINGS // 10, RATINGS // 10)

        # And back, when she says so twice.
        await go_back(ada)
        assert "the base model answers" in await ada.command("status")
        await ada.ask_for_an_answer("What is the capital of Italy?")
        assert daemon.rows(version) == [(0,)]
        assert await daemon.end() == 0
    assert peer.environ["GOODBOT_TELEGRAM_TOKEN"] not in daemon.log()
    assert "capital of" not in daemon.log(), "no message text is logged"


async def go_back(person: Person) -> None:
    """Roll back, and confirm it by the button that is offered."""
    asked = await person.ask("/rl rollback")
    [offered] = [one for one in await person.peer.offers(person.name) if one.startswith("run:")]
    await person.ask_by(lambda: person.press(asked, offered))


async def test_another_answer_takes_the_place_of_a_bad_one(daemon: Daemon, peer: Driver) -> None:
    ada = Person(peer, "ada")
    old = await ada.ask_for_an_answer("What is the capital of France?")
    await ada.press(old, "bad")

    async def offered() -> bool:
        return "again:short" in await peer.offers("ada")

    await eventually(offered)
    await ada.press(old, "again:short")

    async def another() -> list[tuple[str]]:
        return daemon.rows("SELECT turn FROM retries JOIN messages USING (turn)")

    await eventually(another, 30)  # until it is shown, the buttons are the old one's

    async def in_its_place() -> Post | None:
        [new] = await ada.posts()
        return new if new.buttons and await peer.unacknowledged() == 0 else None

    new = await eventually(in_its_place)
    assert new.id == old.id, "edited in place"
    await pressed(ada, new)

    async def opinions() -> list[tuple[float, float]]:
        return daemon.rows(
            "SELECT before.value, now.value FROM retries JOIN labels before ON before.turn = instead_of"
            " JOIN labels now ON now.turn = retries.turn"
        )

    assert await eventually(opinions) == [(-1.0, 1.0)], "two answers, two opinions"


async def pressed(person: Person, post: Post) -> None:
    """Press 👍 and see it confirmed: only the new answer's button counts for the new answer."""
    await person.press(post, "good")

    async def told() -> bool:
        return any(text.startswith("Good.") for text in await person.peer.notices(person.name))

    await eventually(told)


async def test_who_may_what(daemon: Daemon, peer: Driver) -> None:
    ada, bob, carl = (Person(peer, name) for name in ("ada", "bob", "carl"))

    # A stranger in private is told once, and gets no answer.
    assert "This bot is private." in (await bob.ask("Hello")).text
    await peer.say("Hello again", user="bob")
    # A talker talks, but does not teach: nothing to press, and who types it is told, they alone.
    answer = await carl.ask("Hello")
    assert answer.buttons == ()
    told = await carl.command("good")
    assert told == "Only people that my owner has chosen can rate my answers."
    await carl.react(answer, "👍")

    # A group is silent until an owner enables it; nobody else can.
    await peer.say("hello", user="ada", room=SHARED, mention=True)
    await peer.say("/rl enable", user="bob", room=SHARED)
    await peer.say("/rl off", user="carl")
    assert await standing(ada) == 0
    [told] = await ada.posts(SHARED)  # who may, and nobody else, hears how
    assert told.text == "I am off in this channel. Type /rl enable here, and I answer."
    await ada.command("enable", SHARED)

    async def enabled() -> bool:  # what is kept there is told, too, before it or after
        return any("mentioned or replied to" in post.text for post in await ada.posts(SHARED))

    await eventually(enabled, 30)
    answer = await bob.ask("Hello", SHARED, mention=True)
    assert answer.text.startswith(LABEL)
    assert answer.buttons == ()

    # There too, strangers' reactions and words do not teach; the owner's do.
    await bob.react(answer, "👍", room=SHARED)
    await peer.say("/rl good", user="bob", room=SHARED, reply_to=answer.id)
    assert await standing(ada) == 0
    await ada.react(answer, "👍", room=SHARED)
    assert await standing(ada) == 1

    # Told once who may talk, and once, for the word in the group, who teaches: both in private.
    told = [post.text for post in await bob.posts()]
    assert len(told) == 2
    assert "This bot is private." in told[0]
    assert told[1] == "Only people that my owner has chosen can rate my answers."
    assert not any("can rate my answers" in post.text for post in await bob.posts(SHARED))
    assert "answers" in await ada.command("status")
    refused = daemon.rows(
        "SELECT coalesce(person, actor) FROM audit LEFT JOIN aliases ON alias = actor"
        " WHERE detail LIKE '%kept_not_allowed%'"
    )
    assert sorted(who for (who,) in refused) == ["strangers", "telegram:1003"]


@pytest.mark.slow
async def test_killed_at_any_moment_every_question_is_answered(daemon: Daemon, peer: Driver) -> None:
    """X15: SIGKILL after delivery, before or after the commit; no update is lost."""
    ada = Person(peer, "ada")
    asked = 4
    for n in range(asked):
        await peer.say(f"What is {n} + 1?", user="ada")
        await peer.telegram.updates.delivered()
        await asyncio.sleep(0.003 * n)
        await daemon.end(signal.SIGKILL)
        await daemon.start()

    async def all_answered() -> bool:  # what was killed before it was recorded is sent again
        recorded = daemon.rows("SELECT COUNT(DISTINCT turn) FROM messages") == [(asked,)]
        return recorded and len([post for post in await ada.posts() if post.buttons]) >= asked

    await eventually(all_answered, 30)
    known = daemon.rows("SELECT COUNT(DISTINCT id) FROM turns")
    assert known == [(asked,)], "an update that came twice is one turn"
    assert await daemon.end() == 0
    assert await peer.unacknowledged() == 0
