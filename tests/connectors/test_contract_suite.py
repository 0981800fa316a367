# SPDX-License-Identifier: Apache-2.0
"""The contract suite itself: it sees a token that is shown, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from goodbot.api.connector import Connector, ConnectorSpec
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, Reply
from goodbot.base.errors import FatalConnectorError
from goodbot.testing import ConnectorContract, Driver, Post

TOKEN = "PIGEON_TOKEN"


class PigeonConnector(Connector):
    """It only refuses the token, with a sentence that may show it."""

    shown = ""

    @property
    def account(self) -> str:
        return "pigeon"

    async def start(self) -> None:
        raise FatalConnectorError(f"{TOKEN} is refused {self.shown}")

    async def stop(self) -> None:
        pass

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        raise NotImplementedError


class Far(Driver):
    settings = None
    wrong_environ = {TOKEN: "wrong"}  # noqa: RUF012  as an author writes it

    async def say(self, text: str, **_: object) -> str:
        raise NotImplementedError

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE) -> Sequence[Post]:
        return ()


PigeonConnector.spec = ConnectorSpec(
    name="pigeon", factory=f"{__name__}:PigeonConnector", settings=object, secrets=(TOKEN,)
)


async def asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    suite = ConnectorContract()
    await suite.test_a_wrong_secret_is_named_and_not_shown(PigeonConnector.spec, Far(), tmp_path, caplog)


async def test_a_made_up_token_may_be_a_plain_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await asked(tmp_path, caplog)


async def test_a_token_that_is_shown_is_told_by_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PigeonConnector, "shown", "as wrong")
    with pytest.raises(AssertionError, match=TOKEN):
        await asked(tmp_path, caplog)
