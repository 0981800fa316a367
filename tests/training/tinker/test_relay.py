# SPDX-License-Identifier: Apache-2.0
"""Nothing goes to a server that nobody has named, and a child reaches no other."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from goodbot.base.errors import ConfigError
from goodbot.config import Config, TrainingConfig
from goodbot.config.remote import KEY, RemoteConfig
from goodbot.config.secrets import Secret, SecretStore
from goodbot.learning import worker_process
from goodbot.learning.training.remote import Remote, allowed
from goodbot_fakes.tinker import FakeTinker
from goodbot_training.backends.asking import UnansweredError
from goodbot_training.backends.tinker import register_backend
from goodbot_training.process.asking import Asking

from tests import rings
from tests.support import require
from tests.training.tinker.served import serving

SPEC = register_backend()


def config(tmp_path: Path, **remote: Any) -> Config:
    return Config(home=tmp_path, training=TrainingConfig(backend="tinker", remote=RemoteConfig(**remote)))


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ({}, r"set url under \[training.remote\]"),
        (
            {"url": "https://tinker.example"},
            r"would go to tinker.example, and nobody has allowed that.*hosts = \[\"tinker.example\"\]",
        ),
        ({"url": "https://tinker.example", "hosts": ("example",)}, "nobody has allowed that"),
        ({"url": "http://tinker.example", "hosts": ("tinker.example",)}, "must begin with https://"),
        ({"url": "https://me:pw@tinker.example", "hosts": ("tinker.example",)}, "GOODBOT_TRAINING_KEY"),
        ({"url": "ftp://tinker.example", "hosts": ("tinker.example",)}, "must begin with http"),
        ({"url": "https://[bad", "hosts": ()}, "url "),
    ],
)
def test_nothing_goes_where_no_owner_has_said_so_by_name(
    remote: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        allowed(config(tmp_path, **remote), SPEC)


def test_a_machine_that_is_named_may_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODBOT_TRAINING_KEY", "tml-key")
    found = allowed(config(tmp_path, url="https://tinker.example/x/", hosts=("tinker.example",)), SPEC)
    assert found is not None
    assert (found.host, found.key.reveal()) == ("tinker.example", "tml-key")
    assert "tml-key" not in repr(found)
    assert found.told("Qwen/Qwen3-8B") == {"host": "tinker.example", "model": "Qwen/Qwen3-8B", "loss": "sum"}
    assert allowed(config(tmp_path, url="http://127.0.0.1:9"), SPEC) is not None
    assert allowed(config(tmp_path), dataclasses.replace(SPEC, remote=False)) is None


def test_its_key_comes_out_of_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("keyring")
    monkeypatch.delenv(KEY, raising=False)
    with rings.used():
        asked = config(tmp_path, url="http://127.0.0.1:9")
        for where, keyring in (("keyring", True), ("file", False)):
            SecretStore(tmp_path).set(KEY, f"tml-{where}", keyring=keyring)
            found = allowed(asked, SPEC)
            assert found is not None
            assert found.key.reveal() == "tml-keyring", "it goes before the file"
        SecretStore(tmp_path).delete_from_keyring(KEY)
        found = allowed(asked, SPEC)
        assert found is not None
        assert found.key.reveal() == "tml-file"


async def lines(far: Remote, **asked: Any) -> list[dict[str, Any]]:
    return [line async for line in far.answer({"method": "GET", "path": "/api/v1/a", **asked})]


@pytest.mark.parametrize(
    "asked",
    [
        {"path": "/etc/passwd"},
        {"path": "/api/v1/../../admin"},
        {"path": "/api/v1//x"},
        {"path": "/api/v1/a?b=c"},
        {"path": "/api/v1/" + "a" * 500},
        {"path": "https://other.example/api/v1/a"},
        {"path": None},
        {"method": "DELETE"},
    ],
)
async def test_a_child_asks_by_the_protocol_or_not_at_all(asked: dict[str, Any]) -> None:
    heard: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(request.path)
        return web.Response()

    async with serving(answer) as url:
        [said] = await lines(Remote(config=RemoteConfig(), url=url), **asked)
    assert said == {
        "error": "the trainer asks for something that is no part of the protocol",
        "forbidden": True,
    }
    assert heard == []


async def test_the_key_goes_to_the_server_and_to_nobody_else() -> None:
    seen: list[tuple[str, Mapping[str, str]]] = []

    async def files(request: web.Request) -> web.Response:
        seen.append(("files", dict(request.headers)))
        return web.Response(body=b"x" * (3 << 20))

    async with serving(files) as other:

        async def answer(request: web.Request) -> web.Response:
            seen.append(("server", dict(request.headers)))
            return web.Response(status=302, headers={"Location": f"{other}/a"})

        async with serving(answer) as url:
            far = Remote(config=RemoteConfig(hosts=("127.0.0.1",)), url=url, key=Secret("tml-key"))
            [refused] = await lines(far, file=True)
            [moved] = await lines(far)
    assert "has put the adapter on 127.0.0.1: if goodbot may get it there" in refused["error"]
    assert moved["status"] == 302, "what is no file is followed nowhere"
    assert [who for who, _ in seen] == ["server", "server"]
    assert seen[0][1]["X-API-Key"] == "tml-key"


async def test_a_file_comes_in_parts_and_nobody_there_is_a_sentence(unused_tcp_port: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path.startswith("/api"):
            return web.Response(status=302, headers={"Location": "/files/a"})
        return web.Response(body=b"ab" * (1 << 20))

    async with serving(answer) as url:
        far = Remote(config=RemoteConfig(), url=url)
        told = await lines(far, file=True)
    assert len(told) > 2
    assert far.traffic == {"bytes_sent": 0, "bytes_received": 2 << 20}
    async with serving(answer) as url:
        far = Remote(config=RemoteConfig(), url=url)
        await lines(far, method="POST", body={"a": "é"})
    assert far.traffic["bytes_sent"] == len(rb'{"a": "\u00e9"}')
    pipe, sent = io.BytesIO(), list[dict[str, Any]]()
    stdin = io.BytesIO(b"".join(json.dumps({**line, "id": 1}).encode() + b"\n" for line in told))
    reply = Asking(sent.append, stdin)("GET", "/api/v1/a", None, pipe)
    assert (reply.status, pipe.getvalue()) == (200, b"ab" * (1 << 20))
    [none] = await lines(Remote(config=RemoteConfig(), url=f"http://127.0.0.1:{unused_tcp_port}"))
    assert (none["error"], none["unsent"]) == ("127.0.0.1 cannot be reached", True)
    with pytest.raises(UnansweredError, match="goodbot answers no more"):
        Asking(sent.append, io.BytesIO())("GET", "/api/v1/a")


async def test_a_real_child_trains_in_its_cage_by_asking_us(random_model: Path, tmp_path: Path) -> None:
    require("torch")
    require("peft")
    from tests.training.tinker.engine import PeftEngine
    from tests.training.tinker.wire import KEY, job, remote

    events: list[str] = []

    async def on_event(event: Mapping[str, Any]) -> None:
        events.append(str(event["event"]))

    async with FakeTinker(PeftEngine(random_model), key=KEY) as server:
        far = remote(server)
        raw = {**job(random_model, tmp_path / "output"), "remote": far.told("here")}
        done = await worker_process.train(SPEC, raw, on_event, answer=far.answer)
        assert done["metrics"]["steps"] == 6
        assert server.steps == 6
        assert "gate" in events
        assert "ask" not in events, "they are nobody's progress"
        server.asked.clear()
        (tmp_path / "plan").mkdir()
        raw["output"] = str(tmp_path / "plan")
        plan = await worker_process.train(SPEC, raw, on_event, mode="plan")
        assert plan["estimate"]["train"] == 6
        assert server.asked == [], "a plan sends nothing"
    written = sorted(path.name for path in (tmp_path / "output").iterdir())
    assert written[:2] == ["adapter_config.json", "adapter_model.safetensors"]
