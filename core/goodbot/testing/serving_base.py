# SPDX-License-Identifier: Apache-2.0
"""The ground that the serving suite stands on: fixtures, and ways to ask."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, ClassVar

import pytest

from goodbot.api.backend import BackendSpec
from goodbot.api.events import Message
from goodbot.api.model import ResolvedModel
from goodbot.api.server import AdapterFormat, Generated, GenerateRequest, Server, ServerParts
from goodbot.base.clock import SystemClock
from goodbot.base.spawn import child_environment
from goodbot.config.secrets import Secret

QUESTION = "What is the capital of France?"
TOKENS = 24
PATIENCE = 60.0
"""Seconds for what should take one; `patience` makes more of them where the machine is busy or slow."""


def asking(text: str = QUESTION, *, version: int | None = None, max_tokens: int = TOKENS) -> GenerateRequest:
    """The likeliest answer, so that whoever writes it twice writes the same."""
    return GenerateRequest(
        messages=messages(text), max_tokens=max_tokens, temperature=0.0, seed=0, version=version
    )


def messages(text: str = QUESTION) -> list[Message]:
    """A conversation of one question."""
    return [{"role": "user", "content": text}]


async def answered(
    server: Server, text: str = QUESTION, *, version: int | None = None, max_tokens: int = TOKENS
) -> Generated:
    """A whole answer."""
    async with Answering(server, asking(text, version=version, max_tokens=max_tokens)) as answer:
        return await answer.rest()


class Answering(contextlib.AbstractAsyncContextManager["Answering"]):
    """An answer under way. Leaving it before its end cancels it."""

    def __init__(self, server: Server, request: GenerateRequest) -> None:
        self._pieces = server.generate(request)
        self.pieces: list[str] = []
        self.whole: Generated | None = None

    async def begun(self) -> None:
        """Wait for its first piece."""
        await self._next()

    async def rest(self) -> Generated:
        """Wait for the whole of it; `pieces` is all that came before."""
        while self.whole is None:
            await self._next()
        with pytest.raises(StopAsyncIteration):
            await anext(self._pieces)
        return self.whole

    async def _next(self) -> None:
        piece = await anext(self._pieces)
        if isinstance(piece, Generated):
            self.whole = piece
        elif isinstance(piece, str):
            self.pieces.append(piece)

    async def __aexit__(self, *_: object) -> None:
        await self._pieces.aclose()


def server_parts(home: Path, **parts: Any) -> ServerParts:
    """Make what a driver is given, with everything in `home`; `parts` are the fields of your own, as `url`.

    `convert` gives adapters back as they are, in PEFT's layout.
    """

    async def convert(directory: Path, form: AdapterFormat) -> Path:
        return directory

    given: dict[str, Any] = {
        "model": ResolvedModel(name="tiny", path=home / "model"),
        "backend": BackendSpec(
            name="none", factory="none:None", requires=(), extra="", settings=object, priority=0
        ),
        "url": "",
        "served_model": "",
        "key": Secret(""),
        "home": home / "server",
        "clock": SystemClock(),
        "environ": child_environment(),
        "adapters": home / "adapters",
        "path_on_server": "",
        "convert": convert,
        **parts,
    }
    return ServerParts(**given)


class ServingGround:
    """What all parts of the suite share; `server` and `adapters` are the driver's to give."""

    takes_adapters: ClassVar[bool] = True
    """False for a driver whose spec says `AdapterFormat.NONE`."""
    tells_first_tokens: ClassVar[bool] = True
    """Whether `first_tokens` tells any."""

    @pytest.fixture
    async def server(self) -> Server:
        """The driver, started; `yield` it, and stop it afterwards."""
        raise NotImplementedError("override the fixture `server`")

    @pytest.fixture
    def adapters(self) -> tuple[Path, Path]:
        """Two adapters in PEFT's layout whose likeliest answers to `QUESTION` differ, and from the base's."""
        raise NotImplementedError(
            "override the fixture `adapters`: two directories with `adapter_config.json` and "
            "`adapter_model.safetensors`, or say `takes_adapters = False`"
        )

    @pytest.fixture
    def directories(self, request: pytest.FixtureRequest) -> tuple[Path, Path]:
        """`adapters`; the test is skipped for a driver that takes none."""
        if not self.takes_adapters:
            pytest.skip("this server takes no adapters")
        return request.getfixturevalue("adapters")
