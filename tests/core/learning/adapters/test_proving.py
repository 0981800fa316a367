# SPDX-License-Identifier: Apache-2.0
"""A server that does not really serve a version is noticed, and put right or the version taken back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from goodbot.api.server import Generated, GenerateRequest
from goodbot.api.texts import reworded, say
from goodbot.base.errors import ServerError
from goodbot.daemon.http import readiness
from goodbot.inference.servers import health
from goodbot.learning.adapters.deployment import NotServedError
from goodbot.store import adapters
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, check, open_bot, until
from tests.core.learning.adapters.test_registry import loaded, versions, who_answers
from tests.support import patience


async def verdict(bot: Bot) -> str:
    return (await bot.status())["proof"]["verdict"]


async def status(bot: Bot) -> str:
    return await bot.command("status")


async def waits(bot: Bot) -> dict[int, str]:
    return {row.version: row.waits for row in await bot.app.registry.rows() if row.waits}


def told(bot: Bot, about: str) -> list[str]:
    """What owners were told unasked."""
    return [said.text for said in bot.chat.news if about in said.text]


def counted(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions whose first tokens are asked for."""
    asked: list[int] = []
    real = bot.app.server.first_tokens

    async def first_tokens(messages: Sequence[Any], *, version: int, top: int) -> Any:
        asked.append(version)
        return await real(messages, version=version, top=top)

    monkeypatch.setattr(bot.app.server, "first_tokens", first_tokens)
    return asked


async def test_a_swap_is_proven_and_so_is_every_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bot(tmp_path) as bot:
        asked = counted(bot, monkeypatch)
        await versions(bot, 1)
        assert asked == [1, 1], "all prompts, before it goes live"
        assert await verdict(bot) == "adapter"
        assert "proven" not in await status(bot)
        assert await bot.app.registry.reconcile() == ""
        assert asked == [1, 1, 1], "the most telling one"
        await bot.rollback()
        await bot.app.registry.reconcile()
        assert asked == [1, 1, 1], "of the base there is nothing to prove"


async def test_a_server_that_ignores_an_adapter_gets_it_anew(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        bot.fake.ignore()
        assert "loaded anew" in await bot.app.registry.reconcile()
        assert (await verdict(bot), await who_answers(bot), await waits(bot)) == ("adapter", "v1", {})
        assert await bot.app.registry.reconcile() == ""


async def test_a_version_that_is_like_itself_no_more_is_loaded_anew_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache of another version answers like neither: what was proven before is not left at that."""
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        assert await verdict(bot) == "adapter"
        bot.fake.set(first="other")
        reload = AsyncMock(wraps=bot.app.server.reload)
        monkeypatch.setattr(bot.app.server, "reload", reload)
        assert "loaded anew" in await bot.app.registry.reconcile()
        assert reload.await_count == 1
        assert (await verdict(bot), await who_answers(bot)) == ("neither", "v1")
        # That it did not help is said, and it is not tried over and over.
        assert await bot.app.registry.reconcile() == ""
        assert reload.await_count == 1
        assert "another chat template" in await status(bot)


async def test_what_was_put_right_is_said_for_a_day(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await versions(bot, 1)
        assert "put right" not in await status(bot), "that a new server serves nothing is no news"
        bot.fake.ignore()
        await bot.app.registry.reconcile()
        clock.advance(12 * 60)
        line = "put right 12 min ago: v1 was not really served, and was loaded anew"
        assert line in await status(bot)
        assert line not in await bot.command("status", user="ben"), "of the machine owners are told"
        clock.advance(86400)
        assert "put right" not in await status(bot)


async def test_a_version_that_says_nothing_holds_nobody_up_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_LONGEST", 0.05)

    async def silent(request: GenerateRequest) -> AsyncGenerator[str | Generated, None]:
        await asyncio.Event().wait()
        yield ""

    async with open_bot(tmp_path) as bot:
        monkeypatch.setattr(bot.app.server, "generate", silent)
        with pytest.raises(ServerError, match="v1 did not answer within"):
            await health.probe(bot.app.server, 1)


async def test_a_server_that_cannot_load_the_version_at_the_start_answers_with_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        monkeypatch.setattr(bot.app.registry, "reconcile", AsyncMock(side_effect=ServerError("it is full")))
        await bot.app.start_server()
        assert await who_answers(bot) == "v0"
        monkeypatch.undo()
        await bot.app.registry.reconcile()
        assert await who_answers(bot) == "v1"


async def test_the_daemon_notices_within_30_seconds(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await versions(bot, 1)
        for breaks in (bot.fake.forget, bot.fake.ignore):
            breaks()
            assert not await _answers_as(bot, 1)
            clock.advance(30)
            await until(lambda: _answers_as(bot, 1))


async def _answers_as(bot: Bot, version: int) -> bool:
    if version not in await loaded(bot):
        return False
    told = await bot.app.server.first_tokens([], version=version, top=1)
    return await bot.app.server.served() == version and "well" not in told


async def test_a_server_that_ignores_every_adapter_is_left_with_the_base(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        bot.fake.set(first="base")
        assert "not really served" in await bot.app.registry.reconcile()
        assert await bot.app.registry.active() == 0
        assert await who_answers(bot) == "v0"
        assert await loaded(bot) == []
        assert list(await waits(bot)) == [2]
        said = await status(bot)
        assert "v2 waits: the model server does not really serve it; `rollback 2` tries it again" in said
        await bot.app.news.look()
        [news] = told(bot, "v2 does not answer")
        assert "The base model does" in news
        assert await bot.app.registry.reconcile() == ""
        # It can be tried again, and is told again if it is in vain a second time.
        bot.fake.set(first="ok")
        await bot.rollback("2")
        assert (await who_answers(bot), await waits(bot)) == ("v2", {})
        await bot.app.news.look()
        bot.fake.set(first="base")
        await bot.app.registry.reconcile()
        await bot.app.news.look()
        assert len(told(bot, "v2 does not answer")) == 2


async def test_one_that_ignores_only_the_newest_goes_back_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        real = bot.app.server.first_tokens

        async def first_tokens(messages: Sequence[Any], *, version: int, top: int) -> Any:
            return await real(messages, version=0 if version == 2 else version, top=top)

        monkeypatch.setattr(bot.app.server, "first_tokens", first_tokens)
        await bot.app.registry.reconcile()
        assert (await bot.app.registry.active(), await who_answers(bot)) == (1, "v1")
        assert await verdict(bot) == "adapter"
        assert await bot.app.registry.head() == 2, "what v2 learnt is not lost from the line"


async def test_a_new_version_that_has_no_effect_does_not_go_live_and_is_not_lost(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        await bot.rated(8)
        bot.fake.set(first="base")
        await bot.train()
        assert await bot.app.registry.active() == 1
        assert await loaded(bot) == [1]
        assert list(await waits(bot)) == [2]
        bot.fake.set(first="ok")
        await bot.rated(8)
        assert (await bot.train()).version == 3, "it has an effect again"
        assert (await bot.app.registry.row(3)).parent == 2
        await check(bot)


@pytest.mark.parametrize(
    ("mode", "expected", "sentence"),
    [("none", "untold", "tells no log-probs"), ("other", "neither", "another chat template")],
)
async def test_what_cannot_be_proven_is_said_and_changes_nothing(
    tmp_path: Path, mode: str, expected: str, sentence: str
) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(first=mode)
        await versions(bot, 1)
        for _ in range(2):
            assert await bot.app.registry.reconcile() == ""
            assert (await verdict(bot), await who_answers(bot)) == (expected, "v1")
        assert (await status(bot)).count("cannot be proven") == 1
        assert sentence in await status(bot)
        assert told(bot, "proven") == []


async def test_a_proof_that_cannot_be_had_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)

        async def hangs(*_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr("goodbot.inference.servers.health._SECONDS", 0.05)
        monkeypatch.setattr(bot.app.server, "first_tokens", hangs)
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        assert await bot.app.registry.reconcile() == ""
        assert (await verdict(bot), await who_answers(bot)) == ("untold", "v2")
        assert "too busy to tell" in await status(bot)


async def test_a_long_answer_by_the_old_version_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        ended = asyncio.Event()
        real = bot.app.server.unload

        async def unload(version: int) -> None:
            await ended.wait()
            await real(version)

        monkeypatch.setattr(bot.app.server, "unload", unload)
        monkeypatch.setattr("goodbot.learning.adapters.deployment._SOON_SECONDS", 0.01)
        async with asyncio.timeout(patience(10)):
            await bot.rollback()
            await bot.rollback()
        assert await who_answers(bot) == "v0"
        assert await loaded(bot) == [1, 2]
        ended.set()
        await until(lambda: _gone(bot))


async def test_nor_does_it_hold_up_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodbot.learning.adapters.deployment._SOON_SECONDS", 0.01)
    async with asyncio.timeout(patience(20)), open_bot(tmp_path) as bot:
        await versions(bot, 1)

        async def unload(_: int) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(bot.app.server, "unload", unload)
        await bot.rollback()


async def _gone(bot: Bot) -> bool:
    return await loaded(bot) == []


async def test_the_proof_is_part_of_being_ready(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        assert (await readiness.parts(bot.app))["model"] == "ok"
        bot.fake.set(first="base")
        registry = bot.app.registry
        with pytest.raises(NotServedError) as error:
            await registry._prove(1, await registry.path(1), thorough=False)
        like_base = say("proof_lost", "de", version=1, why=say("kept_like_base", "de"))
        assert reworded(error.value, "de") == registry.health.found.told("de") == like_base
        assert (await readiness.parts(bot.app))["model"] == "down"
        assert "v1 is not really served" in await status(bot)


async def test_ratings_that_were_rolled_back_are_not_trained_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await versions(bot, 2)
        await bot.rollback("base")
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        again = set(await bot.trained_by(3))
        assert not again & (set(await bot.trained_by(1)) | set(await bot.trained_by(2)))


async def test_who_goes_back_to_the_base_leaves_what_was_not_served(tmp_path: Path) -> None:
    """The base answers already: what was said is where training goes on from."""
    async with open_bot(tmp_path) as bot:
        await versions(bot, 1)
        registry = bot.app.registry
        place = (registry.scope, registry.model, 1, 0, bot.app.clock.now())
        await bot.store.write(lambda db: adapters.fall_back(db, *place, unserved=True))
        assert await registry.head() == 1
        await bot.rollback("base")
        assert await registry.head() == 0
