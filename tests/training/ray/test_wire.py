# SPDX-License-Identifier: Apache-2.0
"""Frames of a child in which code of a model may speak, read by a process that is in no cage."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest
from goodbot.base import cage
from goodbot.base.errors import TrainingError

from tests.support import require

require("numpy")

from goodbot_training.backends.ray import wire, worker  # noqa: E402
from goodbot_training.backends.ray.line import OrderLine  # noqa: E402

NO_FRAMES = [
    b'{"size": 8589934593}\n',
    b'{"size": -1}\n',
    b'{"size": "1"}\n',
    b'{"size": true}\n',
    b'{"what": "add"}\n',
    b"[1]\n",
    b"no JSON\n",
    b"[" * 60_000 + b"\n",
    b"x" * 100_000,
]


async def heard(said: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 16)
    reader.feed_data(said)
    reader.feed_eof()
    return reader


@pytest.mark.parametrize("said", NO_FRAMES, ids=range(len(NO_FRAMES)))
async def test_26_4_what_is_no_frame_or_has_no_end_is_not_waited_for(said: bytes) -> None:
    """Of one that announced a terabyte whatever came was kept in the worker's memory."""
    with pytest.raises(ConnectionError):
        await wire.receive(await heard(said))
    with pytest.raises(ConnectionError):
        wire.read(io.BytesIO(said))


async def test_a_frame_is_read_both_ways() -> None:
    out = io.BytesIO()
    wire.write(out, {"what": "add"}, b"four")
    assert await wire.receive(await heard(out.getvalue())) == ({"what": "add", "size": 4}, b"four")
    assert wire.read(io.BytesIO(out.getvalue())) == ({"what": "add", "size": 4}, b"four")


NO_ANSWERS = [
    b'{"size": 0}\n',
    b'{"size": 0, "what": []}\n',
    b'{"size": 0, "what": "done"}\n',
    b'{"size": 0, "what": "failed", "found": "x"}\n',
]


@pytest.mark.parametrize("said", [*NO_FRAMES, *NO_ANSWERS], ids=range(len(NO_FRAMES) + len(NO_ANSWERS)))
async def test_a_child_that_says_anything_else_is_told_as_gone(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cage, "hidden", set[str]())
    line = OrderLine(b"", [])
    await line.give({"what": "step"})

    class Writer:
        def write(self, data: bytes) -> None: ...

        async def drain(self) -> None: ...

        def close(self) -> None: ...

    async def start(_: Any) -> worker.Pipes:
        async def last_words() -> str:
            return "."

        return worker.Pipes(writer=Writer(), reader=await heard(said), last_words=last_words)  # type: ignore[arg-type]

    told = {"model": "m", "hidden": ["/state"]}
    with pytest.raises(TrainingError, match="child ended without a result") as caught:
        await worker.serve(
            line, start, told, number=0, of=1, address="127.0.0.1", summed=lambda numbers: numbers
        )
    assert caught.value.kind == "died"
    assert cage.hidden == {"/state"}
