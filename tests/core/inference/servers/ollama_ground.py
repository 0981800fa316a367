# SPDX-License-Identifier: Apache-2.0
"""An Ollama on loopback with a driver on it, and adapters that are converted for it without llama.cpp."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from goodbot.api.model import ResolvedModel
from goodbot.api.server import AdapterFormat, Generated, GenerateRequest, ServerParts
from goodbot.base.clock import SystemClock
from goodbot.base.errors import AdapterError
from goodbot.config.secrets import Secret
from goodbot.inference.servers.ollama import OllamaServer
from goodbot.inference.servers.ollama_tags import OllamaSettings
from goodbot_fakes.ollama import FakeOllama, gguf

from tests.core.builders import SPEC

LORA = AdapterFormat.GGUF
WHOLE = AdapterFormat.GGUF_MODEL
_HEADER = (2).to_bytes(8, "little") + b"{}"
_SIZE = 4000


class Converter:
    """Writes a GGUF file that tells of what it was made; `asked` is what for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.asked: list[AdapterFormat] = []

    async def __call__(self, directory: Path, to: AdapterFormat) -> Path:
        self.asked.append(to)
        content = (directory / "adapter_model.safetensors").read_bytes()
        if len(content) != len(_HEADER) + _SIZE:
            raise AdapterError(f"{directory.name} is cut off")
        kind = "adapter" if to is LORA else "model"
        self._folder.mkdir(exist_ok=True)
        file = self._folder / f"{directory.name}-{kind}.gguf"
        of = hashlib.sha256(content).hexdigest()
        file.write_bytes(gguf.written(general_type=kind, general_architecture="llama", of=of))
        return file


def adapter(root: Path, name: str) -> Path:
    """What the converter takes for an adapter: a header of safetensors, and weights of `name`."""
    directory = root / name
    directory.mkdir(parents=True)
    weights = name.encode().ljust(4000, b".")
    (directory / "adapter_model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}" + weights)
    return directory


def driver(
    ollama: FakeOllama,
    home: Path,
    *,
    model: str = "",
    drawn_with: Mapping[str, float] = MappingProxyType({}),
    **settings: Any,
) -> OllamaServer:
    """A driver that has not been started; `converter(it)` is what it converts with."""
    parts = ServerParts(
        model=ResolvedModel(name="tiny", path=home),
        backend=SPEC,
        url=ollama.url,
        served_model=model,
        key=Secret(""),
        home=home,
        clock=SystemClock(),
        environ={},
        adapters=home / "adapters",
        path_on_server="",
        convert=Converter(home.parent / "converted"),
        drawn_with=drawn_with,
    )
    return OllamaServer(OllamaSettings(**settings), parts)


def converter(server: OllamaServer) -> Converter:
    assert isinstance(server.parts.convert, Converter)
    return server.parts.convert


@asynccontextmanager
async def served(ollama: FakeOllama, home: Path, **settings: Any) -> AsyncIterator[OllamaServer]:
    """A driver that runs."""
    server = driver(ollama, home, **settings)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


async def ask(server: OllamaServer, text: str = "Hello?", version: int | None = None) -> Generated:
    request = GenerateRequest(
        messages=[{"role": "user", "content": text}], max_tokens=6, temperature=0.0, seed=0, version=version
    )
    [whole] = [piece async for piece in server.generate(request) if isinstance(piece, Generated)]
    return whole
