# SPDX-License-Identifier: Apache-2.0
"""The cluster that computes a training's steps: a child of its own speaks to it, by the cluster's library.

A trainer's child has no network. What it asks goes to this other child, the driver, which has one, and
neither loads a model nor reads a file. It is told which machines an owner has named, and refuses a cluster
with any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from goodbot.api import address
from goodbot.api.adapters.files import MAX_WEIGHTS
from goodbot.api.backend import BackendSpec
from goodbot.base import cage, spawn
from goodbot.base.errors import TrainingError
from goodbot.base.last_lines import drain
from goodbot.base.worded import Worded, said_by
from goodbot.base.worded_parts import parts_of, reason_in
from goodbot.config import Config
from goodbot.config.remote import KEY, RemoteConfig
from goodbot.config.secrets import Secret, Secrets, SecretStore

logger = logging.getLogger(__name__)

SECTION = "training.remote"
SCHEME = "ray"
_TLS = "RAY_USE_TLS"
_TLS_KEY = "RAY_TLS_SERVER_KEY"
"""Where a file lies."""
_LINE_LIMIT = 64 << 20
_SILENT_SECONDS = 3600.0
"""For one answer: a cluster may have to make machines first."""
_PLAN_SECONDS = 120.0
"""For what makes none: somebody waits for it."""
_END_SECONDS = 5.0
_LAST_LINES = 20


@dataclass(kw_only=True)
class Cluster:
    """One that an owner has named, and the child that speaks to it while somebody asks."""

    config: RemoteConfig
    url: str
    """Checked."""
    driver: str
    key: Secret = field(default=Secret(""), repr=False)
    model: Path | None = None
    """Where the base lies here."""
    traffic: Counter[str] = field(default_factory=Counter[str], init=False, repr=False)
    """`bytes_sent` and `bytes_received`, of what was asked and answered, for the run's metrics."""
    _process: asyncio.subprocess.Process | None = field(default=None, init=False, repr=False)
    _draining: asyncio.Task[None] | None = field(default=None, init=False, repr=False)
    _lines: deque[str] = field(default_factory=lambda: deque[str](maxlen=_LAST_LINES), init=False, repr=False)

    @property
    def host(self) -> str:
        """The machine, as the owner has named it."""
        return urlsplit(self.url).hostname or ""

    def told(self, model: str) -> dict[str, Any]:
        """What the trainer's child must know of it."""
        return {"host": self.host, "model": model}

    async def answer(self, asked: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """The lines that answer a child's `ask`: parts of a file, then the status, or why there is none."""
        question = {name: asked.get(name) for name in ("method", "path", "body")}
        seconds, size = _PLAN_SECONDS if question["path"] == "plan" else _SILENT_SECONDS, 0
        try:
            async with asyncio.timeout(seconds):
                stdout = await self._asked(question)
            while True:
                async with asyncio.timeout(seconds):
                    line = await stdout.readline()
                size += len(line)
                self.traffic["bytes_received"] += len(line)
                if size > MAX_WEIGHTS:
                    await self.close()
                    endless = Worded("{host} does not come to an end with its answer", host=self.host)
                    yield unanswered(endless, forbidden=True)
                    return
                told = cast("dict[str, Any]", json.loads(line))
                yield told
                if "status" in told:
                    return
        except TimeoutError:
            await self.close()  # what it says yet would be the next question's answer
            late = "{host} did not answer within {minutes} minutes"
            yield unanswered(Worded(late, host=self.host, minutes=f"{seconds / 60:g}"))
        except (ConnectionError, ValueError):  # it ended in the middle of a line, or before one
            await self.close()
            ended = Worded("the child that speaks to {host} has ended", host=self.host)
            why = self._lines[-1] if self._lines else ""
            yield unanswered(Worded("{what}: {why}", what=ended, why=why) if why else ended)
        except OSError as error:
            cannot = "the child that speaks to {host}: {why}"
            yield unanswered(Worded(cannot, host=self.host, why=spawn.why_not(error)), unsent=True)

    async def machines(self) -> list[Mapping[str, Any]]:
        """What the cluster has: `address`, `cpu`, `gpu` of each machine, and whether it is `named`.

        Raises TrainingError.
        """
        *_, last = [line async for line in self.answer({"method": "GET", "path": "plan"})]
        if last.get("status") != 200:
            said = reason_in(last, "error") if "error" in last else reason_in(json.loads(last["text"]))
            raise TrainingError(said)
        return cast("list[Mapping[str, Any]]", json.loads(last["text"])["machines"])

    async def close(self) -> None:
        """End the child; the cluster ends what it was asked for."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None  # noqa: S101  opened as pipes
        process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._draining is not None:
            await asyncio.wait({self._draining}, timeout=_END_SECONDS)
        if self._lines:
            logger.warning("the child that speaks to %s said at last: %s", self.host, " | ".join(self._lines))

    async def _asked(self, question: Mapping[str, Any]) -> asyncio.StreamReader:
        """Where the answer will be."""
        process = await self._running()
        assert process.stdin is not None  # noqa: S101  opened as pipes
        assert process.stdout is not None  # noqa: S101
        line = await asyncio.to_thread(lambda: json.dumps(question).encode() + b"\n")
        self.traffic["bytes_sent"] += len(line)
        process.stdin.write(line)
        await process.stdin.drain()
        return process.stdout

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None:
            return self._process
        self._lines.clear()
        environ = spawn.child_environment("RAY_*", secrets={_TLS_KEY})
        if key := self.key.reveal():
            environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": key}
        process = self._process = await spawn.start(
            *spawn.python("-m", self.driver),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
            environ=environ,
        )
        self._draining = asyncio.create_task(drain(process, self._lines), name="cluster log")
        assert process.stdin is not None  # noqa: S101  opened as pipes
        told = {
            "address": urlsplit(self.url).netloc,
            "here": address.is_here(self.url),
            "machines": await asyncio.to_thread(_addresses, self.config.hosts),
            "workers": self.config.workers,
            "model": self.config.model or str(self.model),
            "hidden": sorted(cage.hidden),
        }
        process.stdin.write(json.dumps(told).encode() + b"\n")
        await process.stdin.drain()
        return process


def allowed(config: Config, backend: BackendSpec) -> Cluster:
    """The cluster that `[training.remote]` names.

    Raises ConfigError unless an owner has named the machine: what people write here is sent there.
    """
    remote, where = config.training.remote, config.where(SECTION)
    scheme, _, rest = remote.url.partition("://")
    if not remote.url:
        unset = "the {name} backend computes elsewhere: set url under [{section}]"
        raise where.error("url", Worded(unset, name=backend.name, section=SECTION))
    if scheme != SCHEME:
        raise where.error("url", Worded("url must begin with ray://, as in ray://127.0.0.2:6379"))
    try:
        place = urlsplit(f"http://{rest}")
        host, here = (place.hostname or "").removesuffix(".")[:80], address.is_here(f"http://{rest}")
        url = address.checked(f"http://{rest}", (*remote.hosts, host), section=SECTION, key=KEY)
        if place.port is None:
            raise ValueError(Worded("must have a port between 1 and 65535"))
    except ValueError as error:
        raise where.error("url", Worded("{name} {what}", name="url", what=said_by(error))) from error
    if not here and host not in remote.hosts:
        forbidden = (
            "questions and rated answers would go to {host}, and nobody has allowed that: if you do, "
            'put hosts = ["{host}"] under [{section}]'
        )
        raise where.error("hosts", Worded(forbidden, host=host, section=SECTION))
    if not here and os.environ.get(_TLS) != "1":
        clear = (
            "set {name} and Ray's certificates in goodbot's environment: on the way nobody else may read it"
        )
        raise where.error("url", Worded(clear, name=f"{_TLS}=1"))
    key = Secrets((KEY,), SecretStore(config.home).environment([KEY])).get(KEY)
    return Cluster(config=remote, url=f"{SCHEME}://{urlsplit(url).netloc}", key=key, driver=backend.driver)


def unanswered(why: str, **flags: bool) -> dict[str, Any]:
    """The line for a child whose question has no answer."""
    return {"error": why, **parts_of(why), **flags}


def rows(batch: int, workers: int) -> tuple[int, int]:
    """How many answers of a step a worker reads, at least and at most."""
    each, left = divmod(batch, workers)
    return each, each + bool(left)


def _addresses(hosts: tuple[str, ...]) -> list[str]:
    """Where names lead to, now: a cluster's machines are known by their numbers."""
    found: set[str] = set()
    for host in hosts:
        with contextlib.suppress(OSError):
            found |= {str(way[4][0]) for way in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    return sorted(found)
