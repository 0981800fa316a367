# SPDX-License-Identifier: Apache-2.0
"""SGLang: the contract, its refusals as sentences, its token ids, and its known faults."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.fingerprint import Fingerprint, FingerprintProbe, ServedAs, prove
from goodbot.api.server import BASE, Generated, Server
from goodbot.api.texts import LANGUAGES, reworded
from goodbot.base.errors import AdapterError
from goodbot.base.sampling import Filters
from goodbot.inference.servers.sglang import SglangServer
from goodbot.testing import ServingContract
from goodbot.testing.serving_base import answered, asking, messages
from goodbot_fakes.sglang import FakeSglang

from tests.core.inference.servers import tiny
from tests.core.inference.servers.lora_faults import LoraFaults
from tests.core.inference.servers.remote import parts, started


def driver(sglang: FakeSglang, **changes: Any) -> SglangServer:
    return SglangServer(None, parts(sglang.url, **changes))


@pytest.fixture
async def sglang() -> AsyncIterator[FakeSglang]:
    async with FakeSglang() as server:
        yield server  # type: ignore[misc]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny.two(tmp_path_factory.mktemp("adapters"))


class TestContract(ServingContract):
    @pytest.fixture
    async def server(self, sglang: FakeSglang) -> AsyncIterator[Server]:
        async with started(driver(sglang)) as server:
            yield server

    @pytest.fixture
    def adapters(self, two: tuple[Path, Path]) -> tuple[Path, Path]:
        return two


async def test_an_adapter_is_asked_for_beside_the_base(sglang: FakeSglang, two: tuple[Path, Path]) -> None:
    async with started(driver(sglang)) as server:
        await server.load(7, two[0])
        assert (await answered(server, version=7)).version == 7
        asked = sglang.asked("/v1/chat/completions")[-1]
        assert (asked["model"], asked["lora_path"]) == ("base-model", "goodbot-v7")
        assert (await answered(server)).version == BASE
        assert "lora_path" not in sglang.asked("/v1/chat/completions")[-1]


async def test_without_enable_lora_it_says_how_to_start(two: tuple[Path, Path]) -> None:
    sglang = FakeSglang()
    sglang.enable_lora = False
    async with sglang, started(driver(sglang)) as server:
        assert "takes no adapters: start it as `goodbot doctor serving`" in server.trouble()
        with pytest.raises(AdapterError, match="without --enable-lora"):
            await server.load(1, two[0])


async def test_a_rank_above_its_limit_names_the_option(sglang: FakeSglang, two: tuple[Path, Path]) -> None:
    sglang.max_lora_rank = 2
    async with started(driver(sglang)) as server:
        with pytest.raises(AdapterError, match=r"rank 4: start it with --max-lora-rank 4"):
            await server.load(1, two[0])


async def test_a_container_needs_the_directory_mounted(sglang: FakeSglang, two: tuple[Path, Path]) -> None:
    """It takes a path that leads nowhere for the name of a repository."""
    sglang.mounts = {"/adapters": str(two[0].parent)}
    async with started(driver(sglang)) as server:
        with pytest.raises(AdapterError, match=r"does not see .*path_on_server"):
            await server.load(1, two[0])
    async with started(driver(sglang, path_on_server="/adapters")) as server:
        await server.load(1, two[0])
        assert (await answered(server, version=1)).version == 1


@pytest.mark.parametrize("original", [True, False])
@pytest.mark.parametrize("sglext", [True, False])
async def test_token_ids_and_log_probs_are_kept_where_they_are_told(
    sglang: FakeSglang, original: bool, sglext: bool
) -> None:
    sglang.original_logprob, sglang.sglext = original, sglext
    async with started(driver(sglang)) as server:
        assert server.follows_temperature is not original
        request = dataclasses.replace(asking(), temperature=0.7, filters=Filters(top_p=0.8))
        whole = [piece async for piece in server.generate(request)][-1]
    assert isinstance(whole, Generated)
    assert whole.lifts == (0.0,) * len(whole.logprobs), "its log-probs are those of before"
    assert bool(whole.tokens) is bool(whole.logprobs) is (sglext and not original)


@pytest.mark.parametrize("puts_out", [True, False])
async def test_a_restart_with_amnesia_is_noticed_and_fails_nobody(
    puts_out: bool, sglang: FakeSglang, two: tuple[Path, Path]
) -> None:
    """Newer ones say it in other words."""
    sglang.puts_out = puts_out
    async with started(driver(sglang)) as server:
        await server.load(1, two[0])
        await server.activate(1)
        await sglang.restart()
        assert (await answered(server)).version == BASE
        assert await server.served() == BASE


async def test_one_that_is_full_keeps_what_it_has_and_names_the_option(two: tuple[Path, Path]) -> None:
    """As SGLang before 0.5; in the reader's language."""
    sglang = FakeSglang()
    sglang.max_loaded_loras, sglang.puts_out = 1, False
    async with sglang, started(driver(sglang)) as server:
        assert server.trouble().startswith(f"SGLang at {sglang.url} holds too few adapters at a time (1): ")
        await server.load(1, two[0])
        with pytest.raises(AdapterError, match="has no room for another adapter") as caught:
            await server.load(2, two[1])
        for told in (server.trouble(), caught.value):
            said = {language: reworded(told, language) for language in LANGUAGES}
            assert len(set(said.values())) == len(LANGUAGES)
            assert all(sglang.url in one for one in said.values())
            assert all("--max-loaded-loras 3" in one for one in said.values())
        assert (await answered(server, version=1)).version == 1


async def test_one_that_puts_adapters_out_reads_them_again_for_who_asks(two: tuple[Path, Path]) -> None:
    """As SGLang since 0.5."""
    sglang = FakeSglang()
    sglang.max_loaded_loras = 2
    async with sglang, started(driver(sglang)) as server:
        assert server.trouble() == "", "two are enough"
        for version in (1, 2, 3):
            await server.load(version, two[version % 2])
        assert {*sglang.loaded} == {"goodbot-v2", "goodbot-v3"}
        assert (await answered(server, version=2)).version == 2
        assert (await answered(server, version=1)).version == 1
        assert {*sglang.loaded} == {"goodbot-v1", "goodbot-v2"}, "the one that nobody used made room"
    assert sglang.read_again == ["goodbot-v1"]


@pytest.mark.parametrize("fault", ["ignores_adapters", "stale_cache"])
async def test_a_server_that_serves_another_version_is_found_out(
    sglang: FakeSglang, two: tuple[Path, Path], fault: str
) -> None:
    async with started(driver(sglang)) as server:
        told: list[dict[str, float]] = []
        for version, directory in ((BASE, two[0]), (1, two[0]), (2, two[1])):
            await server.load(version, directory)
            told.append(dict(await server.first_tokens(messages(), version=version, top=10)))
        base, one, two_ = told
        measured = Fingerprint(
            prompts=(FingerprintProbe(messages=messages(), base=base, adapter=two_),), top=10
        )
        assert await prove(server, 2, measured, 4) is ServedAs.ADAPTER
        setattr(sglang.faults, fault, True)
        if fault == "stale_cache":  # what once answered under that name goes on
            sglang._caches[server.name_of(2)] = sglang.loaded[server.name_of(1)][1]
            assert one != two_
        assert await prove(server, 2, measured, 4) in (ServedAs.BASE, ServedAs.NEITHER)


async def test_what_is_acknowledged_and_not_loaded_is_noticed(
    sglang: FakeSglang, two: tuple[Path, Path]
) -> None:
    sglang.faults.loads_nothing = True
    async with started(driver(sglang)) as server:
        with pytest.raises(AdapterError, match="does not list it"):
            await server.load(1, two[0])


class TestFaults(LoraFaults):
    @pytest.fixture
    def fake(self, sglang: FakeSglang) -> FakeSglang:
        return sglang

    @pytest.fixture
    def made(self, sglang: FakeSglang) -> SglangServer:
        return driver(sglang)
