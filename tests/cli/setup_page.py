# SPDX-License-Identifier: Apache-2.0
"""`goodbot --browser` as a process, and what its page asks of it, without a browser."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tests.cli.program import PROGRAM, environment, until
from tests.support import patience


class SetupProgram:
    """The program, from its start until it is left."""

    def __init__(self, home: Path, *words: str, **env: str) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=home.parent))
        """Where the program keeps what is for a while."""
        surroundings = {
            "HOME": str(home),
            "GOODBOT_HOME": str(home / ".goodbot"),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "TMPDIR": str(self.folder),
            "LANG": "C.UTF-8",
        }
        self.process = subprocess.Popen(
            [*PROGRAM, *words] if "--browser" in words else [*PROGRAM, "--browser", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=home,
            env=environment(**{**surroundings, **env}),
        )
        self.said = ""
        self.address = ""

    def __enter__(self) -> SetupProgram:
        """Wait for the address of the page."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if line.strip().startswith("http://"):
                self.address = line.strip()
                return self
        raise AssertionError(f"there is no address:\n{self.said}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with self.process:
            self.process.kill()

    @property
    def code(self) -> str:
        return urlsplit(self.address).fragment

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def ask(
        self, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str, Mapping[str, str]]:
        """One request, as our own page sends it but for `headers`; status, text and headers of the answer."""
        ours = {"Host": self.host, "Origin": f"http://{self.host}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self.host, timeout=patience(30))
        try:
            connection.request(
                "GET" if body is None else "POST",
                path,
                body=None if body is None else json.dumps(body),
                headers={**ours, **(headers or {})},
            )
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())
        finally:
            connection.close()

    def ends(self, number: int = 0) -> int:
        """Wait for the end, after a signal where one is named; the exit code."""
        if number:
            self.process.send_signal(number)
        code = self.process.wait(patience(60))
        assert self.process.stdout is not None
        self.said += self.process.stdout.read()
        return code

    def ctrl_c(self) -> int:
        return self.ends(signal.SIGINT)


class OpenedPage(SetupProgram):
    """The page of a set-up that runs in the test itself, at this address."""

    def __init__(self, address: str) -> None:
        self.address = address


class SetupTab:
    """A tab that has opened the page: what it shows, and what is answered there."""

    def __init__(self, program: SetupProgram, language: str = "en-GB,en;q=0.5") -> None:
        self.program = program
        begun = program.ask("/api/begin", {"code": program.code}, {"Accept-Language": language})
        assert begun[0] == 200, begun
        self.got = json.loads(begun[1])
        self.shown = ""
        """All that it ever got, as text."""

    @property
    def key(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.got['key']}"}

    def look(self) -> Any:
        """What it shows now."""
        status, text, _ = self.program.ask("/api/screen", headers=self.key)
        assert status == 200, text
        self.shown += text
        return json.loads(text)

    def sees(self, done: Callable[[Any], object]) -> Any:
        """Wait until it shows that."""
        seen: list[Any] = []

        def shows() -> bool:
            seen.append(self.look())
            return bool(done(seen[-1]))

        until(shows)
        return seen[-1]

    def asked(self) -> Any:
        """Wait until something is asked; the whole screen."""
        return self.sees(lambda screen: screen["asked"])

    def answer(self, value: str = "", *, label: str = "", do: str = "answer") -> Any:
        """Answer by a choice's words, a text, or as it is proposed; the screen of the question."""
        screen = self.asked()
        asked = screen["asked"]
        if label:
            labels = [one["label"] for one in asked["choices"]]
            assert label in labels, screen
            value = str(labels.index(label) + 1)
        body = {"number": asked["number"], "do": do, **({"value": value} if do == "answer" else {})}
        status, text, _ = self.program.ask("/api/answer", body, self.key)
        assert status == 200, text
        return screen

    def said(self, screen: Any) -> str:
        return " ".join(str(one.get("text", one)) for one in screen["said"])

    def ended(self) -> Any:
        return self.sees(lambda screen: screen["end"])


def left_behind(home: Path, program: SetupProgram) -> list[str]:
    """Every file below the person's home, and what the program had for a while."""
    return [*(str(path) for path in home.rglob("*")), *os.listdir(program.folder)]
