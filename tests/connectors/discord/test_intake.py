# SPDX-License-Identifier: Apache-2.0
"""What comes in is stored in its order, however it goes, and only then counted as taken."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CommandEvent, MessageEvent
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC, room
from goodbot_connectors.discord.progress import Cursor, Progress
from goodbot_fakes.discord import FakeDiscord

from tests.connectors.discord.peer import DiscordPeer
from tests.support import patience, require

require("discord")

from goodbot_connectors.discord.connector import DiscordConnector  # noqa: E402  needs discord.py

URL = "wss://gateway-us-east1-b.discord.gg/"


@pytest.fixture
async def host(discord: FakeDiscord, tmp_path: Path) -> Any:
    peer = DiscordPeer(discord)
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    host.peer = peer  # type: ignore[attr-defined]
    yield host
    await host.close()


def arrives(progress: Progress, number: int, *, matters: bool = True) -> int:
    progress.current = number
    begun = progress.begin() if matters else 0
    progress.settle()
    return begun


def test_only_what_is_stored_counts_as_taken() -> None:
    progress = Progress("s")
    arrives(progress, 1, matters=False)
    assert progress.stored == 1, "chatter is done with at once"
    assert [arrives(progress, n) for n in (2, 3, 4)] == [2, 3, 4]
    assert progress.stored == 1
    progress.done(3)
    assert progress.stored == 1, "a later one does not vouch for an earlier one"
    assert (progress.after([2]), progress.after([4])) == (3, 1)
    progress.done(2)
    assert progress.stored == 3
    progress.done(4)
    assert progress.stored == 4


def test_what_a_resume_tells_again_while_it_is_worked_on_is_taken_once() -> None:
    progress = Progress("s")
    for number in (1, 2, 3):
        arrives(progress, number)
    progress.done(2)
    assert arrives(progress, 1) == 0
    assert arrives(progress, 2) == 2, "it was stored: the store knows it"
    progress.done(2)
    progress.done(1)
    assert progress.stored == 2
    progress.done(3)
    assert progress.stored == 3


def test_a_cursor_comes_back_as_it_was_and_anything_else_is_none() -> None:
    cursor = Cursor("1", 13825, "s3ss10n", 42, 1440000000000000000, URL)
    assert Cursor.read(str(cursor)) == cursor
    assert Cursor.read(str(Cursor())) == Cursor()
    for broken in (None, "", "x", "1 2 3", "a b c d e f", "1 2 s x 5 u"):
        assert Cursor.read(broken) == Cursor()
    older = cursor._replace(seen=5, number=99)
    assert Cursor.newer(str(older), str(cursor)) == Cursor.newer(str(cursor), None) == cursor


@pytest.mark.parametrize(
    ("changes", "gateway", "resumes"),
    [
        ({}, "", True),
        ({"account": "2"}, "", False),
        ({"intents": 1}, "", False),
        ({"session": ""}, "", False),
        ({"url": "wss://evil.example/"}, "", False),
        ({"url": "wss://evil.example/.discord.gg"}, "", False),
        ({"url": "wss://discord.gg.evil.example/"}, "", False),
        ({"url": "ws://gateway.discord.gg/"}, "", False),
        ({"url": "ws://127.0.0.1:8080/"}, "ws://127.0.0.1:9/", True),
    ],
)
def test_the_token_is_sent_nowhere_but_to_discord(
    changes: dict[str, Any], gateway: str, resumes: bool
) -> None:
    cursor = Cursor("1", 13825, "s", 42, 7, URL)._replace(**changes)
    assert cursor.resumes("1", 13825, gateway) is resumes


async def test_what_waits_while_the_disk_fails_is_stored_together_and_in_order(host: Any) -> None:
    peer: DiscordPeer = host.peer
    connector = DiscordConnector(host, peer.settings)
    await connector.start()
    host.hold()
    for n in range(30):
        await peer.say(f"{n}")
    await host.wait(lambda: bool(host.attempts))
    host.refuse(1)
    host.release()
    events = await host.received(MessageEvent, 30)
    assert [event.text for event in events] == [str(n) for n in range(30)]
    assert len(host.commits) <= 3, "one commit for all that is there"
    await connector.stop()


async def test_b9_while_the_disk_fails_only_so_much_is_held_and_discord_keeps_the_rest(
    host: Any, discord: FakeDiscord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that came in piled up in memory, however long it took."""
    monkeypatch.setattr(room, "MOST", 20)
    peer: DiscordPeer = host.peer
    connector = DiscordConnector(host, peer.settings)
    await connector.start()
    host.hold()
    for n in range(30):
        await peer.say(f"{n}")
    [session] = discord.sessions.all
    await discord.until(lambda: session.socket is None)
    assert connector._intake.room.held == 20
    await discord.until(lambda: host.troubles[-1:] and "nothing can be stored" in host.troubles[-1])
    await peer.say("30")
    host.refuse(1)
    host.release()
    events = await host.received(MessageEvent, 31)
    assert [event.text for event in events] == [str(n) for n in range(31)]
    assert discord.gateway.connections == ["identify", "resume"]
    await discord.until(lambda: not host.troubles[-1])
    await connector._intake.stored()
    assert connector._intake.room.held == 0
    await connector.stop()


async def test_who_presses_while_nothing_is_stored_is_held_with_the_rest(
    host: Any, discord: FakeDiscord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST", 3)
    peer: DiscordPeer = host.peer
    connector = DiscordConnector(host, peer.settings)
    await connector.start()
    await discord.until(lambda: peer.people["ada"].commands())
    host.hold()
    for _ in range(3):
        peer.command("ada", "status")
    [session] = discord.sessions.all
    await discord.until(lambda: session.socket is None)
    host.release()
    await host.received(CommandEvent, 3)
    await discord.until(lambda: discord.gateway.connections == ["identify", "resume"])
    await discord.until(lambda: connector._intake.room.held == 0)
    await connector.stop()


async def test_one_that_nothing_can_be_done_with_takes_no_other_along(
    host: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    peer: DiscordPeer = host.peer
    connector = DiscordConnector(host, peer.settings)
    await connector.start()
    real = host.submit

    async def poisoned(events: Any, **options: Any) -> Any:
        if any("poison" in event.text for event in events):
            raise RuntimeError("a defect of the core's")
        return await real(events, **options)

    host.hold()
    await peer.say("held")
    await host.wait(lambda: bool(host.attempts))
    monkeypatch.setattr(host, "submit", poisoned)
    for text in ("one", "poison", "two"):
        await peer.say(text)
    host.release()
    events = await host.received(MessageEvent, 3)
    assert [event.text for event in events] == ["held", "one", "two"]
    assert "left out" in caplog.text
    assert "poison" not in caplog.text.replace("poisoned", ""), "no words in the log"
    await connector.stop()
    assert connector._gateway.progress.stored > 0


async def test_a_session_of_other_intents_is_not_resumed(host: Any, discord: FakeDiscord) -> None:
    """It would go on with the old ones."""
    peer: DiscordPeer = host.peer
    first = DiscordConnector(host, peer.settings)
    await first.start()
    await first.stop()
    discord.application.privileged.add(1 << 15)
    second = DiscordConnector(host, DiscordPeer(discord, message_content=True).settings)
    await second.start()
    await second.stop()
    assert discord.gateway.connections == ["identify", "identify"]


async def test_while_it_is_down_the_owner_can_see_it(host: Any, discord: FakeDiscord) -> None:
    connector = DiscordConnector(host, host.peer.settings)
    await connector.start()
    discord.cut()
    await discord.until(lambda: host.troubles[-1:] and host.troubles[-1])
    assert "Discord is down" in host.troubles[-1]
    discord.mend()
    await discord.until(lambda: not host.troubles[-1], 20)
    await host.peer.say("back")
    await host.received(MessageEvent)
    await connector.stop()


async def test_a_moved_connection_is_no_trouble(host: Any, discord: FakeDiscord) -> None:
    connector = DiscordConnector(host, host.peer.settings)
    await connector.start()
    await discord.gateway.reconnect()
    await discord.until(lambda: "resume" in discord.gateway.connections)
    await host.peer.say("still there?")
    await host.received(MessageEvent)
    assert not any(host.troubles)
    await connector.stop()


async def test_numbers_of_a_session_that_is_gone_say_nothing_of_this_one(host: Any) -> None:
    connector = DiscordConnector(host, host.peer.settings)
    await connector.start()
    gateway = connector._gateway
    gone, gateway.progress = gateway.progress, Progress("another")
    arrives(gateway.progress, 1, matters=False)
    arrives(gateway.progress, 2)
    assert Cursor.read(connector._cursor([(gone, 2)])).number == 1
    assert Cursor.read(connector._cursor([(gateway.progress, 2)])).number == 2
    await connector.stop()


async def test_a_stop_does_not_wait_for_a_network_that_is_dead(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody answers the farewell, for which aiohttp waits half a minute."""
    from goodbot_connectors.discord import gateway

    monkeypatch.setattr(gateway, "_FAREWELL", 0.05)
    connector = DiscordConnector(host, host.peer.settings)
    await connector.start()
    socket = connector._gateway._socket
    assert socket is not None
    real = socket.close

    async def unanswered(code: int = 4000) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(socket, "close", unanswered)
    async with asyncio.timeout(patience(10)):
        await connector.stop()
    await real()
