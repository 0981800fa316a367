# SPDX-License-Identifier: Apache-2.0
"""The `openclaw` program, and where it keeps its settings."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from goodbot.base import heard, spawn
from goodbot.base.errors import FatalConnectorError
from goodbot.base.worded import Worded

from goodbot_connectors.openclaw.config import OpenClawSettings

SECONDS = 240.0
"""A command of it takes 4 s on a quiet machine, and ten times that on a busy one."""
MOST = 8 << 20
"""Bytes of what a command may say: its settings are thousands."""
_TOLD = 300


class Program:
    """Runs commands of OpenClaw, with the state directory that the settings name."""

    def __init__(self, settings: OpenClawSettings, environ: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._environ = dict(spawn.child_environment("OPENCLAW_*", "NODE_*") if environ is None else environ)

    @property
    def path(self) -> str:
        """Where the program is; empty for nowhere."""
        wanted = self._settings.program or "openclaw"
        return shutil.which(wanted, path=self._environ.get("PATH")) or ""

    @property
    def file(self) -> Path:
        """Its settings, `openclaw.json`."""
        if named := self._environ.get("OPENCLAW_CONFIG_PATH"):
            return Path(named).expanduser()
        home = Path(self._environ.get("HOME") or "~").expanduser()
        state = self._settings.state_dir or self._environ.get("OPENCLAW_STATE_DIR", "")
        return (Path(state).expanduser() if state else home / ".openclaw") / "openclaw.json"

    async def run(self, *words: str, given: str = "") -> str:
        """What `openclaw WORDS` has said; `given` is its input. Raises FatalConnectorError."""
        if not self.path:
            none = (
                "there is no `openclaw` program on PATH: install OpenClaw, or name its program in "
                "[connectors.openclaw] program"
            )
            raise FatalConnectorError(Worded(none))
        command = " ".join(("openclaw", *words[:2]))
        environ = self._environ | {"NO_COLOR": "1"}
        if self._settings.state_dir:
            environ["OPENCLAW_STATE_DIR"] = str(Path(self._settings.state_dir).expanduser())
        process = await spawn.start(
            self.path,
            *words,
            environ=environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(SECONDS):
                said, _ = await heard.all_of(process, given.encode(), most=MOST)
        except BaseException as error:
            await heard.end(process)
            if isinstance(error, heard.SaidTooMuchError):
                much = "`{command}` said more than {megabytes} MB and was ended"
                raise FatalConnectorError(Worded(much, command=command, megabytes=MOST >> 20)) from error
            if isinstance(error, TimeoutError):
                slow = "`{command}` did not end within {seconds} s: try again"
                raise FatalConnectorError(Worded(slow, command=command, seconds=f"{SECONDS:g}")) from error
            raise
        text = said.decode(errors="replace").strip()
        if process.returncode:
            why = text[-_TOLD:] or Worded("without a word")
            raise FatalConnectorError(Worded("`{command}` has failed: {why}", command=command, why=why))
        return text
