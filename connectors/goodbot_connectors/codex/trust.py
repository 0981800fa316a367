# SPDX-License-Identifier: Apache-2.0
"""Whether Codex runs our hooks, by asking Codex itself: `codex app-server`, JSON-RPC over its stdin.

Whether a hook may run is between Codex and its person; we only ask, and never write what they would have
approved.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from goodbot.base import spawn
from goodbot.base.errors import FatalConnectorError
from goodbot.base.worded import Worded

from goodbot_connectors.kit.fields import Json, as_json, items, string, strings, sub

SECONDS = 8.0
"""For the whole conversation; `goodbot doctor` waits ten."""
_PART = 64 * 1024
_GRACE = 1.0
_LONGEST_LINE = 4 << 20
_INITIALIZE, _LIST = 1, 2
_US = {"clientInfo": {"name": "goodbot", "title": "goodbot", "version": "1"}}


class Trust(StrEnum):
    """How Codex stands to one of our hooks."""

    RUNS = "runs"
    NEW = "new"
    """Nobody has looked at it."""
    MODIFIED = "modified"
    """Another line was trusted in its place."""
    DISABLED = "disabled"
    ABSENT = "absent"
    """Codex knows of no such hook: hooks are off, or the settings are not read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HookTrust:
    """What Codex says."""

    hooks: Mapping[str, Trust]
    """Each of our events, by Codex' own name in its settings (`Stop`)."""
    warnings: tuple[str, ...] = ()
    """What Codex complains about when it reads hooks, whosever they are."""


_NAMES = {"userPromptSubmit": "UserPromptSubmit", "stop": "Stop"}


async def ask(program: str, codex_home: Path, command: str, seconds: float = SECONDS) -> HookTrust:
    """How Codex stands to the hooks that run `command`; at most `seconds`, and the process is gone then.

    Raises FatalConnectorError with a sentence.
    """
    environ = spawn.child_environment("CODEX_*")
    try:
        process = await spawn.start(
            program,
            "app-server",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            environ={**environ, "CODEX_HOME": str(codex_home)},
            cwd=codex_home,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
    except OSError as error:
        wrong = Worded("{program} cannot be started ({why})", program=program, why=error.strerror)
        raise FatalConnectorError(wrong) from error
    try:
        async with asyncio.timeout(seconds):
            await _call(process, _INITIALIZE, "initialize", _US)
            await _write(process, {"method": "initialized"})
            listed = await _call(process, _LIST, "hooks/list", {"cwds": [str(codex_home)]})
    except TimeoutError:
        slow = "{program} did not say within {seconds} s what it does with hooks"
        raise FatalConnectorError(Worded(slow, program=program, seconds=f"{seconds:g}")) from None
    except (OSError, ValueError) as error:
        silent = Worded("{program} did not say what it does with hooks", program=program)
        raise FatalConnectorError(silent) from error
    finally:
        await _end(process)
    return read(listed, command)


def read(listed: Json, command: str) -> HookTrust:
    """What `hooks/list` has answered, of our hooks. Pure."""
    found = dict.fromkeys(_NAMES.values(), Trust.ABSENT)
    warnings: list[str] = []
    for entry in items(listed, "data"):
        warnings += strings(entry, "warnings")
        warnings += [string(error, "message") for error in items(entry, "errors")]
        for hook in items(entry, "hooks"):
            event = _NAMES.get(string(hook, "eventName"))
            if event is not None and hook.get("command") == command:
                found[event] = _trust(hook)
    return HookTrust(hooks=found, warnings=tuple(dict.fromkeys(warnings)))


def _trust(hook: Json) -> Trust:
    if hook.get("enabled") is False:
        return Trust.DISABLED
    match string(hook, "trustStatus"):
        case "trusted" | "managed":
            return Trust.RUNS
        case "modified":
            return Trust.MODIFIED
        case _:
            return Trust.NEW


async def _call(
    process: asyncio.subprocess.Process, number: int, method: str, params: Mapping[str, Any]
) -> Json:
    """One request and its answer; what Codex says meanwhile is passed over. Raises OSError, ValueError."""
    await _write(process, {"id": number, "method": method, "params": params})
    assert process.stdout is not None  # noqa: S101  a pipe was asked for
    while line := await process.stdout.readline():
        said = as_json(json.loads(line))
        if said.get("id") == number and ("result" in said or "error" in said):
            if "error" in said:
                raise ValueError(string(sub(said, "error"), "message"))
            return sub(said, "result")
    raise ValueError("it ended")


async def _write(process: asyncio.subprocess.Process, message: Mapping[str, Any]) -> None:
    assert process.stdin is not None  # noqa: S101  a pipe was asked for
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    await process.stdin.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """It ends when its stdin does; else it is made to, with all that it has started."""
    if process.stdin is not None:
        process.stdin.close()
    for signal_ in (None, signal.SIGTERM, signal.SIGKILL):
        if signal_ is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal_)
        drain = asyncio.ensure_future(_drained(process))
        done, _ = await asyncio.wait({drain}, timeout=_GRACE)
        if done:
            drain.exception()
            break
        drain.cancel()
        await asyncio.wait({drain})
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # whom it has left behind


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Wait for its end; nothing of what it still says is kept."""
    while process.stdout is not None and await process.stdout.read(_PART):
        pass
    await process.wait()
