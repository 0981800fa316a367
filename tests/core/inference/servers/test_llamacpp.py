# SPDX-License-Identifier: Apache-2.0
"""llama.cpp: a process per version, the next beside the one that answers, and none left behind."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
import pytest_asyncio
from goodbot.api.manners import Manners
from goodbot.api.server import BASE, AdapterFormat, Generated, GenerateRequest, Server
from goodbot.base import cage
from goodbot.base.clock import SystemClock
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.sampling import Filters
from goodbot.base.spawn import child_environment
from goodbot.inference.servers import llama_cache, llama_process, llamacpp
from goodbot.inference.servers.llama_process import LlamaProcess
from goodbot.inference.servers.llamacpp import LlamaCppServer
from goodbot.inference.servers.plugin import LlamaCppSettings
from goodbot.learning.adapters.formats import Formats
from goodbot.testing import ServingContract
from goodbot_fakes import llamacpp as fake
from goodbot_fakes.policy import END, WORDS

from tests.core.builders import SPEC, server_parts, until
from tests.core.inference.servers import tiny
from tests.core.test_processes import alive
from tests.support import patience, require

QUESTION = [{"role": "user", "content": "Which city?"}]
FAULTS = Path("faults", "now.json")


def driver(home: Path, formats: Formats, **settings: Any) -> LlamaCppServer:
    """On the fake program. Of its faults it reads in a place that the environment names, as of libraries."""
    told = home / FAULTS
    told.parent.mkdir(parents=True, exist_ok=True)
    base = home / "base.gguf"
    base.write_bytes(b"GGUF the base")
    given = LlamaCppSettings(**{"binary": str(fake.program(home)), "model": str(base), **settings})
    environ = {**child_environment(), fake.FAULTS: str(told), "LD_LIBRARY_PATH": str(told.parent)}
    parts = server_parts(SPEC, tiny.model(), environ=environ, convert=formats.convert, home=home / "serving")
    return LlamaCppServer(given, parts)


def fault(home: Path, **faults: str) -> None:
    (home / FAULTS).write_text(json.dumps(faults))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the adapters, so that each is converted once."""
    require("gguf")
    return tmp_path_factory.mktemp("adapters")


@pytest.fixture(scope="module")
def two(root: Path) -> tuple[Path, Path]:
    return tiny.two(root)


@pytest.fixture(scope="module")
def formats(root: Path) -> Formats:
    return Formats(root, tiny.model(), child_environment())


@pytest.mark.asyncio(loop_scope="class")
class TestTheContract(ServingContract):
    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def running(
        cls, formats: Formats, tmp_path_factory: pytest.TempPathFactory
    ) -> AsyncIterator[Server]:
        server = driver(tmp_path_factory.mktemp("llama"), formats)
        await server.start()
        yield server
        await server.stop()

    @pytest_asyncio.fixture(loop_scope="class")
    async def server(self, running: Server) -> AsyncIterator[Server]:
        yield running
        if not running.healthy():
            await running.start()
        await running.activate(BASE)
        for version in (1, 2):
            await running.unload(version)

    @pytest.fixture
    def adapters(self, two: tuple[Path, Path]) -> tuple[Path, Path]:
        return two


@pytest.fixture
async def server(formats: Formats, tmp_path: Path) -> AsyncIterator[LlamaCppServer]:
    server = driver(tmp_path, formats)
    await server.start()
    yield server
    await server.stop()


async def ask(server: Server, *, temperature: float = 0.7, **more: Any) -> Generated:
    request = GenerateRequest(messages=QUESTION, max_tokens=200, temperature=temperature, seed=3, **more)
    pieces = [piece async for piece in server.generate(request)]
    assert isinstance(pieces[-1], Generated)
    return pieces[-1]


def kill(server: LlamaCppServer, version: int) -> None:
    process = server._children[version]._process
    assert process is not None
    os.killpg(process.pid, signal.SIGKILL)


# -- what is told of an answer


async def test_the_logprobs_are_those_of_the_temperature_that_was_sampled_at(server: LlamaCppServer) -> None:
    answer = await ask(server, temperature=0.5)
    texts = [*WORDS, END]
    assert answer.text == "".join(texts[token] for token in answer.tokens[:-1])
    assert texts[answer.tokens[-1]] == END
    assert answer.finish == "stop"
    assert answer.prompt_tokens == tuple(1000 + b for b in json.dumps(QUESTION).encode())
    first = await server.first_tokens(QUESTION, version=BASE, top=len(texts))
    total = math.log(sum(math.exp(logprob / 0.5) for logprob in first.values()))
    expected = first[texts[answer.tokens[0]]] / 0.5 - total
    assert answer.logprobs[0] == pytest.approx(expected, abs=1e-3)


async def test_the_logprobs_are_those_of_what_its_filters_left(server: LlamaCppServer) -> None:
    filters = Filters(top_k=3, top_p=0.9)
    answer = await ask(server, temperature=0.5, filters=filters)
    assert (answer.filters, answer.lifts) == (filters, ())
    texts = [*WORDS, END]
    first = await server.first_tokens(QUESTION, version=BASE, top=len(texts))
    best = sorted((logprob / 0.5 for logprob in first.values()), reverse=True)[:3]
    whole = sum(map(math.exp, best))
    kept = [logprob for n, logprob in enumerate(best) if sum(map(math.exp, best[:n])) < 0.9 * whole]
    token = first[texts[answer.tokens[0]]] / 0.5
    assert any(token == pytest.approx(one) for one in kept)
    expected = token - math.log(sum(map(math.exp, kept)))
    assert answer.logprobs[0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("how", ["split", "unsure"])
async def test_what_is_not_told_of_every_token_is_told_of_none(
    server: LlamaCppServer, tmp_path: Path, how: str
) -> None:
    fault(tmp_path, answer=how)
    answer = await ask(server)
    assert answer.text
    assert (answer.prompt_tokens, answer.tokens, answer.logprobs) == ((), (), ())


async def test_the_likeliest_answer_has_no_logprobs_to_learn_from(server: LlamaCppServer) -> None:
    assert (await ask(server, temperature=0.0)).tokens == ()


async def test_a_first_token_without_text_is_told_by_its_own(server: LlamaCppServer) -> None:
    first = await server.first_tokens(QUESTION, version=BASE, top=100)
    assert END in first
    assert "" not in first


# -- processes


async def test_a_process_that_died_is_noticed_and_comes_back(
    server: LlamaCppServer, two: tuple[Path, Path]
) -> None:
    """By the reconciler, or with the next question, whichever is first."""
    await server.load(1, two[0])
    await server.activate(1)
    before = await ask(server)
    for revive in (server.start, server.served):
        kill(server, 1)
        with pytest.raises(ServerError):
            await ask(server)
        assert not server.healthy()
        await revive()
        assert await ask(server) == before
        assert (server.healthy(), await server.served()) == (True, 1)


async def test_a_version_that_does_not_come_up_again_leaves_the_base_answering(
    server: LlamaCppServer, two: tuple[Path, Path], tmp_path: Path
) -> None:
    await server.load(1, two[0])
    await server.activate(1)
    kill(server, 1)
    with pytest.raises(ServerError):
        await ask(server)
    fault(tmp_path, lora="ignored")
    await server.start()
    assert (await server.served(), (await ask(server)).version) == (BASE, BASE)


async def test_no_process_is_left_when_it_stops(server: LlamaCppServer, two: tuple[Path, Path]) -> None:
    """Also not one that was just replaced, and still writes."""
    await server.load(1, two[0])
    await server.activate(1)
    old = server._children[1]
    pieces = server.generate(GenerateRequest(messages=QUESTION, max_tokens=200, temperature=0.7, seed=3))
    await anext(pieces)
    await server.reload(1, two[0])
    new = server._children[1]
    assert old.alive
    assert new.name == "goodbot-v1-2"
    await server.stop()
    assert (old.alive, new.alive) == (False, False)
    await pieces.aclose()


@pytest.mark.parametrize("how", ["500", "cut", "dies"])
async def test_an_answer_that_breaks_off_is_an_error(
    server: LlamaCppServer, tmp_path: Path, how: str
) -> None:
    fault(tmp_path, answer=how)
    with pytest.raises(ServerError):
        await ask(server)
    fault(tmp_path)
    if not server.healthy():
        await server.start()
    assert (await ask(server)).text


async def test_a_version_that_cannot_be_started_leaves_the_old_one_answering(
    server: LlamaCppServer, two: tuple[Path, Path], tmp_path: Path
) -> None:
    before = await ask(server)
    for faults in ({"start": "bad"}, {"lora": "ignored"}, {"lora": "half"}):
        fault(tmp_path, **faults)
        with pytest.raises(AdapterError):
            await server.load(1, two[0])
    assert await ask(server) == before
    fault(tmp_path, start="slow")
    await server.load(1, two[0])
    assert (await ask(server, version=1)).text != before.text


async def test_a_stranger_on_this_machine_is_not_answered(server: LlamaCppServer) -> None:
    url = server._children[BASE].upstream.url
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/completion", json={"prompt": "hello"}) as reply,
    ):
        assert reply.status == 401


async def test_what_it_lacks_is_said_in_a_sentence(formats: Formats, tmp_path: Path) -> None:
    for settings, words in (
        ({"binary": "no-such-llama"}, "install llama.cpp"),
        ({"model": ""}, "export base --format gguf"),
        ({"model": __file__}, "failed to load the model"),
    ):
        with pytest.raises(ServerError, match=words):
            await driver(tmp_path, formats, **settings).start()


async def test_the_base_gives_its_memory_back_when_it_is_not_needed(
    server: LlamaCppServer, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llamacpp, "_LINGER_SECONDS", 0.05)
    await server.load(1, two[0])
    await server.activate(1)
    async with asyncio.timeout(patience(20)):
        while BASE in server._children:  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.01)
    assert (await ask(server, version=BASE)).version == BASE


async def test_while_it_makes_room_nothing_runs(server: LlamaCppServer, two: tuple[Path, Path]) -> None:
    await server.load(1, two[0])
    await server.activate(1)
    before = await ask(server)
    assert await server.make_room()
    assert server._children == {}
    assert (server.healthy(), await server.served()) == (True, 1)
    assert await server.first_tokens(QUESTION, version=1, top=5) == {}
    waiting = asyncio.create_task(ask(server))
    await server.come_back()
    assert await waiting == before


async def test_what_a_killed_server_has_started_is_ended(
    server: LlamaCppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process group goes when it is stopped."""
    ended: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _: ended.append(group))
    child = server._children[BASE]
    process = child._process
    assert process is not None
    process.kill()
    await process.wait()
    await child.stop()
    assert ended == [process.pid]


@pytest.mark.skipif(bool(cage.missing()) or sys.platform != "linux", reason="a Mac's cage lets it start")
@pytest.mark.parametrize(
    "how",
    ['"{}" "$@"\necho over\n', 'exec "{}" "$@"\n', 'exec "{}" "$@" 2>/dev/null\n'],
    ids=["starts", "becomes", "is silent"],
)
async def test_a_script_in_its_place_is_told_that_it_can_start_no_program(
    formats: Formats, tmp_path: Path, how: str
) -> None:
    script, model = tmp_path / "mine", str(tmp_path / "base.gguf")
    script.write_text(f"#!/bin/sh\n{how.format(fake.program(tmp_path))}")
    script.chmod(0o700)
    server = driver(tmp_path, formats, binary=str(script))
    with pytest.raises(ServerError, match="Set `binary` to the program itself"):
        await server.start()
    await server.stop()
    await until(lambda: alive(model) == [], seconds=30)


@pytest.mark.skipif(bool(cage.missing()), reason="nothing is locked up here")
async def test_of_files_it_reads_its_model_and_its_adapter_alone(
    server: LlamaCppServer, two: tuple[Path, Path], tmp_path: Path
) -> None:
    """Another version's adapter neither, which lies beside it."""
    await server.load(1, two[0])
    await server.load(2, two[1])
    process = server._children[1]
    mine, other = process.adapter, server._children[2].adapter
    assert None not in (mine, other)
    (tmp_path / "secrets.env").write_bytes(b"GGUF")
    for path in (other, tmp_path / "secrets.env"):
        process.adapter = path
        await process.stop()
        with pytest.raises(ServerError, match="Permission denied"):
            await process.start()
    process.adapter = mine
    await process.start()


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells it of another process in /proc")
async def test_what_it_compiles_for_a_graphics_card_is_kept_where_nobody_else_is(
    server: LlamaCppServer, tmp_path: Path
) -> None:
    process = server._children[BASE]._process
    assert process is not None
    words = Path("/proc", str(process.pid), "environ").read_text().split("\0")
    told = dict(word.split("=", 1) for word in words if word)
    [place] = (tmp_path / "serving" / llama_cache.FOLDER).iterdir()
    assert {told[name] for name in ("XDG_CACHE_HOME", "CUDA_CACHE_PATH")} == {str(place)}
    assert told["HOME"] != str(place)
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_model_of_other_files_begins_with_nothing_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, home = tmp_path / "base.gguf", tmp_path / "serving"
    model.write_bytes(b"GGUF")
    first = llama_cache.kept(home, [model])
    assert first is not None
    (first / "index").write_text("kernels")
    assert llama_cache.kept(home, [model]) == first
    assert (first / "index").read_text() == "kernels"
    monkeypatch.setattr(llama_cache, "_MOST", 6)
    assert llama_cache.kept(home, [model]) == first
    assert [*first.iterdir()] == [], "more than there may be"
    model.write_bytes(b"GGUF of another")
    second = llama_cache.kept(home, [model])
    assert [*(home / llama_cache.FOLDER).iterdir()] == [second]
    assert second != first


def test_files_without_a_byte_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a place on the disk, and whoever counts them is the daemon."""
    model, home = tmp_path / "base.gguf", tmp_path / "serving"
    model.write_bytes(b"GGUF")
    place = llama_cache.kept(home, [model])
    assert place is not None
    (place / "below").mkdir()
    (place / "below" / "index").touch()
    (place / "large").symlink_to(model)
    monkeypatch.setattr(llama_cache, "_MOST", 1 << 16)
    assert llama_cache.kept(home, [model]) == place
    assert len([*place.iterdir()]) == 2
    for number in range(16):
        (place / "below" / str(number)).touch()
    assert llama_cache.kept(home, [model]) == place
    assert [*place.iterdir()] == []


def test_where_nothing_can_be_kept_it_starts_all_the_same(tmp_path: Path) -> None:
    (tmp_path / llama_cache.FOLDER).touch()
    assert llama_cache.kept(tmp_path, [tmp_path]) is None


def test_a_model_in_parts_is_read_whole(tmp_path: Path) -> None:
    names = [f"big-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    for name in (*names, "big-00001-of-00004.gguf", "small.gguf", "x-00001-of-3.gguf"):
        (tmp_path / name).touch()

    def read(name: str) -> list[str]:
        found = llama_process.weights(LlamaCppSettings(model=str(tmp_path / name)))
        return [path.name for path in found]

    assert read(names[0]) == names
    assert read("small.gguf") == ["small.gguf"]
    assert read("x-00001-of-3.gguf") == ["x-00001-of-3.gguf"]


@pytest.mark.parametrize(
    ("code", "said", "machine", "wrapper"),
    [
        (1, ["error: a tensor has a wrong shape"], False, False),
        (
            1,
            ["warning: failed to mlock 4 bytes: Cannot allocate memory", "error: a wrong shape"],
            False,
            False,
        ),
        (1, ["warn: failed to set affinity mask: Operation not permitted", "error: bad"], False, False),
        (1, ["cannot open /models/base.gguf: Permission denied"], False, False),
        (1, ["cudaMalloc failed: out of memory", "main: exiting due to model loading error"], True, False),
        (1, ["bwrap: Creating new namespace failed: Operation not permitted"], False, True),
        (255, [], False, True),
        (0, [], False, True),
        (127, ["llama-server cannot be started: Exec format error"], True, True),
        (127, ["error while loading shared libraries: libx.so: cannot open shared object file"], True, True),
        (126, [], True, True),
        (-signal.SIGKILL, [], True, False),
        (-signal.SIGABRT, ["GGML_ASSERT(x) failed"], False, False),
    ],
)
async def test_who_is_to_blame_is_told_by_how_it_ended_and_by_no_warning(
    code: int, said: list[str], machine: bool, wrapper: bool
) -> None:
    """What it was refused, and goes on without, is neither the machine's fault nor a wrapper's."""
    process = LlamaProcess(
        "goodbot-v1",
        ["llama-server"],
        weights=[Path("/models/base.gguf")],
        adapter=None,
        environ={},
        clock=SystemClock(),
        manners=Manners(),
    )
    process._process = cast("Any", SimpleNamespace(returncode=code))
    process._log.extend(said)
    with pytest.raises(ServerError, match="llama-server ended while it came up") as caught:
        await process._healthy()
    assert process.blames_machine is machine
    assert ("the program itself" in str(caught.value)) is wrapper
    assert (said[-1] if said else "does not say why") in str(caught.value)


@pytest.mark.parametrize("said", ["No space left on device", "couldn't bind to port 8080"])
async def test_a_machine_without_room_is_not_the_adapters_fault(
    server: LlamaCppServer, two: tuple[Path, Path], tmp_path: Path, said: str
) -> None:
    fault(tmp_path, start="dies", says=said)
    with pytest.raises(ServerError, match=said) as caught:
        await server.load(1, two[0])
    assert not isinstance(caught.value, AdapterError)
    fault(tmp_path)
    await server.load(1, two[0])


async def test_one_that_is_still_coming_up_goes_when_it_stops(
    server: LlamaCppServer, two: tuple[Path, Path], tmp_path: Path
) -> None:
    fault(tmp_path, start="hangs")
    loading = asyncio.create_task(server.load(1, two[0]))
    end = time.monotonic() + patience(30)
    while not (server._coming and server._coming.alive) and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    child = server._coming
    assert child is not None
    await server.stop()
    with pytest.raises(ServerError):
        await loading
    assert not child.alive
    assert server._children == {}


async def test_a_version_is_converted_for_it(server: LlamaCppServer, two: tuple[Path, Path]) -> None:
    await server.load(1, two[0])
    adapter = server._children[1].adapter
    assert adapter == await server._parts.convert(two[0], AdapterFormat.GGUF)
    assert adapter is not None
    assert adapter.read_bytes()[:4] == b"GGUF"


async def test_another_port_is_taken_where_somebody_has_the_first_one_meanwhile(
    formats: Formats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        first, free = [theirs.getsockname()[1]], llama_process._free_port
        monkeypatch.setattr(llama_process, "_free_port", lambda: first.pop() if first else free())
        server = driver(tmp_path / "home", formats)
        await server.start()
        try:
            assert (await ask(server)).text
            assert first == []
        finally:
            await server.stop()


async def test_what_the_template_refuses_is_known_to_each_process_to_programs_and_to_training(
    formats: Formats, two: tuple[Path, Path], tmp_path: Path
) -> None:
    server = driver(tmp_path / "home", formats)
    fault(tmp_path / "home", template="no_system")
    await server.start()
    try:
        asked = GenerateRequest(
            messages=[{"role": "system", "content": "Be terse."}, *QUESTION],
            max_tokens=4,
            temperature=1.0,
            seed=1,
        )
        *_, first = [piece async for piece in server.generate(asked)]
        assert isinstance(first, Generated)
        assert (first.form, first.filters) == ("without_system", Filters())
        told = "the server refuses: system messages (their words go with the first question)"
        assert server.trouble() == told
        await server.load(1, two[0])
        await server.activate(1)
        async with server.far_side(asked) as far:
            assert far is not None
            assert far.manners is not None
            assert far.manners.form == "without_system"
    finally:
        await server.stop()
