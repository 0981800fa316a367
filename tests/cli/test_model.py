# SPDX-License-Identifier: Apache-2.0
"""`goodbot model`, as a person types it: on a fake hub, beside fake servers, at a terminal."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from goodbot.api.estimate import estimate
from goodbot.base.machine.device import Device
from goodbot.cli.model import described
from goodbot.config.lock import prepare_home
from goodbot.inference.models import catalogue, fetched
from goodbot.inference.models.proposal import ModelOption, Proposal

from tests.cli.program import PROGRAM, Bot, environment, until
from tests.cli.terminal import Person
from tests.core.inference.models import fake_servers
from tests.core.inference.models.conftest import REPO, TINY
from tests.core.inference.models.fake_hub import FakeHub
from tests.support import require

HF = "hf_secret-of-a-person"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    require("huggingface_hub")
    with FakeHub({REPO: TINY, "HuggingFaceTB/SmolLM2-135M-Instruct": TINY}) as fake:
        yield fake


@pytest.fixture
def env(hub: FakeHub, tmp_path: Path) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_CACHE": "",
        "HF_TOKEN": "",
        "HF_HUB_OFFLINE": "",
        "GOODBOT_SERVER_PORTS": "",
        "OLLAMA_HOST": "",
    }


def _config(bot: Bot) -> dict[str, object]:
    path = bot.home / "config.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


def test_nothing_is_here_yet(bot: Bot, env: dict[str, str]) -> None:
    done = bot.call("model", env=env)
    assert done.returncode == 0, done.stderr
    assert "No model server answers" in done.stdout
    assert "`goodbot model use auto`" in done.stdout


def test_servers_and_weights_are_listed_and_the_configured_one_marked(bot: Bot, env: dict[str, str]) -> None:
    assert bot.call("model", "use", REPO, "--yes", env=env).returncode == 0
    with fake_servers.ollama() as ollama, fake_servers.mlx_lm("\x1b]0;gotcha\x07evil") as mlx:
        env["GOODBOT_SERVER_PORTS"] = f"{ollama.port},{mlx.port}"
        done = bot.call("model", env=env)
        found = json.loads(bot.call("model", "--json", env=env).stdout)
    assert f"Ollama at {ollama.url}\n  qwen3:4b" in done.stdout
    assert "trainable as Qwen/Qwen3-4B" in done.stdout
    assert "no trainable weights known" in done.stdout
    assert f"→ {REPO}  2.0 MB, trainable" in done.stdout
    assert "\x1b" not in done.stdout
    assert [server["kind"] for server in found["servers"]] == ["ollama", "mlx"]
    [weights] = found["disk"]
    assert (weights["configured"], weights["fits"], weights["trainable"]) == (True, True, True)
    assert found["configured"] == weights["path"]


def test_the_demo_model_is_told_of_as_what_answers(bot: Bot, env: dict[str, str]) -> None:
    prepare_home(bot.home)
    (bot.home / "config.toml").write_text('[model]\npath = "demo"\n')
    told = bot.call("model", env=env).stdout
    assert "→ demo  the tiny try-out model; `goodbot model use auto` finds a real one" in told
    assert "cannot be used" not in told


def test_the_demo_model_is_one_that_can_be_used(bot: Bot, env: dict[str, str]) -> None:
    """As a config says it that came from another machine, and as `init --model` takes it."""
    config = bot.home / "config.toml"
    done = bot.call("model", "use", "demo", env=env)
    assert (done.returncode, config.exists()) == (2, False), "nobody said yes"
    done = bot.call("model", "use", "demo", "--yes", env=env)
    assert done.returncode == 0, done.stderr
    assert "The tiny demo model will answer" in done.stdout
    assert tomllib.loads(config.read_text())["model"]["path"] == "demo"


def test_a_dialogue_ends_with_a_configured_model(bot: Bot, hub: FakeHub, env: dict[str, str]) -> None:
    with Person(bot.home, "model", "use", REPO, columns=110, **env) as person:
        screen = person.sees("Download it and use it? [y/N]")
        assert "licence    apache-2.0" in screen
        assert "download   2.1 MB" in screen
        assert "about" in screen
        assert hub.bytes_of("model.safetensors") == 0, "nothing comes before the person says so"
        person.type("y\r")
        person.sees("will answer")
        assert person.ends() == 0
    model = _config(bot)["model"]
    assert model == {"path": f"{REPO}@{hub.commit(REPO)}"}
    assert [one.repo for one in fetched.entries(bot.home)] == [REPO]


@pytest.mark.parametrize("answer", ["n\r", "\r", "perhaps\r", "\x04"])
def test_anything_but_yes_changes_nothing(bot: Bot, hub: FakeHub, env: dict[str, str], answer: str) -> None:
    with Person(bot.home, "model", "use", REPO, columns=110, **env) as person:
        person.sees("[y/N]")
        person.type(answer)
        person.sees("Nothing was downloaded and nothing was changed.")
        assert person.ends() == 1
    assert hub.bytes_of("model.safetensors") == 0
    assert not bot.home.exists()


def test_ctrl_c_leaves_nothing_half_and_the_same_command_goes_on(
    bot: Bot, hub: FakeHub, env: dict[str, str], tmp_path: Path
) -> None:
    hub.delay = 0.2
    size = (TINY / "model.safetensors").stat().st_size
    with Person(bot.home, "model", "use", REPO, "--yes", columns=110, **env) as person:
        person.sees("downloading (MB)")
        partial = tmp_path / "hf"
        until(lambda: any(p.stat().st_size > 500_000 for p in partial.rglob("*.incomplete")))
        person.type("\x03")
        person.sees("What has arrived is kept")
        assert person.ends() == 130
    assert _config(bot) == {}
    assert not list((tmp_path / "hf").rglob("snapshots/*/config.json"))
    hub.delay = 0.0
    until(lambda: [sent for sent in hub.sent if sent.file == "model.safetensors"])
    done = bot.call("model", "use", REPO, "--yes", "--json", env=env)
    assert done.returncode == 0, done.stderr
    again = [sent for sent in hub.sent if sent.file == "model.safetensors"][-1]
    assert again.start > 500_000 - 262_144
    assert again.start + again.bytes == size
    assert json.loads(done.stdout)["taken"] is True


def test_auto_explains_its_choice_and_shows_the_others(bot: Bot, hub: FakeHub, env: dict[str, str]) -> None:
    bot.home.mkdir(0o700)
    (bot.home / "config.toml").write_text('[training]\nbackend = "torch"\n')
    require("torch")
    for name in ("HuggingFaceTB/SmolLM2-360M-Instruct", "Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B"):
        hub.models[name] = hub.models[REPO]
    done = bot.call("model", "use", "auto", "--json", env=env)
    if done.returncode:  # a machine that is too slow or too full just now says so
        assert "no model answers within" in done.stderr or "no model fits" in done.stderr
        return
    found = json.loads(done.stdout)
    assert found["taken"] is False
    assert found["name"] in found["why"]
    assert found["estimate"]["answer"] <= 20 or found["name"] in hub.models
    assert hub.bytes_of("model.safetensors") == 0


def test_a_proposal_shows_what_it_costs_and_the_others(tmp_path: Path) -> None:
    place = Device(backend="torch", device="cuda", memory=24 << 30, flops=2e13, bandwidth=2e11, step=8e-4)
    options = tuple(
        ModelOption(
            name=entry.name,
            parameters=entry.parameters,
            bytes=entry.bytes,
            licence=entry.licence,
            gated=entry.gated,
            backend="torch",
            estimate=estimate(entry.architecture, place, entry.bytes),
        )
        for entry in reversed(catalogue.entries())
        if estimate(entry.architecture, place, entry.bytes).fits
    )
    first = options[0]
    text = described(
        Proposal(
            source=first.name,
            name=first.name,
            backend="torch",
            device="cuda",
            parameters=first.parameters,
            download=first.bytes,
            disk=10**11,
            licence=first.licence,
            gated=True,
            estimate=first.estimate,
            why="It is the largest",
            options=options,
        )
    )
    assert text.splitlines()[:7] == [
        "Qwen/Qwen3-1.7B  (1.7 billion parameters, torch on the GPU)",
        "  download   4.1 GB; 100.0 GB are free on the disk",
        "  licence    apache-2.0, gated: it needs a token",
        "  memory     4.5 GB to serve + 11.8 GB to train (12.7 GB with long turns), of 18.0 GB that may "
        "be used",
        "  speed      about 4 s an answer, about 51 s a training on 40 ratings of short questions",
        "  It learns from turns of up to 1792 tokens here.",
        "",
    ]
    for option in options:
        assert f"  {option.name} " in text
    assert "llama3.2, gated" in text
    assert max(map(len, text.splitlines())) < 110


def test_without_a_terminal_nobody_is_asked(bot: Bot, env: dict[str, str]) -> None:
    done = bot.call("model", "use", REPO, env=env)
    assert (done.returncode, "say --yes" in done.stderr) == (2, True)
    assert not (bot.home / "config.toml").exists()


def test_a_served_model_is_explained(bot: Bot, hub: FakeHub, env: dict[str, str]) -> None:
    hub.models["Qwen/Qwen3-4B"] = hub.models[REPO]
    with fake_servers.ollama() as ollama:
        env["GOODBOT_SERVER_PORTS"] = str(ollama.port)
        done = bot.call("model", "use", "ollama/qwen3:4b", "--yes", env=env)
    assert done.returncode == 0, done.stderr
    assert "Ollama serves a copy of qwen3:4b" in done.stderr
    assert str(_config(bot)["model"]).startswith("{'path': 'Qwen/Qwen3-4B@")


@pytest.mark.parametrize(("answer", "server"), [("y", "ollama"), ("n", None)])
def test_the_server_may_go_on_answering(
    bot: Bot, hub: FakeHub, env: dict[str, str], answer: str, server: str | None
) -> None:
    require("gguf")
    hub.models["Qwen/Qwen3-4B"] = hub.models[REPO]
    with fake_servers.ollama() as ollama:
        env["GOODBOT_SERVER_PORTS"] = str(ollama.port)
        with Person(bot.home, "model", "use", "ollama/qwen3:4b", columns=110, **env) as person:
            person.sees("Download it and use it? [y/N]")
            person.type("y\r")
            person.sees("Let Ollama go on answering, with each version put into it? [y/N]")
            person.type(f"{answer}\r")
            person.sees("will answer")
            assert person.ends() == 0
    serving = tomllib.loads((bot.home / "config.toml").read_text()).get("serving", {})
    assert serving.get("server") == server
    if server:
        assert (serving["url"], serving["model"]) == (ollama.url, "qwen3:4b")


def test_a_directory_is_taken_and_comments_stay(bot: Bot, env: dict[str, str]) -> None:
    bot.home.mkdir(0o700)
    (bot.home / "config.toml").write_text('# mine\n[model]\npath = "/old"  # the old one\n')
    done = bot.call("model", "use", str(TINY), "--yes", env=env)
    assert done.returncode == 0, done.stderr
    text = (bot.home / "config.toml").read_text()
    assert text.startswith("# mine\n")
    assert "# the old one" in text
    assert _config(bot)["model"] == {"path": str(TINY)}
    assert "switch" not in done.stdout + done.stderr, "nothing was learnt yet"


def test_before_it_asks_it_says_what_would_stay_with_the_old_model(bot: Bot, env: dict[str, str]) -> None:
    bot.home.mkdir(0o700)
    (bot.home / "config.toml").write_text('[model]\npath = "demo"\n')
    bot.call("why")  # there is a store now
    with Person(bot.home, "model", "use", REPO, columns=200, **env) as person:
        person.sees("What was learnt on demo stays with it.", f"`goodbot model switch {REPO}@")
        person.sees("[y/N]")
        person.type("n\r")
        assert person.ends() == 1
    done = bot.call("model", "switch", REPO, "--yes", env=env)
    assert done.returncode == 1, done.stderr
    assert "With --anyway it is switched to as it is, untaught." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("use",), "say which"),
        (("use", "nonesuch"), "is no directory, no name in the hub"),
        (("use", "acme/nonesuch"), "the hub has no model acme/nonesuch"),
        (("use", "http://192.0.2.1:1"), "another machine"),
        (("use", "vllm/x"), "vLLM does not answer"),
        (("list", REPO), "goodbot model use"),
    ],
)
def test_what_is_off_is_said_in_a_sentence(
    bot: Bot, env: dict[str, str], arguments: tuple[str, ...], sentence: str
) -> None:
    done = bot.call("model", *arguments, "--yes", env=env)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_architecture_that_cannot_be_loaded_is_refused(
    bot: Bot, hub: FakeHub, env: dict[str, str]
) -> None:
    hub.models[REPO] = {**hub.models[REPO], "config.json": b'{"model_type": "nonesuch"}'}
    done = bot.call("model", "use", REPO, "--yes", env=env)
    assert (done.returncode, "does not know the architecture" in done.stderr) == (2, True)
    assert hub.bytes_of("model.safetensors") == 0


def test_a_gated_model_with_a_stored_token_that_nobody_sees(
    bot: Bot, hub: FakeHub, env: dict[str, str]
) -> None:
    hub.gated, hub.token = True, HF
    done = bot.call("model", "use", REPO, "--yes", env=env)
    assert (done.returncode, "accept its licence" in done.stderr) == (1, True)
    secrets = bot.home / "secrets.env"
    bot.home.mkdir(0o700, exist_ok=True)
    secrets.write_text(f"HF_TOKEN={HF}\n")
    secrets.chmod(0o600)
    done = bot.call("model", "use", REPO, "--yes", env=env)
    assert done.returncode == 0, done.stderr
    assert HF not in done.stdout + done.stderr
    assert "gated" in done.stderr


def test_a_running_bot_is_told_apart_and_answers_with_the_new_model_after_a_restart(
    bot: Bot, env: dict[str, str], hub: FakeHub
) -> None:
    require("torch")
    bot.start()
    assert bot.process
    done = bot.call("model", "use", REPO, "--yes", env=env)
    assert done.returncode == 0, done.stderr
    assert f"`kill {bot.process.pid}`, then `goodbot run`" in done.stdout
    assert bot.json("status")["model"] == "tiny"
    bot.stop()
    log = bot.log.with_suffix(".second")
    with log.open("w") as output:
        bot.process = subprocess.Popen(
            [*PROGRAM, "--home", str(bot.home), "run"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
            env=environment(HF_HOME=env["HF_HOME"], HF_HUB_CACHE=""),
            start_new_session=True,
        )
    until(lambda: "Ctrl-C stops" in log.read_text() or bot.process.poll() is not None)
    assert bot.process.poll() is None, log.read_text()
    assert bot.json("status")["model"] == REPO
