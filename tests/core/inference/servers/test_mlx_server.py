# SPDX-License-Identifier: Apache-2.0
"""The driver of mlx_lm.server keeps the contract, with the real one; and what that one is known for."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from goodbot.api.server import BASE, AdapterFormat, Generated, GenerateRequest, Server, ServerParts
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.sampling import Filters
from goodbot.inference.servers.mlx_server import MlxServer
from goodbot.testing import ServingContract
from goodbot.testing.serving_base import answered, messages

from tests.core.builders import SPEC, server_parts
from tests.core.inference.servers import mlx_far_side, tiny
from tests.core.inference.servers.mlx_far_side import FarSide


@pytest.fixture(scope="module")
def far_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarSide]:
    with mlx_far_side.running(tmp_path_factory.mktemp("mlx")) as found:
        yield found


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny.two(tmp_path_factory.mktemp("adapters"))


def parts(url: str, home: Path, **changes: Any) -> ServerParts:
    known = {"url": url, "home": home, "convert": mlx_far_side.as_mlx}
    return server_parts(SPEC, tiny.model(), **{**known, **changes})


@contextlib.asynccontextmanager
async def started(url: str, home: Path, **changes: Any) -> AsyncGenerator[Server]:
    server = MlxServer(None, parts(url, home, **changes))
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def server(far_side: FarSide, tmp_path: Path) -> AsyncIterator[Server]:
    async with started(far_side.url, tmp_path) as server:
        yield server


@pytest.mark.asyncio(loop_scope="class")
class TestContract(ServingContract):
    """One driver for all, since each that starts gets the server to load its model; only some stop it."""

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def running(
        cls, far_side: FarSide, tmp_path_factory: pytest.TempPathFactory
    ) -> AsyncIterator[Server]:
        async with started(far_side.url, tmp_path_factory.mktemp("home")) as server:
            yield server

    @pytest_asyncio.fixture(loop_scope="class")
    async def server(self, running: Server) -> AsyncIterator[Server]:
        yield running
        if not running.healthy():
            await running.start()
        await running.activate(BASE)
        for version in (1, 2):
            await running.unload(version)

    @pytest.fixture
    def adapters(self, adapters: tuple[Path, Path]) -> tuple[Path, Path]:
        return adapters


async def test_what_it_tells_of_first_tokens_is_their_text(server: Server) -> None:
    """It spells a token as the vocabulary does; an answer begins with one of them."""
    told = await server.first_tokens(messages("Tell me a story."), version=BASE, top=20)
    assert len(told) == 11  # more it never tells
    likeliest = max(told, key=lambda text: told[text])
    whole = await answered(server, "Tell me a story.")
    assert whole.text.startswith(likeliest)


async def test_changed_files_under_an_old_path_are_read_again(
    far_side: FarSide, adapters: tuple[Path, Path], tmp_path: Path
) -> None:
    """It knows an adapter by its path: `reload` must get it to look again."""
    served = tmp_path / "v1"
    made = [await mlx_far_side.as_mlx(directory, AdapterFormat.MLX) for directory in adapters]

    async def convert(directory: Path, to: object) -> Path:
        return served

    async with started(far_side.url, tmp_path, convert=convert) as server:
        served.symlink_to(made[0])
        await server.load(1, adapters[0])
        await server.activate(1)
        one = await answered(server)
        served.unlink()
        served.symlink_to(made[1])
        assert (await answered(server)).text == one.text
        await server.reload(1, adapters[1])
        assert (await answered(server)).text != one.text


async def test_a_server_that_does_not_see_our_files_is_told_apart_from_a_bad_adapter(
    far_side: FarSide, adapters: tuple[Path, Path], tmp_path: Path
) -> None:
    async with started(far_side.url, tmp_path, path_on_server="/adapters/") as server:
        with pytest.raises(ServerError, match=r"does not see /adapters/one.mlx: set \[adapters\] path_on"):
            await server.load(1, adapters[0])
        assert (await answered(server)).version == BASE


async def test_our_directory_may_be_elsewhere_for_the_server(
    far_side: FarSide, adapters: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "mounted").symlink_to(adapters[0].parent)
    there = str(tmp_path / "mounted")
    async with started(far_side.url, tmp_path, path_on_server=there) as server:
        base = await answered(server)
        await server.load(1, adapters[0])
        assert (await answered(server, version=1)).text != base.text


async def test_an_adapter_of_another_model_is_refused_by_the_server_itself(
    far_side: FarSide, adapters: tuple[Path, Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "adapter_config.json").write_text('{"num_layers": 4, "lora_parameters": {"rank": 2}}')

    async def convert(directory: Path, to: object) -> Path:
        return bad

    async with started(far_side.url, tmp_path, convert=convert) as server:
        with pytest.raises(AdapterError, match="cannot load the adapter"):
            await server.load(1, adapters[0])
        assert (await answered(server)).version == BASE


async def test_a_model_that_is_not_the_one_it_was_started_with_is_named(
    far_side: FarSide, tmp_path: Path
) -> None:
    server = MlxServer(None, parts(far_side.url, tmp_path, served_model="/no/such/model"))
    with pytest.raises(ServerError, match=r"cannot answer with the model '/no/such/model'.*--model"):
        await server.start()
    assert not server.healthy()


@contextlib.asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncGenerator[str]:
    """A server with one model, which answers so."""

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "/models/tiny"}]})

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app = web.Application()
    app.add_routes([web.get("/v1/models", models), web.get("/health", health)])
    app.add_routes([web.post("/v1/chat/completions", answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


MAKERS = Filters(top_p=0.95, top_k=20, min_p=0.05, repetition_penalty=1.05)
WHOLE = {"temperature": 0.6, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
CUT = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.05}


@pytest.mark.parametrize(("filters", "sent"), [(Filters(), WHOLE), (MAKERS, CUT)], ids=["whole", "makers"])
async def test_an_answer_is_drawn_as_the_makers_recommend(
    filters: Filters, sent: dict[str, float], tmp_path: Path
) -> None:
    """What it is not told it draws by its own defaults, and nobody sees it in the answer."""
    got: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        got.append(await request.json())
        choice = {"message": {"content": "Green."}, "finish_reason": "stop"}
        return web.json_response({"system_fingerprint": "0.32.2-x", "choices": [choice]})

    request = GenerateRequest(
        messages=messages("Why?"), max_tokens=8, temperature=0.6, seed=1, filters=filters
    )
    async with answering(answer) as url, started(url, tmp_path) as server:
        *_, whole = [piece async for piece in server.generate(request)]
    assert isinstance(whole, Generated)
    assert whole.text == "Green."
    named = {*CUT, "repetition_context_size", "seed"}
    told = {name: value for name, value in got[-1].items() if name in named}
    penalized = {"repetition_context_size": 1 << 20} if filters else {}
    assert told == {**sent, **penalized}, "the penalty looks back on all; one with a seed is answered alone"


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("0.31.3-0.31.1-macOS-26.0-arm64-applegpu_g15s", r"version 0\.31\.3.*mlx-lm>=0\.32\.2"),
        ("fp_44709d6fcb", "does not say that it is mlx_lm.server"),
    ],
)
async def test_what_is_too_old_or_something_else_gets_a_sentence(
    told: str, sentence: str, tmp_path: Path
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"system_fingerprint": told, "choices": []})

    async with answering(answer) as url:
        server = MlxServer(None, parts(url, tmp_path))
        with pytest.raises(ServerError, match=sentence):
            await server.start()
