# SPDX-License-Identifier: Apache-2.0
"""`forget me` on Teams: nothing that names the person is kept, and they are still told that it is done."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.daemon.app import App
from goodbot.testing.connector_base import eventually
from goodbot_connectors import teams as plugin
from goodbot_connectors.teams import references
from goodbot_fakes.teams import FakeTeams, Message
from goodbot_fakes.teams.people import Person

from tests.connectors.teams.peer import TeamsPeer, actions, shown
from tests.connectors.teams.test_auth_live import section
from tests.core.builders import Fake, rows
from tests.end_to_end.beside import goodbot


@pytest.fixture
async def app(peer: TeamsPeer, tmp_path: Path) -> AsyncIterator[App]:
    async with contextlib.AsyncExitStack() as ending:
        yield await ending.enter_async_context(
            goodbot(tmp_path / "bot", plugin, section(peer), peer.environ, fake=Fake(tmp_path / "fake"))
        )


async def card(peer: TeamsPeer, word: str) -> Message:
    """The card of Ada's that says something."""

    async def found() -> Message | None:
        return next((m for m in peer.people["ada"].sees() if m.cards and word in shown(m)), None)

    message = await eventually(found)
    assert message is not None
    return message


async def answered(peer: TeamsPeer) -> None:
    """Until an answer to Ada is whole."""

    async def found() -> bool:
        return any(message.feedback for message in peer.people["ada"].sees())

    await eventually(found)


async def kept(app: App) -> str:
    """All that the connector keeps, names and values."""
    found = await rows(app.store, "SELECT key, value FROM connector_values")
    return "\n".join(f"{key}: {value}" for key, value in found)


async def test_s7_of_a_crowd_of_strangers_the_newest_chats_alone_are_kept(
    teams: FakeTeams, peer: TeamsPeer, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "_UNSURE", 3)
    ada = peer.people["ada"]
    ada.says("hello")
    await answered(peer)
    crowd = [teams.person(f"Stranger{n}") for n in range(8)]
    for n, stranger in enumerate(crowd):
        stranger.says("hello" if n % 2 else "/rl status")
        await teams.settled()

        async def told(stranger: Person = stranger) -> bool:
            return any(m.cards for m in stranger.sees())

        await eventually(told)
    found = await kept(app)
    assert ada.chat.id in found
    assert [s.id in found for s in crowd] == [False] * 5 + [True] * 3
    assert [f"conversation:{s.chat.id}" in found for s in crowd] == [False] * 5 + [True] * 3
    crowd[0].says("hello?")
    await teams.settled()
    assert f"conversation:{crowd[0].chat.id}" in await kept(app), "they are found again"


async def test_whoever_is_forgotten_is_told_so_and_nothing_names_them(
    teams: FakeTeams, peer: TeamsPeer, app: App
) -> None:
    ada, bob = peer.people["ada"], peer.people["bob"]
    ada.says("hello")
    await answered(peer)
    bob.says("hello")
    await teams.settled()
    chat = ada.chat.id.rpartition(":")[2]
    assert ada.id in await kept(app)
    assert chat in await kept(app)
    ada.says("/rl forget me")
    asked = await card(peer, "cannot be undone")
    assert actions(asked)
    ada.says("/rl forget me yes")
    await card(peer, "1 answer")
    assert ada.id not in await kept(app)
    assert chat not in await kept(app)
    assert bob.id in await kept(app)
    ada.says("hello again")
    await teams.settled()
    assert f"conversation:{ada.chat.id}" in await kept(app), "who comes back is found after a restart"
