# SPDX-License-Identifier: Apache-2.0
"""Setting up: whose token it is, what it may, and the lines that `goodbot doctor` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot import CheckState, Examined, FatalConnectorError, RetriableError
from goodbot.api.plugins import PluginHost
from goodbot.config import Config
from goodbot.config.secrets import Secrets

from goodbot_matrixlike import SPEC, TOKEN, register_probe
from goodbot_matrixlike.setup import MatrixlikeSetup
from tests.homeserver import BOT, RIGHT_TOKEN, running


async def test_the_token_says_whose_it_is() -> None:
    async with running() as homeserver:
        setup = MatrixlikeSetup(Secrets(SPEC.secrets, homeserver.environ), homeserver.settings)
        assert (await setup.identify()).account == BOT
        [rooms] = await setup.examine()
        assert (rooms.state, rooms.text[:6]) == (CheckState.WARN, "1 of 2")
        homeserver.down = True
        with pytest.raises(RetriableError):
            await setup.identify()


async def test_a_wrong_token_is_a_persons_to_change() -> None:
    async with running() as homeserver:
        secrets = Secrets(SPEC.secrets, homeserver.wrong_environ)
        with pytest.raises(FatalConnectorError, match=TOKEN):
            await MatrixlikeSetup(secrets, homeserver.settings).identify()


def test_what_cannot_be_a_token() -> None:
    assert MatrixlikeSetup.malformed(TOKEN, "hunter2")
    assert not MatrixlikeSetup.malformed(TOKEN, RIGHT_TOKEN)


@pytest.mark.parametrize(
    ("homeserver", "state"),
    [
        ("http://127.0.0.1:8008", CheckState.OK),
        ("https://matrix.example.org", CheckState.OK),
        ("http://matrix.example.org", CheckState.FAIL),
    ],
)
async def test_plain_http_is_for_this_machine_only(
    homeserver: str, state: CheckState, tmp_path: Path
) -> None:
    config = Config(home=tmp_path, connectors={"matrixlike": {"homeserver": homeserver}})
    examined = Examined(config=config, plugins=PluginHost(), environ={}, daemon=None)
    [check] = await register_probe().run(examined)
    assert check.state is state
