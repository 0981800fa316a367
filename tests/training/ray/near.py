# SPDX-License-Identifier: Apache-2.0
"""A cluster without Ray: the same line, workers and shards, as threads of this process."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Coroutine
from functools import partialmethod
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from goodbot.base.errors import TrainingError
from goodbot_training.backends.asking import RemoteReply
from goodbot_training.backends.ray import worker
from goodbot_training.backends.ray.line import END, STATE, OrderLine
from goodbot_training.process.shard import Shard

from tests.support import patience


class Sums:
    """Adds up what so many threads give, in their order."""

    def __init__(self, count: int) -> None:
        self._all, self._count = threading.Barrier(count), count
        self._given: dict[int, Any] = {}

    def of(self, number: int) -> Callable[[bytes], bytes]:
        import numpy as np

        def summed(numbers: bytes) -> bytes:
            self._given[number] = np.frombuffer(numbers, np.float32)
            self._all.wait(patience(60))
            whole = sum(self._given[one] for one in range(1, self._count)) + self._given[0]
            self._all.wait(patience(60))
            return np.asarray(whole, np.float32).tobytes()

        return summed

    def lost(self) -> None:
        self._all.abort()


class Near:
    """Answers as the driver does. Before the order number `lose`, once, all workers are lost."""

    def __init__(self, workers: int, model: Path, lose: int | None = None) -> None:
        self.workers, self.model, self.lose = workers, model, lose
        self.line: OrderLine | None = None
        self.sent = self.got = 0
        self._state, self._about = bytearray(), dict[str, Any]()
        self._tasks: list[asyncio.Task[None]] = []
        self._sums = Sums(workers)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._now(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(patience(20))
        self._loop.close()

    def __call__(self, method: str, path: str, body: Any = None, file: BinaryIO | None = None) -> RemoteReply:
        """See `goodbot_training.backends.asking.AskServer`."""
        self.sent += len(text := json.dumps(body))
        try:
            return self._now(self._answer(method, path, json.loads(text), file))
        except TrainingError as error:
            return RemoteReply(status=500, text=json.dumps({"kind": error.kind, "reason": str(error)}))

    def _now(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(patience(120))

    async def _answer(self, method: str, path: str, body: Any, file: BinaryIO | None) -> RemoteReply:
        if (method, path) == ("POST", "state"):
            self._state = bytearray() if body["first"] else self._state
            self._state += base64.b64decode(body["part"])
        elif path == "begin":
            await self._stop()
            self._about = {**body, "model": str(self.model)}
            self.line = OrderLine(bytes(self._state), ["10.0.0.5"])
            self._start()
        elif path == "step":
            found, _ = await self._ordered({"what": "step", "batch": body})
            return RemoteReply(status=200, text=json.dumps(found["done"]))
        elif path == "state" and file is not None:
            _, state = await self._ordered({"what": STATE})
            self.got += file.write(state)
        else:
            await self._stop()
        return RemoteReply(status=200)

    async def _ordered(self, order: dict[str, Any]) -> Any:
        assert self.line is not None
        number = await self.line.give(order)
        if number == self.lose:
            self.lose = None
            await self._lost()
            self._start()
        found, body = await self.line.result(number)
        if failed := found.get("failed"):
            raise TrainingError(failed["reason"], kind=failed["kind"])
        return found, body

    def _start(self) -> None:
        assert self.line is not None
        self._sums = Sums(self.workers)
        self._tasks = [
            asyncio.create_task(
                worker.serve(
                    self.line,
                    _started,
                    self._about,
                    number=number,
                    of=self.workers,
                    address="127.0.0.2",
                    summed=self._sums.of(number),
                )
            )
            for number in range(self.workers)
        ]

    async def _lost(self) -> None:
        self._sums.lost()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stop(self) -> None:
        if self.line is not None:
            await self.line.give({"what": END})
            await asyncio.wait(self._tasks, timeout=patience(20))
            self.line = None


async def _started(model: Path) -> worker.Pipes:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)

    def run() -> None:
        # Who asks may be gone: a process would end there.
        quietly = contextlib.suppress(ConnectionError)
        with quietly, theirs, theirs.makefile("rb") as stdin, theirs.makefile("wb") as out:
            Shard(stdin, out).work()

    threading.Thread(target=run, daemon=True).start()

    async def last_words() -> str:
        return "."

    return worker.Pipes(writer=writer, reader=reader, last_words=last_words)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of one process take turns in what sets up a library for all of it."""
    from goodbot_training.backends.torch.trainer import TorchBackend

    turn = threading.RLock()

    def in_turn(own: Any, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        with turn:
            return work(own, *given, **named)

    for name in ("load", "_backward"):
        monkeypatch.setattr(TorchBackend, name, partialmethod(in_turn, getattr(TorchBackend, name)))
