# SPDX-License-Identifier: Apache-2.0
"""T13: a version whose files, or whose base, are not what they were does not answer; the old one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.adapters.manifest import CONFIG, MANIFEST, WEIGHTS, inspect
from goodbot.base.errors import AdapterError

from tests.core.builders import Bot, open_bot


async def trained(bot: Bot, count: int = 1) -> None:
    for _ in range(count):
        await bot.rated(8)
        verdict = await bot.train()
        assert verdict.state == "activated", verdict.reason


async def who_answers(bot: Bot) -> str:
    return (await bot.say("Who?")).text.partition(" ")[0]


async def test_a_template_that_changes_stops_the_version_and_says_what_to_do(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot)
        template = bot.fake.path / "chat_template.jinja"
        template.write_text("{{ other }}")
        wrong = await bot.app.registry.reconcile()
        assert "the chat template of" in wrong
        assert "Put the old chat template back" in wrong
        assert await who_answers(bot) == "v0"
        assert "chat template" in await bot.rollback("1")
        template.unlink()
        await bot.rollback("1")
        assert await who_answers(bot) == "v1"


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, MANIFEST])
async def test_a_flipped_bit_is_refused_and_the_old_one_stays(tmp_path: Path, name: str) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, 2)
        await bot.rollback("1")
        path = await bot.app.registry.path(2) / name
        whole = path.read_bytes()
        path.chmod(0o600)
        for at in range(0, len(whole), 1 + len(whole) // 50):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
            with pytest.raises(AdapterError):
                await bot.app.registry.activate(2, expected=1)
        assert await who_answers(bot) == "v1"
        path.write_bytes(whole)
        assert await bot.app.registry.activate(2, expected=1)
        assert inspect(path.parent.parent, path.parent.name).version == 2


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, MANIFEST])
async def test_files_exchanged_after_the_check_and_before_the_server_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, 2)
        await bot.rollback("1")
        other = (await bot.app.registry.path(1) / name).read_bytes()
        load = bot.app.server.load

        async def late(version: int, directory: Path) -> None:
            (directory / name).unlink()
            (directory / name).write_bytes(other)
            await load(version, directory)

        monkeypatch.setattr(bot.app.server, "load", late)
        with pytest.raises(AdapterError):
            await bot.app.registry.activate(2, expected=1)
        assert (await who_answers(bot), await bot.app.registry.active()) == ("v1", 1)


async def test_a_start_on_tampered_files_answers_with_what_is_whole(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await trained(bot, 2)
        path = await bot.app.registry.path(2) / WEIGHTS
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-4] + b"evil")
    async with open_bot(tmp_path) as bot:
        assert await who_answers(bot) == "v1"
