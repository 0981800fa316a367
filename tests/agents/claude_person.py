# SPDX-License-Identifier: Apache-2.0
"""A person at the real Claude Code, in a home directory of their own, with a model that we play."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.agents import programs
from tests.agents.claude_model import Model
from tests.cli.screens import Screen
from tests.support import patience

KEY = "dummy-key-00000000000"


class Person:
    """Their home, and the two ways in which they use the program."""

    def __init__(self, home: Path, model: Model) -> None:
        self.home, self.model = home, model
        self.token = ""
        """For the plugin."""
        self.directory = home / ".claude"
        self.work = home / "work"
        self.work.mkdir(parents=True)
        self.directory.mkdir()
        (self.directory / "settings.json").write_text(
            '{\n    "permissions": {"allow": ["Bash", "Agent"]},\n    "theme": "dark"\n}'
        )
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        (home / ".claude.json").write_text(
            json.dumps(
                {
                    "hasCompletedOnboarding": True,
                    "theme": "dark",
                    "projects": {str(self.work): trusted, str(home): trusted},
                    "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                }
            )
        )

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": programs.path(),
            "ANTHROPIC_BASE_URL": self.model.address,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "LANG": "C.UTF-8",
            "GOODBOT_TOKEN": self.token,
        }

    async def prints(self, prompt: str, *args: str) -> dict[str, Any]:
        """`claude -p PROMPT`: what it prints, as JSON."""
        done = await asyncio.to_thread(
            subprocess.run,
            [str(programs.claude()), "-p", prompt, "--output-format", "json", *args],
            cwd=self.work,
            env={k: v for k, v in self.environ.items() if v},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=patience(90),
            check=False,
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def sits_down(self) -> Terminal:
        """They start it in a terminal."""
        return Terminal(self)


class Terminal:
    """Claude Code's own screen. Methods block, so they run in a thread."""

    def __init__(self, person: Person) -> None:
        keep = {k: v for k, v in person.environ.items() if v and k != "HOME"}
        self._screen = Screen(home=person.home, command=[str(programs.claude())], **keep)

    async def __aenter__(self) -> Terminal:
        await self.sees("❯")
        return self

    async def __aexit__(self, *_: object) -> None:
        """They leave; the program takes its time for that, and must not outlive the test."""

        def leave() -> None:
            child = self._screen._child
            for _ in range(3):
                self._screen.type("\x03")
                self._screen.look(0.5)
            with contextlib.suppress(AssertionError):
                self._screen.until(lambda: not child.isalive(), seconds=10)
            if child.isalive():
                os.kill(child.pid, signal.SIGKILL)
            child.close(force=True)

        await asyncio.to_thread(leave)

    async def types(self, text: str) -> None:
        """A line, and Enter once it is shown."""

        def type_() -> None:
            self._screen.type(text)
            self._until(lambda: "".join(text.split()) in "".join(self._screen.window.split()))
            self._screen.type("\r")

        await asyncio.to_thread(type_)

    async def presses(self, key: str) -> None:
        await asyncio.to_thread(self._screen.type, key)

    async def sees(self, text: str, times: int = 1) -> str:
        """Wait until it is shown so many times; all that is on the screen."""

        def look() -> str:
            self._until(lambda: self._shown().count("".join(text.split())) >= times)
            return self._screen.window

        return await asyncio.to_thread(look)

    async def gone(self, text: str) -> None:
        """Wait until it is not on the screen any more."""
        await asyncio.to_thread(self._until, lambda: text not in self._screen.window)

    def _shown(self) -> str:
        return "".join(self._screen.text.split())

    def _until(self, done: Any) -> None:
        end = time.monotonic() + patience(30)
        while not done():
            self._screen.look(0.1)
            assert time.monotonic() < end, self._screen.window


def environment_of(person: Person, home: Path) -> dict[str, str]:
    """For a `goodbot` of theirs."""
    kept = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV") if name in os.environ}
    return {**kept, **{k: v for k, v in person.environ.items() if v}, "GOODBOT_HOME": str(home)}
