# SPDX-License-Identifier: Apache-2.0
"""A goodbot with a judge, and a server that judges as a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from goodbot.api.events import CaptureEvent, Message, OrderKey, Outcome
from goodbot.config import JudgeConfig
from goodbot.features.judges import plugin as judges

from tests.core.builders import CHANNEL, OWNER, Bot, open_bot, rows


@contextlib.asynccontextmanager
async def judged_bot(home: Path, **options: Any) -> AsyncGenerator[Bot]:
    """Judged when the test says so: `judge` of a `JudgeConfig` as given, else by the rule."""
    judge = options.pop("judge", {"by": "rule"})
    extra = (judges, *options.pop("extra", ()))
    sections = {"judge": JudgeConfig(**judge), **options.pop("sections", {})}
    async with open_bot(home, extra=extra, sections=sections, **options) as bot:
        bot.app._tasks["judging"].cancel()
        yield bot


async def look(bot: Bot) -> None:
    await bot.app.judging.once()


async def judged(bot: Bot) -> dict[str, tuple[str, float]]:
    """Turn → state and value."""
    found = await rows(bot.store, "SELECT turn, state, value FROM judgements")
    return {turn: (state, value) for turn, state, value in found}


async def states(bot: Bot) -> list[tuple[str, float]]:
    """In the order of the answers."""
    return await rows(
        bot.store, "SELECT j.state, j.value FROM judgements j JOIN turns t ON t.id = j.turn ORDER BY t.seq"
    )


async def past(bot: Bot, seconds: float) -> None:
    """So much time has passed for all that is stored."""
    await bot.store.write(lambda db: db.execute("UPDATE turns SET created_at = created_at - ?", (seconds,)))
    await bot.store.write(lambda db: db.execute("UPDATE judgements SET at = at - ?", (seconds,)))


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str, *calls: str) -> Message:
    made = [{"id": c, "type": "function", "function": {"name": "Bash", "arguments": "{}"}} for c in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def tool(text: str) -> Message:
    return {"role": "tool", "content": text, "tool_call_id": "c"}


class Agent:
    """A program that brings in each of its model calls with the whole transcript, as the proxy does."""

    def __init__(self, bot: Bot, name: str = "agent") -> None:
        self.bot, self.name = bot, name
        self.messages: list[Message] = [{"role": "system", "content": "You are an agent."}]
        self.turns: list[str] = []

    async def step(self, given: Sequence[Message], text: str, *calls: str) -> str:
        """The model is given more, and says this; returns its turn."""
        self.messages += given
        number = len(self.turns)
        said = text + "".join(f'<tool_call>{{"name": "Bash", "id": "{c}"}}</tool_call>' for c in calls)
        event = CaptureEvent(
            event_id=f"{self.name}-{number}",
            order=OrderKey(number + 1),
            user=OWNER,
            channel=CHANNEL,
            messages=tuple(self.messages),
            response=said,
            model="cloud-1",
            message_id=f"{self.name}-m-{number}",
        )
        [receipt] = await self.bot.app.dispatcher.submit([event], OWNER.connector)
        assert receipt.outcome is Outcome.ACCEPTED, receipt.text
        self.messages.append(assistant(text, *calls))
        self.turns.append(receipt.turn)
        return receipt.turn


@dataclass
class JudgeServer:
    """Speaks as much of OpenAI's API as a judge needs. `says` are its answers in turn, the last for ever."""

    says: list[str] = field(default_factory=lambda: ["bad"])
    status: int = 200
    hangs: int = 0
    """So many of the first questions get no answer."""
    raw: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str] = field(default_factory=list[str])
    url: str = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        if len(self.asked) <= self.hangs:
            await asyncio.Event().wait()
        said = self.says[min(len(self.asked), len(self.says)) - 1]
        text = self.raw or json.dumps({"choices": [{"message": {"content": said}}]})
        return web.Response(text=text, content_type="application/json", status=self.status)

    @property
    def data(self) -> dict[str, str]:
        """What the last question quoted."""
        return json.loads(self.asked[-1]["messages"][-1]["content"])


@contextlib.asynccontextmanager
async def judge_server(**how: Any) -> AsyncGenerator[JudgeServer]:
    server = JudgeServer(**how)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
