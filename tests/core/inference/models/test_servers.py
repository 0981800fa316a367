# SPDX-License-Identifier: Apache-2.0
"""Which servers run here, told apart by what they answer; and whatever else may be on their ports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.hookspecs import hookimpl
from goodbot.api.plugins import PluginHost
from goodbot.api.server import AdapterFormat, ServerSpec
from goodbot.api.setup import Check, Examined, ok
from goodbot.api.survey import MODELS, Ask, FoundServer, ListedModel, Survey, openai_models
from goodbot.base.errors import ConfigError, UsageError
from goodbot.cli.doctor.serving import serving as look
from goodbot.config import parse
from goodbot.inference.models import served, servers, serving
from goodbot.inference.models.servers import checked, discover, surveys, usual
from goodbot.inference.servers import plugin as own_servers
from goodbot.inference.servers.plugin import SPECS
from goodbot.inference.surveys import ollama

from tests.core.inference.models import fake_servers
from tests.core.inference.models.conftest import TINY
from tests.core.inference.models.fake_servers import OLLAMA_MODEL, FakeServer, Hostile
from tests.support import patience, require

FAKES: dict[str, Callable[[], FakeServer]] = {
    "ollama": fake_servers.ollama,
    "lmstudio": fake_servers.lm_studio,
    "vllm": fake_servers.vllm,
    "llamacpp": fake_servers.llama_cpp,
    "mlx": fake_servers.mlx_lm,
}


@pytest.mark.parametrize("kind", FAKES)
def test_each_server_is_known_by_its_answers(kind: str) -> None:
    with FAKES[kind]() as fake:
        [found] = discover([fake.url])
    assert (found.kind, found.url) == (kind, fake.url)
    assert len(found.models) == 1


def test_all_are_asked_at_the_same_time() -> None:
    with FAKES["ollama"]() as one, FAKES["vllm"]() as two, Hostile("hang") as three:
        found = discover([one.url, two.url, three.url, "http://127.0.0.1:9"])
    assert [server.kind for server in found] == ["ollama", "vllm"]


@pytest.mark.parametrize("kind", ["html", "garbage", "list", "deep", "large", "endless", "hang", "odd"])
def test_anything_else_on_a_port_is_no_server(kind: str) -> None:
    with Hostile(kind) as fake:
        assert discover([fake.url]) == []


def test_odd_names_are_bounded_and_left_out() -> None:
    with Hostile("names") as fake:
        [found] = discover([fake.url])
    assert [len(model.name) for model in found.models] == [9, 200]


def test_what_a_server_says_of_its_models() -> None:
    with fake_servers.ollama() as fake:
        [model] = discover([fake.url])[0].models
    assert (model.name, model.note, model.bytes) == ("qwen3:4b", "4.0B Q4_K_M gguf", 2620788260)
    with fake_servers.vllm() as fake:
        [model] = discover([fake.url])[0].models
    assert model.root == "Qwen/Qwen3-1.7B"


def test_ollama_may_have_moved_but_only_on_this_machine() -> None:
    ours = usual({})
    assert "http://127.0.0.1:11434" in ours
    assert usual({"OLLAMA_HOST": "0.0.0.0:7000"}) == ["http://127.0.0.1:7000", *ours]
    assert usual({"OLLAMA_HOST": "http://localhost:7000/"})[0] == "http://localhost:7000"
    assert usual({"OLLAMA_HOST": "[::1]:7000"})[0] == "http://[::1]:7000"
    for elsewhere in ("192.0.2.7", "http://gpu.example:1", "bad:port", "[", "http://"):
        assert usual({"OLLAMA_HOST": elsewhere}) == ours
    assert usual({"GOODBOT_SERVER_PORTS": "7, x,8"}) == ["http://127.0.0.1:7", "http://127.0.0.1:8"]
    assert usual({"GOODBOT_SERVER_PORTS": ""}) == []


def test_a_plugin_s_server_may_have_moved_as_it_says_itself() -> None:
    class Homing(Pigeon):
        moved_by = "PIGEON_HOST"

    there = {"PIGEON_HOST": "0.0.0.0", "OLLAMA_HOST": "127.0.0.1:7000"}
    assert usual({**there, "PIGEON_HOST": "[::1]:9"}, [Homing()]) == [
        "http://[::1]:9",
        "http://127.0.0.1:4711",
    ]
    assert usual(there, [Homing()]) == ["http://127.0.0.1:4711"], "its own port, where none is told"
    assert usual(there, [Pigeon()]) == ["http://127.0.0.1:4711"], "of others it knows nothing"
    assert "http://127.0.0.1:7000" in usual(there, surveys().values())


def test_only_this_machines_servers_are_looked_at() -> None:
    assert checked("http://localhost:1234/v1") == "http://localhost:1234"
    for wrong in ("http://192.0.2.7:1", "ftp://127.0.0.1", "http://", "http://127.0.0.1:x"):
        with pytest.raises(UsageError, match=r"this one only|write http"):
            checked(wrong)


def _ports(monkeypatch: pytest.MonkeyPatch, *fakes: FakeServer) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_PORTS", ",".join(str(fake.port) for fake in fakes))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)


def test_a_served_model_leads_to_its_weights_and_says_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_servers.ollama() as one, fake_servers.vllm() as two:
        _ports(monkeypatch, one, two)
        for wanted in ("ollama/qwen3:4b", "qwen3:4b", one.url):
            name, note, _ = served.source(wanted)
            assert name == "Qwen/Qwen3-4B"
            assert "Ollama serves a copy of qwen3:4b (4.0B Q4_K_M gguf)" in note
            assert "beside the 2.6 GB of its copy. Ollama can go on answering instead" in note
        assert served.source("vllm/served")[0] == "Qwen/Qwen3-1.7B"
        assert served.source("Qwen/Qwen3-8B") == ("Qwen/Qwen3-8B", "", {})
        with pytest.raises(UsageError, match="does not offer 'other'; it offers qwen3:4b"):
            served.source("ollama/other")


def test_a_server_that_takes_adapters_is_proposed_to_go_on_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_servers.ollama() as fake, fake_servers.vllm() as other:
        _ports(monkeypatch, fake, other)
        found = served.source("ollama/qwen3:4b")
        assert found.serving == {"server": "ollama", "url": fake.url, "model": "qwen3:4b"}
        assert f'[serving] server = "ollama", url = "{fake.url}", model = "qwen3:4b".' in found.note
        assert served.source("vllm/served").serving["server"] == "vllm"
    with fake_servers.ollama(version="0.29.1") as fake:
        _ports(monkeypatch, fake)
        found = served.source("ollama/qwen3:4b")
        assert (found.source, found.serving) == ("Qwen/Qwen3-4B", {})
        assert "Ollama 0.29.1 runs no adapters: 0.30 and newer can go on answering." in found.note


def test_a_busy_server_that_is_named_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_NAMED_SECONDS", patience(15))
    monkeypatch.setattr(servers, "_SECONDS", 0.05)
    with fake_servers.vllm() as fake:
        fake.wait = 0.5
        _ports(monkeypatch, fake)
        assert served.source("vllm/served").source == "Qwen/Qwen3-1.7B"
        assert served.source(fake.url).source == "Qwen/Qwen3-1.7B"


def test_at_its_usual_place_a_server_needs_no_url() -> None:
    assert serving.settings("ollama", "http://127.0.0.1:11434") == {"server": "ollama"}
    found = FoundServer(
        survey=ollama.OllamaSurvey(), url="http://127.0.0.1:11434", models=(), version="0.34.1-rc1"
    )
    assert serving.proposed(found, 'a"b') == {"server": "ollama", "model": 'a"b'}
    line = serving.written({"server": "ollama", "model": 'a"b'})
    assert tomllib.loads(line.replace("[serving] ", "").replace(", ", "\n"))["model"] == 'a"b'


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("llamacpp", 'can answer instead: [serving] server = "llamacpp".'),
        ("lmstudio", "LM Studio takes no adapters while it runs."),
        ("openai", "takes no adapters while it runs."),
    ],
)
def test_servers_that_take_no_adapters_are_not_proposed(kind: str, words: str) -> None:
    model = ListedModel(name="m", root="Qwen/Qwen3-1.7B")
    server = FoundServer(survey=surveys()[kind], url="http://127.0.0.1:1", models=(model,))
    found = served.weights(server, model)
    assert found.serving == {}
    assert found.note.endswith(words)


@pytest.mark.parametrize(
    ("version", "numbers", "old"),
    [
        ("0.29.9", (0, 29, 9), True),
        ("0.30.0-rc3", (0, 30, 0), False),
        ("0.0.0", (), False),
        ("1.2", (1, 2), False),
        ("master", (), False),
        ("", (), False),
        ("0.9999999", (), False),
    ],
)
def test_versions_of_ollama(version: str, numbers: tuple[int, ...], old: bool) -> None:
    assert (ollama.numbered(version), ollama.too_old(version)) == (numbers, old)


def test_a_server_with_several_models_asks_which(monkeypatch: pytest.MonkeyPatch) -> None:
    two = ({**OLLAMA_MODEL, "name": "a:1b"}, {**OLLAMA_MODEL, "name": "b:1b"})
    with fake_servers.ollama(*two) as fake, pytest.raises(UsageError, match="ollama/a:1b"):
        served.source(fake.url)
    with pytest.raises(ConfigError, match=r"no model server answers at http://127\.0\.0\.1:9"):
        served.source("http://127.0.0.1:9")


def test_weights_that_nobody_knows_are_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_servers.ollama({**OLLAMA_MODEL, "name": "mystery:7b"}) as fake:
        _ports(monkeypatch, fake)
        with pytest.raises(ConfigError, match=r"no weights are known .* OWNER/NAME"):
            served.source("ollama/mystery:7b")


def test_ollamas_own_metadata_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://hub.example/Qwen/Qwen3-1.7B"
    show = {"model_info": {"general.base_model.0.repo_url": url, "general.basename": 5}}
    with fake_servers.ollama({**OLLAMA_MODEL, "name": "mine"}, show=show) as fake:
        _ports(monkeypatch, fake)
        assert served.source("ollama/mine")[0] == "Qwen/Qwen3-1.7B"
    show = {"model_info": {"general.basename": "Qwen3", "general.size_label": "0.6B"}}
    with fake_servers.ollama({**OLLAMA_MODEL, "name": "mine"}, show=show) as fake:
        _ports(monkeypatch, fake)
        assert served.source("mine")[0] == "Qwen/Qwen3-0.6B"


def test_a_model_made_from_another_says_what_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    details = {**OLLAMA_MODEL["details"], "parent_model": "qwen3:4b"}  # type: ignore[dict-item]
    with fake_servers.ollama({**OLLAMA_MODEL, "name": "pirate", "details": details}) as fake:
        _ports(monkeypatch, fake)
        name, note, _ = served.source("pirate")
    assert name == "Qwen/Qwen3-4B"
    assert "What pirate adds to qwen3:4b does not come along" in note


def test_a_directory_that_vllm_serves_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_servers.vllm(root=str(tmp_path)) as fake:
        _ports(monkeypatch, fake)
        assert served.source("vllm/served")[0] == str(tmp_path)


def test_a_server_that_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_PORTS", "")
    name, note, _ = served.source("ollama/qwen3:0.6b")
    assert (name, note.partition(";")[0]) == ("Qwen/Qwen3-0.6B", "Ollama does not run")
    with pytest.raises(ConfigError, match="vLLM does not answer"):
        served.source("vllm/mine")


@pytest.mark.slow
def test_the_real_mlx_server_is_known(tmp_path: Path) -> None:
    require("mlx_lm")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "mlx_lm", "server", "--model", str(TINY), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"},
    )
    try:
        end = time.monotonic() + patience(60)
        while not (found := servers.discover([f"http://127.0.0.1:{port}"])):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)
    finally:
        process.kill()
        process.wait()
    assert found[0].kind == "mlx"
    assert [model.name for model in found[0].models] == [str(TINY)]
    assert served.weights(found[0], found[0].models[0])[0] == str(TINY)


class Pigeon(Survey):
    """A plugin's server, which speaks OpenAI's API and owns its models."""

    kind, title = "pigeon", "Pigeon Post"
    ports = (4711,)
    questions = (MODELS, "/pigeons")

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        if "pigeons" not in said["/pigeons"]:
            return None
        return FoundServer(survey=self, url=url, models=openai_models(said[MODELS]))

    def adapts(self, found: FoundServer) -> bool:
        return True

    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        code, _ = await ask("/coo")
        return ok(found.part, f"it coos with {code}; rank {rank}; {line}")


class Lame(Pigeon):
    priority = 99

    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        raise KeyError("a plugin's own fault")


class Nameless(Pigeon):
    kind = ""


class Impostor(Pigeon):
    kind = "vllm"
    priority = 1


class Lost(Pigeon):
    moved_by = ("PIGEON_HOST",)  # type: ignore[assignment]


class OnePort(Pigeon):
    ports = 4711  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Coo:
    pass


def pigeons(**more: Any) -> ServerSpec:
    values: dict[str, Any] = {"survey": f"{__name__}:Pigeon", **more}
    return ServerSpec(name="pigeon", factory="none:None", settings=Coo, adapters=AdapterFormat.PEFT, **values)


def pigeon_post() -> FakeServer:
    models = {"object": "list", "data": [{"id": "m", "owned_by": "pigeon", "root": "Qwen/Qwen3-1.7B"}]}
    return FakeServer({MODELS: models, "/pigeons": {"pigeons": 3}})


def test_a_plugin_s_server_is_found_proposed_and_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = (*SPECS, pigeons())
    assert "http://127.0.0.1:4711" in usual({}, surveys(specs).values())
    with pigeon_post() as fake:
        _ports(monkeypatch, fake)
        assert [server.kind for server in discover()] == ["openai"], "nobody else knows it"
        assert [server.title for server in discover(specs=specs)] == ["Pigeon Post"]
        found = served.source("pigeon/m", specs)
        assert found.source == "Qwen/Qwen3-1.7B"
        assert found.serving == {"server": "pigeon", "url": fake.url, "model": "m"}
        assert "Pigeon Post can go on answering instead" in found.note
        assert serving.ready(found.serving, specs)
        assert not serving.ready(found.serving, [pigeons(requires=("no_such_module",))])


async def test_doctor_lets_a_plugin_s_server_say_what_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Plugin:
        @hookimpl
        def register_server(self) -> ServerSpec:
            return pigeons()

    plugins = PluginHost()
    plugins.register(own_servers, "servers")
    plugins.register(Plugin(), "pigeon")
    with pigeon_post() as fake:
        _ports(monkeypatch, fake)
        config = parse("[training.settings]\nrank = 12\n", home=tmp_path)
        [line] = await look(Examined(config=config, plugins=plugins, environ={}, daemon=None))
        told = f'[serving] server = "pigeon", url = "{fake.url}"'
        assert (line.state, line.text) == ("ok", f"it coos with 404; rank 12; {told}")


@pytest.mark.parametrize(
    "survey",
    [f"{__name__}:{name}" for name in ("Lame", "Nameless", "Impostor", "OnePort", "Lost", "Coo")] + ["x:Y"],
)
def test_a_plugin_s_fault_hides_no_other_server(survey: str) -> None:
    specs = (*SPECS, pigeons(survey=survey))
    with fake_servers.vllm() as fake:
        assert [server.kind for server in discover([fake.url], specs)] == ["vllm"]
        assert usual({}, surveys(specs).values())


def test_a_driver_without_a_survey_hides_no_server_of_its_name() -> None:
    driver = replace(pigeons(survey=""), name="lmstudio")
    assert surveys((*SPECS, driver)).keys() == surveys().keys()
    assert "lmstudio" in surveys()


async def test_doctor_says_which_server_cannot_be_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def broken(*_: object) -> Check:
        raise KeyError("pigeons")

    class Plugin:
        @hookimpl
        def register_server(self) -> ServerSpec:
            return pigeons()

    monkeypatch.setattr(Pigeon, "examine", broken)
    plugins = PluginHost()
    plugins.register(own_servers, "servers")
    plugins.register(Plugin(), "pigeon")
    with pigeon_post() as fake, fake_servers.ollama() as other:
        _ports(monkeypatch, fake, other)
        examined = Examined(config=parse("", home=tmp_path), plugins=plugins, environ={}, daemon=None)
        texts = [line.text for line in await look(examined)]
    assert texts[0] == "Pigeon Post cannot be looked at: KeyError: 'pigeons'"
    assert texts[1].startswith("Ollama ")
