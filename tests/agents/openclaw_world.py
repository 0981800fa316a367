# SPDX-License-Identifier: Apache-2.0
"""The real OpenClaw gateway on loopback: its Telegram channel on our fake Bot API, a fake model behind it."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientTimeout, web
from goodbot_fakes.telegram import TOKEN, FakeTelegram

from tests.agents import programs
from tests.support import free_port, patience

GATEWAY_TOKEN = "gateway-token-of-this-test-only"


class Telegram(FakeTelegram):
    """Takes `parse_mode`, too: OpenClaw writes HTML, of which the words are kept."""

    async def _call(self, method: str, raw: dict[str, Any]) -> Any:
        raw = dict(raw)
        if raw.pop("parse_mode", "") and "text" in raw:
            raw["text"] = html.unescape(re.sub(r"<[^<>]{1,200}>", "", str(raw["text"])))
        return await super()._call(method, raw)


class Model:
    """An OpenAI-compatible model that answers each question with what `answers` has for it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.free = asyncio.Event()
        """Cleared, no answer comes before it is set again."""
        self.free.set()
        self.broken = False
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def __aenter__(self) -> Model:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        text = f"Answer {len(self.requests)}."
        await self.free.wait()
        if self.broken:
            return web.json_response({"error": {"message": "That model is broken."}}, status=400)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, reason in (({"role": "assistant", "content": text}, None), ({}, "stop")):
            chunk = {
                "id": f"c{len(self.requests)}",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": body["model"],
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            }
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


class Gateway:
    """`openclaw` with a home of its own: `run` for its commands, `start` and `stop` for the gateway."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / ".openclaw"
        self.state.mkdir(parents=True)
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.log = home / "gateway.log"

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": programs.path(),
            "HOME": str(self.home),
            "NO_COLOR": "1",
            "OPENCLAW_STATE_DIR": str(self.state),
            "TMPDIR": str(self.home),
        }

    def configure(self, *, telegram: str, model: int, owners: list[str], users: list[str]) -> None:
        """`~/.openclaw/openclaw.json` of somebody with one Telegram bot and one model of their own."""
        config = {
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "port": self.port,
                "auth": {"mode": "token", "token": GATEWAY_TOKEN},
            },
            "agents": {
                "defaults": {
                    "model": {"primary": "local/fake-1"},
                    "workspace": str(self.home / "workspace"),
                    "skipBootstrap": True,
                    "heartbeat": {"every": "0m"},
                }
            },
            "models": {
                "providers": {
                    "local": {
                        "baseUrl": f"http://127.0.0.1:{model}/v1",
                        "apiKey": "no-key",
                        "api": "openai-completions",
                        "models": [
                            {
                                "id": "fake-1",
                                "name": "Fake",
                                "reasoning": False,
                                "input": ["text"],
                                "contextWindow": 131072,
                                "maxTokens": 1024,
                                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                            }
                        ],
                    }
                }
            },
            "channels": {
                "telegram": {
                    "enabled": True,
                    "botToken": TOKEN,
                    "apiRoot": telegram,
                    "dmPolicy": "allowlist",
                    "allowFrom": users,
                    "groupPolicy": "open",
                    "reactionNotifications": "all",
                    "groups": {"*": {"requireMention": True}},
                }
            },
            "commands": {"ownerAllowFrom": owners},
        }
        (self.state / "openclaw.json").write_text(json.dumps(config, indent=2))

    async def run(self, *words: str, seconds: float = 120.0) -> tuple[int, str]:
        """`openclaw WORDS`: its exit status and what it said."""
        process = await asyncio.create_subprocess_exec(
            *programs.openclaw(),
            *words,
            env=self.env,
            cwd=self.home,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), patience(seconds))
        except TimeoutError:
            process.kill()
            out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    async def start(self, seconds: float = 420.0) -> None:
        """Start it, and wait until it is ready."""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220  it does not block
                [*programs.openclaw(), "gateway", "run", "--port", str(self.port)],
                env=self.env,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        async def ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            with contextlib.suppress(Exception):
                async with (
                    ClientSession(timeout=ClientTimeout(total=5)) as session,
                    session.get(f"http://127.0.0.1:{self.port}/readyz") as response,
                ):
                    return response.status == 200
            return False

        await until(ready, seconds, lambda: self.log.read_text()[-3000:])

    async def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(self.process.wait, 30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait, 30)
        self.process = None


async def until(
    true: Callable[[], bool | Awaitable[bool]], seconds: float = 120.0, told: Callable[[], str] = lambda: ""
) -> None:
    """Wait until it is so; fails with what `told` says when it does not come to be."""
    seconds = patience(seconds)
    async with asyncio.timeout(seconds + 5):
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            found = true()
            if found if isinstance(found, bool) else await found:
                return
            assert asyncio.get_running_loop().time() < deadline, f"never came to be; {told()}"
            await asyncio.sleep(0.1)
