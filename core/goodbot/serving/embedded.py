"""The embedded server: one sampler child that holds the model; adapters are swapped in place.

The child speaks the `serve` half of `docs/worker-protocol.md` on its stdin and stdout. If it dies,
or is killed because it was silent for too long while somebody waited, the request in flight fails
and the next `start` brings it back with the base model; the reconciler then loads what should be
active.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

from goodbot.backend import BackendSpec
from goodbot.errors import AdapterError, ServerError
from goodbot.server import BASE, Generated, GenerateRequest, Server

logger = logging.getLogger(__name__)

_LINE_LIMIT = 64 * 1024 * 1024
_STOP_SECONDS = 5.0
_START_SECONDS = 600.0
_SILENT_SECONDS = 300.0
"""A child that says nothing to anybody for so long, while somebody waits, hangs. Reading a long
prompt on a slow machine is silent."""


class EmbeddedServer(Server):
    """A child process that samples with one backend."""

    def __init__(
        self, backend: BackendSpec, model: Path, *, environ: dict[str, str] | None = None
    ) -> None:
        self._backend = backend
        self._model = model
        self._environ = environ
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._answers: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self._ids = itertools.count(1)
        self._loaded: set[int] = set()
        self._active = BASE
        self._heard = 0.0
        """When the child said something last, on the event loop's clock."""
        self._end = ""
        """Why we killed it, if we did."""

    async def start(self) -> None:
        await self.stop()
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._backend.worker, "serve", self._backend.factory,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT, env=self._environ,
        )  # fmt: skip
        self._answers = {}
        self._end = ""
        self._forget()
        first: dict[str, Any] = {}
        try:
            await self._send({"protocol": 1, "model": str(self._model), "seed": 0})
            async with asyncio.timeout(_START_SECONDS):
                first = await _next_line(process) or {"reason": "the sampler process ended at once"}
        except (TimeoutError, OSError, ValueError) as error:
            first = {"reason": f"the sampler process did not come up ({error})"}
        finally:
            if first.get("event") != "ready":
                await self.stop()
        if first.get("event") != "ready":
            raise ServerError(str(first.get("reason", "the sampler process is not ready")))
        self._reader = asyncio.create_task(self._read(process), name="sampler answers")

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            assert process.stdin is not None  # noqa: S101  opened as a pipe
            process.stdin.close()
            await _ended(process)
        if self._reader is not None:
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None

    def healthy(self) -> bool:
        return (
            self._process is not None
            and self._process.returncode is None
            and not self._end
            and self._reader is not None
        )

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[str | Generated, None]:
        async with self._request(
            "generate", messages=list(request.messages), max_tokens=request.max_tokens,
            temperature=request.temperature, seed=request.seed, version=request.version,
        ) as (id_, answers):  # fmt: skip
            try:
                while True:
                    answer = await self._next(answers)
                    if answer["event"] == "text":
                        yield str(answer["text"])
                        continue
                    _raise_if_error(answer)
                    yield Generated(
                        text=str(answer["text"]),
                        version=int(answer["version"]),
                        finish=str(answer["finish"]),
                        prompt_tokens=tuple(answer.get("prompt_tokens") or ()),
                        tokens=tuple(answer.get("tokens") or ()),
                        logprobs=tuple(answer.get("logprobs") or ()),
                    )
                    return
            except (GeneratorExit, asyncio.CancelledError):
                with contextlib.suppress(ServerError):
                    await self._send({"id": next(self._ids), "op": "cancel", "target": id_})
                raise

    async def load(self, version: int, directory: Path) -> None:
        if version != BASE and version not in self._loaded:
            await self._call("load", version=version, path=str(directory))
            self._loaded.add(version)

    async def activate(self, version: int) -> None:
        await self._call("activate", version=version)
        self._active = version

    async def unload(self, version: int) -> None:
        if version in self._loaded:
            await self._call("unload", version=version)
            self._loaded.discard(version)

    async def served(self) -> int:
        version = int((await self._call("served")).get("version", BASE))
        if version != self._active:  # it has lost its adapters: load them anew when asked
            self._forget()
            self._active = version
        return version

    def _forget(self) -> None:
        self._loaded = set()
        self._active = BASE

    async def _call(self, op: str, **fields: Any) -> dict[str, Any]:
        async with self._request(op, **fields) as (_, answers):
            answer = await self._next(answers)
        _raise_if_error(answer)
        return answer

    @contextlib.asynccontextmanager
    async def _request(
        self, op: str, **fields: Any
    ) -> AsyncGenerator[tuple[str, asyncio.Queue[dict[str, Any]]], None]:
        if not self.healthy():
            raise ServerError("the model is not running")
        id_ = str(next(self._ids))
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answers[id_] = answers
        try:
            await self._send({"id": id_, "op": op, **fields})
            yield id_, answers
        finally:
            self._answers.pop(id_, None)

    async def _next(self, answers: asyncio.Queue[dict[str, Any]]) -> dict[str, Any]:
        """The next answer to a request; it comes, or the child has ended, or it is killed here."""
        while True:
            try:
                async with asyncio.timeout(_SILENT_SECONDS):
                    return await answers.get()
            except TimeoutError:  # it may be busy with somebody else's answer, and tell that one
                silent = asyncio.get_running_loop().time() - self._heard
                if silent >= _SILENT_SECONDS:
                    self._kill(f"it said nothing for {silent:.0f} s and was ended")

    def _kill(self, why: str) -> None:
        """End a child that hangs; `_read` tells all that wait, and the next `start` replaces it."""
        if self._process is not None and self._process.returncode is None and not self._end:
            logger.error("the sampler process: %s", why)
            self._end = why
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _send(self, line: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise ServerError("the model is not running")
        try:
            process.stdin.write(json.dumps(line).encode() + b"\n")
            async with asyncio.timeout(_SILENT_SECONDS):
                await process.stdin.drain()
        except TimeoutError as error:
            self._kill("it reads nothing any more and was ended")
            raise ServerError("the sampler process hangs") from error
        except (ConnectionError, RuntimeError) as error:
            raise ServerError("the sampler process has ended") from error

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand each answer to whoever asked; at the end, tell all that are still waiting."""
        try:
            while (answer := await _next_line(process)) is not None:
                self._heard = asyncio.get_running_loop().time()
                queue = self._answers.get(str(answer.get("id")))
                if queue is not None:
                    queue.put_nowait(answer)
        except ValueError:
            logger.error("the sampler process wrote something that is not its protocol")
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        code = await _ended(process)  # whoever closes the conversation has nothing to do any more
        for queue in self._answers.values():
            queue.put_nowait(
                {
                    "event": "error",
                    "reason": f"the sampler process ended ({self._end or f'exit code {code}'})",
                }
            )


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


async def _next_line(process: asyncio.subprocess.Process) -> dict[str, Any] | None:
    assert process.stdout is not None  # noqa: S101  opened as a pipe
    line = await process.stdout.readline()
    if not line:
        return None
    answer = json.loads(line)
    if not isinstance(answer, dict) or "event" not in answer:
        raise ValueError("that is no answer")
    return cast("dict[str, Any]", answer)


def _raise_if_error(answer: dict[str, Any]) -> None:
    if answer["event"] == "error":
        reason = str(answer.get("reason", "the model server failed"))
        raise AdapterError(reason) if answer.get("kind") == "adapter" else ServerError(reason)
