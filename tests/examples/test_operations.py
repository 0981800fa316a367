# SPDX-License-Identifier: Apache-2.0
"""docs/operations.md: every command and every table on the page is run."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from goodbot.base.log import IDS, JsonFormatter
from goodbot.config import parse

from tests.cli.program import Bot, need_backend
from tests.core.cli.service.manager import FakeManager
from tests.examples.support import ROOT
from tests.support import require, require_program

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.S)
    for line in block.splitlines()
]


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Bot]:
    bot = Bot(tmp_path / "home")
    yield bot
    bot.stop(signal.SIGKILL)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManager:
    """A person's home directory with systemd, and goodbot on PATH."""
    monkeypatch.setattr("sys.platform", "linux")
    machine = FakeManager(tmp_path, monkeypatch, ("systemctl", "loginctl"))
    program = machine.base / "bin" / "goodbot"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m goodbot "$@"\n')
    program.chmod(0o755)
    for folder in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        (machine.person / folder).mkdir(parents=True)
    return machine


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [require_program("bash"), "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PIP_NO_INDEX": "1"},
    )


def test_every_goodbot_command_of_the_page_does_what_it_says(machine: FakeManager) -> None:
    commands = [command for command in COMMANDS if command.startswith("goodbot ")]
    assert len(commands) == 8
    for command in commands:
        done = shell(command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    for name in (
        ".local/share/bash-completion/completions/goodbot",
        ".zfunc/_goodbot",
        ".config/fish/completions/goodbot.fish",
    ):
        assert "service" in (machine.person / name).read_text()
    verbs = [call.split()[2] for call in machine.calls() if call.startswith("systemctl")]
    assert verbs == [
        *("daemon-reload", "enable", "reset-failed", "restart") * 2,
        "disable",
        "reset-failed",
        "daemon-reload",
    ]


def test_a_daemon_with_the_pages_settings_answers_the_pages_addresses(bot: Bot, unused_tcp_port: int) -> None:
    need_backend()
    require("opentelemetry.exporter.otlp.proto.http")
    settings = "".join(re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S))
    assert parse(settings, home=bot.home).http.port == 8321
    bot.home.mkdir(mode=0o700)
    (bot.home / "config.toml").write_text(settings.replace("8321", str(unused_tcp_port)))
    bot.start(GOODBOT_METRICS_TOKEN="0123456789abcdef" * 3)
    asked = [command for command in COMMANDS if command.startswith("curl ")]
    require_program("curl")
    answers = [json.loads(shell(command.replace("8321", str(unused_tcp_port))).stdout) for command in asked]
    assert [answer["status"] for answer in answers] == ["ok", "ready"]
    second = bot.call("run", "--demo-model")
    assert (second.returncode, "already running" in second.stderr) == (75, True), "not: the port"
    for line in bot.log.read_text().splitlines():
        assert {"ts", "level", "logger", "msg"} <= json.loads(line).keys()


def test_the_line_of_the_log_is_one_of_ours() -> None:
    [example] = re.findall(r"```json\n(.*?)```", PAGE, flags=re.S)
    line = json.loads(example)
    record = logging.LogRecord(line["logger"], logging.INFO, "", 1, line["msg"], (), None)
    record.run = line["run"]
    made = json.loads(JsonFormatter().format(record))
    assert made.keys() == line.keys()
    assert {key: made[key] for key in made if key != "ts"} == {key: line[key] for key in line if key != "ts"}
    assert all(f"`{name}`" in PAGE for name in IDS if name != "plugin")
