# SPDX-License-Identifier: Apache-2.0
"""What a connector may ask of a running goodbot: of its own people alone."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from goodbot.api.events import UserRef
from goodbot.daemon.connector_host import RunningHost

from tests.core.builders import open_bot

OF_PEOPLE = [
    name
    for name, one in vars(RunningHost).items()
    if inspect.iscoroutinefunction(one) and "user" in inspect.signature(one).parameters
]


async def test_a_connector_asks_for_nobody_who_is_not_its_own(tmp_path: Path) -> None:
    stranger = UserRef(connector="telegram", account="telegram", id="owner")
    async with open_bot(tmp_path) as bot:
        for name in OF_PEOPLE:
            ask = getattr(bot.chat.host, name)
            _, *needed = [
                one
                for one in inspect.signature(ask).parameters.values()
                if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty
            ]
            with pytest.raises(ValueError, match="somebody else's"):
                await ask(stranger, *(None for _ in needed))
    assert {"inbox", "overview", "own_turn", "report", "change_setting"} <= set(OF_PEOPLE)
