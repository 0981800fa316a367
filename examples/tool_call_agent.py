# SPDX-License-Identifier: Apache-2.0
"""An agent with a calculator that learns from outcomes alone: nobody rates its answers.

The tiny model was shown a calculator, but some ways to ask for a sum were not in its corpus: there it
answers by heart, or multiplies. The agent asks it through goodbot's API as any OpenAI client would, runs
the tool that it calls, compares the answer with the true sum, and reports 1 or -1 to `/v1/feedback`.
After 40 such outcomes goodbot trains by itself, and the same agent is examined on sums that are new.

The control does the same with its outcomes dealt out at random: whatever still gets better is not learnt
from the outcomes.

Run it with `python examples/tool_call_agent.py`. It needs a backend: `make install` brings one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
from goodbot import hookimpl
from goodbot.base.intervals import difference, wilson
from goodbot.config import Config, HttpConfig, ServingConfig, TrainingConfig
from goodbot.daemon.app import App, open_plugins
from goodbot_connectors.kit.bridge import clients
from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.corpus import CALCULATOR

OUTCOMES, HELD_OUT = 40, 8
ASKED = ("How much is {} up to {}?", "What is plus {} {}?")
KEEPS = (
    *(f"What is {a} + {109 - a}?" for a in range(11, 99, 6)),
    *(f"What is the capital of {name}?" for name in ("France", "Egypt", "Chile", "Spain", "Japan")),
    *(f"Name the opposite of {word}." for word in ("hot", "big", "fast")),
)
"""What it can do and is to keep: the gate has a new version answer these. Without them it would look at
the sums of the training, of which another kind of answer is wanted, and call that lost knowledge."""
EXPRESSION = re.compile(r"(\d{1,4})([-+*])(\d{1,4})")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A question, and what is true."""

    question: str
    result: int


def tasks(number: int, seed: str) -> list[Task]:
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    pairs = [(rng.randint(10, 99), rng.randint(10, 99)) for _ in range(number)]
    return [Task(question=rng.choice(ASKED).format(a, b), result=a + b) for a, b in pairs]


def calculator(arguments: str) -> str:
    """The tool. Its arguments are what a model wrote: anything can be in there."""
    try:
        found = EXPRESSION.fullmatch(json.loads(arguments)["expression"])
    except (ValueError, LookupError, TypeError):
        found = None
    if found is None:
        return "error"
    one, other = int(found[1]), int(found[3])
    return str({"+": one + other, "-": one - other, "*": one * other}[found[2]])


class Agent:
    """Asks, runs the tool, asks again. What it knows of goodbot is an address and a token."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def solve(self, task: Task, seed: int) -> tuple[str, bool]:
        """The turn that decided (the call, or the answer by heart), and whether the answer is right."""
        chat: list[dict[str, Any]] = [{"role": "user", "content": task.question}]
        message, turn = await self._ask(chat, seed)
        if calls := message.get("tool_calls"):
            call = calls[0]
            result = calculator(call["function"]["arguments"])
            chat += [message, {"role": "tool", "tool_call_id": call["id"], "content": result}]
            message, _ = await self._ask(chat, seed)
        said = re.findall(r"\d{1,9}", (message.get("content") or "")[:200])
        return turn, said == [str(task.result)]

    async def report(self, turn: str, outcome: float) -> None:
        """What came of it. The environment has a name, so that several may report of one turn."""
        body = {"turn": turn, "kind": "outcome", "score": outcome, "source": "calculator"}
        async with self._session.post("/v1/feedback", json=body) as reply:
            reply.raise_for_status()

    async def _ask(self, chat: Sequence[dict[str, Any]], seed: int) -> tuple[dict[str, Any], str]:
        body = {"model": "goodbot", "messages": chat, "tools": [CALCULATOR], "seed": seed}
        async with self._session.post("/v1/chat/completions", json=body) as reply:
            reply.raise_for_status()
            answer = await reply.json()
            return answer["choices"][0]["message"], reply.headers["X-Goodbot-Turn"]


class Watcher:
    """The plugin through which this program hears that a training is over."""

    def __init__(self) -> None:
        self.finished: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()

    @hookimpl
    def on_training_finished(self, state: str, reason: str) -> None:
        if not self.finished.done():
            self.finished.set_result((state, reason))


async def learn(
    home: Path, arguments: argparse.Namespace, *, shuffled: bool, before: int | None = None
) -> tuple[int, int]:
    """Right answers to the exam before and after one training from outcomes.

    `before` is known of the control: it begins as the same model, asked the same with the same seeds.
    """
    port = free_port()
    config = Config(
        home=home,
        http=HttpConfig(port=port),
        serving=ServingConfig(temperature=TEMPERATURE, max_tokens=48, ask="never"),
        # Nobody is disturbed here, so it does not wait until the machine has time.
        training=TrainingConfig(
            backend=arguments.backend,
            min_ratings=OUTCOMES,
            held_out=HELD_OUT,
            anchors=KEEPS,
            idle_seconds=0.0,
            max_load=1.0,
            max_gpu=1.0,
        ),
        connectors={"api": {"owners": ["agent"]}},
    )
    headers = {"Authorization": f"Bearer {clients.create(home, 'api', 'agent')}"}
    plugins = open_plugins(config)
    watcher = Watcher()
    plugins.register(watcher, "watcher")
    url = f"http://127.0.0.1:{port}"
    async with (
        App.open(config, plugins, demo_model=True, grants={}),
        aiohttp.ClientSession(url, headers=headers) as session,
    ):
        agent = Agent(session)
        exam = tasks(arguments.exam, f"exam {arguments.seed}")
        if before is None:
            before = sum(right for _, right in await solve_all(agent, exam, seed=50_000))
        solved = await solve_all(agent, tasks(OUTCOMES, f"train {arguments.seed}"), seed=1000)
        outcomes = [1.0 if right else -1.0 for _, right in solved]
        if shuffled:
            Random(arguments.seed).shuffle(outcomes)  # noqa: S311 - reproducible, not secret
        for (turn, _), outcome in zip(solved, outcomes, strict=True):
            await agent.report(turn, outcome)
        state, reason = await watcher.finished
        print(f"{state}: {reason}")
        after = sum(right for _, right in await solve_all(agent, exam, seed=50_000))
    return before, after


async def solve_all(agent: Agent, given: Sequence[Task], *, seed: int) -> list[tuple[str, bool]]:
    """Eight at a time: goodbot's own server writes them together."""
    found: list[tuple[str, bool]] = []
    for start in range(0, len(given), 8):
        part = enumerate(given[start : start + 8], start=seed + start)
        found += await asyncio.gather(*(agent.solve(task, number) for number, task in part))
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def share(right: int, of: int) -> str:
    low, high = wilson(right, of)
    return f"{right / of:4.0%} ({low:.0%}–{high:.0%})"


def row(name: str, before: int, right: int, of: int) -> str:
    low, high = difference((right, of), (before, of))
    change = f"{(right - before) / of:+.0%} ({low:+.0%} to {high:+.0%})"
    return f"{name:20}{share(before, of):18}{share(right, of):18}{change}"


async def main(arguments: argparse.Namespace, directory: Path) -> None:
    of = arguments.exam
    before, after = await learn(directory / "agent", arguments, shuffled=False)
    _, control = await learn(directory / "control", arguments, shuffled=True, before=before)
    print(f"\nright of {of} sums that were never asked before (95 % intervals)")
    print(f"{'learnt from':20}{'before':18}{'after':18}change")
    for name, right in (("outcomes", after), ("the same, shuffled", control)):
        print(row(name, before, right, of))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A calculator agent that learns from outcomes.")
    parser.add_argument("--exam", type=int, default=100, help="sums before and after")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", default="auto", help="mlx or torch")
    with tempfile.TemporaryDirectory() as where:
        asyncio.run(main(parser.parse_args(), Path(where)))
