# SPDX-License-Identifier: Apache-2.0
"""What the child that holds the model says: all of it into the log, and nothing into a terminal."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.base import spawn
from goodbot.base.errors import ServerError
from goodbot.inference.servers import sampler_lines
from goodbot.inference.servers.sampler_process import SamplerProcess
from goodbot.testing.patience import patience

from tests.core.builders import SPEC, until

_TRACE = "\n".join(f"  File 'deep.py', line {n}" for n in range(60)) + "\nRuntimeError: strides"
_SAYS = f"sys.stderr.write('\\x1b]0;title\\x07' + {_TRACE!r}); sys.stderr.flush()"
_READY = "print(json.dumps({'event': 'ready'}), flush=True)"
_OK = "print(json.dumps({'event': 'ok', 'id': '1'}), flush=True)"


def sampler(directory: Path, program: str) -> SamplerProcess:
    code = f"import json, os, sys\nsys.stdin.readline()\n{program}\n"
    (directory / "dying.py").write_text(code)
    environ = {**spawn.child_environment(), "PYTHONPATH": str(directory)}
    return SamplerProcess(replace(SPEC, worker="dying"), directory, environ, directory / "adapters")


def logged(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("end", ["sys.exit(3)", "os.abort()", "print('{}', flush=True); sys.stdin.read()"])
async def test_what_one_says_that_does_not_come_up_is_told_whole(
    tmp_path: Path, end: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ServerError):
        await sampler(tmp_path, f"{_SAYS}; {end}").start()
    assert _TRACE in logged(caplog)
    assert "title" not in capfd.readouterr().err


@pytest.mark.parametrize("end", ["sys.exit(3)", "os.abort()", "print('?', flush=True); sys.stdin.read()"])
async def test_what_one_dies_of_is_told_whole(
    tmp_path: Path, end: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    one = sampler(tmp_path, f"{_READY}; sys.stdin.readline(); {_SAYS}; {end}")
    await one.start()
    with pytest.raises(ServerError, match="ended"):
        await one.call("served")
    await until(lambda: _TRACE in logged(caplog), seconds=30)
    await one.stop()
    assert "title" not in capfd.readouterr().err


async def test_one_that_is_stopped_takes_its_words_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = sampler(tmp_path, f"{_SAYS}; {_READY}; sys.stdin.read()")
    await one.start()
    await one.stop()
    assert logged(caplog) == ""


async def test_it_is_never_held_up_by_what_it_says(tmp_path: Path) -> None:
    """Its pipe is read: else it would wait for room in there."""
    much = "sys.stderr.write('x' * (9 << 20))"
    one = sampler(tmp_path, f"{_READY}; sys.stdin.readline(); {much}; {_OK}")
    await one.start()
    async with asyncio.timeout(patience(60)):
        assert (await one.call("served"))["event"] == "ok"
    await one.stop()


async def test_s8_what_it_says_of_an_error_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Code of a model could speak in it: 5 MB of reason went to whoever asked, 5 MB of trace into the log."""
    said = "{'event': 'error', 'id': '1', 'reason': 'x' * (5 << 20), 'trace': 'y' * (5 << 20) + 'end'}"
    unasked = "print(json.dumps({'event': 'error', 'id': '7', 'trace': 'nobody has asked'}))"
    says = f"print(json.dumps({said}), flush=True)"
    one = sampler(tmp_path, f"{_READY}; sys.stdin.readline(); {unasked}; {says}; sys.stdin.read()")
    await one.start()
    with pytest.raises(ServerError) as caught:
        await one.call("served")
    await one.stop()
    assert 0 < len(str(caught.value)) < 1000
    assert len(logged(caplog)) < 30_000
    assert "yend" in logged(caplog)
    assert "nobody has asked" not in logged(caplog)


async def test_26_4_an_answer_that_grows_and_grows_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asked was slow to take its pieces, and all of them waited in goodbot's memory."""
    monkeypatch.setattr(sampler_lines, "LINE_LIMIT", 1 << 20)
    piece = "print(json.dumps({'event': 'text', 'id': '1', 'text': 'x' * 99_000}), flush=True)"
    one = sampler(tmp_path, f"{_READY}; sys.stdin.readline()\nwhile True: {piece}")
    await one.start()
    async with one.request("generate") as answers:
        await until(lambda: not one.alive(), seconds=60)
        with pytest.raises(ServerError, match="ended"):
            async for _ in answers:
                pass
    await one.stop()
    assert "not its protocol" in logged(caplog)


@pytest.mark.parametrize("line", [b"[" * 200_000, b'{"event": ' + b"[" * 200_000, b"7", b"{}"])
def test_a_line_that_is_no_answer_is_told_as_one(line: bytes) -> None:
    """One that lies deep in itself ended whoever read it, and all who waited did so for ever."""
    with pytest.raises(ValueError):
        sampler_lines.answer(line)
