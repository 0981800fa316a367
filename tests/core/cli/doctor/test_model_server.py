# SPDX-License-Identifier: Apache-2.0
"""The doctor asks the owner's model server as goodbot will."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.setup import Check, CheckState, Examined
from goodbot.cli.doctor import daemon, model_server, serving
from goodbot.cli.doctor.parts import probes
from goodbot_fakes.openai_server import FakeOpenAI
from goodbot_fakes.sglang import FakeSglang
from goodbot_fakes.vllm import FakeVllm

from tests.core.cli.doctor.examining import examined, only
from tests.core.inference.servers.test_manners import Strict, no_system, strict
from tests.support import require


@pytest.fixture(autouse=True)
def installed() -> None:
    require("mlx_lm")


def configured(
    home: Path, server: FakeOpenAI | Strict, name: str = "vllm", daemon: Mapping[str, Any] | None = None
) -> Examined:
    toml = f'[serving]\nserver = "{name}"\nurl = "{server.url}"\n[training]\nbackend = "mlx"\n'
    return examined(home, toml, demo=True, daemon=daemon)


async def asked(home: Path, server: FakeOpenAI, name: str = "vllm") -> Check:
    return await only(model_server.server(configured(home, server, name)))


async def test_one_that_is_ready(tmp_path: Path) -> None:
    async with FakeVllm() as server:
        check = await asked(tmp_path, server)
        assert server.loaded == {}
    text = f"vLLM at {server.url} answers as base-model and takes adapters"
    assert (check.state, check.text) == (CheckState.OK, text)
    assert not (tmp_path / "serving").exists(), "a look changes nothing"


async def test_one_without_adapters(tmp_path: Path) -> None:
    server = FakeVllm()
    server.runtime_updating = False
    async with server:
        check = await asked(tmp_path, server)
    assert check.state is CheckState.WARN
    assert "takes no adapters while it runs: start it as `goodbot doctor serving`" in check.text


async def test_one_with_too_few_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "here", lambda: "de")
    server = FakeSglang()
    server.max_loaded_loras = 1
    async with server:
        check = await asked(tmp_path, server, "sglang")
    assert check.state is CheckState.WARN
    assert check.text.endswith("Starte ihn mit --max-loaded-loras 3 oder mehr")


@pytest.mark.parametrize(("name", "told"), [("sglang", True), ("openai", False)])
async def test_what_the_daemon_says_of_its_server(
    name: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But that a server takes no adapters, where its owner has chosen one that takes none."""
    monkeypatch.setattr("goodbot.api.control.call", lambda *_: None)
    status = {"server": "up", "server_trouble": "it holds too few adapters"}
    async with FakeSglang() as server:
        checks = await daemon.server(configured(tmp_path, server, name, status))
        assert [check.text for check in checks] == ["it holds too few adapters"] * told
        status["server_told"] = "er hält zu wenige"
        checks = await daemon.server(configured(tmp_path, server, name, status))
    assert [check.text for check in checks] == ["er hält zu wenige"] * told, "as the terminal reads it"


async def test_one_that_refuses_what_chats_send(tmp_path: Path) -> None:
    async with strict(no_system) as server:
        check = await only(model_server.server(configured(tmp_path, server, "openai")))
    assert check.state is CheckState.WARN
    assert check.text == (
        f"the server at {server.url} answers as m, but the server refuses: system messages (their words go "
        "with the first question)"
    )


async def test_one_that_is_not_there(tmp_path: Path) -> None:
    async with FakeVllm() as server:
        pass
    check = await asked(tmp_path, server)
    assert check.state is CheckState.FAIL
    assert "does not answer: start it, or set [serving] url" in check.text


async def test_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeVllm(key="sesame") as server:
        check = await asked(tmp_path, server)
        assert (check.state, "refuses the key" in check.text) == (CheckState.FAIL, True)
        assert (await serving_line(tmp_path, server)).state is CheckState.FAIL
        monkeypatch.setenv("GOODBOT_SERVER_KEY", "sesame")
        assert (await asked(tmp_path, server)).state is CheckState.OK
        line = await serving_line(tmp_path, server)
        assert (line.state, line.part) == (CheckState.OK, f"port {server.url.rpartition(':')[2]}")


async def test_a_key_goes_to_the_configured_server_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_KEY", "sesame")
    async with FakeVllm(key="sesame") as mine, FakeVllm(key="sesame") as other:
        check = await only(serving.serving(configured(tmp_path, mine), [other.url]))
        assert (check.state, "asks for a key" in check.text) == (CheckState.WARN, True)
        assert [path for path, _ in mine.requests] == []


async def serving_line(home: Path, server: FakeOpenAI) -> Check:
    return await only(serving.serving(configured(home, server), [server.url]))


async def test_one_that_only_answers(tmp_path: Path) -> None:
    async with FakeOpenAI() as server:
        check = await asked(tmp_path, server, "openai")
    assert (check.state, check.text.endswith("answers as base-model")) == (CheckState.OK, True)


async def test_who_is_silent(tmp_path: Path) -> None:
    """The running goodbot tells of its server, and goodbot's own is not there before it runs."""
    async with FakeVllm() as server:
        running = configured(tmp_path, server, daemon={"server": "up"})
        assert await model_server.server(running) == []
        assert server.requests == []
    assert await model_server.server(examined(tmp_path, "", demo=True)) == []
    unknown = examined(tmp_path, '[serving]\nserver = "vlm"\n')
    assert await model_server.server(unknown) == []
    assert "server" in [probe.name for probe in probes(unknown, ())]
