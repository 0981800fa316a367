# SPDX-License-Identifier: Apache-2.0
"""What must not be lost when things break: the process, the database, the network, the limits."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from goodbot.api.events import Button, CommandEvent, MessageEvent, PressEvent, RatingEvent, Reply
from goodbot.base.errors import RetriableError, StoreError
from goodbot.store import Store
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors import telegram as plugin
from goodbot_connectors.telegram import SPEC
from goodbot_fakes.telegram import TOKEN, FakeTelegram, FloodLimits

from tests.connectors.telegram.fake import ENVIRON, Driver, channel, check_conversation, connected
from tests.core.builders import Fake, check_store, rows
from tests.end_to_end.beside import goodbot
from tests.support import require

if TYPE_CHECKING:
    from goodbot.daemon.app import App

GOOD, BAD = Button(action="good", label="👍"), Button(action="bad", label="👎")
TEN_MINUTES = 600.0


@pytest.fixture
def driver(fake: FakeTelegram) -> Driver:
    return Driver(fake)


@pytest.fixture
async def host(driver: Driver, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ)
    yield host
    await host.close()


def offsets(fake: FakeTelegram) -> list[int]:
    """What each poll has confirmed."""
    return [call["offset"] for call in fake.calls("getUpdates") if "offset" in call]


# -- the process


async def test_killed_between_poll_and_commit_a_rating_comes_again(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host) as connector:
        [answer] = await connector.send(channel(driver), Reply(text="4", turn="t", buttons=(GOOD,)))
        host.hold()
        await driver.press(answer, "good")
        await host.wait(lambda: bool(host.attempts))
    host.release()
    assert host.events == []
    assert len(fake.updates.pending) == 1
    async with connected(driver, host):
        [event] = await host.received(RatingEvent)
    assert host.attempts[0] == (event,), "the same event as before"


async def test_killed_after_the_commit_a_rating_counts_once(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host) as connector:
        [answer] = await connector.send(channel(driver), Reply(text="4"))
        host.freeze()
        await driver.react(answer, new="👍")
        await host.received(RatingEvent)
        assert len(fake.updates.pending) == 1, "stored, but Telegram has not heard of it"
    host.release()
    async with connected(driver, host):
        await driver.say("next")
        await host.received(MessageEvent)
        assert len(await host.received(RatingEvent)) == 1
        await eventually(driver_is_quiet(driver))


async def test_the_offset_moves_only_after_the_commit(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host):
        for n in range(3):
            host.hold()
            await driver.say(str(n))
            await host.wait(lambda n=n: len(host.attempts) > n)
            first = fake.updates.pending[0].id
            polls = len(fake.calls("getUpdates"))
            await asyncio.sleep(0.05)
            assert len(fake.calls("getUpdates")) == polls, "nothing is asked for meanwhile"
            assert all(offset <= first for offset in offsets(fake))
            host.release()
            await host.wait(lambda n=n: len(host.commits) > n)
            await eventually(driver_is_quiet(driver))
            assert offsets(fake)[-1] == first + 1


async def test_a_button_outlives_a_restart(fake: FakeTelegram, driver: Driver, host: RecordingHost) -> None:
    async with connected(driver, host) as connector:
        buttons = (Button(action="again:short", label="Too short"),)
        [answer] = await connector.send(channel(driver), Reply(text="4", turn="t", buttons=buttons))
    await driver.press(answer, "again:short")
    async with connected(driver, host):
        [press] = await host.received(PressEvent)
    assert (press.action, press.turn) == ("again:short", "t")


# -- the database


async def locked(other: sqlite3.Connection) -> None:
    """Hold the database's lock; our own transaction has to end first, for which the loop must turn."""
    while not other.in_transaction:
        with contextlib.suppress(sqlite3.OperationalError):
            other.execute("BEGIN IMMEDIATE")
        await asyncio.sleep(0.01)


async def test_while_the_database_stalls_nothing_is_confirmed_and_then_all_counts_once(
    fake: FakeTelegram, driver: Driver, tmp_path: Path
) -> None:
    """A real store; somebody else holds its lock for a second."""
    async with real_goodbot(fake, driver, tmp_path) as app:
        answer = await answered(app, driver)
        database = tmp_path / "bot" / "goodbot.db"
        with contextlib.closing(sqlite3.connect(database, timeout=0.0)) as other:
            await locked(other)
            driver.people["ada"].reacts(answer, "👍")
            await fake.updates.delivered()
            await asyncio.sleep(1.0)
            assert len(fake.updates.pending) == 1
            other.rollback()
        await eventually(driver_is_quiet(driver))
        assert await rows(app.store, "SELECT count(*) FROM events") == [(1,)]
        assert await rows(app.store, "SELECT value FROM labels") == [(1.0,)]
        await check_store(app.store)


async def test_what_could_not_be_stored_is_not_confirmed(
    fake: FakeTelegram, driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, in the real store's writer, twice; then there is room again."""
    clock = VirtualClock(now=fake.account.clock.now())
    async with real_goodbot(fake, driver, tmp_path, clock=clock) as app:
        answer = await answered(app, driver)
        real, failed = Store.write, []

        async def full(self: Store, operation: Any, **more: Any) -> Any:
            if len(failed) < 2:
                failed.append(len(fake.updates.pending))
                raise StoreError("no space left on the device (a test says so)")
            return await real(self, operation, **more)

        monkeypatch.setattr(Store, "write", full)
        driver.people["ada"].reacts(answer, "👎")
        await eventually(driver_is_quiet(driver))
        assert failed == [1, 1]
        found = await eventually(lambda: rows(app.store, "SELECT value FROM labels"))
        assert found == [(-1.0,)]


# -- the network


async def test_ten_minutes_without_a_network_lose_nothing(
    fake: FakeTelegram, driver: Driver, tmp_path: Path
) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ, clock=clock)
    async with connected(driver, host) as connector:
        [answer] = await connector.send(channel(driver), Reply(text="4"))
        await driver.say("before")
        await host.received(MessageEvent)
        fake.online = False
        fake.updates.put("message", {})  # wakes the poll, whose answer is lost
        fake.updates.drop()
        before = len(clock.slept)
        for n in range(5):
            await driver.say(f"during {n}")
        await driver.react(answer, new="👍")
        await driver.react(answer, old="👍", new="👎")
        await eventually(slept(clock, before, TEN_MINUTES), 30)
        pauses = clock.slept[before:]
        assert max(pauses) <= 60.0, "it comes back soon after the network does"
        assert len(pauses) < 40, "and does not hammer"
        assert host.failures == []
        fake.online = True
        said = await host.received(MessageEvent, 6)
        assert [event.text for event in said] == ["before", *(f"during {n}" for n in range(5))]
        ratings = await host.received(RatingEvent, 3)
        assert [event.value for event in ratings] == [1.0, None, -1.0]
        await eventually(driver_is_quiet(driver))
        assert len({event.event_id for event in host.events}) == len(host.events) == 9
    await host.close()


# -- limits


async def test_retry_after_is_obeyed_with_jitter(tmp_path: Path) -> None:
    """Telegram's own limits, on the clock that the connector sleeps by: one message a second."""
    require("telegram")
    clock = VirtualClock()
    async with FakeTelegram(clock=clock, limits=FloodLimits()) as fake:
        driver = Driver(fake)
        host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ, clock=clock)
        async with connected(driver, host) as connector:
            before = len(clock.slept)
            for n in range(12):
                await connector.send(channel(driver), Reply(text=str(n)))
        await host.close()
        assert [post.text for post in await driver.posts()] == [str(n) for n in range(12)]
        refused = [call for call in fake.seen.calls if call.error.startswith("Too Many Requests")]
        assert len(refused) == 11, "each was refused once, and taken after the pause"
        pauses = clock.slept[before:]
        assert all(1.0 <= pause <= 1.1 for pause in pauses)
        assert len(set(pauses)) == len(pauses), "not all at the same moment again"
        check_conversation(fake)


async def test_a_flood_of_polls_is_answered_by_waiting(
    fake: FakeTelegram, driver: Driver, tmp_path: Path
) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ, clock=clock)
    async with connected(driver, host):
        fake.fail("getUpdates", 429, "Too Many Requests: retry after 30", times=3, retry_after=30)
        await driver.say("ends the poll that is under way")
        await driver.say("and one more")
        await host.received(MessageEvent, 2)
        await eventually(slept(clock, 0, 90.0))
        assert all(30 <= pause <= 33 for pause in clock.slept[:3])
        await driver.say("still there")
        await host.received(MessageEvent, 3)
    await host.close()


# -- somebody else


async def test_a_second_reader_is_said_and_waited_for(
    fake: FakeTelegram, driver: Driver, host: RecordingHost, caplog: pytest.LogCaptureFixture
) -> None:
    host.clock = clock = VirtualClock(waits=True)
    async with connected(driver, host), bot(fake) as other:
        poll = asyncio.create_task(other.get_updates(timeout=5))
        await eventually(_said(caplog, "somebody else reads this bot's updates"))
        await driver.say("for whoever reads now")
        assert len(await poll) == 1
        assert len(fake.updates.pending) == 1, "and it has confirmed nothing"
        clock.advance(70)
        [event] = await host.received(MessageEvent)
        assert event.text == "for whoever reads now"
    assert host.failures == []


def _said(caplog: pytest.LogCaptureFixture, words: str) -> Any:
    async def said() -> bool:
        return words in caplog.text

    return said


async def test_somebody_elses_webhook_is_named_and_left(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with bot(fake) as other:
        await other.set_webhook("https://bots.example/theirs")
    with pytest.raises(RetriableError, match="webhook"):
        await build(SPEC, host, driver).start()
    assert fake.webhook.url == "https://bots.example/theirs"


async def test_commands_of_others_and_edits_are_nothing(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host):
        person = driver.people["ada"]
        person.edits(person.says("/rl@another_bot off", chat=driver.group), "/rl off", chat=driver.group)
        await driver.say("/rl status")
        assert [event.name for event in await host.received(CommandEvent)] == ["status"]


# -- looks


def bot(fake: FakeTelegram) -> Any:
    """Somebody else's program with our token."""
    return require("telegram").Bot(TOKEN, base_url=fake.api)


def real_goodbot(fake: FakeTelegram, driver: Driver, home: Path, **more: Any) -> Any:
    section = {"owners": [driver.people["ada"].id], "api_base": fake.api, "poll_timeout": 5}
    return goodbot(home / "bot", plugin, section, ENVIRON, fake=Fake(home / "fake"), **more)


def driver_is_quiet(driver: Driver) -> Any:
    async def quiet() -> bool:
        return await driver.unacknowledged() == 0

    return quiet


async def answered(app: App, driver: Driver) -> int:
    """Ask something; the id of the answer, once goodbot writes no more of it."""
    await driver.say("How much is 2 + 2?")
    done = "SELECT message FROM messages WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE payload <> '')"
    noted = await eventually(lambda: rows(app.store, done))
    await eventually(driver_is_quiet(driver))
    return int(noted[0][0])


def slept(clock: VirtualClock, since: int, seconds: float) -> Any:
    async def enough() -> bool:
        return sum(clock.slept[since:]) >= seconds

    return enough
