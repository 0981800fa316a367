# SPDX-License-Identifier: Apache-2.0
"""A training run in a child process: the job goes in on stdin, events come out on stdout.

The child's crash, its running out of memory and its NaN stay its own. The job's texts are never
written to a file or a command line. See `docs/worker-protocol.md`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from goodbot.api.backend import BackendSpec
from goodbot.api.progress import PHASES
from goodbot.base import spawn
from goodbot.base.errors import TrainingError
from goodbot.base.last_lines import drain
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import reason_in

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
Answer = Callable[[Mapping[str, Any]], AsyncIterator[Mapping[str, Any]]]
"""What a child asks by its event `ask` → the lines that it gets for that."""

_LINE_LIMIT = 64 * 1024 * 1024
_LAST_WORD_SECONDS = 10.0
"""For a child that has ended its work to end itself."""
_TERMINATE_SECONDS = 0.5
"""From SIGTERM to SIGKILL: a child in a long kernel hears nothing, and what it has done is safe."""
_SILENT_SECONDS = 3600.0
"""A child that says nothing for so long hangs. Loading, scoring and the gate's samples are silent."""
_TRAINING_SECONDS = 7 * 24 * 3600
"""What all processors together may compute for a training, which tells how far it is and is never silent."""
_LAST_LINES = 200
"""Of its stderr: the traceback of an error deep in a framework."""
REASON, _TRACE = 500, 20_000
"""Characters of a child's reasons and of its last words that are kept: code of a model may speak in it."""
_PHASES = (*PHASES, "write")
"""The words of the protocol for what is being done: people are told them, but of a conversion its bytes."""
_MOST = 1 << 53
"""No count is more; a larger number would end whoever computes with it."""
_PASSED_ON = {"progress", "plan", "checkpoint", "quarantine", "learnt", "gate", "notes", "lines"}


async def train(
    backend: BackendSpec,
    job: Mapping[str, Any],
    on_event: Callable[[Mapping[str, Any]], Awaitable[None]],
    *,
    mode: str = "train",
    answer: Answer | None = None,
) -> Mapping[str, Any]:
    """Run one job to its end, or with the mode `plan` only plan it; returns the child's `done` event.

    `on_event` sees every event but the last; `answer` speaks to the server that the job's steps are
    computed on, for a child that has no network. Cancelling ends the child (SIGTERM, then
    SIGKILL), and so do a silence of an hour and a limit of what it computes. Raises TrainingError
    with the child's reason, or with how it died.
    """
    seconds = _TRAINING_SECONDS if mode == "train" else spawn.SECONDS
    return await run((backend.worker, mode, backend.factory), job, on_event, answer=answer, seconds=seconds)


async def run(
    module: Sequence[str],
    job: Mapping[str, Any],
    on_event: Callable[[Mapping[str, Any]], Awaitable[None]],
    *,
    environ: Mapping[str, str] | None = None,
    who: str = "trainer",
    answer: Answer | None = None,
    seconds: int = spawn.SECONDS,
) -> Mapping[str, Any]:
    """Run a job in any child that speaks like a trainer: `python -m MODULE …`. `who` is for errors.

    Of files it has what the job names. What an `output` that is not there lies in is its own to write.
    So many `seconds` may all processors together compute for it.

    Returns the `done` event. Raises TrainingError, also where it has left links.
    """
    cage = _cage(job, seconds)
    try:
        process = await spawn.start(
            *spawn.python("-m", *module),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
            environ=environ,
            cage=cage,
        )
    except OSError as error:
        cannot = Worded("{who}: {why}", who=_named(who), why=spawn.why_not(error))
        raise TrainingError(cannot) from error
    stderr: deque[str] = deque(maxlen=_LAST_LINES)
    draining = asyncio.create_task(drain(process, stderr), name=f"{who} log")
    try:
        last = await _converse(process, job, on_event, who, answer)
        # Its last word is said; a thread or a grandchild of it may still hold it, or its stderr.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await process.wait()
                await draining
    finally:
        await _end(process)
        draining.cancel()
    if last.get("event") == "done" and process.returncode == 0:
        await asyncio.to_thread(_look_through, cage, who)
        return last
    if last.get("event") == "failed":
        _tell(who, str(last["trace"]) if "trace" in last else "\n".join(stderr))
        raise TrainingError(reason_in(last), kind=kept(last.get("kind", "error")))
    _tell(who, "\n".join(stderr))
    raise _death(who, process.returncode)


def _named(who: str) -> str:
    """A child, as errors call it."""
    return {"trainer": Worded("the trainer"), "converter": Worded("the converter")}.get(who, f"the {who}")


def kept(said: object) -> str:
    """As much of what a child says as is told and stored."""
    return str(said)[:REASON]


async def _end(process: asyncio.subprocess.Process) -> None:
    """See that it is gone, also when we are cancelled while we wait."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_TERMINATE_SECONDS):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _death(who: str, code: int | None) -> TrainingError:
    """Of a child that has said no last word."""
    if code is None or code >= 0:
        none = "{who} ended without a result (exit code {code})"
        return TrainingError(Worded(none, who=_named(who), code=code), kind="died")
    name = signal.Signals(-code).name
    if name == "SIGXCPU":
        long = Worded("{who} computed for longer than it may and was ended", who=_named(who))
        return TrainingError(long, kind="endless")
    if name == "SIGKILL":
        killed = Worded("{who} was killed by SIGKILL (out of memory?)", who=_named(who))
        return TrainingError(killed, kind="killed")
    return TrainingError(Worded("{who} was killed by {name}", who=_named(who), name=name), kind="died")


def _cage(job: Mapping[str, Any], seconds: int) -> spawn.Cage:
    """It reads what its job names, and writes where its results go."""
    named = ("model", "parent", "frozen", "adapter", "rests_on", "onto")
    reads = [*(job.get(name) for name in named), *job.get("behaviour", {}).values()]
    writes = [Path(job[name]) for name in ("output", "checkpoints") if job.get(name)]
    return spawn.Cage(
        reads=[Path(path) for path in reads if path],
        writes=[path if path.is_dir() else path.parent for path in writes],
        first=True,  # somebody waits for what answers
        seconds=seconds,
    )


def _look_through(cage: spawn.Cage, who: str) -> None:
    """Refuse what must not be read, moved or changed from outside the cage. Raises TrainingError."""
    try:
        found = cage.foreign()
    except OSError as error:
        unread = Worded("what {who} left cannot be read ({why})", who=_named(who), why=error.strerror)
        raise TrainingError(unread) from error
    if found:
        odd = "{who} left {name}, which is no plain file"
        raise TrainingError(Worded(odd, who=_named(who), name=ascii(Path(found).name[:80])))


def _tell(who: str, words: str) -> None:
    """The child's last words, into the log: it sees to it that nobody's message is among them."""
    if words:
        logger.warning("%s: %s", who, words[-_TRACE:])


async def _converse(
    process: asyncio.subprocess.Process,
    job: Mapping[str, Any],
    on_event: Callable[[Mapping[str, Any]], Awaitable[None]],
    who: str,
    answer: Answer | None,
) -> Mapping[str, Any]:
    assert process.stdin is not None  # noqa: S101  opened as pipes
    assert process.stdout is not None  # noqa: S101
    # Many megabytes perhaps: others are answered meanwhile.
    process.stdin.write(await asyncio.to_thread(lambda: json.dumps(job).encode() + b"\n"))
    with contextlib.suppress(ConnectionError):  # it died at once; its exit code tells more
        await _patiently(process.stdin.drain(), who)
        if answer is None:
            process.stdin.close()
    last: Mapping[str, Any] = {}
    while event := await _next_event(process.stdout, who):
        last = event
        if last["event"] in _PASSED_ON:
            await on_event(last)
        elif last["event"] == "ask" and answer is not None:
            await _reply(process.stdin, last, answer, who)
    return last


async def _reply(stdin: asyncio.StreamWriter, asked: Mapping[str, Any], answer: Answer, who: str) -> None:
    """Answer what a child asks of the server that it trains on."""
    with contextlib.suppress(ConnectionError):  # it died meanwhile; its exit code tells more
        async for line in answer(asked):
            stdin.write(json.dumps({**line, "id": asked.get("id")}).encode() + b"\n")
            await _patiently(stdin.drain(), who)


async def _next_event(stdout: asyncio.StreamReader, who: str) -> Mapping[str, Any] | None:
    try:
        line = await _patiently(stdout.readline(), who)
        event = json.loads(line) if line else None
    except (ValueError, RecursionError) as error:
        raise TrainingError(
            Worded("{who} wrote something that is not its protocol", who=_named(who))
        ) from error
    if line and not _known(event):
        raise TrainingError(Worded("{who} wrote something that is not its protocol", who=_named(who)))
    return cast("Mapping[str, Any] | None", event)


def _known(event: Any) -> bool:
    """Whether it is an event, and one of progress says nothing but words and counts of the protocol.

    Code of a model may speak in it, and what is said of progress reaches terminals and chats.
    """
    said = cast("dict[str, Any]", event) if isinstance(event, dict) else {}
    if said.get("event") != "progress":
        return isinstance(said.get("event"), str)
    counts = [said.get(name, 0) for name in ("step", "steps", "done", "of")]
    whole = [value for value in said.values() if isinstance(value, int)]
    return (
        said.get("phase") in _PHASES
        and all(type(count) is int and count >= 0 for count in counts)
        and all(abs(value) < _MOST for value in whole)
    )


async def _patiently(work: Awaitable[_T], who: str) -> _T:
    """Wait for the child, but not for ever. Raises TrainingError."""
    try:
        async with asyncio.timeout(_SILENT_SECONDS):
            return await work
    except TimeoutError as error:
        silent = "{who} has said nothing for {minutes} min and was ended"
        said = Worded(silent, who=_named(who), minutes=f"{_SILENT_SECONDS / 60:g}")
        raise TrainingError(said, kind="silent") from error
