# SPDX-License-Identifier: Apache-2.0
"""The container: what it is built of, who runs in it, and a goodbot set up there. No engine is needed."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT, pyproject
from tests.cli.setting_up import call
from tests.support import require

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
