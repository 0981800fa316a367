# SPDX-License-Identifier: Apache-2.0
"""B10: no words of a stored answer stand in a message of Teams that is not recorded: it tells none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import THUMBS
from goodbot.api.events import ChannelKind, MessageEvent, MessageRef, Reply
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.teams import SPEC

from tests.connectors.teams.peer import TeamsPeer
from tests.support import require

require("botbuilder.core")

from goodbot_connectors.teams.wire import Wire  # noqa: E402  needs the SDK

SHORT = "It begins and ends."
LONG = f"It begins {'and goes on ' * (SPEC.message_limit // 10)}and ends."


@pytest.fixture
async def host(peer: TeamsPeer, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    yield host
    await host.close()


@pytest.fixture
async def connector(host: RecordingHost, peer: TeamsPeer) -> AsyncIterator[Any]:
    connector = build(SPEC, host, peer)
    await connector.start()
    yield connector
    await connector.stop()


@pytest.mark.parametrize("room", [ChannelKind.PRIVATE, ChannelKind.SHARED])
@pytest.mark.parametrize("words", [SHORT, LONG])
async def test_b10_killed_after_any_call_each_copy_with_words_of_the_answer_is_known(
    room: ChannelKind,
    words: str,
    connector: Any,
    host: RecordingHost,
    peer: TeamsPeer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = room is ChannelKind.SHARED
    await peer.say("Tell me.", room=room, mention=shared)
    [asked] = await host.received(MessageEvent)
    kept: set[str] = set()

    async def keep(sent: Sequence[MessageRef]) -> None:
        kept.update(ref.id for ref in sent)

    calls, last, reached = 0, 0, asyncio.Event()
    real = {name: getattr(Wire, name) for name in ("send", "update")}

    def deadly(name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            nonlocal calls
            done = await real[name](*args, **options)
            calls += 1
            if calls == last:
                reached.set()
                await asyncio.Event().wait()
            return done

        return call

    for name in real:
        monkeypatch.setattr(Wire, name, deadly(name))

    async def sent() -> bool:
        """Whether all of it was sent, before it was killed."""
        nonlocal calls
        calls = 0
        reached.clear()
        stream = connector.stream(asked.channel, asked.message_id)
        stream.keep = keep
        answer = Reply(text=words, turn="5f1e0c7a9b3d2468", buttons=THUMBS)
        ends = [asyncio.create_task(work) for work in (stream.finish(answer), reached.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        whole = ends[0].done() and bool(ends[0].result())
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        return whole

    def standing() -> set[str]:
        """Which messages of ours hold words of the answer."""
        seen = peer.people["ada"].sees(peer.place(room))
        return {one.id for one in seen if any(word in one.text for word in ("begins", "goes on", "ends"))}

    whole = False
    while not whole:
        last += 1
        whole = await sent()
        assert standing() <= kept
    assert last > 1
    assert len(standing()) >= last - 1, "some were killed when all of the words stood there"
