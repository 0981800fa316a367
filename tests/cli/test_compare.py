# SPDX-License-Identifier: Apache-2.0
"""`goodbot compare` in a terminal: the open question, the choices, two versions side by side."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from goodbot.config import ServingConfig
from goodbot.daemon.control import ControlSocket

from tests.cli.program import Bot as Program
from tests.cli.terminal import Person
from tests.core.builders import Bot, open_bot, until
from tests.core.learning.evaluation.asking import current, letter, tally


@contextlib.asynccontextmanager
async def asking(home: Path) -> AsyncGenerator[tuple[Bot, Program]]:
    """A goodbot that this process runs, its terminal's person, and a round that they are asked about."""
    serving = {"serving": ServingConfig(history=0, ask="after")}
    async with open_bot(home, sections=serving, terminal=True) as bot:
        control = ControlSocket(bot.app.config.home)
        control.app = bot.app
        control.ready()
        await control.start()
        try:
            program = Program(home / "bot")
            lines = "".join(f"What is {n}+1?\n{'gb'[n % 2]}\n" for n in range(8))
            assert (await typed(program.call, "chat", input=lines)).returncode == 0
            await bot.train()
            await until(lambda: asked(bot), 30)
            yield bot, program
        finally:
            await control.stop()


async def asked(bot: Bot) -> bool:
    found = await current(bot)
    return found is not None and found.state == "asking"


async def typed(work: Callable[..., Any], *args: str, **kwargs: str) -> Any:
    return await asyncio.to_thread(work, *args, **kwargs)


def chooses(home: Path, version: int, count: int) -> str:
    """Somebody who prefers this version, until nothing is open; what is on the screen then."""
    with Person(home, "compare", columns=100) as ada:
        for number in range(1, count + 1):
            screen = ada.sees(f"({number} of 5)", "(Enter: later)")
            ada.type("nonsense\r" if number == 1 else "")
            ada.type(f"{letter(screen[screen.rindex('Which is better?') :], version)}\r")
        assert ada.ends() == 0
        return ada.look()


async def test_a_person_is_asked_until_it_is_decided(tmp_path: Path) -> None:
    async with asking(tmp_path) as (bot, program):
        screen = await typed(chooses, program.home, 0, 4)
        assert "0 for v1, 4 for the base model. The base model answers again." in screen
        assert await bot.app.registry.active() == 0


async def test_enter_leaves_it_for_another_time_and_programs_get_json(tmp_path: Path) -> None:
    async with asking(tmp_path) as (bot, program):

        def leaves() -> None:
            with Person(program.home, "compare") as ada:
                ada.sees("(1 of 5)", "(Enter: later)")
                ada.type("\r")
                assert ada.ends() == 0

        await asyncio.to_thread(leaves)
        found = await typed(program.json, "compare")
        question = found["question"]
        assert (question["number"], question["of"]) == (1, 5)
        assert question["choices"] == ["a", "b", "same", "skip"]
        assert {question["a"][:7], question["b"][:7]} == {"v0 says", "v1 says"}
        piped = await typed(program.call, "compare")
        assert "Which is better? (1 of 5)" in piped.stdout
        assert "`goodbot compare a`, `b`, `same` or `skip`" in piped.stdout
        assert "Enter: later" not in piped.stdout, "nobody is there to be asked"
        await typed(program.json, "compare", "same")
        assert (await tally(bot)).same == 1
        both = await typed(program.json, "compare", "base", "v1", "What is this?")
        assert both == {
            "answers": [
                {"version": 0, "text": "v0 says: What is this?"},
                {"version": 1, "text": "v1 says: What is this?"},
            ]
        }
        wrong = await typed(program.call, "compare", "c")
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert "`compare a`, `b`, `same` or `skip`" in wrong.stderr


def test_with_nothing_to_compare_it_says_so_without_a_daemon(tmp_path: Path) -> None:
    done = Program(tmp_path / "home").call("compare", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"question": None})
