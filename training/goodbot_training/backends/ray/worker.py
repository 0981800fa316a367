# SPDX-License-Identifier: Apache-2.0
"""What Ray runs on each machine: orders in, sums over the network, and a child in a cage that computes.

This process has a network and people's words, as the driver has, and reads no foreign file. Its child holds
the base and has no network. So what a file of weights makes of its reader has no way to the cluster.
"""

# pyright: standard, reportMissingImports=false
# (the framework ships no complete types)

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodbot.base import cage, full_disk, heard, spawn
from goodbot.base.errors import TrainingError
from goodbot.base.last_lines import drain
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import parts_of, reason_in

from goodbot_training.backends.ray import wire
from goodbot_training.backends.ray.line import END, Orders, Result

_LAST_LINES, _LAST_SECONDS = 20, 10.0
_KIND = 20
"""Characters of the kind of a failure that are passed on."""
_ENDS = ("done", "failed")
_SECONDS = 7 * 24 * 3600
"""What all processors together may compute for it, as for a trainer."""

Sum = Callable[[bytes], bytes]
"""A vector of fp32 → its sum over all workers. It blocks."""


@dataclass(frozen=True, kw_only=True)
class Pipes:
    """A shard's two ends, and what it says when it ends unasked."""

    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    last_words: Callable[[], Awaitable[str]]

    async def do(self, order: Mapping[str, Any], summed: Sum) -> Result:
        """Have one order done; what is `done`, or what `failed`.

        Raises EOFError, ConnectionError: the shard is gone, or says what no shard says.
        """
        await wire.send(self.writer, order)
        while True:
            head, body = await wire.receive(self.reader)
            what, found = head.get("what"), head.get("found")
            if what in _ENDS and isinstance(found, dict):
                return {str(what): found}, body
            if what != "add":
                raise ConnectionError("that is no answer of a shard's")
            await wire.send(self.writer, {}, await asyncio.to_thread(summed, body))


async def serve(
    orders: Orders,
    start: Callable[[Path], Awaitable[Pipes]],
    told: Mapping[str, Any],
    *,
    number: int,
    of: int,
    address: str,
    summed: Sum,
) -> None:
    """Be worker `number` of so many, until the line ends. Raises TrainingError where its child is gone."""
    cage.hidden.update(told.get("hidden", ()))  # this may be the machine on which goodbot itself runs
    at, state = await orders.begin(address)
    pipes = await start(Path(told["model"]))
    try:
        await wire.send(pipes.writer, {**told, "number": number, "of": of}, state)
        while (order := await orders.order(at))["what"] != END:
            found, body = await pipes.do(order, summed)
            if (failed := found.get("failed")) is not None:
                failed = _of(address, failed)
                found = {"failed": failed}
            if failed or not number:  # all of them have come to the same, and a failure may be one's own
                await orders.done(at, found, body)
            if failed and failed["kind"] != "nan":
                raise TrainingError(reason_in(failed), kind=failed["kind"])
            at += 1
    except (EOFError, ConnectionError) as error:
        why = await pipes.last_words()
        none = "{address}: a worker's child ended without a result{why}"
        raise TrainingError(Worded(none, address=address, why=why), kind="died") from error
    finally:
        pipes.writer.close()  # the child ends with it


def _of(address: str, failed: Mapping[str, Any]) -> dict[str, Any]:
    """A failure as another machine is told it: what is full there is not full here, and it is cut."""
    kind, reason = str(failed.get("kind"))[:_KIND], reason_in(failed)
    if kind != "nan":
        reason = Worded("{address}: {why}", address=address, why=reason)
    return {"kind": "error" if kind == full_disk.KIND else kind, "reason": reason, **parts_of(reason)}


async def caged(model: Path) -> Pipes:
    """A shard as a process in a cage, which ends with this one."""
    process = await spawn.start(
        *spawn.python("-m", "goodbot_training.process.shard"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cage=spawn.Cage(reads=[model], first=True, seconds=_SECONDS),
    )
    lines: deque[str] = deque(maxlen=_LAST_LINES)
    draining = asyncio.create_task(drain(process, lines), name="shard log")
    assert process.stdin is not None  # noqa: S101  opened as pipes
    assert process.stdout is not None  # noqa: S101

    async def last_words() -> str:
        await asyncio.wait({draining}, timeout=_LAST_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await process.wait()
        await heard.end(process)  # where it goes on, for it is no shard any more
        code = process.returncode
        return f" (exit code {code}): {lines[-1]}" if lines else f" (exit code {code})."

    return Pipes(writer=process.stdin, reader=process.stdout, last_words=last_words)


class _Far:
    """A line that is an actor of the cluster."""

    def __init__(self, line: Any) -> None:
        self._line = line

    async def begin(self, address: str) -> tuple[int, bytes]:
        return await self._got(self._line.begin.remote(address))

    async def order(self, number: int) -> dict[str, Any]:
        return await self._got(self._line.order.remote(number))

    async def done(self, number: int, found: dict[str, Any], body: bytes) -> None:
        await self._got(self._line.done.remote(number, found, body))

    async def _got(self, promised: Any) -> Any:
        import ray

        return await asyncio.to_thread(ray.get, promised)


def _address(here: str, nodes: Sequence[Mapping[str, Any]]) -> str:
    """As the cluster knows this machine; what it could find out by itself may be another way to it."""
    return next(str(node["NodeManagerAddress"]) for node in nodes if node["NodeID"] == here)


def work(config: Mapping[str, Any]) -> None:
    """Ray Train's `train_loop_per_worker`: `line`, and what each shard is `told`."""
    import ray
    import ray.train

    from goodbot_training.backends.torch.sharing import over_network

    context = ray.train.get_context()
    asyncio.run(
        serve(
            _Far(config["line"]),
            caged,
            config["told"],
            number=context.get_world_rank(),
            of=context.get_world_size(),
            address=_address(ray.get_runtime_context().get_node_id(), ray.nodes()),
            summed=over_network,
        )
    )
