"""The whole way over Telegram: a person asks, rates forty answers, and a better model answers.

A real `goodbot run` in its own process, on the tiny model, with python-telegram-bot, against the
local Telegram of tests/node. Nothing of goodbot is replaced.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from goodbot.events import ChannelKind
from goodbot.testing.connector_base import eventually

from tests.connectors.telegram.peer import TelegramPeer, people, serve
from tests.end_to_end.telegram import Daemon, Person, running, ways
from tests.support import require

SHARED = ChannelKind.SHARED
RATINGS = 40
LABEL = "[demo model] "


@pytest.fixture
async def peer() -> AsyncIterator[TelegramPeer]:
    require("telegram")
    with serve() as server:
        async with people(*server) as peer:
            yield peer


@pytest.fixture
async def daemon(peer: TelegramPeer, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with running(Daemon(tmp_path / "home", peer, ratings=RATINGS)) as daemon:
        yield daemon


async def standing(person: Person) -> int:
    """How many ratings count, as the bot tells it."""
    text = await person.command("status")
    found = re.search(r"(\d+) of \d+ ratings until", text)
    assert found, text
    return int(found[1])


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_forty_ratings_on_telegram_change_who_answers(
    daemon: Daemon, peer: TelegramPeer
) -> None:
    from goodbot_training.tiny.corpus import split
    from goodbot_training.tiny.judge import style_of

    ada = Person(peer, "ada")
    questions = Random(1).sample(split(0)[0], RATINGS + 1)
    # What is taken back does not count. (At forty, the run would have started in between.)
    post = await ada.ask(questions[-1].text)
    await ada.react(post, "👍")
    await ada.react(post, old="👍")
    assert await standing(ada) == 0

    for n, (way, question) in enumerate(zip(ways(ada), questions[:RATINGS], strict=False)):
        post = await ada.ask(question.text)
        assert post.buttons == ("good", "bad")
        assert post.text.startswith(LABEL)
        if n == RATINGS - 1:
            assert await standing(ada) == n
        await way(post, style_of(post.text.removeprefix(LABEL)) == "friendly")

    async def learnt() -> bool:
        # Without words: a person who writes all the time would keep the training waiting.
        runs = daemon.rows("SELECT state, reason FROM runs")
        assert all(state not in ("failed", "refused") for state, _ in runs), runs
        return any(state == "activated" for state, _ in runs)

    await eventually(learnt, 240)
    assert "v1 answers" in await ada.command("status")
    await ada.ask("What is the capital of France?")
    assert daemon.rows("SELECT version FROM turns ORDER BY created_at DESC LIMIT 1") == [(1,)]
    assert await daemon.end() == 0
    values = [value for (value,) in daemon.rows("SELECT value FROM labels WHERE value IS NOT NULL")]
    assert len(values) == RATINGS
    assert peer.environ["GOODBOT_TELEGRAM_TOKEN"] not in daemon.log()
    assert "capital of" not in daemon.log(), "no message text is logged"


async def test_who_may_what(daemon: Daemon, peer: TelegramPeer) -> None:
    ada, bob, carl = (Person(peer, name) for name in ("ada", "bob", "carl"))

    # A stranger in private is told once, and gets no answer.
    assert "only the people its owner has named" in (await bob.ask("Hello")).text
    await peer.say("Hello again", user="bob")
    # A talker talks, but does not teach; a press is answered to them alone.
    answer = await carl.ask("Hello")
    await carl.press(answer, "good")
    told = await eventually(lambda: peer.notices("carl"))
    assert told == ["Only the people its owner has named teach this bot."]
    await carl.react(answer, "👍")

    # A group is silent until an owner enables it; nobody else can.
    await peer.say("hello", user="ada", room=SHARED, mention=True)
    await peer.say("/rl enable", user="bob", room=SHARED)
    await peer.say("/rl off", user="carl")
    assert await standing(ada) == 0
    assert await ada.posts(SHARED) == []
    assert "mentioned or replied to" in await ada.command("enable", SHARED)
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
    assert "only the people its owner has named" in told[0]
    assert told[1] == "Only the people its owner has named teach this bot."
    assert not any("teach this bot" in post.text for post in await bob.posts(SHARED))
    assert "answers" in await ada.command("status")
    refused = daemon.rows(
        "SELECT person FROM audit JOIN aliases ON alias = actor WHERE detail LIKE '%allowlist%'"
    )
    assert sorted(person for (person,) in refused) == ["telegram:1002", "telegram:1003"]


@pytest.mark.slow
async def test_killed_at_any_moment_every_question_is_answered(
    daemon: Daemon, peer: TelegramPeer
) -> None:
    """X15: SIGKILL after delivery, before or after the commit; no update is lost."""
    ada = Person(peer, "ada")
    asked = 4
    for n in range(asked):
        await peer.say(f"What is {n} + 1?", user="ada")
        await peer.control("delivered")
        await asyncio.sleep(0.003 * n)
        await daemon.end(signal.SIGKILL)
        await daemon.start()

    async def all_answered() -> bool:
        whole = [post for post in await ada.posts() if post.buttons]
        return len({post.id for post in whole}) >= asked

    await eventually(all_answered, 30)
    known = daemon.rows("SELECT COUNT(DISTINCT id) FROM turns")
    assert known == [(asked,)], "an update that came twice is one turn"
    assert await daemon.end() == 0
    assert await peer.unacknowledged() == 0
