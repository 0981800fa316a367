# SPDX-License-Identifier: Apache-2.0
"""Ollama, as it is in each version: tags and an alias, whole models, memory, and what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.fingerprint import Fingerprint, FingerprintProbe, ServedAs, prove
from goodbot.api.server import BASE, GenerateRequest, Server
from goodbot.base.clock import SystemClock
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.sampling import Filters
from goodbot.inference.servers import upstream
from goodbot.inference.servers.ollama import OllamaServer
from goodbot.testing import VirtualClock
from goodbot.testing.serving import ServingContract
from goodbot.testing.serving_base import messages
from goodbot_fakes.ollama import FakeOllama

from tests.core.inference.servers.ollama_ground import LORA, WHOLE, adapter, ask, converter, driver, served

BASE_TAG = "tiny:0.1b"
V1, V2, LATEST = (f"tiny-0.1b-goodbot:{tag}" for tag in ("v1", "v2", "latest"))


class TestOllama(ServingContract):
    """Adapters on Ollama's own base."""

    version = "0.33.3"

    @pytest.fixture
    async def server(self, tmp_path: Path) -> AsyncIterator[Server]:
        async with FakeOllama(version=self.version) as ollama, served(ollama, tmp_path / "home") as server:
            yield server

    @pytest.fixture
    def adapters(self, tmp_path: Path) -> tuple[Path, Path]:
        return adapter(tmp_path / "adapters", "one"), adapter(tmp_path / "adapters", "two")


class TestOllamaThatTakesWholeModels(TestOllama):
    """Since 0.34.1."""

    version = "0.34.4"


@pytest.fixture
async def ollama() -> AsyncIterator[FakeOllama]:
    async with FakeOllama() as ollama:
        yield ollama


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
async def server(ollama: FakeOllama, home: Path) -> AsyncIterator[OllamaServer]:
    async with served(ollama, home) as server:
        yield server


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return adapter(tmp_path / "adapters", "one")


async def live(server: OllamaServer, version: int, directory: Path) -> None:
    await server.load(version, directory)
    await server.activate(version)
    await settled(server)


async def settled(server: OllamaServer) -> None:
    while server._background._tasks:
        await asyncio.gather(*server._background._tasks)


# -- what Ollama is


async def test_what_a_program_is_answered_with_there_is_told_as_it_is(
    ollama: FakeOllama, home: Path, one: Path
) -> None:
    """Its API for programs takes `top_p` alone: versions have the rest as parameters, the base its own."""
    ollama.store.base(BASE_TAG, parameters={"min_p": 0.25, "repeat_penalty": "odd", "stop": "x"})
    asked = GenerateRequest(
        messages=messages(), max_tokens=6, temperature=0.5, seed=0, filters=Filters(top_k=7, top_p=0.5)
    )
    named = {"top_k": 0, "min_p": 0.1, "repetition_penalty": 1.25}
    async with served(ollama, home, drawn_with=named) as server:
        async with server.far_side(asked) as far:
            assert far is not None
            own = Filters(top_k=40, top_p=0.5, min_p=0.25, repetition_penalty=1.1)
            assert (far.filters, far.takes, far.fields["top_p"]) == (own, ("top_p",), 0.5)
        await live(server, 1, one)
        async with server.far_side(asked) as far:
            assert far is not None
            assert far.filters == Filters(top_p=0.5, min_p=0.1, repetition_penalty=1.25)


class Mending(SystemClock):
    """Short pauses are over at once; after the `after`th the fake does not fail any more."""

    def __init__(self, ollama: FakeOllama, after: int) -> None:
        self._ollama, self._after = ollama, after
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        if seconds >= 5:
            await super().sleep(seconds)
            return
        self.slept.append(seconds)
        if len(self.slept) == self._after:
            self._ollama.faults.failing = set()


@pytest.mark.parametrize("after", [1, 2, 3])
async def test_b7_what_it_draws_with_is_asked_again_where_it_was_not_said(
    ollama: FakeOllama, server: OllamaServer, after: int
) -> None:
    """One failure of it was the answer to a program's question, though the server was well."""
    clock = Mending(ollama, after)
    server.parts = replace(server.parts, clock=clock)
    ollama.faults.failing = {"/api/show"}
    asked = GenerateRequest(messages=messages(), max_tokens=6, temperature=0.5, seed=0)
    if after > 2:
        with pytest.raises(ServerError, match="status 500"):
            async with server.far_side(asked):
                pass
    else:
        async with server.far_side(asked) as far:
            assert far is not None
            assert far.takes == ("top_p",)
    assert clock.slept == [1.0, 2.0][:after]


@pytest.mark.parametrize(
    ("version", "form", "asked"),
    [
        ("0.30.0", "gguf", [LORA]),
        ("0.34.0", "gguf", [LORA]),
        ("0.33.3", "safetensors", [WHOLE]),
        ("0.34.1", "gguf", [WHOLE]),
        ("0.40.0-rc1", "gguf", [WHOLE]),
        ("1.0", "safetensors", [WHOLE]),
    ],
)
async def test_each_ollama_gets_what_it_takes(
    version: str, form: str, asked: list[str], home: Path, one: Path
) -> None:
    async with FakeOllama(version=version) as ollama:
        ollama.store.base(BASE_TAG, form=form)
        async with served(ollama, home) as server:
            await server.load(1, one)
            assert converter(server).asked == asked
            assert (await ask(server, version=1)).text != (await ask(server)).text


async def test_a_build_without_a_version_is_asked_and_believed(home: Path, one: Path) -> None:
    """Somebody's own build of a new Ollama calls itself 0.0.0 and refuses adapters."""
    async with FakeOllama(version="0.34.4", called="0.0.0") as ollama, served(ollama, home) as server:
        await server.load(1, one)
        assert converter(server).asked == [LORA, WHOLE]
        assert (await ask(server, version=1)).version == 1


async def test_one_that_is_too_old_answers_and_asks_for_an_update(home: Path, one: Path) -> None:
    async with FakeOllama(version="0.29.9") as ollama, served(ollama, home) as server:
        assert (await ask(server)).version == BASE
        with pytest.raises(AdapterError, match=r"update Ollama to 0\.30 or newer"):
            await server.load(1, one)
        assert ollama.asked("/api/create") == []


async def test_a_model_in_the_cloud_answers_and_takes_no_adapters(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    ollama.store.base(BASE_TAG, remote_host="https://ollama.com:443", remote_model="tiny")
    assert (await ask(server)).text
    with pytest.raises(AdapterError, match=r"runs in Ollama's cloud.* set \[serving\] model"):
        await server.load(1, one)


async def test_what_is_no_ollama_is_not_taken_for_one(ollama: FakeOllama, home: Path) -> None:
    ollama.called = "x" * 500
    server = driver(ollama, home)
    with pytest.raises(ServerError, match=r"is no Ollama: set \[serving\] url"):
        await server.start()
    assert not server.healthy()


async def test_the_base_is_the_one_that_is_named_or_the_only_one(ollama: FakeOllama, home: Path) -> None:
    ollama.store.base("other")
    server = driver(ollama, home)
    with pytest.raises(ServerError, match=r"set \[serving\] model to one of tiny:0\.1b, other:latest"):
        await server.start()
    async with served(ollama, home, model="other") as server:
        assert server.names[BASE] == "other:latest"


# -- tags and the alias


async def test_a_version_is_a_tag_and_the_active_one_has_the_alias(
    ollama: FakeOllama, server: OllamaServer, one: Path, tmp_path: Path
) -> None:
    await live(server, 1, one)
    models = ollama.store.models
    assert models[V1].of("model") == models[BASE_TAG].of("model")
    assert models[LATEST].digest == models[V1].digest
    await live(server, 2, adapter(tmp_path, "two"))
    assert models[LATEST].digest == models[V2].digest
    await server.activate(BASE)
    assert models[LATEST].digest == models[BASE_TAG].digest


async def test_old_tags_go_and_come_back_when_they_are_wanted(
    ollama: FakeOllama, home: Path, tmp_path: Path
) -> None:
    adapters = [adapter(tmp_path / "adapters", str(n)) for n in range(6)]
    async with served(ollama, home, keep=2) as server:
        await live(server, 1, adapters[1])
        for version in range(2, 6):
            await live(server, version, adapters[version])
            if version > 2:
                await server.unload(version - 1)
        tags = {name for name in ollama.store.models if "goodbot" in name}
        assert tags == {V1, LATEST, *(f"tiny-0.1b-goodbot:v{n}" for n in (4, 5))}, "v1 is still loaded"
        await live(server, 2, adapters[2])
        assert V2 in ollama.store.models
        assert (await ask(server)).version == 2


async def test_nobody_elses_model_is_removed_or_replaced(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    theirs = ollama.store.base(V1, weights="theirs")
    await live(server, 1, one)
    assert ollama.store.models[V1] is theirs
    assert server.names[1] == f"{V1}-2"


async def test_the_alias_never_takes_the_place_of_somebody_elses_model(
    ollama: FakeOllama, home: Path, one: Path
) -> None:
    theirs = ollama.store.base("mine", weights="theirs")
    async with served(ollama, home, model=BASE_TAG, name="mine") as server:
        await live(server, 1, one)
        assert server.names[1] == "mine:v1"
        assert ollama.store.models["mine:latest"] is theirs
        await server.activate(BASE)
        assert ollama.store.models["mine:latest"] is theirs


async def test_after_a_restart_of_goodbot_the_tag_is_used_again(
    ollama: FakeOllama, home: Path, one: Path
) -> None:
    for _ in range(3):
        async with served(ollama, home) as server:
            await live(server, 1, one)
            assert server.names[1] == V1
            await server.activate(BASE)
            assert ollama.store.models[LATEST].digest == ollama.store.models[BASE_TAG].digest
    assert [name for name in ollama.store.models if ":v" in name] == [V1]
    assert sum(what.startswith("POST /api/blobs") for what, _ in ollama.seen) == 1, "it is there"


async def test_a_tag_that_a_crash_left_half_made_is_made_again(
    ollama: FakeOllama, home: Path, one: Path
) -> None:
    """Written down, not made; or made, and the answer was lost."""
    async with served(ollama, home) as server:
        ollama.faults.hanging = {"/api/create"}
        loading = asyncio.create_task(server.load(1, one))
        await ollama.until_asked("/api/create")
        loading.cancel()
        await server.upstream.close()  # as abruptly as a crash would
        ollama.faults.hanging = set()
    async with served(ollama, home) as again:
        await live(again, 1, one)
        assert again.names[1] == V1
        assert (await ask(again)).version == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"made": {"x:v1": {"no": 1}}, "bases": {}}'])
async def test_a_record_that_cannot_be_read_removes_nothing(
    text: str, ollama: FakeOllama, home: Path, one: Path
) -> None:
    ollama.store.base(V1, weights="of an earlier life")
    home.mkdir()
    (home / "tags.json").write_text(text)
    async with served(ollama, home, keep=1) as server:
        await live(server, 1, one)
        assert server.names[1] == f"{V1}-2"
    assert {V1, BASE_TAG, f"{V1}-2"} <= ollama.store.models.keys()


async def test_reloading_takes_a_fresh_tag_and_drops_the_old_one(
    ollama: FakeOllama, server: OllamaServer, one: Path, home: Path
) -> None:
    await live(server, 1, one)
    await server.reload(1, one)
    await settled(server)
    assert server.names[1] == f"{V1}-2"
    assert V1 not in ollama.store.models
    assert ollama.store.models[LATEST].digest == ollama.store.models[f"{V1}-2"].digest


# -- what goes wrong


@pytest.mark.parametrize("version", ["0.31.0", "0.34.4"], ids=["adapters", "whole models"])
async def test_a_base_that_was_pulled_anew_stops_activation(version: str, home: Path, tmp_path: Path) -> None:
    async with FakeOllama(version=version) as ollama:
        async with served(ollama, home) as server:
            await live(server, 1, adapter(tmp_path / "a", "one"))
            before = (await ask(server)).text
            digest = ollama.pull_anew().digest
            with pytest.raises(AdapterError, match=r"pulled or made it anew") as refused:
                await server.load(2, adapter(tmp_path / "a", "two"))
            assert f'digest = "{digest[:12]}"' in str(refused.value)
            await server.heartbeat()
            assert server.trouble() == str(refused.value)
            assert (await ask(server)).text == before, "the version that was live stays as it was"
        async with served(ollama, home, digest=digest[:12]) as server:
            await server.load(2, tmp_path / "a" / "two")
            assert server.trouble() == ""


async def test_a_base_that_is_gone_is_said(ollama: FakeOllama, server: OllamaServer, one: Path) -> None:
    del ollama.store.models[BASE_TAG]
    await server.heartbeat()
    assert "has no tiny:0.1b any more: `ollama pull tiny:0.1b`" in server.trouble()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("create_does_nothing", "says that it made tiny-0.1b-goodbot:v1, and has no such model"),
        ("create_drops_adapter", "without the file that it was given"),
        ("out_of_memory", "cannot run it .* out-of-memory .*`ollama ps`"),
    ],
)
async def test_success_is_not_believed(
    fault: str, words: str, ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    before = (await ask(server)).text
    setattr(ollama.faults, fault, True)
    with pytest.raises(ServerError, match=words):
        await server.load(1, one)
    setattr(ollama.faults, fault, False)
    assert (await ask(server)).text == before
    await live(server, 1, one)
    assert (await ask(server)).version == 1


async def test_an_adapter_of_another_model_is_refused_by_the_real_generation(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    ollama.store.base(BASE_TAG, family="qwen3")
    with pytest.raises(ServerError, match=r"cannot run it .* arch mismatch"):
        await server.load(1, one)


async def test_the_proof_finds_an_adapter_that_is_ignored(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    await server.load(1, one)
    asked = [messages(text) for text in ("Hello?", "Why?", "What is the capital of France?")]
    base, adapted = (ollama.store.models[name].policy for name in (BASE_TAG, V1))
    fingerprint = Fingerprint(
        top=10,
        prompts=tuple(
            FingerprintProbe(messages=one, base=top(base.logprobs(one)), adapter=top(adapted.logprobs(one)))
            for one in asked
        ),
    )
    assert await prove(server, 1, fingerprint, 4) is ServedAs.ADAPTER
    assert await prove(server, 1, fingerprint, 4) is ServedAs.UNTOLD, "nobody has talked since"
    ollama.faults.adapters_ignored = True
    await ask(server, version=1)
    assert await prove(server, 1, fingerprint, 4) is ServedAs.BASE


def top(told: Mapping[str, float]) -> dict[str, float]:
    return dict([*told.items()][:10])


async def test_a_blob_that_got_lost_is_sent_again(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    ollama.faults.lost_blobs = 1
    await live(server, 1, one)
    assert (await ask(server)).version == 1


async def test_ollama_that_forgot_everything_is_noticed_and_put_right(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    await live(server, 1, one)
    await ollama.restart(forgetting=True)
    assert await server.served() == BASE
    assert (await ask(server)).version == BASE
    await live(server, 1, one)
    assert (await ask(server)).version == 1


async def test_an_answer_that_meets_a_lost_tag_is_the_bases(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    await live(server, 1, one)
    del ollama.store.models[V1]
    assert (await ask(server)).version == BASE


async def test_an_answer_that_breaks_off_is_none(ollama: FakeOllama, server: OllamaServer) -> None:
    ollama.faults.breaks_off = True
    with pytest.raises(ServerError, match="unexpected EOF"):
        await ask(server)
    ollama.faults.breaks_off = False
    assert (await ask(server)).text


@pytest.mark.parametrize("fault", ["hanging", "failing"])
async def test_what_hangs_or_fails_is_an_error(
    fault: str, ollama: FakeOllama, server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "SILENT_SECONDS", 0.2)
    setattr(ollama.faults, fault, {"/api/chat"})
    with pytest.raises(ServerError, match=r"it hangs|status 500: internal server error"):
        await ask(server)


async def test_ollama_that_went_away_comes_back(ollama: FakeOllama, server: OllamaServer) -> None:
    await ollama.go_down()
    for _ in range(2):  # the first may meet a connection that was open
        with pytest.raises(ServerError, match=r"does not answer: start it|hung up"):
            await ask(server)
    assert not server.healthy()
    assert "does not answer: start it" in server.trouble()
    await ollama.come_up()
    await server.start()
    assert (await ask(server)).text
    assert server.trouble() == ""


# -- memory


async def test_the_old_version_leaves_memory_and_the_new_one_does_not(
    ollama: FakeOllama, server: OllamaServer, one: Path, tmp_path: Path
) -> None:
    """In Ollama a base and its adapters share one place: letting the old one go by name would empty it."""
    await live(server, 1, one)
    await live(server, 2, adapter(tmp_path, "two"))
    await ask(server)
    await server.unload(1)
    [runner] = ollama.runners.running().values()
    assert runner.name == V2


async def test_an_old_whole_model_leaves_memory(home: Path, tmp_path: Path) -> None:
    async with FakeOllama(version="0.34.4") as ollama, served(ollama, home) as server:
        await live(server, 1, adapter(tmp_path / "a", "one"))
        await live(server, 2, adapter(tmp_path / "a", "two"))
        assert {runner.name for runner in ollama.runners.running().values()} == {V1, V2}
        await server.unload(1)
        assert {runner.name for runner in ollama.runners.running().values()} == {V2}


async def test_a_proof_does_not_keep_the_model_in_memory_nor_bring_it_back(home: Path, one: Path) -> None:
    clock = VirtualClock()
    async with FakeOllama(clock=clock) as ollama, served(ollama, home) as server:
        await live(server, 1, one)
        assert await server.first_tokens(messages(), version=1, top=5)
        for _ in range(12):
            clock.advance(30.0)
            assert await server.served() == 1
            assert await server.first_tokens(messages(), version=1, top=5) == {}
        assert ollama.runners.running() == {}
        await ask(server)
        assert await server.first_tokens(messages(), version=1, top=5)


async def test_room_is_made_and_the_active_version_comes_back(
    ollama: FakeOllama, server: OllamaServer, one: Path
) -> None:
    await live(server, 1, one)
    assert await server.make_room()
    assert ollama.runners.running() == {}
    waiting = asyncio.create_task(ask(server))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await server.come_back()
    assert (await waiting).version == 1
    await settled(server)
    assert [runner.name for runner in ollama.runners.running().values()] == [V1]


async def test_an_ollama_elsewhere_has_no_room_to_give(
    ollama: FakeOllama, server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.upstream, "url", "http://gpu.example:11434")
    assert not await server.make_room()
