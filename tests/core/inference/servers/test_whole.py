# SPDX-License-Identifier: Apache-2.0
"""A whole goodbot on a server of its owner's: trained, swapped in, proven, and what goes wrong noticed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.adapters.manifest import AdapterManifest, publish
from goodbot.api.setup import CheckState
from goodbot.base.errors import ServerError
from goodbot.cli.doctor import settings
from goodbot.config import ServingConfig
from goodbot.testing.serving_base import answered
from goodbot_fakes.openai_server import FakeOpenAI
from goodbot_fakes.policy import Policy
from goodbot_fakes.vllm import FakeVllm

from tests.core.builders import Bot, open_bot, rows
from tests.core.cli.doctor.examining import examined, only

MESSAGES = [{"role": "user", "content": "Hello"}]


def told(policy: Policy) -> dict[str, float]:
    return dict([*policy.logprobs(MESSAGES).items()][:20])


@pytest.fixture
async def vllm(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeVllm]:
    """One that serves the weights on which the trainer's fingerprints were measured."""
    server = FakeVllm()

    def measured(staging: Path, root: Path, manifest: AdapterManifest) -> tuple[Path, AdapterManifest]:
        prompt = {
            "messages": MESSAGES,
            "base": told(Policy(server._base)),
            "adapter": told(server.adapted(str(staging))),
        }
        text = json.dumps({"format": 1, "top": 20, "prompts": [prompt]})
        (staging / "fingerprint.json").write_text(text)
        return publish(staging, root, manifest)

    monkeypatch.setattr("goodbot.learning.training.publish.publish", measured)
    async with server:
        yield server


def on(server: FakeOpenAI, name: str) -> dict[str, Any]:
    return {"serving": ServingConfig(server=name, url=server.url, ask="never", max_tokens=20)}


async def trained(bot: Bot) -> str:
    await bot.rated(8)
    return (await bot.train()).state


async def test_what_was_trained_answers_and_its_log_probs_are_kept(vllm: FakeVllm, tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=on(vllm, "vllm")) as bot:
        assert await trained(bot) == "activated"
        assert [*vllm.loaded] == ["goodbot-v1"]
        await bot.say("Who?")
        [kept] = await rows(
            bot.store, "SELECT version, tokens, logprobs FROM turns ORDER BY rowid DESC LIMIT 1"
        )
        assert kept[0] == 1
        assert kept[1]
        assert kept[2]
        assert bot.app.registry.health.found.verdict == "adapter"
        assert await trained(bot) == "activated"
        assert [*vllm.loaded] == ["goodbot-v2"]
    assert vllm.loaded == {}


async def test_a_server_that_ignores_adapters_gets_none(vllm: FakeVllm, tmp_path: Path) -> None:
    vllm.faults.ignores_adapters = True
    async with open_bot(tmp_path, sections=on(vllm, "vllm")) as bot:
        await trained(bot)
        assert await bot.app.registry.active() == 0
        assert "v1 waits: the model server does not" in await bot.command("status")


async def test_one_that_begins_to_is_found_out_at_the_next_look(vllm: FakeVllm, tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=on(vllm, "vllm")) as bot:
        await trained(bot)
        assert await bot.app.registry.reconcile() == ""
        vllm.faults.ignores_adapters = True
        assert "not really served" in await bot.app.registry.reconcile()
        assert await bot.app.registry.active() == 0
        assert (await bot.say("Who?")).text


async def test_one_that_was_started_anew_gets_its_adapter_again(vllm: FakeVllm, tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=on(vllm, "vllm")) as bot:
        await trained(bot)
        await vllm.restart()
        assert "did not serve" in await bot.app.registry.reconcile()
        assert [*vllm.loaded] == ["goodbot-v1-2"]
        assert await bot.app.registry.active() == 1


async def test_one_that_was_away_is_used_again(vllm: FakeVllm, tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections=on(vllm, "vllm")) as bot:
        await trained(bot)
        await vllm.down()
        with pytest.raises(ServerError, match="start it"):
            await answered(bot.app.server)
        assert not bot.app.server.healthy()
        assert "does not answer: start it" in await bot.command("status")
        await vllm.up()
        assert "started again" in await bot.app.registry.reconcile()
        assert bot.app.server.healthy()


async def test_a_cache_of_an_older_life_is_put_right(vllm: FakeVllm, tmp_path: Path) -> None:
    """The name was used before, by a goodbot whose state directory is gone."""
    vllm.faults.stale_cache, vllm.salts = True, False
    vllm._caches["goodbot-v1", ""] = Policy(vllm._base)
    async with open_bot(tmp_path, sections=on(vllm, "vllm")) as bot:
        assert await trained(bot) == "activated"
        assert [*vllm.loaded] == ["goodbot-v1-2"]
        assert bot.app.registry.health.found.verdict == "adapter"


async def test_a_server_without_adapters_trains_nothing(tmp_path: Path) -> None:
    async with FakeOpenAI() as server, open_bot(tmp_path, sections=on(server, "openai")) as bot:
        await bot.rated(8)
        assert "takes no adapters" in await bot.command("train")
        assert "goodbot adapters export" in await bot.command("status")
        assert not bot.app.scheduler.training


async def test_the_doctor_says_so_too(tmp_path: Path) -> None:
    check = await only(settings.config(examined(tmp_path, '[serving]\nserver = "openai"\n')))
    assert (check.state, check.part) == (CheckState.WARN, "serving")
    assert "goodbot adapters export --fused" in check.text


async def test_the_doctor_knows_where_a_server_may_be(tmp_path: Path) -> None:
    toml = '[serving]\nserver = "vllm"\nurl = "http://127.0.0.1@evil.example"\n'
    check = await only(settings.config(examined(tmp_path, toml)))
    assert check.state is CheckState.FAIL
    assert "config.toml:3: url must not hold a name or a key" in check.text
