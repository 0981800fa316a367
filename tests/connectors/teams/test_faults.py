# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between Teams and us: each time one rating, and an answer to the call after the commit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.api.connector import Connector
from goodbot.api.events import ChannelKind, ChannelRef, MessageEvent, RatingEvent, Reply
from goodbot.base.errors import ConnectorError
from goodbot.daemon.app import App
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import GOOD, build, eventually, words
from goodbot.testing.host import RecordingHost
from goodbot_connectors import teams as plugin
from goodbot_connectors.teams import SPEC
from goodbot_fakes.teams import FakeTeams, Message, Pace

from tests.connectors.stalling import stalled
from tests.connectors.teams.conftest import VIRTUAL, pass_time
from tests.connectors.teams.peer import TeamsPeer
from tests.connectors.teams.test_auth_live import section
from tests.core.builders import Fake, rows, until
from tests.end_to_end.beside import goodbot

PATIENT = pytest.mark.parametrize(
    "teams", [{"ack": 0.5, "invoke": 0.5, "retries": tuple([0.3] * 60)}], indirect=True
)


@pytest.fixture
async def app(peer: TeamsPeer, teams: FakeTeams, tmp_path: Path) -> AsyncIterator[App]:
    """A whole goodbot on a fake model, on Teams's clock."""
    async with contextlib.AsyncExitStack() as ending:
        app = await ending.enter_async_context(
            goodbot(
                tmp_path / "bot",
                plugin,
                section(peer),
                peer.environ,
                fake=Fake(tmp_path / "fake"),
                clock=teams.clock,
            )
        )
        yield app
        time = asyncio.create_task(_time_passes(teams))  # for what is still to be told
        await ending.aclose()
        time.cancel()


async def _time_passes(teams: FakeTeams) -> None:
    while isinstance(teams.clock, VirtualClock):
        await pass_time(teams, 0.25)


async def answered(peer: TeamsPeer, app: App, text: str = "hello") -> Message:
    """Ada asks in private; the whole answer, which its turn knows."""
    ada = peer.people["ada"]
    before = len(ada.sees())
    ada.says(text)

    async def whole() -> Message | None:
        if isinstance(peer.teams.clock, VirtualClock):
            await pass_time(peer.teams, 0.25)
        for message in ada.sees()[before:]:
            known = "SELECT 1 FROM messages WHERE message = ?"
            if message.feedback and await rows(app.store, known, (message.id,)):
                return message
        return None

    found = await eventually(whole, 20)
    assert found is not None
    return found


async def rated(app: App) -> list[tuple[float, ...]]:
    return await rows(app.store, "SELECT value FROM labels WHERE value IS NOT NULL")


# -- acknowledged after the commit, and in time


@VIRTUAL
async def test_with_the_database_stalled_14_seconds_teams_is_told_in_time_and_after_the_commit(
    teams: FakeTeams, peer: TeamsPeer, app: App
) -> None:
    answer = await answered(peer, app)
    await teams.settled()
    with stalled(app, teams.clock, 14.0) as stalls:
        peer.people["ada"].reacts(answer, "like")
        delivery = teams.outbox.log[-1]
        await until(stalls.begins.is_set)
        await pass_time(teams, 13.5)
        assert (delivery.state, delivery.attempts) == ("pending", 1)
        assert not stalls.committed.is_set()
        await pass_time(teams, 0.75)
        await until(lambda: delivery.state == "acknowledged")
        assert stalls.committed.is_set()
    assert delivery.attempts == 1, "within the fifteen seconds of Teams"
    assert await rated(app) == [(1.0,)]


@VIRTUAL
async def test_with_the_database_stalled_too_long_teams_tells_it_again_and_it_counts_once(
    teams: FakeTeams, peer: TeamsPeer, app: App
) -> None:
    answer = await answered(peer, app)
    await teams.settled()
    with stalled(app, teams.clock, 18.0) as stalls:
        peer.people["ada"].reacts(answer, "like")
        delivery = teams.outbox.log[-1]
        await until(stalls.begins.is_set)
        await pass_time(teams, 20.0)
        await until(lambda: delivery.attempts >= 2)
    while delivery.state == "pending":
        await pass_time(teams, 2.0)
    assert delivery.state == "acknowledged"
    assert await rated(app) == [(1.0,)]
    assert await rows(app.store, "SELECT COUNT(*) FROM events") == [(1,)]


async def test_what_the_store_refuses_is_not_acknowledged(
    teams: FakeTeams, host: RecordingHost, connector: Connector
) -> None:
    """Nor is it told that it worked to whoever has pressed."""
    host.refuse(100)
    ada = teams.person("Ada")
    ada.says("the disk is full")
    await host.wait(lambda: len(host.attempts) >= 2)
    [delivery] = teams.outbox.log
    assert (delivery.state, delivery.reason) == ("pending", "http 503")
    host.refuse(0)
    await host.received(MessageEvent)
    await teams.settled()
    assert delivery.state == "acknowledged"


async def test_somebody_who_pressed_in_vain_is_told(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    [ref] = await connector.send(asked.channel, Reply(text="Hi.", turn="abc", buttons=(GOOD,)))
    host.refuse(100)
    ada = peer.people["ada"]
    ada.rates(peer.find(ref), good=True)
    await teams.settled()
    assert ada.told == ["Unable to reach app. Please try again."]
    host.refuse(0)
    assert not [event for event in host.events if isinstance(event, RatingEvent)]


# -- one rating, however often it is told


@PATIENT
async def test_whatever_comes_again_is_one_rating(teams: FakeTeams, peer: TeamsPeer, app: App) -> None:
    answer, ada = await answered(peer, app), peer.people["ada"]
    ada.reacts(answer, "like")
    ada.reacts(answer, "heart")
    ada.rates(answer, good=True)
    await teams.settled()
    ada.unreacts(answer, "heart")
    await teams.settled()
    for delivery in list(teams.outbox.log):
        teams.redeliver(delivery)
    await teams.settled()
    assert await rated(app) == [(1.0,)]
    told = await rows(app.store, "SELECT kind, source FROM events ORDER BY kind, source")
    assert told == [
        ("rate", "button"),
        ("rate", "reaction:heart"),
        ("rate", "reaction:like"),
        ("retract", "reaction:heart"),
    ]
    assert len(await peer.posts()) == 1, "a question that comes again is answered once"


async def test_a_reaction_on_somebody_else_s_message_is_no_rating(
    teams: FakeTeams, peer: TeamsPeer, app: App
) -> None:
    """A bot hears of those on its own messages only; what else is sent as one is not believed."""
    answer, ada = await answered(peer, app), peer.people["ada"]
    from goodbot_fakes.teams import activities

    bob = peer.people["bob"].says("mine", peer.lab)
    for place in (bob, answer):
        forged = activities.reaction(teams.tenant, teams.service_url, place, ada.account, added=["like"])
        teams.tell(forged | {"replyToId": "1700000000000"})
    await teams.settled()
    assert await rated(app) == []


# -- limits


@pytest.mark.parametrize("status", [412, 502, 504])
async def test_what_microsoft_asks_to_try_again_is_tried_again(
    teams: FakeTeams, peer: TeamsPeer, tmp_path: Path, status: int
) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=clock)
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    teams.faults.break_down("send", status=status, times=2)
    await connector.send(asked.channel, Reply(text="4", turn="abc", buttons=(GOOD,)))
    assert [post.text for post in await peer.posts()] == ["4"]
    pauses = [pause for pause in clock.slept if pause >= 0.5]
    assert len(pauses) >= 2
    await connector.stop()
    await host.close()


async def test_a_limit_is_obeyed_and_the_answer_goes_out_once(
    teams: FakeTeams, peer: TeamsPeer, tmp_path: Path
) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=clock)
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    teams.faults.rate_limit("send", seconds=7, times=2)
    before = len(clock.slept)
    await connector.send(asked.channel, Reply(text="4", turn="abc", buttons=(GOOD,)))
    pauses = [pause for pause in clock.slept[before:] if pause >= 7]
    assert len(pauses) == 2
    assert all(7 <= pause <= 11 for pause in pauses), "with a little more, by chance"
    assert pauses[0] != pauses[1]
    assert [post.text for post in await peer.posts()] == ["4"]
    await connector.stop()
    await host.close()


# -- streams


async def test_a_limit_in_the_middle_of_a_stream_costs_no_words(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    for n in range(20):
        if n == 3:
            teams.faults.rate_limit("send", seconds=1)
        await stream.append(f"word{n} ")
        await asyncio.sleep(0.03)
    text = "".join(f"word{n} " for n in range(20)).strip()
    await stream.finish(Reply(text=text, turn="abc"))
    assert [post.text for post in await peer.posts()] == [text]
    assert len([call for call in teams.calls if call.status == 429]) == 1


async def streaming(peer: TeamsPeer, host: RecordingHost, connector: Connector) -> tuple[Any, Message]:
    """An answer whose beginning Ada sees."""
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    await stream.append("It begins")

    async def begun() -> list[Message]:
        return [m for m in peer.people["ada"].sees() if m.stream == "streaming"]

    return stream, (await eventually(begun))[0]


async def test_a_stream_that_teams_has_ended_becomes_a_whole_message(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    stream, message = await streaming(peer, host, connector)
    teams.faults.refuse("send", 403, "ContentStreamNotAllowed", "Finished due to exceeded time")
    refs = await stream.finish(Reply(text="It begins and ends.", turn="abc", buttons=(GOOD,)))
    shown = {post.id: post.text for post in await peer.posts()}
    assert shown[refs[0].id] == "It begins and ends."
    assert peer.find(refs[0]).feedback
    assert message.id in shown


async def test_an_answer_that_is_stopped_stays_stopped(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    stream, message = await streaming(peer, host, connector)
    teams.streams.stop(message)
    await stream.append(" and goes on")
    await asyncio.sleep(0.2)
    refs = await stream.finish(Reply(text="It begins and goes on and on.", turn="abc"))
    assert [ref.id for ref in refs] == [message.id]
    assert [post.text for post in await peer.posts()] == ["It begins"]


@VIRTUAL
async def test_an_answer_that_takes_longer_than_a_stream_may_is_still_whole(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    text = ""
    for n in range(30):
        text += f"line {n}\n"
        await stream.append(f"line {n}\n")
        await pass_time(teams, 6)
    ending = asyncio.create_task(stream.finish(Reply(text=text.strip(), turn="abc")))
    while not ending.done():
        await pass_time(teams, 1)
    refs = await ending
    shown = {post.id: post.text for post in await peer.posts()}
    assert [words(shown[ref.id]) for ref in refs] == [words(text)]


# -- outages


@VIRTUAL
async def test_a_network_dead_for_ten_minutes_loses_nothing_that_teams_tells_again(
    teams: FakeTeams, peer: TeamsPeer, app: App
) -> None:
    """Teams cannot be asked for what was missed: what it has given up itself is lost to any bot."""
    answer = await answered(peer, app)
    await teams.settled()
    teams.outbox.pace = Pace(retries=(1.0, 5.0, *[30.0] * 40))
    ada = peer.people["ada"]
    teams.faults.network_is_down = True
    ada.reacts(answer, "like")
    ada.rates(answer, good=False)
    await pass_time(teams, 300)
    ada.says("Are you there?")
    await pass_time(teams, 300)
    assert ada.told == ["Unable to reach app. Please try again."], "whoever presses waits no longer"
    teams.faults.network_is_down = False
    await pass_time(teams, 31)  # until Teams has tried once more

    async def answers() -> list[str]:
        return [post.text for post in await peer.posts() if "Are you there?" in post.text]

    async def back() -> bool:
        await pass_time(teams, 0.25)  # a busy machine answers in its own time
        return bool(await answers()) and not teams.outbox.pending

    await eventually(back, 30)
    assert len(await answers()) == 1
    assert await rated(app) == [(1.0,)]
    assert await rows(app.store, "SELECT count(*) FROM turns") == [(2,)]


async def test_after_a_restart_it_knows_where_conversations_are(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost
) -> None:
    """An answer, an edit, news to a person: without a word from them in between."""
    first = build(SPEC, host, peer)
    await first.start()
    await peer.say("hello")
    await peer.say("hello", room=ChannelKind.SHARED, mention=True)
    private, shared = await host.received(MessageEvent, 2)
    [old] = await first.send(private.channel, Reply(text="Old.", turn="one", buttons=(GOOD,)))
    await first.stop()
    second = build(SPEC, host, peer)
    await second.start()
    await second.edit(old, Reply(text="New.", turn="one", buttons=(GOOD,)))
    await second.send(shared.channel, Reply(text="In the thread."))
    chat = await second.private(private.user.id)
    assert chat == private.channel
    await second.send(chat, Reply(text="News."))
    assert [post.text for post in await peer.posts()] == ["New.", "News."]
    [post] = await peer.posts(ChannelKind.SHARED)
    assert post.text == "In the thread."
    await peer.press(old, "good")
    [rate] = await host.received(RatingEvent)
    assert (rate.turn, rate.value) == ("one", 1.0), "a press after a restart still rates"
    await second.stop()


async def test_nobody_is_written_to_who_has_not_installed_the_app(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector
) -> None:
    await peer.say("hello")
    await host.received(MessageEvent)
    assert await connector.private(teams.person("Dana").id) is None
    assert await connector.private("29:nobody") is None
    elsewhere = ChannelRef(connector="teams", account="x", id="a:none", kind=ChannelKind.PRIVATE)
    with pytest.raises(ConnectorError, match="nobody has written"):
        await connector.send(elsewhere, Reply(text="Anybody?"))


# -- what anybody can send


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type": []}',
        b'{"type": "message"}',
        b'{"type": "message", "from": [], "conversation": {"id": {}}}',
        b'{"type": "invoke", "name": {}, "value": []}',
        b'{"type": "message", "timestamp": "never"}',
    ],
)
async def test_signed_nonsense_is_no_error_of_ours(
    teams: FakeTeams, peer: TeamsPeer, host: RecordingHost, connector: Connector, body: bytes
) -> None:
    authorization = {"Authorization": teams.identity.header(teams.service_url)}
    async with aiohttp.ClientSession(headers=authorization) as http:
        for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
            headers = {"Content-Type": kind}
            async with http.post(teams.endpoint, data=body, headers=headers) as answer:
                text = await answer.text()
                assert answer.status < 500, (body[:40], kind, answer.status)
                assert "Traceback" not in text
    await peer.say("still alive")
    await host.received(MessageEvent)
    assert host.failures == []
