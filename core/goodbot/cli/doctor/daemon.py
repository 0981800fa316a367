# SPDX-License-Identifier: Apache-2.0
"""The running goodbot: who holds the directory, whether it answers, and with which version."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot import __version__
from goodbot.api import control
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.config.lock import holder

_ANSWER_SECONDS = 60.0
_RESTART = "end `goodbot run` and start it again"
_LOOK_AGAIN = "look again in a minute, then at its log"
_MINUTE = 60.0


async def daemon(examined: Examined) -> Sequence[Check]:
    """Not running is fine; holding the directory without answering is not."""
    status = examined.daemon
    if status is not None:
        states: Mapping[str, str] = status.get("connectors") or {}
        failed = [
            fail(name, states[name], _LOOK_AGAIN) for name in examined.config.features if name in states
        ]
        return [ok("daemon", f"runs as process {status.get('pid')} for {_uptime(status)}"), *failed]
    held, pid = holder(examined.config.home)
    if held:
        if doing := await asyncio.to_thread(_starting, examined.config.home):
            return [warn("daemon", f"process {pid or '?'} is {doing}", _LOOK_AGAIN)]
        text = f"process {pid or '?'} has the directory and does not answer (yet): it may be starting"
        return [warn("daemon", text, _LOOK_AGAIN)]
    return [ok("daemon", "not running; `goodbot run` starts it")]


def _starting(home: Path) -> str:
    """What `status` says of a goodbot that does not take commands yet; empty for any other."""
    try:
        answer = control.call(home, "status", [], lambda _: None)
    except GoodbotError:
        return ""
    return str(answer["data"].get("starting") or "") if answer else ""


def _uptime(status: Mapping[str, Any]) -> str:
    minutes = int(float(status.get("uptime") or 0) / _MINUTE)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


async def server(examined: Examined) -> Sequence[Check]:
    """The model server of the running daemon, and whether its adapter does anything."""
    status = examined.daemon
    if status is None:
        return []
    if status.get("server") != "up":
        text = "the model server is down; goodbot starts it again every half minute"
        return [fail("server", text, "goodbot status; its reason is in the log")]
    home = examined.config.home
    try:
        answer = await asyncio.to_thread(control.call, home, "probe", [], lambda _: None)
    except GoodbotError as error:
        if error.exit_code == UsageError.exit_code:  # it knows no `probe`
            return [_other_version("of another version")]
        return [fail("server", str(error), _RESTART)]
    return _probed(answer["data"], str(answer["text"])) if answer else []


def _other_version(which: str) -> Check:
    text = f"the running goodbot is {which}, this program is {__version__}"
    return warn("daemon", text, _RESTART)


def _probed(data: Mapping[str, Any], text: str) -> list[Check]:
    checks = [] if data["goodbot"] == __version__ else [_other_version(str(data["goodbot"]))]
    if data["served"] != data["wanted"]:
        return [*checks, fail("adapter", text, "goodbot status; it is put right within a minute")]
    if data["differing"] == 0:
        return [*checks, warn("adapter", text, "goodbot rollback; then rate more, and clearer")]
    return [*checks, ok("adapter", text)]


PROBES = (Probe(name="daemon", run=daemon), Probe(name="server", run=server, seconds=_ANSWER_SECONDS))
