# SPDX-License-Identifier: Apache-2.0
"""A goodbot on the real model, in a process of its own, and one person who teaches it through its API."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sqlite3
import subprocess
import sys
import threading
from array import array
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai

from tests.cli.program import PROGRAM, Bot, environment, until
from tests.support import free_port, patience, require

_AT_ONCE = 8
_LOADING = 300.0
"""Seconds that a real model may take to load, on a machine that is quiet."""
_NO_HURRY = """\
from goodbot.cli import main
from goodbot.commands import why
why._SECONDS = None
raise SystemExit(main())
"""
"""The program, whose `why` answers every question twice, however slow the machine is."""
CONFIG = """# mine
[http]
port = {port}

[serving]
ask = "never"
max_tokens = {tokens}
system_prompt = "Answer in one sentence."

[training]
backend = "{backend}"
schedule = "manual"
min_ratings = {ratings}
held_out = {held_out}

[training.settings]
max_passes = {passes}
gate_anchors = {anchors}
gate_max_tokens = {tokens}
"""
_THINGS = ("the sea", "a cat", "bread", "the moon", "a bicycle", "rain", "chess", "Paris", "tea", "snow")
_WORDS = ("What is {}?", "Tell me about {}.", "Why do people like {}?", "Describe {}.")
QUESTIONS = [words.format(thing) for thing in _THINGS for words in _WORDS]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of everything: on a processor MLX computes far more slowly than torch."""

    backend: str
    ratings: int
    held_out: int
    tokens: int
    passes: int
    anchors: int


@dataclass(frozen=True, kw_only=True)
class Turn:
    """An answer as it is stored."""

    id: str
    version: int
    question: str
    response: str
    prompt: list[int]
    tokens: list[int]
    logprobs: list[float]
    lifts: list[float]
    temperature: float
    filters: dict[str, float]

    @classmethod
    def of(cls, *row: Any) -> Turn:
        """A row of the database."""
        id_, version, messages, response, prompt, tokens, logprobs, lifts, temperature, filters = row
        return cls(
            id=id_,
            version=version,
            question=json.loads(messages)[-1]["content"],
            response=response,
            prompt=_numbers("i", prompt),
            tokens=_numbers("i", tokens),
            logprobs=_numbers("f", logprobs),
            lifts=_numbers("f", lifts),
            temperature=temperature,
            filters=json.loads(filters or "{}"),
        )


@dataclass(kw_only=True)
class Taken:
    """What one of its processes has held and computed."""

    memory: int = 0
    """Bytes at most."""
    cpu: float = 0.0
    """Seconds of processors."""


@dataclass
class Watch:
    """Looks at what the daemon's children take, as the system tells it, until they have ended."""

    pid: int
    taken: dict[str, Taken] = field(default_factory=dict[str, Taken])
    """By what the child is: `train`, `plan`, `serve` …"""

    def look(self) -> None:
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError, LookupError):
                numbers = (path / "stat").read_text().rpartition(")")[2].split()
                if int(numbers[1]) != self.pid:
                    continue
                words = (path / "cmdline").read_text().split("\0")
                [what] = {"serve", "train", "plan"}.intersection(words)
                most = re.search(r"VmHWM:\s+(\d+)", (path / "status").read_text())
                now = self.taken.setdefault(what, Taken())
                now.memory = max(now.memory, 1024 * int(most[1]) if most else 0)
                now.cpu = max(now.cpu, (int(numbers[11]) + int(numbers[12])) / 100)

    @contextlib.contextmanager
    def on(self) -> Generator[None]:
        """While the body runs."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.1):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class Real(Bot):
    """A daemon on the real model; its owner talks to it in the terminal and through the API."""

    def __init__(self, home: Path, model: Path, size: Size) -> None:
        super().__init__(home)
        self.model, self.size, self.port, self.token = model, size, free_port(), ""
        self.said: list[dict[str, Any]] = []
        """What `status` said while it started."""

    def set_up(self) -> dict[str, Any]:
        """As a person does it: a config, the model, a client of the API. What the model would cost."""
        self.home.mkdir(mode=0o700)
        size = vars(self.size) | {"port": self.port}
        (self.home / "config.toml").write_text(CONFIG.format(**size))
        cost = json.loads(self.done("model", "use", str(self.model), "--yes", "--json"))
        said = self.done("connect", "api", "--yes")
        found = re.search(r"\bgb_\S+", said)
        assert found, said
        self.token = found[0]
        return cost

    def done(self, *words: str, input: str = "") -> str:
        """What a command prints that must succeed."""
        ran = self.call(*words, input=input)
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
        return ran.stdout

    def start(self, **env: str) -> None:
        self._started += 1
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _NO_HURRY, "--home", str(self.home), "run"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                env=environment(**env),
                start_new_session=True,
            )
        until(lambda: (self.home / "control.sock").exists(), _LOADING)

        def answers() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()
            self.said.append(self.json("status"))
            return self.said[-1]["server"] == "up"

        until(answers, _LOADING)

    def call(self, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """As `Bot.call`, with the time that a real model needs on a busy machine."""
        return subprocess.run(
            [*PROGRAM, "--home", str(self.home), *args],
            input=more.get("input", ""),
            capture_output=True,
            text=True,
            timeout=patience(900),
            env=environment(),
            check=False,
        )

    def client(self) -> openai.AsyncOpenAI:
        """A program of its owner's."""
        return openai.AsyncOpenAI(
            api_key=self.token,
            base_url=f"http://127.0.0.1:{self.port}/v1",
            max_retries=0,
            timeout=patience(300),
        )

    def asked(self, questions: list[str], **more: Any) -> list[Turn]:
        """Ask through the API, eight at once; the answers as they were stored."""

        async def all_() -> list[str]:
            some = asyncio.Semaphore(_AT_ONCE)
            async with self.client() as client:

                async def one(question: str) -> str:
                    async with some:
                        raw: Any = await client.chat.completions.with_raw_response.create(
                            model="goodbot", messages=[{"role": "user", "content": question}], **more
                        )
                    told = raw.parse().choices[0].message.content
                    [turn] = self.turns("WHERE id = ?", turn_id := raw.headers["x-goodbot-turn"])
                    assert turn.response == told
                    return turn_id

                return list(await asyncio.gather(*map(one, questions)))

        return [self.turns("WHERE id = ?", one)[0] for one in asyncio.run(all_())]

    def rate(self, scores: dict[str, float]) -> None:
        """Say of each turn how good it was."""

        async def all_() -> None:
            async with self.client() as client:
                for turn, score in scores.items():
                    body = {"turn": turn, "score": score}
                    said: Any = await client.post("/feedback", cast_to=object, body=body)
                    assert said["outcome"] == "accepted", said

        asyncio.run(all_())

    def text(self, tokens: list[int]) -> str:
        """What tokens of the model say, marks and all."""
        tokenizers: Any = require("tokenizers")
        tokenizer = tokenizers.Tokenizer.from_file(str(self.model / "tokenizer.json"))
        return tokenizer.decode(tokens, skip_special_tokens=False)

    def turns(self, where: str = "", *values: Any) -> list[Turn]:
        """What the database holds, in the order in which it came."""
        address = f"file:{self.home / 'goodbot.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as db:
            rows = db.execute(
                "SELECT id, version, messages, response, prompt_tokens, tokens, logprobs, lifts, "
                f"temperature, filters FROM turns {where} ORDER BY seq",
                values,
            ).fetchall()
        return [Turn.of(*row) for row in rows]


def _numbers(kind: str, packed: bytes) -> list[Any]:
    found: Any = array(kind)
    found.frombytes(packed or b"")
    return found.tolist()
