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
from goodbot_fakes.teams import FakeTeams, Message

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
