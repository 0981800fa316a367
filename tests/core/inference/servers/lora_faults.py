# SPDX-License-Identifier: Apache-2.0
"""Faults of servers that take adapters while they run: one suite for each driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import ServerError
from goodbot.inference.servers.remote import RemoteServer
from goodbot.testing.serving_base import answered

from tests.core.inference.servers.remote import nothing, started


class LoraFaults:
    """A subclass has the fixtures `fake` (the far side, with `faults`), `made` (its driver, not started)
    and `two` (directories of adapters)."""

    async def test_a_load_that_hangs_leaves_the_old_version(
        self, fake: Any, made: RemoteServer, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with started(made) as server:
            await server.load(1, two[0])
            await server.activate(1)
            monkeypatch.setattr("goodbot.inference.servers.lora_endpoints._LOAD_SECONDS", 0.05)
            fake.faults.hangs = True
            monkeypatch.setattr(server, "leftovers", nothing)
            monkeypatch.setattr(server, "offered", nothing)
            with pytest.raises(ServerError, match="it hangs"):
                await server.load(2, two[1])
            fake.faults.hangs = False
            assert (await answered(server)).version == 1

    async def test_a_server_error_is_an_error_and_the_next_answer_comes(
        self, fake: Any, made: RemoteServer, two: tuple[Path, Path]
    ) -> None:
        async with started(made) as server:
            await server.load(1, two[0])
            await server.activate(1)
            fake.faults.fails = True
            with pytest.raises(ServerError, match="status 500"):
                await answered(server)
            fake.faults.fails = False
            assert (await answered(server)).version == 1
