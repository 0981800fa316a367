# SPDX-License-Identifier: Apache-2.0
"""What goes over a pipe and to a cluster: batches as JSON, and frames of a line with bytes behind it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from goodbot.api.backend import TrainingBatch
from goodbot.api.sampler import TokenizedTurn

Frame = tuple[dict[str, Any], bytes]

LARGEST = 8 << 30
"""Bytes behind a line: a state has weights and what the optimizer knows of each."""
_BLOCKS, _BLOCK = 64, 64 << 10
_ROWS = ("sampling_logprobs", "reference_logprobs", "advantages", "mask")


def told(batch: TrainingBatch) -> dict[str, Any]:
    """A batch as JSON has it; fp32 comes out of it as it went in."""
    words = None if batch.hindsight is None else batch.hindsight.tolist()
    return {
        "sequences": [[turn.prompt, turn.response] for turn in batch.sequences],
        "temperature": batch.temperature,
        **{name: getattr(batch, name).tolist() for name in _ROWS},
        "normalizer": batch.normalizer,
        "hindsight": words,
    }


def heard(raw: Mapping[str, Any]) -> TrainingBatch:
    """The batch that was told."""
    words = raw["hindsight"]
    return TrainingBatch(
        sequences=tuple(TokenizedTurn(prompt=tuple(p), response=tuple(r)) for p, r in raw["sequences"]),
        temperature=tuple(raw["temperature"]),
        **{name: np.asarray(raw[name], np.float32) for name in _ROWS},
        normalizer=raw["normalizer"],
        hindsight=None if words is None else np.asarray(words, np.float32),
    )


def files(model: Path) -> list[list[Any]]:
    """By what it is seen that two directories hold one model: its config, and blocks of its weights."""
    found = (*model.glob("*.safetensors"), *model.glob("config.json"))
    return sorted([path.name, path.stat().st_size, _sampled(path)] for path in found)


def _sampled(path: Path) -> str:
    """A hash of some blocks all over a file: of all of a small one."""
    size, found = path.stat().st_size, hashlib.sha256()
    with path.open("rb") as file:
        for number in range(_BLOCKS):
            file.seek(number * size // _BLOCKS)
            found.update(file.read(_BLOCK))
    return found.hexdigest()


def write(out: BinaryIO, head: Mapping[str, Any], body: bytes = b"") -> None:
    """One frame, at once."""
    out.write(_head(head, body))
    out.write(body)
    out.flush()


def read(stdin: BinaryIO) -> Frame:
    """The next frame. Raises EOFError where there is no more, ConnectionError for what is none."""
    if not (line := stdin.readline()):
        raise EOFError
    head = _heard(line)
    body = stdin.read(head["size"])
    if len(body) < head["size"]:
        raise EOFError
    return head, body


async def send(writer: asyncio.StreamWriter, head: Mapping[str, Any], body: bytes = b"") -> None:
    """As `write`."""
    writer.write(_head(head, body))
    writer.write(body)
    await writer.drain()


async def receive(reader: asyncio.StreamReader) -> Frame:
    """As `read`."""
    try:
        line = await reader.readline()
    except ValueError as error:
        raise ConnectionError("that line has no end") from error
    if not line:
        raise EOFError
    head = _heard(line)
    return head, await reader.readexactly(head["size"])


def _heard(line: bytes) -> dict[str, Any]:
    """The line of a frame: code of a model may speak in a child, and its words are not to fill the memory.

    Raises ConnectionError.
    """
    try:
        head: dict[str, Any] = json.loads(line)
        if type(head["size"]) is int and 0 <= head["size"] <= LARGEST:
            return head
    except (LookupError, RecursionError, TypeError, ValueError):
        pass
    raise ConnectionError("that is no frame")


def _head(head: Mapping[str, Any], body: bytes) -> bytes:
    return json.dumps({**head, "size": len(body)}).encode() + b"\n"
