# SPDX-License-Identifier: Apache-2.0
"""Whatever a child dies of is in the log."""

from __future__ import annotations

import errno
import json
import logging
import os
from pathlib import Path
from typing import Any, cast

import pytest
from goodbot.base import spawn
from goodbot.base.errors import TrainingError
from goodbot.learning import worker_process
from goodbot.learning.training import attempts
from goodbot.store import Store

_TRACE = "\n".join(f"  File 'deep.py', line {n}" for n in range(60)) + "\nRuntimeError: strides"


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        (f"print(json.dumps({{'event': 'failed', 'reason': 'No.', 'trace': {_TRACE!r}}}))", _TRACE),
        (f"sys.stderr.write({_TRACE!r}); print(json.dumps({{'event': 'failed', 'reason': 'No.'}}))", _TRACE),
        (f"sys.stderr.write({_TRACE!r}); sys.exit(3)", _TRACE),
        ("sys.stderr.write('x' * (65 << 20) + '\\nthe end'); sys.exit(3)", "the end"),
    ],
)
async def test_it_is_told_whole(
    program: str, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "dying.py").write_text(f"import json, sys\nsys.stdin.readline()\n{program}\n")
    environ = {**spawn.child_environment(), "PYTHONPATH": str(tmp_path)}

    async def ignore(event: Any) -> None:
        pass

    with caplog.at_level(logging.WARNING), pytest.raises(TrainingError):
        await worker_process.run(("dying",), {}, ignore, environ=environ, who="converter")
    assert "converter: " in caplog.text
    assert seen in caplog.text


async def test_s8_what_a_child_says_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Code of a model could speak in it: 5 MB of reason were in the log, the database and an owner's chat."""
    said = "{'event': 'failed', 'reason': 'x' * (5 << 20), 'trace': 'y' * (5 << 20) + 'end'}"
    (tmp_path / "dying.py").write_text(f"import json, sys\nsys.stdin.readline()\nprint(json.dumps({said}))\n")
    environ = {**spawn.child_environment(), "PYTHONPATH": str(tmp_path)}

    async def ignore(event: Any) -> None:
        pass

    with caplog.at_level(logging.WARNING), pytest.raises(TrainingError) as caught:
        await worker_process.run(("dying",), {}, ignore, environ=environ)
    assert 0 < len(str(caught.value)) < 1000
    assert len(caplog.text) < 30_000
    assert "yend" in caplog.text


async def test_s8_what_a_child_sets_aside_is_cut_where_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The store ignores ids that are none of the run's; the log had megabytes of them."""

    class Stores:
        async def write(self, operation: Any) -> None: ...

    turns = [{"id": f"{n}" * 5000, "reason": "it is none"} for n in range(100)]
    await attempts.keep(cast("Store", Stores()), 1, {"event": "quarantine", "turns": turns}, 0.0)
    assert 0 < len(caplog.text) < 1000


@pytest.mark.parametrize(
    "said",
    [
        {"phase": "\x1b]0;title\x07"},
        {"phase": "of a newer worker"},
        {"phase": ["train"]},
        {},
        {"phase": "train", "step": "\x1b[2J"},
        {"phase": "train", "steps": -1},
        {"phase": "train", "step": True},
        {"phase": "write", "done": 1.5},
        {"phase": "train", "eta": 10**400},
    ],
)
async def test_s8_only_words_and_counts_of_the_protocol_are_passed_on(said: Any, tmp_path: Path) -> None:
    """What is told of a run reaches terminals and chats: a foreign word went there as it came."""
    good = {"event": "progress", "phase": "train", "step": 1, "steps": 2, "eta": 1.5, "loss": 0.5}
    lines = "\n".join(json.dumps(event) for event in (good, {"event": "progress", **said}))
    (tmp_path / "saying.py").write_text(f"import sys\nsys.stdin.readline()\nprint({lines!r})\n")
    environ = {**spawn.child_environment(), "PYTHONPATH": str(tmp_path)}
    heard: list[Any] = []

    async def hear(event: Any) -> None:
        heard.append(event)

    with pytest.raises(TrainingError, match="not its protocol"):
        await worker_process.run(("saying",), {}, hear, environ=environ)
    assert heard == [good]


async def test_a_machine_that_starts_no_child_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    async def ignore(event: Any) -> None:
        pass

    monkeypatch.setattr(spawn, "start", start)
    with pytest.raises(TrainingError, match=r"the trainer: it cannot be started.*close other programs"):
        await worker_process.run(("dying",), {}, ignore)
