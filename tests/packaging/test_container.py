# SPDX-License-Identifier: Apache-2.0
"""The container: what it is built of, who runs in it, and a goodbot set up there. No engine is needed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.architecture.source import ROOT, pyproject
from tests.cli.setting_up import call
from tests.support import patience, require

FILE = ROOT / "Containerfile"
INIT = ("init", "--yes", "--platform", "web", "--model", "demo", "--start", "no")


def instructions() -> list[tuple[str, str]]:
    """`(word, the rest)`, lines that go on joined."""
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def of(word: str) -> list[str]:
    return [rest for one, rest in instructions() if one == word]


def environment() -> dict[str, str]:
    """What `ENV` sets."""
    return dict(pair.split("=", 1) for line in of("ENV") for pair in shlex.split(line))


def test_it_copies_what_is_there_and_what_is_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = {name for line in of("COPY") if "--from" not in line for name in line.split()[:-1]}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)


def test_its_extras_are_goodbots() -> None:
    (extras,) = (line.partition("=")[2] for line in of("ARG"))
    known = pyproject()["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)
    documented = (ROOT / "docs" / "operations.md").read_text().partition("--build-arg EXTRAS=")[2]
    assert set(documented.partition("`")[0].split(",")) <= set(known)


def test_nobody_in_it_is_root_and_nothing_but_the_data_is_written() -> None:
    assert of("USER") == ["10001"]
    after = [word for word, _ in instructions()]
    assert after.index("USER") > max(at for at, word in enumerate(after) if word == "RUN")
    assert of("VOLUME") == [environment()["HOME"]] == ["/data"]
    service = compose()["services"]["goodbot"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["volumes"] == ["goodbot:/data"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_a_database_beside_it_is_one_that_it_takes_and_nobody_reaches() -> None:
    """The encoding and the order that goodbot asks of a server; a password that is in no file."""
    service = compose()["services"]["postgres"]
    assert service["profiles"] == ["postgres"]
    assert "ports" not in service
    assert service["environment"]["POSTGRES_INITDB_ARGS"] == "--encoding=UTF8 --locale=C"
    password = service["environment"]["POSTGRES_PASSWORD"]
    assert (
        compose()["services"]["goodbot"]["environment"]["PGPASSWORD"]
        == password
        == "${GOODBOT_PG_PASSWORD:-}"
    )
    [url] = re.findall(r'"(postgresql://\S+@postgres/\S+)"', (ROOT / "docs/operations.md").read_text())
    assert service["environment"]["POSTGRES_USER"] == urlsplit(url).username
    assert {"goodbot", "postgres"} <= set(compose()["volumes"])
    assert "postgres" in of("ARG")[0].partition("=")[2].split(",")


def compose() -> dict[str, Any]:
    yaml = require("yaml")
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A new volume."""
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_set_up_there_it_can_be_opened_where_its_port_is_published(data: Path) -> None:
    url = environment()["GOODBOT_URL"]
    done = call(data, *INIT, GOODBOT_URL=url)
    assert done.returncode == 0, done.stderr
    http = tomllib.loads((data / ".goodbot" / "config.toml").read_text())["http"]
    port = of("EXPOSE")[0]
    assert http == {"port": int(port), "host": "0.0.0.0", "url": url}
    assert url == f"http://localhost:{port}" == compose()["services"]["goodbot"]["environment"]["GOODBOT_URL"]
    assert f"127.0.0.1:{port}:{port}" in compose()["services"]["goodbot"]["ports"]


@pytest.mark.parametrize("inside", [True, False])
def test_the_doctor_knows_whether_its_port_is_a_containers(data: Path, inside: bool) -> None:
    """Outside of one a port that is open to all is to be told of."""
    (data / ".goodbot").mkdir(mode=0o700)
    (data / ".goodbot" / "config.toml").write_text(
        '[http]\nport = 8321\nhost = "0.0.0.0"\nurl = "http://localhost:8321"\n'
    )
    told = call(data, "doctor", "--json", **({"GOODBOT_URL": "http://localhost:8321"} if inside else {}))
    states = {one["state"] for one in json.loads(told.stdout)["checks"] if "0.0.0.0:8321 " in one["text"]}
    assert ("warn" in states) is not inside


def test_what_is_set_there_already_stays(data: Path) -> None:
    (data / ".goodbot").mkdir(mode=0o700)
    (data / ".goodbot" / "config.toml").write_text("[http]\nport = 9000\n")
    done = call(data, *INIT, GOODBOT_URL="http://localhost:8321")
    assert done.returncode == 0, done.stderr
    assert tomllib.loads((data / ".goodbot" / "config.toml").read_text())["http"] == {"port": 9000}


def test_the_health_check_is_python_that_can_be_read() -> None:
    command = json.loads(of("HEALTHCHECK")[0].partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "HEALTHCHECK", "exec")
    assert f"127.0.0.1:{of('EXPOSE')[0]}/healthz" in command[2]
    assert sys.version_info >= (3, 11)


ENGINE = """#!/bin/sh
echo "$(basename "$0") $*" >>"$SAID"
case "$(basename "$0") $1" in
  "$RUNS info") ;;
  *" info") exit 1 ;;
  *" inspect") echo "$HEALTH" ;;
  *" healthcheck") [ "$HEALTH" = healthy ] ;;
esac
"""


def checked(path: Path, runs: str, health: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What the check of the container does with an engine that only takes notes."""
    for name in ("docker", "podman"):
        (path / name).write_text(ENGINE)
        (path / name).chmod(0o700)
    said = path / "said"
    said.touch()
    environ = {"PATH": f"{path}:{os.environ['PATH']}", "SAID": str(said), "RUNS": runs, "HEALTH": health}
    done = subprocess.run(
        [ROOT / ".ci/container"],
        env={**os.environ, **environ, "TRIES": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(110),
    )
    return done, said.read_text().splitlines()


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_where_an_engine_runs_it_is_built_and_held_to_its_health(engine: str, tmp_path: Path) -> None:
    done, said = checked(tmp_path, engine, "healthy")
    assert done.returncode == 0, done.stderr
    assert f"the container was built and is healthy ({engine})" in done.stdout
    words = [line.split()[1] for line in said if line.startswith(f"{engine} ")]
    asks = "inspect" if engine == "docker" else "healthcheck"
    assert words == ["info", "run", "--version", "build", "run", "run", asks, "exec", "rm", "volume", "rmi"]
    first, build, init, run = (line for line in said if line.split()[1] in ("build", "run"))
    assert first.startswith(f"{engine} run --rm python:")
    assert "--file Containerfile" in build
    assert init.endswith(" ".join(INIT))
    service = compose()["services"]["goodbot"]
    for line in (init, run):
        assert "--read-only --tmpfs /tmp" in line
        assert f"--cap-drop ALL --security-opt {service['security_opt'][0].partition(':')[0]}" in line
        assert f"--shm-size {service['shm_size']}" in line
        assert ":/data" in line


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_container_that_is_not_well_is_a_failure_and_goes(engine: str, tmp_path: Path) -> None:
    done, said = checked(tmp_path, engine, "starting")
    assert done.returncode == 1
    assert "the container did not become healthy" in done.stdout
    assert [line.split()[1] for line in said[-4:]] == ["logs", "rm", "volume", "rmi"]


def test_where_no_engine_runs_it_says_that_nothing_was_built(tmp_path: Path) -> None:
    done, said = checked(tmp_path, "neither", "healthy")
    assert done.returncode == 0
    assert done.stdout == "THE CONTAINER WAS NOT BUILT: neither Docker nor Podman runs here\n"
    assert said == ["docker info", "podman info"]
    assert "step .ci/container" in (ROOT / ".ci/run").read_text()
