# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between Discord and us: each time one rating, and an answer within three seconds."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import goodbot_connectors.discord as plugin
import pytest
from goodbot.api.connector import OpenTurn
from goodbot.api.events import (
    ChannelKind,
    MessageEvent,
    MessageRef,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.daemon.app import App
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import BAD, GOOD, build, eventually
from goodbot.testing.connector_ratings import opinion
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC, room
from goodbot_fakes.discord import FakeDiscord, Interaction, Message, RateLimits, intents, permissions

from tests.connectors.discord import schema
from tests.connectors.discord.peer import ENVIRON, DiscordPeer
from tests.connectors.stalling import stalled
from tests.core.builders import Fake, check_store, rows, until
from tests.end_to_end.beside import goodbot
from tests.support import patience, require

SHARED = ChannelKind.SHARED
TURN = "5f1e0c7a9b3d2468"
SEND = "POST /channels/{channel_id}/messages"


@contextlib.asynccontextmanager
async def connected(peer: DiscordPeer, host: RecordingHost) -> AsyncGenerator[Any]:
    connector = build(SPEC, host, peer)
    await connector.start()
    try:
        yield connector
    finally:
        await connector.stop()


@contextlib.asynccontextmanager
async def on_virtual_time(**options: Any) -> AsyncGenerator[DiscordPeer]:
    """A Discord whose time passes by `pass_time` only."""
    require("discord")
    async with FakeDiscord(clock=VirtualClock(waits=True), **options) as discord:
        yield DiscordPeer(discord)
        schema.check_all(discord)


@contextlib.asynccontextmanager
async def hosted(peer: DiscordPeer, home: Path) -> AsyncGenerator[RecordingHost]:
    """A host on Discord's clock."""
    peer.host = RecordingHost(SPEC, state_dir=home, environ=ENVIRON, clock=peer.discord.clock)
    yield peer.host
    await peer.host.close()


@contextlib.asynccontextmanager
async def real_goodbot(peer: DiscordPeer, home: Path) -> AsyncGenerator[App]:
    """A whole goodbot on a fake model, on Discord's clock."""
    section = {
        "owners": [peer.people["ada"].id],
        "api_base": peer.discord.api,
        "gateway": peer.discord.gateway_url,
        "edit_interval": 0.05,
    }
    fake = Fake(home / "fake")
    async with goodbot(home / "bot", plugin, section, ENVIRON, fake=fake, clock=peer.discord.clock) as app:
        yield app


async def pass_time(discord: FakeDiscord, seconds: float) -> None:
    """Let virtual time pass in steps, and whoever slept act in between."""
    assert isinstance(discord.clock, VirtualClock)
    while seconds > 1e-6:
        discord.clock.advance(min(0.1, seconds))
        seconds -= 0.1
        for _ in range(4):
            await asyncio.sleep(0)
    await asyncio.sleep(patience(0.01))


async def settled(peer: DiscordPeer, done: Any, step: float = 0.5) -> None:
    """Until `done()`, while virtual time goes on."""

    async def looked() -> bool:
        await pass_time(peer.discord, step)
        found = done()
        return bool(await found if asyncio.iscoroutine(found) else found)

    await eventually(looked, 30)


async def answered(peer: DiscordPeer, app: App, text: str = "hello") -> Message:
    """Ada asks in private; the whole answer, which its turn knows."""
    known = len(peer.discord.said(peer.people["ada"].dm))
    await peer.say(text)

    async def whole() -> bool:
        found = peer.discord.said(peer.people["ada"].dm)[known:]
        return bool(found) and bool(peer.actions(found[0])) and await recorded(app, found[0]) == 1

    await settled(peer, whole)
    return peer.discord.said(peer.people["ada"].dm)[known]


async def recorded(app: App, message: Message) -> int:
    sql = "SELECT COUNT(*) FROM messages WHERE message = ?"
    return (await rows(app.store, sql, (message.id,)))[0][0]


async def rated(app: App) -> list[tuple[float, ...]]:
    return await rows(app.store, "SELECT value FROM labels WHERE value IS NOT NULL")


async def sent(connector: Any, peer: DiscordPeer, room: ChannelKind = ChannelKind.PRIVATE) -> MessageRef:
    reply = Reply(text="An answer.", turn=TURN, buttons=(GOOD, BAD))
    return (await connector.send(peer.room(room), reply))[-1]


# -- the first answer within three seconds, and nothing promised before the commit


async def test_with_the_database_stalled_2_9_seconds_a_press_is_answered_in_time_and_rates_once(
    tmp_path: Path,
) -> None:
    async with on_virtual_time() as peer, real_goodbot(peer, tmp_path) as app:
        discord, ada = peer.discord, peer.people["ada"]
        answer = await answered(peer, app)
        with stalled(app, discord.clock, 2.9) as stalls:
            press = ada.presses(answer, lambda one: peer.action(one["custom_id"]) == "good")
            await until(stalls.begins.is_set)
            while not press.answer and not stalls.committed.is_set():
                await pass_time(discord, 0.1)
            assert press.answered_at - press.started < 3.0, "Discord waits no longer"
            assert press.answer.startswith("deferred"), "which promises nothing"
            assert not stalls.committed.is_set()
            assert ada.notices == []
            await pass_time(discord, 3.0)
            await until(stalls.committed.is_set)
        await settled(peer, lambda: any("Good" in ada.read(n) for n in ada.notices))
        assert await rated(app) == [(1.0,)]
        assert await rows(app.store, "SELECT COUNT(*) FROM events") == [(1,)]
        await check_store(app.store)


async def test_a_press_that_could_not_be_stored_is_not_called_good(
    peer: DiscordPeer, host: RecordingHost, connector: Any
) -> None:
    answer = await sent(connector, peer)
    host.refuse(1)
    await peer.press(answer, "good")
    [told] = await eventually(lambda: peer.notices("ada"))
    assert "again" in told
    assert host.events == []
    await peer.press(answer, "good")
    await host.received(RatingEvent)


async def test_every_interaction_gets_its_first_answer(
    peer: DiscordPeer, host: RecordingHost, connector: Any
) -> None:
    """Commands, menus, presses, forms; also what is none of ours, or comes from a made-up client."""
    ada, discord = peer.people["ada"], peer.discord
    answer = discord.world.messages[(await sent(connector, peer)).id]
    mine = ada.says("my own words")
    await discord.until(lambda: "Good answer" in ada.commands())
    all_of_them: list[Interaction] = [
        peer.command("ada", "status"),
        ada.menu("Good answer", answer),
        ada.menu("Good answer", mine),
        ada.presses(answer, "made up", forged=True),
        ada.presses(answer, "gb|t|1|again:nonsense", forged=True),
        ada.presses(answer, lambda one: peer.action(one["custom_id"]) == "good"),
    ]
    await discord.until(lambda: all(one.answer for one in all_of_them))
    assert not any(discord.interactions.failed(one) for one in all_of_them)
    assert host.failures == []


async def test_after_fifteen_minutes_what_is_still_to_be_said_comes_as_a_direct_message(
    tmp_path: Path,
) -> None:
    async with on_virtual_time() as peer, hosted(peer, tmp_path) as host, connected(peer, host) as connector:
        discord, ada = peer.discord, peer.people["ada"]
        answer = await sent(connector, peer)
        await peer.press(answer, "bad")
        [event] = await host.received(RatingEvent)
        await pass_time(discord, 3.0)
        assert isinstance(discord.clock, VirtualClock)
        discord.clock.advance(900)
        text = "Bad. 12 of 40 ratings (28 to go)."
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text)
        await connector.acknowledge(event, receipt)
        assert ada.notices == []
        assert any(text in one.content for one in discord.said(ada.dm))
        assert not [call for call in discord.calls if call.status == 401], "it is not even tried"


# -- one rating, however often it is told


async def test_what_a_resume_tells_again_counts_once(
    peer: DiscordPeer, host: RecordingHost, connector: Any
) -> None:
    answer = await sent(connector, peer)
    host.hold()
    await peer.react(answer, new="👍")
    await host.wait(lambda: bool(host.attempts))
    peer.discord.gateway.drop()
    await peer.react(answer, new="🎉")
    await peer.discord.until(lambda: "resume" in peer.discord.gateway.connections)
    host.release()
    first, second = await host.received(RatingEvent, 2)
    await asyncio.sleep(0.2)
    assert len(host.events) == 2
    assert (first.source, second.source) == ("reaction:👍", "reaction:🎉")
    assert host.failures == []


@pytest.mark.parametrize("how", ["reconnect", "drop", "resumable", "4000"])
async def test_a_connection_that_ends_is_resumed_and_nothing_is_missed(
    peer: DiscordPeer, host: RecordingHost, connector: Any, how: str
) -> None:
    gateway = peer.discord.gateway
    match how:
        case "reconnect":
            await gateway.reconnect()
        case "drop":
            gateway.drop()
        case "resumable":
            await gateway.invalidate(resumable=True)
        case _:
            await gateway.close(int(how))
    await peer.say("said in between")
    [event] = await host.received(MessageEvent)
    assert event.text == "said in between"
    await peer.discord.until(lambda: "resume" in gateway.connections)
    assert gateway.connections.count("identify") == 1


@pytest.mark.parametrize("how", ["invalid", "4009"])
async def test_after_an_invalid_session_what_was_missed_is_read_again(tmp_path: Path, how: str) -> None:
    """Words from the history, reactions by asking who has reacted: a state, not an event."""
    async with on_virtual_time() as peer, hosted(peer, tmp_path) as host, connected(peer, host) as connector:
        discord, ada = peer.discord, peer.people["ada"]
        answer = await sent(connector, peer)
        await peer.react(answer, new="👎")
        await host.received(RatingEvent)
        await peer.say("before")
        await host.received(MessageEvent)
        for session in discord.sessions.all:
            discord.sessions.forget(session)
        await peer.react(answer, old="👎", new="👍")
        await peer.say("nobody was told this")
        gateway = discord.gateway
        await (gateway.invalidate() if how == "invalid" else gateway.close(4009))
        await settled(peer, lambda: gateway.connections.count("identify") == 2)
        said = await host.received(MessageEvent, 2)
        assert [event.text for event in said] == ["before", "nobody was told this"]
        known = frozenset({(answer.id, ada.id, "reaction:👎")})
        found = await connector.reconcile([OpenTurn(turn=TURN, messages=(answer,), reactions=known)])
        events = [event for event in (*host.events, *found) if isinstance(event, RatingEvent)]
        assert opinion(events) == 1.0
        kinds = [event.kind for event in found if isinstance(event, RatingEvent)]
        assert sorted(kinds) == [RatingKind.RATE, RatingKind.RETRACT]


async def test_what_came_while_nothing_could_be_stored_for_long_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We had hung up, since too much was held, and Discord has not waited for us."""
    monkeypatch.setattr(room, "MOST", 4)
    async with on_virtual_time() as peer, hosted(peer, tmp_path) as host, connected(peer, host) as connector:
        discord = peer.discord
        await sent(connector, peer)
        await peer.say("before")
        await host.received(MessageEvent)
        host.hold()
        for n in range(8):
            await peer.say(f"{n}")
        [session] = discord.sessions.all
        await settled(peer, lambda: session.socket is None)
        discord.sessions.forget(session)
        host.release()
        await settled(peer, lambda: discord.gateway.connections.count("identify") == 2)
        said = await host.received(MessageEvent, 9)
        assert [event.text for event in said] == ["before", *"01234567"]


class _Set:
    """Discord's time, but for what our clock shows."""

    def __init__(self, clock: Clock, ahead: float) -> None:
        self._clock, self.ahead = clock, ahead

    def now(self) -> float:
        return self._clock.now() + self.ahead

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


@pytest.mark.parametrize(("ahead", "later"), [(3600.0, 3600.0), (0.0, 300.0), (3600.0, 0.0)])
async def test_b1_what_was_missed_is_read_again_though_our_clock_is_ahead(
    tmp_path: Path, ahead: float, later: float
) -> None:
    """From the beginning on, or somebody sets it while we are connected."""
    async with on_virtual_time() as peer:
        discord, clock = peer.discord, _Set(peer.discord.clock, ahead)
        peer.host = host = RecordingHost(SPEC, state_dir=tmp_path, environ=ENVIRON, clock=clock)
        async with connected(peer, host) as connector:
            answer = await sent(connector, peer)
            await peer.say("before")
            await host.received(MessageEvent)
            clock.ahead = later
            await peer.react(answer, new="👍")
            await host.received(RatingEvent)
            for session in discord.sessions.all:
                discord.sessions.forget(session)
            await peer.say("nobody was told this")
            await discord.gateway.invalidate()
            await settled(peer, lambda: discord.gateway.connections.count("identify") == 2)
            said = await host.received(MessageEvent, 2)
            assert said[-1].text == "nobody was told this"
        await host.close()


async def test_a_place_that_is_gone_hides_none_of_the_others(tmp_path: Path) -> None:
    async with on_virtual_time() as peer, hosted(peer, tmp_path) as host, connected(peer, host) as connector:
        discord, ada = peer.discord, peer.people["ada"]
        await sent(connector, peer)
        await peer.say("before")
        await host.received(MessageEvent)
        for n in range(8):
            gone = discord.channel(f"gone-{n}", peer.guild)
            channel = peer.ref(ada.says("hm", gone)).channel
            await connector.send(channel, Reply(text="Hi."))
            del discord.world.channels[gone.id]
        for session in discord.sessions.all:
            discord.sessions.forget(session)
        await peer.say("nobody was told this")
        await discord.gateway.invalidate()
        await settled(peer, lambda: discord.gateway.connections.count("identify") == 2)
        said = await host.received(MessageEvent, 2)
        assert said[-1].text == "nobody was told this"


async def test_what_could_not_be_read_again_yet_is_read_after_a_restart(tmp_path: Path) -> None:
    """Which goes on with the new session, in which nothing of it comes."""
    async with on_virtual_time() as peer, hosted(peer, tmp_path) as host:
        discord, history = peer.discord, ("GET", "/channels/{channel_id}/messages")
        async with connected(peer, host) as connector:
            await sent(connector, peer)
            await peer.say("before")
            await host.received(MessageEvent)
            for session in discord.sessions.all:
                discord.sessions.forget(session)
            await peer.say("nobody was told this")
            discord.faults.break_down(" ".join(history))
            await discord.gateway.invalidate()
            await settled(peer, lambda: discord.called(*history))
        async with connected(peer, host):
            said = await host.received(MessageEvent, 2)
        assert said[-1].text == "nobody was told this"
        asked = len(discord.called(*history))
        async with connected(peer, host):
            await pass_time(discord, 1)
        assert discord.gateway.connections[-2:] == ["resume", "resume"]
        assert len(discord.called(*history)) == asked, "once it is read it is done"


async def test_a_reaction_right_after_the_others_were_asked_for_comes_after_them(
    peer: DiscordPeer, host: RecordingHost, connector: Any
) -> None:
    answer = await sent(connector, peer)
    known = frozenset({(answer.id, peer.people["ada"].id, "reaction:👍")})
    connector._reconciler.again()
    turns = [OpenTurn(turn=TURN, messages=(answer,), reactions=known)]
    [gone] = await connector.reconcile(turns)
    assert isinstance(gone, RatingEvent)
    await peer.react(answer, new="👍")
    [event] = await host.received(RatingEvent)
    assert opinion([gone, event]) == 1.0


async def test_killed_between_dispatch_and_commit_a_rating_comes_again(
    peer: DiscordPeer, host: RecordingHost
) -> None:
    async with connected(peer, host) as connector:
        answer = await sent(connector, peer)
        await peer.say("the first thing that is ever stored")
        await host.received(MessageEvent)
        host.hold()
        await peer.react(answer, new="👍")
        await host.wait(lambda: len(host.attempts) > len(host.commits))
        attempted = host.attempts[-1]
    host.release()
    assert not [event for event in host.events if isinstance(event, RatingEvent)]
    async with connected(peer, host):
        [event] = await host.received(RatingEvent)
    # What Discord had given last was not stored: its mark counts as ours now.
    again = dataclasses.replace(event, order=event.order._replace(ours=False))
    assert attempted == (again,), "the same event as before"
    assert peer.discord.gateway.connections == ["identify", "resume"]


async def test_killed_and_away_for_too_long_the_reaction_is_found_by_asking(
    peer: DiscordPeer, host: RecordingHost
) -> None:
    async with connected(peer, host) as connector:
        answer = await sent(connector, peer)
        host.hold()
        await peer.react(answer, new="👍")
        await host.wait(lambda: bool(host.attempts))
    host.release()
    crowd = [peer.discord.person(f"p{n}") for n in range(120)]
    message = peer.discord.world.messages[answer.id]
    message.reactions["👍"] += [person.id for person in crowd]
    for session in peer.discord.sessions.all:
        peer.discord.sessions.forget(session)
    async with connected(peer, host) as connector:
        found = await connector.reconcile([OpenTurn(turn=TURN, messages=(answer,))])
        again = await connector.reconcile([OpenTurn(turn=TURN, messages=(answer,))])
    raters = {event.user.id for event in found if isinstance(event, RatingEvent)}
    assert raters == {peer.people["ada"].id, *(person.id for person in crowd)}
    assert {event.user.id for event in again} == raters, "nobody has stored it yet"


async def test_a_button_of_last_year_still_rates(peer: DiscordPeer, host: RecordingHost) -> None:
    async with connected(peer, host) as connector:
        answer = await sent(connector, peer)
    for session in peer.discord.sessions.all:
        peer.discord.sessions.forget(session)
    async with connected(peer, host):
        await peer.press(answer, "good")
        [event] = await host.received(RatingEvent)
    assert (event.turn, event.value) == (TURN, 1.0)


async def test_who_wrote_the_message_is_not_always_told(
    peer: DiscordPeer, host: RecordingHost, connector: Any
) -> None:
    peer.discord.world.tells_author = False
    await peer.react(await sent(connector, peer), new="👍")
    [event] = await host.received(RatingEvent)
    assert event.value == 1.0


# -- limits and rights


async def test_a_limit_is_obeyed_with_jitter_and_the_answer_goes_out_once(
    peer: DiscordPeer, tmp_path: Path
) -> None:
    clock = VirtualClock(now=peer.discord.clock.now())
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=ENVIRON, clock=clock)
    async with connected(peer, host) as connector:
        peer.discord.faults.rate_limit(SEND, seconds=7, times=2)
        before = len(clock.slept)
        await sent(connector, peer)
        pauses = [pause for pause in clock.slept[before:] if 7 <= pause < 9]
        assert len(pauses) == 2
        assert all(7 <= pause <= 7.7 for pause in pauses), "with a little more, by chance"
        assert pauses[0] != pauses[1]
        assert [post.text for post in await peer.posts()] == ["An answer."]
    await host.close()


async def test_discord_s_own_buckets_are_kept_to(tmp_path: Path) -> None:
    """Twelve answers in one channel that takes five in half a second."""
    require("discord")
    async with FakeDiscord(limits=RateLimits(seconds=0.5)) as discord:
        peer = DiscordPeer(discord)
        async with hosted(peer, tmp_path) as host, connected(peer, host) as connector:
            for _ in range(12):
                await sent(connector, peer)
        tries = [call.status for call in discord.called(*SEND.split(" "))]
        assert tries.count(200) == 12
        assert tries.count(429) <= 2, "what the headers say is believed"
        assert len(await peer.posts()) == 12


async def test_where_a_right_is_missing_the_error_says_what_to_do(peer: DiscordPeer, connector: Any) -> None:
    peer.lab.denied[peer.discord.world.bot.id] = permissions.SEND_MESSAGES
    with pytest.raises(ConnectorError, match="permission"):
        await sent(connector, peer, SHARED)


# -- outages


async def test_a_network_dead_for_ten_minutes_loses_nothing(tmp_path: Path) -> None:
    """The session is gone by then: words are read again, reactions are asked for."""
    async with on_virtual_time() as peer, real_goodbot(peer, tmp_path) as app:
        discord, ada = peer.discord, peer.people["ada"]
        answer, other = await answered(peer, app), await answered(peer, app, "another")
        ada.reacts(other, "👎")
        await settled(peer, lambda: rated(app))
        discord.cut()
        ada.reacts(answer, "👍")
        ada.unreacts(other, "👎")
        ada.says("said at the beginning of it")
        await pass_time(discord, 500)
        ada.says("said at the end of it")
        ada.reacts(other, "🎉")
        await pass_time(discord, 100)
        discord.mend()

        def answers() -> list[int]:
            said = [message.content for message in discord.said(ada.dm)]
            return [sum(when in text for text in said) for when in ("beginning of it", "end of it")]

        async def all_there() -> bool:
            return await rated(app) == [(1.0,), (1.0,)] and answers() == [1, 1]

        await settled(peer, all_there, 5.0)
        assert discord.gateway.connections == ["identify", "invalid", "identify"]
        await pass_time(discord, 60)
        assert await rated(app) == [(1.0,), (1.0,)], "told twice, counted once"
        assert answers() == [1, 1]
        await check_store(app.store)


async def test_a_handshake_that_fails_at_the_start_is_tried_again_later(
    peer: DiscordPeer, host: RecordingHost
) -> None:
    peer.discord.gateway.refuses = 503
    with pytest.raises(RetriableError):
        await build(SPEC, host, peer).start()
    assert host.failures == []


async def test_a_handshake_that_fails_later_is_no_end(peer: DiscordPeer, tmp_path: Path) -> None:
    """discord.py's own loop reads the number of a WebSocket that it does not have, and dies."""
    clock = VirtualClock(now=peer.discord.clock.now())
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=ENVIRON, clock=clock)
    async with connected(peer, host):
        peer.discord.gateway.refuses = 503
        peer.discord.gateway.drop()
        before = len(clock.slept)
        await peer.discord.until(lambda: len(clock.slept) > before + 5)
        assert max(clock.slept[before:]) <= 120, "it comes back soon after Discord does"
        peer.discord.gateway.refuses = 0
        await peer.say("back again?")
        await host.received(MessageEvent)
    assert host.failures == []
    await host.close()


async def test_without_the_intent_that_was_asked_for_the_owner_is_told_where_to_switch_it_on(
    discord: FakeDiscord, tmp_path: Path
) -> None:
    peer = DiscordPeer(discord, message_content=True)
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=ENVIRON)
    with pytest.raises(FatalConnectorError, match="Message Content"):
        await build(SPEC, host, peer).start()
    assert discord.gateway.connections == ["4014"]
    discord.application.privileged.add(intents.MESSAGE_CONTENT)
    async with connected(peer, host):
        pass
    await host.close()


async def test_a_token_that_is_reset_while_it_runs_ends_it_with_a_sentence(
    peer: DiscordPeer, host: RecordingHost, connector: Any
) -> None:
    peer.discord.application.token = "another"
    peer.discord.gateway.drop()
    await host.wait(lambda: bool(host.failures))
    [failure] = host.failures
    assert isinstance(failure, FatalConnectorError)
    assert "GOODBOT_DISCORD_TOKEN" in str(failure)
