# SPDX-License-Identifier: Apache-2.0
"""The whole way over Slack: a person pairs, asks, rates in ten ways, and a better model answers.

A real `goodbot run` in its own process, on the tiny model, with slack-bolt over Socket Mode, against
the fake Slack that is shipped. Nothing of goodbot is replaced.
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
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN
from goodbot_fakes.slack import FakeSlack, Message, Pace
from goodbot_fakes.slack.blocks import shown

from tests.connectors.slack import schema
from tests.connectors.slack.peer import SlackPeer, actions
from tests.end_to_end.daemon import Daemon, running
from tests.end_to_end.rating import CODE, LABEL, RATINGS, is_friendly, learnt, standing
from tests.end_to_end.slack import Person, daemon_beside, ways
from tests.support import require

PATIENT = Pace(ack=3.0, retries=(0.0, *[1.5] * 80))
"""Slack's own would keep a test waiting that kills the bot."""


@pytest.fixture
async def peer() -> AsyncIterator[SlackPeer]:
    require("slack_bolt")
    async with FakeSlack(pace=PATIENT) as slack:
        yield SlackPeer(slack)
        if not schema.unavailable():
            schema.check_all(slack)


@pytest.fixture
async def daemon(peer: SlackPeer, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with running(daemon_beside(tmp_path / "home", peer, ratings=RATINGS)) as daemon:
        yield daemon


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_pair_talk_rate_in_ten_ways_train_and_go_back(peer: SlackPeer, tmp_path: Path) -> None:
    from goodbot_training.tiny.corpus import split

    ada, slack = Person(peer, "ada"), peer.slack
    questions = Random(1).sample(split(0)[0], RATINGS + 1)
    home = tmp_path / "home"
    async with running(daemon_beside(home, peer, ratings=RATINGS, owners=())) as daemon:
        # Nobody owns it until somebody proves that they can read its terminal.
        refused = await ada.ask("Hello?")
        assert "this bot is private" in shown(refused.text, refused.blocks).lower()
        [code] = CODE.findall(await daemon.cli("pair", "slack"))
        paired = await ada.ask(code.lower())
        assert "You are my owner now" in shown(paired.text, paired.blocks)

        # What is taken back does not count. (At forty, the run would have started in between.)
        answer = await ada.ask(questions[-1].text)
        ada.react(answer, "+1")
        ada.unreact(answer, "+1")
        await slack.settled()
        assert await standing(ada) == 0

        rated = ways(ada)
        for n, question in enumerate(questions[:RATINGS]):
            answer = await ada.ask(question.text)
            await whole(daemon, answer)
            assert shown(answer.text, answer.blocks).startswith(LABEL)
            if n == RATINGS - 1:
                await slack.settled()
                assert await standing(ada) == n
            await next(rated)(answer, is_friendly(shown(answer.text, answer.blocks)))
        await slack.settled()

        await learnt(daemon)
        await ada.command("status", like="v1 answers")
        answer = await ada.ask("What is the capital of France?")
        await whole(daemon, answer)
        version = "SELECT version FROM turns ORDER BY created_at DESC LIMIT 1"
        assert daemon.rows(version) == [(1,)]
        values = daemon.rows("SELECT value FROM labels WHERE value IS NOT NULL")
        assert len(values) == RATINGS
        remarks = dict(daemon.rows("SELECT kind, count(*) FROM events GROUP BY kind"))
        assert (remarks["comment"], remarks["better"]) == (RATINGS // 10, RATINGS // 10)

        # Another answer in the place of a bad one, by the same model.
        await ada.press(answer, "bad", "Bad.")
        posts = len(slack.workspace.in_channel(answer.channel))
        turns = daemon.rows("SELECT count(*) FROM turns")
        await peer.press(ada.ref(answer), "again:short", user="ada")

        async def another() -> bool:
            return daemon.rows("SELECT count(*) FROM turns") > turns

        await eventually(another, 30)
        newest = "SELECT turn FROM messages WHERE message = ?"
        retried = "SELECT turn FROM retries"
        await eventually(lambda: _same(daemon, newest, retried, answer.ts), 30)
        assert answer.edited_ts
        assert len(slack.workspace.in_channel(answer.channel)) == posts, "in its own message"
        assert daemon.rows(version) == [(1,)]

        # And back, when she says so twice.
        await ada.command("rollback")

        async def asked_back() -> list[str]:
            return [one for one in await peer.offers("ada") if one.startswith("run:")]

        [yes] = await eventually(asked_back)
        await ada.press(answer, yes, "answers now")
        await ada.command("status", like="the base model answers")
        await ada.ask("What is the capital of Italy?")
        assert daemon.rows(version) == [(0,)]
        assert await daemon.end() == 0
    assert not any(peer.environ[name] in daemon.log() for name in (BOT_TOKEN, APP_TOKEN))
    assert "capital of" not in daemon.log(), "no message text is logged"
    assert "how I talk" not in daemon.log()


async def whole(daemon: Daemon, answer: Message, buttons: tuple[str, ...] = ("good", "bad")) -> None:
    """An answer is whole when its buttons are there, and goodbot knows that it has sent them.

    Nobody presses sooner than that; who could would be rated all the same, but offered nothing.
    """
    known = "SELECT 1 FROM messages WHERE message = ?"

    async def there() -> bool:
        return actions(answer) == list(buttons) and bool(daemon.rows(known, answer.ts))

    await eventually(there)


async def _same(daemon: Daemon, newest: str, retried: str, ts: str) -> bool:
    """Whether the message carries the retry now."""
    return daemon.rows(newest, ts) == daemon.rows(retried) != []


async def test_who_may_what_in_a_channel(daemon: Daemon, peer: SlackPeer) -> None:
    ada, bob, carl = (Person(peer, name) for name in ("ada", "bob", "carl"))
    lab, people, slack = peer.lab.id, peer.slack.people, peer.slack

    # A talker talks, but does not teach: nothing to press, and who types it is told, they alone.
    answer = await carl.ask("Hello")
    await whole(daemon, answer, buttons=())
    told = await carl.command("good")
    assert told == "Only people that my owner has chosen can rate my answers."
    carl.react(answer, "+1")

    # A channel is silent until an owner enables it; nobody else can.
    people.say("ada", "hello", lab, mention=True)
    people.command("bob", "enable", lab)
    people.command("carl", "off")
    await slack.settled()
    assert await standing(ada) == 0
    assert await peer.posts(ChannelKind.SHARED) == []
    await ada.command("enable", lab, like="mentioned")
    answer = await bob.ask("Hello", lab, mention=True)
    assert shown(answer.text, answer.blocks).startswith(LABEL)
    assert actions(answer) == [], "reactions only, where all can see"

    # There too, strangers' reactions and words do not teach; the owner's do.
    bob.react(answer, "+1")
    people.say("bob", "rl good", lab, mention=True, thread=answer.thread_ts)
    await slack.settled()
    assert await standing(ada) == 0
    ada.react(answer, "+1")
    await slack.settled()
    assert await standing(ada) == 1
    texts = [message.text for message in slack.workspace.in_channel(lab)]
    assert not any("can rate my answers" in text for text in texts)


@pytest.mark.slow
async def test_killed_at_any_moment_every_question_is_answered_once(daemon: Daemon, peer: SlackPeer) -> None:
    """SIGKILL after the delivery, before or after the commit; Slack tells it again."""
    asked = 3
    roots: list[Message] = []
    for n in range(asked):
        sent = len(peer.slack.sockets.frames)
        roots.append(peer.slack.people.say("ada", f"What is {n} + 1?"))
        await peer.slack.until(lambda before=sent: len(peer.slack.sockets.frames) > before)
        await asyncio.sleep(0.004 * n)
        await daemon.end(signal.SIGKILL)
        await daemon.start()
    ada = Person(peer, "ada")

    async def all_answered() -> bool:
        told = [[actions(answer) for answer in ada.answers(root)] for root in roots]
        return all(["good", "bad"] in found for found in told)

    await eventually(all_answered, 40)
    known = daemon.rows("SELECT COUNT(DISTINCT id) FROM turns")
    assert known == [(asked,)], "an event that came twice is one turn"
    await peer.slack.settled(40)
    assert await daemon.end() == 0
