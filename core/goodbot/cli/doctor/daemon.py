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
from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.cli.doctor.model_server import takes_adapters
from goodbot.config.lock import holder

_ANSWER_SECONDS = 60.0
_MINUTE = 60.0


async def daemon(examined: Examined) -> Sequence[Check]:
    """Not running is fine; holding the directory without answering is not."""
    status = examined.daemon
    if status is not None:
        states: Mapping[str, str] = status.get("connectors") or {}
        failed = [
            fail(name, states[name], phrase("doc_later"))
            for name in examined.config.features
            if name in states
        ]
        running = phrase("doc_process", pid=status.get("pid"), time=_uptime(status))
        waits = status.get("next")  # the one condition that decides, as `status` and `why` have it
        return [ok("daemon", running), *([ok("next training", str(waits))] if waits else []), *failed]
    held, pid = holder(examined.config.home)
    if held:
        doing, refused = await asyncio.to_thread(_told, examined.config.home)
        if doing:
            return [warn("daemon", phrase("doc_starting", pid=pid or "?", doing=doing), phrase("doc_later"))]
        if refused:
            return [fail("daemon", refused)]
        return [warn("daemon", phrase("doc_held", pid=pid or "?"), phrase("doc_later"))]
    return [ok("daemon", phrase("doc_resting"))]


def _told(home: Path) -> tuple[str, str]:
    """Of one that has told no status: what it does at its start, and why it cannot tell it; empty else."""
    try:
        answer = control.call(home, "status", [], lambda _: None)
    except control.RemoteError as error:
        return "", reworded(error, here())
    except GoodbotError:
        return "", ""
    return (str(answer["data"].get("starting") or "") if answer else ""), ""


def _uptime(status: Mapping[str, Any]) -> str:
    minutes = int(float(status.get("uptime") or 0) / _MINUTE)
    hours, rest = divmod(minutes, 60)
    return phrase("doc_hours", hours=hours, minutes=rest) if hours else phrase("doc_minutes", minutes=rest)


async def server(examined: Examined) -> Sequence[Check]:
    """The model server of the running daemon, and whether its adapter does anything."""
    status = examined.daemon
    if status is None:
        return []
    if status.get("server") != "up":
        return [fail("server", phrase("doc_server"), phrase("doc_server_fix"))]
    home = examined.config.home
    told = status.get("server_told") or status.get("server_trouble") or ""  # an older one tells the second
    trouble = str(told) if takes_adapters(examined) else ""
    checks = [warn("server", trouble)] if trouble else []
    try:
        answer = await asyncio.to_thread(control.call, home, "probe", [])
    except GoodbotError as error:
        if error.exit_code == UsageError.exit_code:  # it knows no `probe`
            return [*checks, _other_version("")]
        return [*checks, fail("server", reworded(error, here()), phrase("doc_restart"))]
    return [*checks, *_probed(answer["data"], str(answer["text"]))] if answer else checks


def _other_version(which: str) -> Check:
    said = {"other": which, "own": __version__}
    text = phrase("doc_versions", **said) if which else phrase("doc_version_other", own=__version__)
    return warn("daemon", text, phrase("doc_restart"))


def _probed(data: Mapping[str, Any], text: str) -> list[Check]:
    checks = [] if data["goodbot"] == __version__ else [_other_version(str(data["goodbot"]))]
    if data["served"] != data["wanted"]:
        return [*checks, fail("adapter", text, phrase("doc_adapter_fix"))]
    if data["differing"] == 0:
        return [*checks, warn("adapter", text, phrase("doc_adapter_same"))]
    return [*checks, ok("adapter", text)]


PROBES = (Probe(name="daemon", run=daemon), Probe(name="server", run=server, seconds=_ANSWER_SECONDS))
