# SPDX-License-Identifier: Apache-2.0
"""T29: what every user of the machine can list of a running goodbot and its children: no token of anybody's.

A real `goodbot run` with the API and a platform, whose trainer runs meanwhile. `/proc` is read as `ps` does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import aiohttp
import pytest
from goodbot_fakes.telegram import TOKEN, FakeTelegram

from tests.connectors.telegram.fake import NAME, Driver
from tests.end_to_end.daemon import Daemon, running
from tests.end_to_end.rating import RATINGS
from tests.end_to_end.telegram import CONFIG
from tests.support import patience, require

PROC = Path("/proc")
pytestmark = pytest.mark.skipif(
    not (PROC / "self/environ").exists(), reason="this system has no /proc to look into"
)

API = """
[http]
port = {port}

[connectors.api]
"""
EXPORTED = {
    "GOODBOT_DISCORD_TOKEN": "canary-of-a-platform",
    "GOODBOT_SLACK_APP_TOKEN": "canary-of-another",
    "HF_TOKEN": "canary-of-the-hub",
    "WANDB_API_KEY": "canary-of-a-tracker",
}
"""In the shell that has started it; `TOKEN` lies in secrets.env."""


class Watch:
    """Looks at a process and all that come from it, again and again."""

    def __init__(self, root: int, tokens: list[str]) -> None:
        self._root, self._tokens = root, [token.encode() for token in tokens]
        self.lines: set[bytes] = set()
        """The command lines that were seen."""
        self.leaks: set[str] = set()

    def look(self) -> None:
        own = _read(self._root, "cmdline")
        for pid in _tree(self._root):
            line = _read(pid, "cmdline")
            self.lines.add(line)
            self._search(line, line, "command line")
            # Between fork and exec a child still shows what its parent was started with.
            if line != own:
                self._search(line, _read(pid, "environ"), "environment")

    def _search(self, line: bytes, text: bytes, where: str) -> None:
        if any(token in text for token in self._tokens):
            self.leaks.add(f"the {where} of {line.replace(bytes(1), b' ')[:120]!r}")

    def saw(self, *words: str) -> bool:
        """Whether a process with these words one after the other was there."""
        return any("\0".join(words).encode() in line for line in self.lines)


def _read(pid: int, name: str) -> bytes:
    """Empty for one that has gone."""
    try:
        return (PROC / str(pid) / name).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _tree(root: int) -> set[int]:
    """It and its descendants."""
    parents: dict[int, int] = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and (stat := _read(int(entry.name), "stat")):
            parents[int(entry.name)] = int(stat.rpartition(b")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


@pytest.fixture
async def daemon(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Daemon]:
    require("telegram")
    async with FakeTelegram() as fake:
        api_base = Driver(fake).settings.api_base
        config = CONFIG.format(ratings=RATINGS, grants="owners = []", api_base=api_base, custom="1")
        made = Daemon(tmp_path / "home", config + API.format(port=unused_tcp_port), EXPORTED)
        secrets = tmp_path / "home" / "secrets.env"
        secrets.touch(mode=0o600)
        secrets.write_text(f"{NAME}={TOKEN}\n")
        async with running(made):
            yield made


async def teach(port: int, token: str) -> None:
    """Tell the API of answers and what became of them: enough for a training."""
    from goodbot_training.tiny.corpus import split

    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as client:
        for n, question in enumerate(Random(1).sample(split(0)[0], RATINGS)):
            body = {
                "messages": [{"role": "user", "content": question.text}],
                "response": f"It is {n}.",
                "feedback": {"score": 1 if n % 2 else -1},
            }
            async with client.post("/v1/turns", json=body) as said:
                assert said.status == 201, await said.text()


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_token_not_in_proc(daemon: Daemon, unused_tcp_port: int) -> None:
    assert daemon.process is not None
    found = re.search(r"gb_[\w-]+", await daemon.cli("api", "token", "add", "me", "--admin"))
    assert found is not None
    token = found[0]
    watch = Watch(daemon.process.pid, [token, TOKEN, *EXPORTED.values()])
    watch.look()
    await teach(unused_tcp_port, token)
    async with asyncio.timeout(patience(300)):
        while not any(state != "running" for (state,) in daemon.rows("SELECT state FROM runs")):
            watch.look()
            await asyncio.sleep(0.02)
    assert watch.saw("goodbot_training.process.worker", "serve"), "its model"
    assert watch.saw("goodbot_training.process.worker", "train"), "its trainer"
    assert watch.leaks == set()

    # It would have been found: what its own shell has exported is there, what it keeps itself is not.
    own = _read(daemon.process.pid, "environ").decode()
    assert all(f"{name}={value}" in own for name, value in EXPORTED.items())
    assert TOKEN not in own
    assert token not in own
