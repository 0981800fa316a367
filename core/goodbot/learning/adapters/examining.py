# SPDX-License-Identifier: Apache-2.0
"""How large an adapter is and how far two are apart: computed in a child, which has NumPy.

What the child reads may be anybody's file: it has a limit of time and memory, and its end is its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goodbot.base import heard, spawn
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import reason_in

logger = logging.getLogger(__name__)

CHILD = "goodbot_training.process.inspect"
_SECONDS = 600.0
_LAST_WORDS = 4096
_ANSWER = 1 << 20
"""Bytes: some groups of matrices, and a few numbers each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixGroup:
    """A kind of matrix in some layers. Frobenius norms of ΔW, before, after and of their difference."""

    name: str
    change: float
    before: float
    after: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """From one adapter to another, or from the base model (`before` 0)."""

    groups: tuple[MatrixGroup, ...]
    change: float
    before: float
    size: float
    rms: float
    """The largest root mean square of one ΔW of the later adapter."""


async def examine(before: Path | None, after: Path, environ: Mapping[str, str]) -> Distance:
    """Compare two adapter directories; None is the base model. Raises AdapterError."""
    request = {"before": str(before) if before else None, "after": str(after)}
    try:
        process = await spawn.start(
            *spawn.python("-m", CHILD),
            cage=spawn.Cage(reads=[path for path in (before, after) if path], seconds=int(_SECONDS)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            environ={**environ, "OMP_NUM_THREADS": "1"},
        )
    except OSError as error:
        raise AdapterError(Worded("what reads adapters: {why}", why=spawn.why_not(error))) from error
    try:
        async with asyncio.timeout(_SECONDS):
            out, said = await heard.all_of(process, json.dumps(request).encode() + b"\n", most=_ANSWER)
    except heard.SaidTooMuchError as error:
        much = "what reads adapters said too much: {name} may be damaged"
        raise AdapterError(Worded(much, name=after.name)) from error
    except TimeoutError as error:
        late = Worded(
            "{name} was not read within {minutes} min", name=after.name, minutes=f"{_SECONDS / 60:g}"
        )
        raise AdapterError(late) from error
    finally:
        await heard.end(process)
    if process.returncode:
        words = said[-_LAST_WORDS:].decode("utf-8", "replace").strip() or "no word"
        logger.warning("what reads adapters ended with %d: %s", process.returncode, words)
    return _distance(out, after)


def _distance(out: bytes, after: Path) -> Distance:
    try:
        found = cast("dict[str, Any]", json.loads(out))
        if found["event"] == "failed":
            raise AdapterError(reason_in(found))
        groups = tuple(
            MatrixGroup(
                name=str(one["name"]),
                change=float(one["change"]),
                before=float(one["before"]),
                after=float(one["after"]),
            )
            for one in found["groups"]
        )
        return Distance(
            groups=groups,
            change=float(found["change"]),
            before=float(found["before"]),
            size=float(found["size"]),
            rms=float(found["rms"]),
        )
    except (ValueError, LookupError, TypeError) as error:
        none = (
            "what reads adapters ended without a result: {name} may be damaged, or the package "
            "goodbot_training is not installed"
        )
        raise AdapterError(Worded(none, name=after.name)) from error
