# SPDX-License-Identifier: Apache-2.0
"""vLLM: the contract, its refusals as sentences, its log-probs, its sleep, and its known faults."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.fingerprint import Fingerprint, FingerprintProbe, ServedAs, prove
from goodbot.api.server import BASE, Generated, Server
from goodbot.api.texts import reworded
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.sampling import Filters
from goodbot.inference.servers.plugin import VllmSettings
from goodbot.inference.servers.upstream import UpstreamResponse
from goodbot.inference.servers.vllm import VllmServer
from goodbot.testing import ServingContract
from goodbot.testing.serving_base import answered, asking, messages
from goodbot_fakes.vllm import FakeVllm

from tests.core.inference.servers import tiny
from tests.core.inference.servers.lora_faults import LoraFaults
from tests.core.inference.servers.remote import parts, started

LOAD, CHAT = "/v1/load_lora_adapter", "/v1/chat/completions"


def driver(vllm: FakeVllm, *, sleep: bool = False, **changes: Any) -> VllmServer:
    return VllmServer(VllmSettings(sleep=sleep), parts(vllm.url, **changes))


@pytest.fixture
async def vllm() -> AsyncIterator[FakeVllm]:
    async with FakeVllm(delay=0.001) as server:
        yield server  # type: ignore[misc]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny.two(tmp_path_factory.mktemp("adapters"))


async def fingerprint(server: VllmServer, vllm: FakeVllm, directory: Path) -> Fingerprint:
    """What a trainer would have measured of the adapter in `directory`."""
    vllm.loaded["measured"] = str(directory), vllm.adapted(str(directory))
    server.names[99] = "measured"
    base, adapter = [
        dict(await server.first_tokens(messages(), version=version, top=10)) for version in (BASE, 99)
    ]
    del vllm.loaded["measured"], server.names[99]
    return Fingerprint(prompts=(FingerprintProbe(messages=messages(), base=base, adapter=adapter),), top=10)


class TestContract(ServingContract):
    @pytest.fixture
    async def server(self, vllm: FakeVllm) -> AsyncIterator[Server]:
        async with started(driver(vllm)) as server:
            yield server

    @pytest.fixture
    def adapters(self, two: tuple[Path, Path]) -> tuple[Path, Path]:
        return two


class TestContractWithSleep(ServingContract):
    @pytest.fixture
    async def server(self) -> AsyncIterator[Server]:
        vllm = FakeVllm()
        vllm.dev_mode = True
        async with vllm, started(driver(vllm, sleep=True)) as server:
            yield server

    @pytest.fixture
    def adapters(self, two: tuple[Path, Path]) -> tuple[Path, Path]:
        return two


# names


async def test_a_name_is_never_used_twice(vllm: FakeVllm, two: tuple[Path, Path]) -> None:
    async with started(driver(vllm)) as server:
        await server.load(7, two[0])
        assert server.name_of(7) == "goodbot-v7"
        await server.activate(7)
        await server.reload(7, two[0])
        assert server.name_of(7) == "goodbot-v7-2"
        await server.activate(BASE)
        await server.unload(7)
        await server.load(7, two[0])
        assert server.name_of(7) == "goodbot-v7-3"
    names = [body["lora_name"] for body in vllm.asked(LOAD) if body]
    assert names == ["goodbot-v7", "goodbot-v7-2", "goodbot-v7-3"]
    assert not any("load_inplace" in body for body in vllm.asked(LOAD))


async def test_what_an_earlier_run_left_is_cleared_away(
    vllm: FakeVllm, two: tuple[Path, Path], tmp_path: Path
) -> None:
    """Only what lies beside our own adapters: another goodbot may use the same server."""
    vllm.loaded["goodbot-v6"] = str(two[0]), vllm.adapted(str(two[0]))
    vllm.loaded["goodbot-v5"] = str(tmp_path / "another"), vllm.adapted(str(two[0]))
    vllm.loaded["sql"] = str(two[1]), vllm.adapted(str(two[1]))
    async with started(driver(vllm)) as server:
        await server.load(6, two[1])
        assert set(vllm.loaded) == {"goodbot-v5", "sql", server.name_of(6)}
    assert set(vllm.loaded) == {"goodbot-v5", "sql"}, "what we brought goes with us"


async def test_on_a_server_that_a_thousand_goodbots_share_what_is_ours_is_found(
    vllm: FakeVllm, two: tuple[Path, Path], tmp_path: Path
) -> None:
    """Each has up to two versions there."""
    policy = vllm.adapted(str(two[0]))
    for number in range(1, 2000):
        vllm.loaded[f"goodbot-v{number}"] = str(tmp_path / f"{number}" / "it"), policy
    vllm.loaded["goodbot-v2000"] = str(two[0]), policy
    async with started(driver(vllm)) as server:
        await server.load(6, two[1])
        assert "goodbot-v2000" not in vllm.loaded
        assert "goodbot-v1999" in vllm.loaded


async def test_another_goodbots_name_is_left_alone(
    vllm: FakeVllm, two: tuple[Path, Path], tmp_path: Path
) -> None:
    vllm.loaded["goodbot-v6"] = str(tmp_path / "another"), vllm.adapted(str(two[0]))
    async with started(driver(vllm)) as server:
        await server.load(6, two[1])
        assert server.name_of(6) == "goodbot-v6-2"


async def test_two_drivers_of_one_goodbot_leave_each_other_alone(
    vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    """As when a model switch tries the new model beside the one that answers."""
    async with started(driver(vllm)) as one, started(driver(vllm)) as other:
        await one.load(6, two[0])
        await other.load(6, two[1])
        assert {*vllm.loaded} == {"goodbot-v6", "goodbot-v6-2"}
        await other.stop()
        assert {*vllm.loaded} == {"goodbot-v6"}


async def test_a_swap_while_an_answer_is_made_ready_fails_nobody(
    vllm: FakeVllm, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(driver(vllm)) as server:
        await server.load(1, two[0])
        await server.activate(1)
        marks = server.marks

        async def swapped() -> Any:
            await server.load(2, two[1])
            await server.activate(2)
            await server.unload(1)
            return await marks()

        monkeypatch.setattr(server, "marks", swapped)
        assert (await answered(server)).version == 2


async def test_a_swap_under_load_fails_nobody(vllm: FakeVllm, two: tuple[Path, Path]) -> None:
    async with started(driver(vllm)) as server:
        await server.load(1, two[0])
        await server.activate(1)
        over = asyncio.Event()
        written: list[int] = []

        async def chat() -> None:
            while not over.is_set():
                written.append((await answered(server)).version)

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(chat())
            for version in range(2, 8):
                await server.load(version, two[version % 2])
                await server.activate(version)
                await server.unload(version - 1)
            over.set()
        assert [*vllm.loaded] == ["goodbot-v7"]
    assert set(written) <= set(range(1, 8))
    assert len(written) >= 7


# refusals


async def test_without_runtime_updating_it_says_how_to_start(two: tuple[Path, Path]) -> None:
    vllm = FakeVllm()
    vllm.runtime_updating = False
    async with vllm, started(driver(vllm)) as server:
        assert (await answered(server)).text, "the base answers"
        assert "takes no adapters while it runs" in server.trouble()
        assert "goodbot doctor serving" in server.trouble()
        with pytest.raises(AdapterError, match="goodbot doctor serving"):
            await server.load(1, two[0])


async def test_without_enable_lora_it_says_so(vllm: FakeVllm, two: tuple[Path, Path]) -> None:
    vllm.enable_lora = False
    async with started(driver(vllm)) as server:
        with pytest.raises(AdapterError, match="without --enable-lora"):
            await server.load(1, two[0])


async def test_a_rank_above_its_limit_names_the_option(vllm: FakeVllm, two: tuple[Path, Path]) -> None:
    vllm.max_lora_rank = 2
    async with started(driver(vllm)) as server:
        with pytest.raises(AdapterError, match=r"rank 4: start it with --max-lora-rank 4"):
            await server.load(1, two[0])


async def test_a_wrong_key_is_a_sentence(two: tuple[Path, Path]) -> None:
    async with FakeVllm(key="sk-right") as vllm:
        with pytest.raises(ServerError, match="GOODBOT_SERVER_KEY"):
            await driver(vllm).start()  # type: ignore[arg-type]
        async with started(driver(vllm, key="sk-right")) as server:  # type: ignore[arg-type]
            await server.load(1, two[0])


async def test_a_container_needs_the_directory_mounted(vllm: FakeVllm, two: tuple[Path, Path]) -> None:
    """The load itself proves that the server reads a file of ours."""
    root = two[0].parent
    vllm.mounts = {"/adapters": str(root)}
    async with started(driver(vllm)) as server:
        with pytest.raises(AdapterError, match=rf"mount {re.escape(str(root))} .*path_on_server"):
            await server.load(1, two[0])
    async with started(driver(vllm, path_on_server="/adapters/")) as server:
        await server.load(1, two[0])
        assert vllm.asked(LOAD)[-1]["lora_path"] == f"/adapters/{two[0].name}"
        assert (await answered(server, version=1)).text != (await answered(server)).text


async def test_what_is_acknowledged_and_not_loaded_is_noticed(vllm: FakeVllm, two: tuple[Path, Path]) -> None:
    vllm.faults.loads_nothing = True
    async with started(driver(vllm)) as server:
        with pytest.raises(AdapterError, match="says that it has loaded goodbot-v1, and does not"):
            await server.load(1, two[0])
        assert await server.served() == BASE


async def test_the_base_must_be_clear(two: tuple[Path, Path]) -> None:
    async with FakeVllm(name="qwen") as vllm:
        with pytest.raises(ServerError, match=r"no model 'llama': set \[serving\] model .* qwen"):
            await driver(vllm, served_model="llama").start()  # type: ignore[arg-type]
        async with started(driver(vllm, served_model="qwen")) as server:  # type: ignore[arg-type]
            assert (await answered(server)).version == BASE


# log-probs


@pytest.mark.parametrize("processed", [True, False])
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
async def test_log_probs_are_kept_at_their_temperature_only(
    vllm: FakeVllm, processed: bool, temperature: float
) -> None:
    vllm.processed_logprobs = processed
    async with started(driver(vllm)) as server:
        assert server.follows_temperature is processed
        request = dataclasses.replace(asking(), temperature=temperature)
        *_, whole = [piece async for piece in server.generate(request)]
    assert not isinstance(whole, str)
    kept = processed or temperature in (0.0, 1.0)
    assert bool(whole.tokens) is bool(whole.logprobs) is kept
    asked = vllm.asked(CHAT)[-1]
    assert (asked["top_k"], asked["top_p"], asked["min_p"]) == (-1, 1.0, 0.0)
    assert asked["repetition_penalty"] == 1.0


@pytest.mark.parametrize("processed", [True, False])
async def test_filters_are_the_server_s_own_and_what_its_log_probs_are_of_is_known(
    vllm: FakeVllm, processed: bool
) -> None:
    """Those of what was left go with no lifts; those of before go with lifts of 0."""
    vllm.processed_logprobs = processed
    filters = Filters(top_k=5, top_p=0.8, min_p=0.01)
    async with started(driver(vllm)) as server:
        assert (server.follows_temperature, server.follows_filters) == (processed, processed)
        request = dataclasses.replace(asking(), temperature=1.0, filters=filters)
        *_, whole = [piece async for piece in server.generate(request)]
        async with server.far_side(request) as far:
            assert far is not None
            assert (far.tells, far.own, far.filters) == (True, not processed, filters)
        penalized = dataclasses.replace(request, filters=Filters(repetition_penalty=1.1))
        *_, other = [piece async for piece in server.generate(penalized)]
    assert isinstance(whole, Generated)
    asked = vllm.asked(CHAT)[-2]
    assert (asked["top_k"], asked["top_p"], asked["min_p"]) == (5, 0.8, 0.01)
    assert whole.filters == filters
    assert whole.tokens
    assert whole.lifts == (() if processed else (0.0,) * len(whole.tokens))
    assert isinstance(other, Generated)
    assert vllm.asked(CHAT)[-1]["repetition_penalty"] == 1.1
    assert bool(other.logprobs) is processed, "after the penalty and before the cut: neither"


async def test_a_restart_with_other_options_is_looked_at_anew(vllm: FakeVllm) -> None:
    vllm.processed_logprobs = True
    async with started(driver(vllm)) as server:
        assert server.follows_temperature
        vllm.processed_logprobs = False
        await vllm.restart()
        await server.start()
        assert not server.follows_temperature


async def test_one_that_tells_no_log_probs_answers_all_the_same(vllm: FakeVllm) -> None:
    vllm.refuses_logprobs = True
    async with started(driver(vllm)) as server:
        for _ in range(2):
            whole = await answered(server)
            assert whole.text
            assert whole.tokens == whole.logprobs == ()
        assert await server.first_tokens(messages(), version=BASE, top=5) == {}
        refused = [body for body in vllm.asked(CHAT) if body.get("logprobs")]
        assert len(refused) == 3, "once at the start, once by an answer, once by the proof"


# faults


async def test_a_server_that_ignores_adapters_answers_like_the_base(
    vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    async with started(driver(vllm)) as server:
        measured = await fingerprint(server, vllm, two[0])
        await server.load(1, two[0])
        assert await prove(server, 1, measured, 4) is ServedAs.ADAPTER
        vllm.faults.ignores_adapters = True
        assert await prove(server, 1, measured, 4) is ServedAs.BASE


@pytest.mark.parametrize("salts", [True, False])
async def test_a_stale_prefix_cache_is_avoided_or_noticed(
    vllm: FakeVllm, two: tuple[Path, Path], salts: bool
) -> None:
    """Of a state directory that was made anew, so that v1 comes twice while vLLM goes on."""
    vllm.faults.stale_cache, vllm.salts = True, salts
    async with started(driver(vllm)) as server:
        await server.load(1, two[0])
        await answered(server, version=1)
    async with started(driver(vllm)) as server:
        measured = await fingerprint(server, vllm, two[1])
        await server.load(1, two[1])
        assert server.name_of(1) == "goodbot-v1"
        if not salts:
            assert await prove(server, 1, measured, 4) in (ServedAs.BASE, ServedAs.NEITHER)
            await server.reload(1, two[1])
        assert await prove(server, 1, measured, 4) is ServedAs.ADAPTER


async def test_a_restart_with_amnesia_is_noticed_and_fails_nobody(
    vllm: FakeVllm, two: tuple[Path, Path]
) -> None:
    async with started(driver(vllm)) as server:
        await server.load(1, two[0])
        await server.activate(1)
        await vllm.restart()
        assert (await answered(server)).version == BASE, "whoever asks gets the base's answer"
        assert await server.served() == BASE
        await server.load(1, two[0])
        await server.activate(1)
        assert (await answered(server)).version == 1


async def test_amnesia_shows_in_what_it_serves(vllm: FakeVllm, two: tuple[Path, Path]) -> None:
    async with started(driver(vllm)) as server:
        await server.load(1, two[0])
        await server.activate(1)
        await vllm.restart()
        assert await server.served() == BASE
        with pytest.raises(ServerError, match="v1 is not loaded"):
            await server.activate(1)


class TestFaults(LoraFaults):
    @pytest.fixture
    def fake(self, vllm: FakeVllm) -> FakeVllm:
        return vllm

    @pytest.fixture
    def made(self, vllm: FakeVllm) -> VllmServer:
        return driver(vllm)


# slots


@pytest.mark.parametrize("slots", [1, 2])
async def test_with_one_slot_versions_wait_for_each_other_and_the_option_is_told(
    slots: int, two: tuple[Path, Path]
) -> None:
    vllm = FakeVllm(delay=0.001)
    vllm.max_loras = slots
    async with vllm, started(driver(vllm)) as server:
        await server.load(1, two[0])
        await server.load(2, two[1])
        assert server.trouble() == "", "before an adapter has answered it does not tell"
        chats = [answered(server, version=version) for version in (1, 2, 1, 2)]
        assert [found.version for found in await asyncio.gather(*chats)] == [1, 2, 1, 2]
        assert vllm.together == slots
        await server.start()
        few = f"vLLM at {vllm.url} holds too few adapters at a time (1): "
        assert server.trouble().startswith(few) is (slots == 1)
        assert ("Start it with --max-loras 2 or more" in server.trouble()) is (slots == 1)


async def test_what_was_pushed_out_of_its_memory_is_read_again(two: tuple[Path, Path]) -> None:
    """It says nothing of that: the version is listed as before, and its next answer takes longer."""
    vllm = FakeVllm()
    vllm.max_loras, vllm.max_cpu_loras = 1, 2
    async with vllm, started(driver(vllm)) as server:
        for version in (1, 2, 3):
            await server.load(version, two[version % 2])
        assert len(await server.offered()) == 4
        for version in (3, 1, 1, 3):
            assert (await answered(server, version=version)).version == version
    assert vllm.read_again == ["goodbot-v1"]


@pytest.mark.parametrize(
    "told", ["No free lora slots", "LoRAs (2) is greater than the number of GPU LoRA slots (1)."]
)
async def test_an_engine_without_room_names_the_option(
    told: str, vllm: FakeVllm, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(driver(vllm)) as server:
        vllm.enable_lora = False  # a way in to what it says then
        monkeypatch.setattr(vllm, "refused", partial(refused, vllm, told))
        with pytest.raises(AdapterError) as caught:
            await server.load(1, two[0])
    said = (
        f"vLLM at {vllm.url} has no room for another adapter: start it with --max-loras 2 or more, or unload "
    )
    assert str(caught.value) == f"{said}some there"


def refused(vllm: FakeVllm, told: str, *_: object) -> Any:
    """As an engine behind vLLM's API says it."""
    return FakeVllm.refused(vllm, 500, told)


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ('vllm:lora_requests_info{max_lora="1",running_lora_adapters="a,b"} 1.7e+09', 1),
        ('vllm:lora_requests_info{running_lora_adapters="a",max_lora="16"} 1.7e+09', 16),
        ("vllm:num_requests_running 2.0", None),
        ('vllm:lora_requests_info{max_lora="many"} 1', None),
        (f'vllm:lora_requests_info{{max_lora="{"9" * 5000}"}} 1', None),
        ('vllm:lora_requests_info{max_lora="', None),
    ],
)
async def test_its_slots_are_read_out_of_its_metrics(
    text: str, slots: int | None, vllm: FakeVllm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def metrics(path: str, **_: object) -> UpstreamResponse:
        return UpstreamResponse(status=200, body={}, text=f"# HELP x\n{text}\nother 1\n")

    server = driver(vllm)
    monkeypatch.setattr(server.upstream, "ask", metrics)
    assert await server.slots() == slots


# sleep


async def test_while_it_sleeps_nothing_is_asked_of_it(two: tuple[Path, Path]) -> None:
    vllm = FakeVllm()
    vllm.dev_mode = True
    async with vllm, started(driver(vllm, sleep=True)) as server:
        await server.load(1, two[0])
        await server.activate(1)
        assert await server.make_room()
        assert vllm.asleep
        assert await server.first_tokens(messages(), version=1, top=5) == {}
        assert await server.served() == 1
        await server.come_back()
        assert not vllm.asleep
        assert await server.make_room()
        await server.start()
        assert not vllm.asleep, "a server that is started answers"
        assert (await answered(server)).version == 1


async def test_one_that_cannot_sleep_says_how(vllm: FakeVllm) -> None:
    async with started(driver(vllm, sleep=True)) as server:
        assert not await server.make_room()
        assert "--enable-sleep-mode" in server.trouble()
        assert "kann nicht schlafen: Starte den Server mit" in reworded(server.trouble(), "de")
        assert (await answered(server)).text


async def test_sleep_is_the_owners_to_allow(vllm: FakeVllm) -> None:
    async with started(driver(vllm)) as server:
        assert not await server.make_room()
        assert vllm.asked("/sleep?level=1") == vllm.asked("/sleep") == []


async def test_one_that_was_left_asleep_is_woken() -> None:
    vllm = FakeVllm()
    vllm.dev_mode = True
    async with vllm:
        vllm._awake.clear()
        async with started(driver(vllm, sleep=True)) as server:
            assert (await answered(server)).text


def test_the_fakes_adapters_have_the_rank_that_is_tested(two: tuple[Path, Path]) -> None:
    assert json.loads((two[0] / "adapter_config.json").read_bytes())["r"] == 4
    assert shutil.which("vllm") is None, "vLLM pins its own torch: never in goodbot's environment"
