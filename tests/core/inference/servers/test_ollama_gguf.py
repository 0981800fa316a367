# SPDX-License-Identifier: Apache-2.0
"""What goodbot really makes of an adapter gets into Ollama: GGUF files that tell what they are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from goodbot.base.spawn import child_environment
from goodbot.learning.adapters.formats import Formats
from goodbot_fakes.ollama import FakeOllama, gguf
from goodbot_fakes.ollama.server import MODEL

from tests.core.inference.servers import tiny
from tests.core.inference.servers.ollama_ground import ask, driver


async def test_a_trained_adapter_is_put_on_the_base_or_into_a_whole_model(tmp_path: Path) -> None:
    one = tiny.adapter(tmp_path / "adapters" / "one", 1)
    formats = Formats(tmp_path / "adapters", tiny.model(), child_environment())
    async with FakeOllama() as ollama:
        ollama.store.base(MODEL, family="qwen3")
        for version, made_of in (("0.34.0", {"FROM", "ADAPTER"}), ("0.34.1", {"FROM"})):
            ollama.version = ollama.called = version
            server = driver(ollama, tmp_path / version)
            server.parts = dataclasses.replace(server.parts, convert=formats.convert)
            await server.start()
            await server.load(1, one)
            shown = await server._api.show(server.names[1])
            lines = shown.modelfile.splitlines()
            assert {line.split()[0] for line in lines if not line.startswith("#")} == made_of
            assert (await ask(server, version=1)).version == 1
            await server.stop()
        told = [gguf.metadata(blob) for blob in ollama.store.blobs.values() if blob[:4] == gguf.MAGIC]
    assert {info.get("general.type") for info in told} >= {"adapter", "model"}
