# SPDX-License-Identifier: Apache-2.0
"""A person at the real Codex, with settings of their own, and a model that we play."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.agents import programs
from tests.agents.codex_model import Model
from tests.support import patience, require

pexpect = require("pexpect")
pyte = require("pyte")

COLUMNS, ROWS = 120, 50
CALM = ("--disable", "daemon_auto_start")
"""Its app server would go on in the background after the screen is closed."""


class Person:
    """Their home, and the two ways in which they use the program."""

    def __init__(self, home: Path, model: Model) -> None:
        self.home, self.codex_home, self.work = home, home / ".codex", home / "work"
        self.work.mkdir(parents=True)
        self.codex_home.mkdir()
        self.notified = home / "notified"
        notify = home / "my notify"
        notify.write_text(f'#!/bin/sh\nprintf "%s\\n" "$2" >> {str(self.notified)!r}\n')
        notify.chmod(0o700)
        self.config = (
            "# my own\nmodel = \"fake-1\"   # the model\nmodel_provider = 'loop'\n"
            f'notify = ["{notify}", "--mine"]\n\n'
            f'[model_providers.loop]\nname = "loop"\nbase_url = "{model.address}/v1"\n'
            f'wire_api = "responses"\n\n[projects."{self.work}"]\ntrust_level = "trusted"\n'
        )
        (self.codex_home / "config.toml").write_text(self.config)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": programs.path(),
            "CODEX_HOME": str(self.codex_home),
            "OPENAI_API_KEY": "dummy",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }

    async def runs(self, *args: str, prompt: str = "") -> str:
        """`codex exec ARGS PROMPT`: what it prints, both streams."""
        done = await asyncio.to_thread(
            subprocess.run,
            [*programs.codex(), "exec", "--skip-git-repo-check", *args, *([prompt] if prompt else [])],
            cwd=self.work,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=patience(120),
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def sits_down(self, *args: str) -> Terminal:
        """They start it in a terminal."""
        return Terminal(self, args)

    def notes(self) -> list[dict[str, Any]]:
        """What their own program was notified of."""
        text = self.notified.read_text() if self.notified.exists() else ""
        return [json.loads(line) for line in text.splitlines()]


class Terminal:
    """Codex' own screen. Its methods that wait do so in a thread."""

    def __init__(self, person: Person, args: tuple[str, ...]) -> None:
        program, *more = programs.codex()
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._child = pexpect.spawn(
            program,
            [*more, *CALM, *args],
            cwd=str(person.work),
            dimensions=(ROWS, COLUMNS),
            env=person.environ,
            timeout=None,
        )
        self._child.delaybeforesend = None
        self._screens = threading.Lock()
        self._reader = threading.Thread(target=self._reads, daemon=True)
        self._over = False

    async def __aenter__(self) -> Terminal:
        self._reader.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        await asyncio.to_thread(self._reader.join)
        await asyncio.to_thread(self._child.close, force=True)

    @property
    def window(self) -> str:
        with self._screens:
            return "\n".join(line.rstrip() for line in self._screen.display if line.strip())

    @property
    def _composed(self) -> str:
        """What stands in the line that is being typed."""
        lines = [line for line in self.window.splitlines() if line.startswith("›")]
        return "".join(lines[-1].split()) if lines else ""

    async def sees(self, text: str, *, gone: str = "") -> str:
        """Wait until it is on the screen, and `gone` is not; the screen."""
        wanted, unwanted = "".join(text.split()), "".join(gone.split())
        await self._until(lambda shown: wanted in shown and not (gone and unwanted in shown))
        return self.window

    async def types(self, text: str) -> None:
        """A line, and Enter until it is gone: Enter right behind a letter is a line of something pasted."""
        typed = "".join(text.split())
        self._child.send(text)
        await self._until(lambda _: typed in self._composed)
        for _ in range(20):
            self._child.send("\r")
            with contextlib.suppress(AssertionError):
                return await self._until(lambda _: typed not in self._composed, 3)
        raise AssertionError(self.window)

    async def presses(self, key: str) -> None:
        self._child.send(key)

    async def _until(self, done: Callable[[str], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + patience(seconds)
        while not done("".join(self.window.split())):
            assert time.monotonic() < end, self.window
            await asyncio.sleep(0.05)

    def _reads(self) -> None:
        """All the time: a program whose screen nobody looks at waits."""
        while not self._over:
            try:
                piece: bytes = self._child.read_nonblocking(65536, 0.1)
            except pexpect.TIMEOUT:
                continue
            except (pexpect.EOF, OSError):
                return
            with self._screens:
                self._stream.feed(piece)
                cursor = self._screen.cursor
            if b"\x1b[6n" in piece:  # it asks where the cursor is
                self._child.send(f"\x1b[{cursor.y + 1};{cursor.x + 1}R".encode())
            if b"\x1b[c" in piece:  # and what kind of terminal this is
                self._child.send(b"\x1b[?62;c")
