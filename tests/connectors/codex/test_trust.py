# SPDX-License-Identifier: Apache-2.0
"""What Codex says of our hooks, and a Codex that says nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from goodbot.base.errors import FatalConnectorError
from goodbot_connectors.codex import trust
from goodbot_connectors.codex.trust import Trust

from tests.connectors.codex.peer import recorded
from tests.core.builders import until

OURS = "/people/me/.goodbot/connectors/codex/hook"


def program(folder: Path, body: str) -> str:
    """A `codex` whose app server is this Python."""
    path = folder / "codex"
    path.write_text(f"#!{sys.executable}\nimport json, os, subprocess, sys, time\n{body}")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, Trust.RUNS),
        ({"trustStatus": "untrusted"}, Trust.NEW),
        ({"isManaged": True}, Trust.RUNS),
        ({"trustStatus": "modified"}, Trust.MODIFIED),
        ({"enabled": False}, Trust.DISABLED),
        ({"command": "/theirs"}, Trust.ABSENT),
        ({"trustStatus": "of a later Codex"}, Trust.NEW),
    ],
)
def test_what_the_real_one_says(changed: dict[str, object], expected: Trust) -> None:
    listed = recorded("hooks_list")
    hooks = listed["data"][0]["hooks"]
    stop = next(one for one in hooks if one["eventName"] == "stop")
    stop.update(changed)
    listed["data"][0]["warnings"] = ["loading hooks from both"]
    asked = trust.read(listed, OURS)
    assert asked.hooks == {"UserPromptSubmit": Trust.RUNS, "Stop": expected}
    assert asked.warnings == ("loading hooks from both",)


async def test_it_is_asked_as_it_wants_to_be(tmp_path: Path) -> None:
    said = tmp_path / "said"
    codex = program(
        tmp_path,
        f"said = open({str(said)!r}, 'w')\n"
        'print(\'{"method": "configWarning"}\', flush=True)\n'
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    said.write(asked['method'] + ' ' + os.environ['CODEX_HOME'] + '\\n')\n"
        "    said.flush()\n"
        "    if 'id' in asked: print(json.dumps({'id': asked['id'], 'result': {'data': []}}), flush=True)\n",
    )
    asked = await trust.ask(codex, tmp_path, OURS)
    assert set(asked.hooks.values()) == {Trust.ABSENT}
    methods = [line.split()[0] for line in said.read_text().splitlines()]
    assert methods == ["initialize", "initialized", "hooks/list"]
    assert said.read_text().splitlines()[0].endswith(str(tmp_path))


@pytest.mark.parametrize(
    "body",
    [
        "sys.exit(3)",
        "print('no JSON', flush=True); sys.stdin.read()",
        'print(\'{"id": 1, "error": {"message": "no"}}\', flush=True); sys.stdin.read()',
    ],
)
async def test_one_that_answers_otherwise_is_a_sentence(tmp_path: Path, body: str) -> None:
    with pytest.raises(FatalConnectorError, match="did not say what it does with hooks"):
        await trust.ask(program(tmp_path, body), tmp_path, OURS)


async def test_one_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(FatalConnectorError, match=r"within 0\.2 s"):
        await trust.ask(program(tmp_path, "time.sleep(600)"), tmp_path, OURS, seconds=0.2)


async def test_one_that_will_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    codex = program(
        tmp_path,
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r} + '.new', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(pids)!r} + '.new', {str(pids)!r})\n"
        "time.sleep(600)\n",
    )
    asking = asyncio.create_task(trust.ask(codex, tmp_path, OURS, seconds=60))
    await until(pids.exists, seconds=30)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    for pid in map(int, pids.read_text().split()):
        await until(lambda pid=pid: not alive(pid), seconds=30)


def alive(pid: int) -> bool:
    """Not gone, and no zombie that somebody else has to bury."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_one_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FatalConnectorError, match="cannot be started"):
        await trust.ask(str(tmp_path / "none"), tmp_path, OURS)
