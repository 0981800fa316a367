# SPDX-License-Identifier: Apache-2.0
"""The child process that holds the model: the `serve` half of `docs/worker-protocol.md`.

Requests are told apart by their ids, so any number may be under way. A child that is silent for too long
while somebody waits hangs, and is killed; whoever waits is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from goodbot.api.backend import BackendSpec
from goodbot.base import spawn
from goodbot.base.errors import AdapterError, ServerError, message_of
from goodbot.base.last_lines import drain
from goodbot.base.worded import Worded
from goodbot.inference.servers import sampler_lines
from goodbot.inference.servers.sampler_lines import Answer, AnswerQueue

logger = logging.getLogger(__name__)

_STOP_SECONDS = 5.0
_START_SECONDS = 600.0
_SILENT_SECONDS = 300.0
"""A child that says nothing to anybody for so long, while somebody waits, hangs. Reading a long
prompt on a slow machine is silent."""
_LAST_LINES = 200
"""Of its stderr."""
_PIECES = ("text", "thought")
"""Events behind which more of an answer comes."""


class SamplerProcess:
    """One child at a time, of one backend on one model. Methods raise ServerError."""

    def __init__(self, backend: BackendSpec, model: Path, environ: Mapping[str, str], adapters: Path) -> None:
        """`adapters` holds whatever it will be told to load."""
        self._backend, self._model, self._environ = backend, model, environ
        self._cage = spawn.Cage(reads=(model, adapters), seconds=None)
        self._adapters = adapters
        self._seen: os.stat_result | None = None
        """The directory that the child's cage was built around."""
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._said: deque[str] = deque()
        """The last lines of its stderr, where it tells what it died of."""
        self._draining: asyncio.Task[None] | None = None
        self._answers: dict[str, AnswerQueue] = {}
        self._ids = itertools.count(1)
        self._open: set[str] = set()
        """Requests whose last answer has not come."""
        self._heard = 0.0
        """When the child said something last, or was asked while nobody waited, on the event loop's clock."""
        self._watch: asyncio.TimerHandle | None = None
        self._end = ""
        """Why we killed it, if we did."""

    async def start(self) -> None:
        """Begin anew, with the base model; returns when it is ready."""
        await self.stop()
        try:
            for path in self._cage.reads[1:]:  # what is not there yet could not be read later
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._seen = _there(self._adapters)
            self._process = process = await spawn.start(
                *spawn.python("-m", self._backend.worker, "serve", self._backend.factory),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=sampler_lines.LINE_LIMIT,
                environ=self._environ,
                cage=self._cage,
            )
        except OSError as error:
            raise ServerError(Worded("the sampler process: {why}", why=spawn.why_not(error))) from error
        self._said = deque(maxlen=_LAST_LINES)
        self._draining = asyncio.create_task(drain(process, self._said), name="sampler log")
        self._answers, self._open = {}, set()
        self._end = ""
        first: Answer = {}
        try:
            await self._send({"protocol": 1, "model": str(self._model), "seed": 0})
            async with asyncio.timeout(_START_SECONDS):
                line = await process.stdout.readline() if process.stdout else b""
                at_once = Worded("the sampler process ended at once")
                first = sampler_lines.answer(line) if line else {"reason": at_once}
        except (TimeoutError, OSError, ValueError) as error:
            first = {"reason": Worded("the sampler process did not come up ({why})", why=message_of(error))}
        finally:
            if first.get("event") != "ready":
                await self.stop()
        if first.get("event") != "ready":
            _tell({"trace": "\n".join(self._said), **first})
            why = first.get("reason", Worded("the sampler process is not ready"))
            raise ServerError(sampler_lines.reason(why))
        self._reader = asyncio.create_task(self._read(process), name="sampler answers")

    async def stop(self) -> None:
        """End it, and what it is writing; idempotent."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            assert process.stdin is not None  # noqa: S101  opened as a pipe
            process.stdin.close()
            await _ended(process)
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None
        await self._drained()

    def alive(self) -> bool:
        """Whether it can answer."""
        return (
            self._process is not None
            and self._process.returncode is None
            and not self._end
            and self._reader is not None
        )

    def reaches_adapters(self) -> bool:
        """Whether the child can read what is there now: its cage is closed to a directory made anew."""
        now = _there(self._adapters)
        return now is not None and self._seen is not None and os.path.samestat(now, self._seen)

    async def call(self, op: str, **fields: Any) -> Answer:
        """Its one answer to a request. Raises AdapterError where the adapter is to blame."""
        async with self.request(op, **fields) as answers:
            return await anext(answers)

    @contextlib.asynccontextmanager
    async def request(self, op: str, **fields: Any) -> AsyncGenerator[AsyncGenerator[Answer, None], None]:
        """Its answers to a request, as they come. Leaving before the last one cancels it."""
        if not self.alive():
            raise ServerError(Worded("the model is not running"))
        id_, queue = str(next(self._ids)), AnswerQueue()
        self._answers[id_] = queue
        last = False

        async def answers() -> AsyncGenerator[Answer, None]:
            nonlocal last
            while True:
                answer = await queue.get()  # it comes, or the child has ended, or is ended by `_look`
                last = answer["event"] not in _PIECES
                _raise_if_error(answer)
                yield answer

        if not self._open:
            self._heard = asyncio.get_running_loop().time()
        self._open.add(id_)
        if self._watch is None:
            self._look()
        try:
            await self._send({"id": id_, "op": op, **fields})
            async with contextlib.aclosing(answers()) as stream:
                yield stream
        finally:
            self._answers.pop(id_, None)
            self._open.discard(id_)
            if not last and op == "generate":
                self._cancel(id_)

    def _cancel(self, id_: str) -> None:
        """Without waiting: whoever left may be cancelled itself."""
        process = self._process
        if self.alive() and process is not None and process.stdin is not None:
            line = {"id": str(next(self._ids)), "op": "cancel", "target": id_}
            process.stdin.write(json.dumps(line).encode() + b"\n")

    def _look(self) -> None:
        """End a child that has been silent for too long while somebody waits, or look again."""
        loop, self._watch = asyncio.get_running_loop(), None
        silent = loop.time() - self._heard
        if self._open and silent >= _SILENT_SECONDS:
            self._kill(Worded("it said nothing for {seconds} s and was ended", seconds=round(silent)))
        elif self._open:
            self._watch = loop.call_later(_SILENT_SECONDS - silent, self._look)

    def _kill(self, why: str) -> None:
        """End a child that hangs; `_read` tells all that wait, and the next `start` replaces it."""
        if self._process is not None and self._process.returncode is None and not self._end:
            logger.error("the sampler process: %s", why)
            self._end = why
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _send(self, line: Answer) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise ServerError(Worded("the model is not running"))
        try:
            process.stdin.write(json.dumps(line).encode() + b"\n")
            async with asyncio.timeout(_SILENT_SECONDS):
                await process.stdin.drain()
        except TimeoutError as error:
            self._kill(Worded("it reads nothing any more and was ended"))
            raise ServerError(Worded("the sampler process hangs")) from error
        except (ConnectionError, RuntimeError) as error:
            self._end = self._end or Worded("before it was asked")
            raise ServerError(Worded("the sampler process ended ({why})", why=self._end)) from error

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand each answer to whoever asked; at the end, tell all that are still waiting."""
        try:
            async for answer, size in sampler_lines.lines(process):
                self._heard = asyncio.get_running_loop().time()
                id_ = str(answer.get("id"))
                if answer["event"] not in _PIECES:
                    self._open.discard(id_)
                if (queue := self._answers.get(id_)) is not None:
                    _tell(answer)
                    queue.size += size
                    if queue.size > sampler_lines.LINE_LIMIT:
                        raise ValueError("that answer is too long")
                    queue.put_nowait(answer)
        except ValueError:
            logger.error("the sampler process wrote something that is not its protocol")
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await sampler_lines.throw_away(process)
        code = await _ended(process)  # whoever closes the conversation has nothing to do any more
        end = self._end or Worded("exit code {code}", code=code)
        reason = Worded("the sampler process ended ({why})", why=end)
        unasked = self._process is process
        for queue in self._answers.values():
            queue.put_nowait({"event": "error", "reason": reason})
        await self._drained()
        if unasked:
            _tell({"trace": "\n".join(self._said)})

    async def _drained(self) -> None:
        """It has ended, and its last words have come; another that holds its stderr is not waited for."""
        if self._draining is not None:
            await asyncio.wait({self._draining}, timeout=_STOP_SECONDS)
            self._draining.cancel()


async def _ended(process: asyncio.subprocess.Process) -> int:
    """The exit code of a child that is to end by itself; one that does not is killed.

    Not killed at once: `kill` polls the child first, which takes its exit code from asyncio.
    """
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            return await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        return await process.wait()


def _there(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _tell(answer: Answer) -> None:
    """Where an error came from, into the log; nobody's message is in it."""
    if trace := answer.get("trace"):
        logger.error("the sampler process: %s", sampler_lines.trace(trace))


def _raise_if_error(answer: Answer) -> None:
    if answer["event"] == "error":
        reason = sampler_lines.reason(answer.get("reason", Worded("the model server failed")))
        raise AdapterError(reason) if answer.get("kind") == "adapter" else ServerError(reason)
