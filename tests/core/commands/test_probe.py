# SPDX-License-Identifier: Apache-2.0
"""`probe`: whether the adapter that should answer does, as the model server itself shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import goodbot
from goodbot.api.setup import CheckState
from goodbot.cli.doctor.daemon import _probed

from tests.core.builders import Bot, open_bot, rows


async def probe(bot: Bot) -> tuple[Mapping[str, Any], dict[str, CheckState]]:
    """What the command says, and what the doctor makes of it."""
    result = await bot.app.commands.execute(bot.chat.typed("probe"))
    return result.data, {check.part: check.state for check in _probed(result.data, result.text)}


async def test_the_base_model_has_nothing_to_differ_from(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        data, found = await probe(bot)
    assert (data["served"], data["wanted"], data["differing"]) == (0, 0, None)
    assert data["goodbot"] == goodbot.__version__
    assert found == {"adapter": CheckState.OK}


async def test_an_adapter_that_answers_unlike_the_base(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        data, found = await probe(bot)
        assert (data["served"], data["differing"], data["prompts"]) == (1, 2, 2)
        assert found == {"adapter": CheckState.OK}
        await bot.command("off")
        data, found = await probe(bot)
        assert (data["active"], data["wanted"], data["served"]) == (1, 0, 0)
        assert found == {"adapter": CheckState.OK}


async def test_an_adapter_that_changes_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        bot.fake.set(generate="base")
        data, found = await probe(bot)
    assert data["differing"] == 0
    assert found == {"adapter": CheckState.WARN}


async def test_a_server_that_has_lost_its_adapter(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        bot.fake.forget()
        data, found = await probe(bot)
    assert (data["served"], data["wanted"]) == (0, 1)
    assert found == {"adapter": CheckState.FAIL}


async def test_asking_changes_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        before = await rows(bot.store, "SELECT * FROM audit")
        await probe(bot)
        assert await rows(bot.store, "SELECT * FROM audit") == before
        assert await rows(bot.store, "SELECT * FROM turns") == []


def test_a_daemon_of_another_version() -> None:
    data = {"goodbot": "0.0.1", "served": 0, "wanted": 0, "differing": None}
    states = [check.state for check in _probed(data, "")]
    assert states == [CheckState.WARN, CheckState.OK]
