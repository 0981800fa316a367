# SPDX-License-Identifier: Apache-2.0
"""The real Codex with a whole goodbot: hooks as `connect` installs them, trust as Codex asks for it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import goodbot_connectors.codex
import pytest
from goodbot.api.setup import CheckState
from goodbot.config import HttpConfig
from goodbot.config.secrets import Secrets
from goodbot_connectors.codex.config import CodexSettings
from goodbot_connectors.codex.connector import CodexConnector
from goodbot_connectors.codex.setup import CodexSetup

from tests.agents import programs
from tests.agents.codex_model import TITLE, Model, serving
from tests.agents.codex_person import Person
from tests.core.builders import Bot, open_bot, rows, until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

HINT = "goodbot: rate this answer with +1 or -1"
TRUSTED = "--dangerously-bypass-hook-trust"


class Scene:
    """Codex, its person, its model, and a goodbot."""

    def __init__(self, home: Path, port: int, model: Model, person: Person) -> None:
        self.home, self.port, self.model, self.person = home, port, model, person
        self.setup = CodexSetup(Secrets((), {}), CodexSettings())
        self.setup.home, self.setup.address = home / "bot", f"http://127.0.0.1:{port}"

    @asynccontextmanager
    async def goodbot(self) -> AsyncIterator[Bot]:
        sections = {"http": HttpConfig(port=self.port), "connectors": {"codex": {"owners": ["me"]}}}
        async with open_bot(self.home, extra=(goodbot_connectors.codex,), sections=sections) as bot:
            connector = bot.app.connectors.running["codex"]
            assert isinstance(connector, CodexConnector)
            yield bot

    async def turns(self, bot: Bot) -> list[tuple[list[str], str]]:
        """What was captured: the words of the prompt, and the answer."""
        found = await rows(bot.store, "SELECT messages, response FROM turns ORDER BY rowid")
        return [([one["content"] for one in json.loads(text)], said) for text, said in found]

    async def labels(self, bot: Bot) -> list[tuple[str, float]]:
        """Answers that are rated, and how."""
        sql = "SELECT response, value FROM labels JOIN turns ON turns.id = labels.turn ORDER BY turns.rowid"
        return [(said, value) for said, value in await rows(bot.store, sql)]


@pytest.fixture
async def scene(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Scene]:
    programs.package("@openai/codex")
    async with serving() as model:
        person = Person(tmp_path / "ada's home", model)
        monkeypatch.setenv("CODEX_HOME", str(person.codex_home))
        bin_ = tmp_path / "bin"
        bin_.mkdir()
        start = " ".join(f'"{word}"' for word in programs.codex())
        (bin_ / "codex").write_text(f'#!/bin/sh\nexec {start} "$@"\n')
        (bin_ / "codex").chmod(0o700)
        monkeypatch.setenv("PATH", f"{bin_}:{programs.path()}")
        made = Scene(tmp_path / "good bot", unused_tcp_port, model, person)
        (tmp_path / "good bot" / "bot").mkdir(parents=True)
        yield made


async def test_what_is_asked_in_a_script_is_captured_and_rated_there(scene: Scene) -> None:
    async with scene.goodbot() as bot:
        await scene.setup.install(dry_run=False)
        await scene.person.runs(TRUSTED, prompt="Hello there.")
        assert await scene.turns(bot) == [(["Hello there."], "Answer 1.")]
        said = await scene.person.runs("resume", "--last", TRUSTED, prompt="+1")
        assert await scene.labels(bot) == [("Answer 1.", 1.0)], said
        assert len(scene.model.calls) == 1, "no model was asked for a rating"
        await scene.person.runs("resume", "--last", TRUSTED, prompt="And now?")
        turns = await scene.turns(bot)
        assert turns[1] == (["Hello there.", "Answer 1.", "And now?"], "Answer 2.")
        await scene.person.runs(TRUSTED, prompt="+1")
        assert await scene.labels(bot) == [("Answer 1.", 1.0)], "another session has no answer"
        assert len(scene.model.calls) == 2
        turn = json.loads(scene.model.sent[1]["x-codex-turn-metadata"])["turn_id"]
        found = await rows(bot.store, "SELECT trace FROM traces ORDER BY seq")
        assert found[1] == (f"codex:{turn}",), "as the capture proxy names it, too"
        await until(lambda: len(scene.person.notes()) == 2, seconds=30)


async def test_a_person_trusts_the_hooks_and_rates_in_the_screen(scene: Scene) -> None:
    before = (scene.person.codex_home / "config.toml").read_text()
    async with scene.goodbot() as bot:
        await scene.setup.install(dry_run=False)
        [found] = await scene.setup.examine()
        assert (found.state, "press 1" in found.fix) == (CheckState.WARN, True)
        async with scene.person.sits_down() as codex:
            await codex.sees("Hooks need review")
            await codex.presses("1\r")
            await codex.sees("2 hooks need review")
            await codex.presses("\r")
            await codex.sees("connectors/codex/hook")
            await codex.presses("t")
            await codex.sees("Trust Trusted")
            await codex.presses("\x1b")
            await codex.sees("1 hook needs review")
            await codex.presses("t")
            await codex.sees("esc close", gone="needs review")
            await codex.presses("\x1b")
            await codex.sees("Ask Codex", gone="esc close")
            await codex.types("Hello there.")
            await codex.sees("goodbot: rate this answer")
            assert (await scene.turns(bot))[0] == (["Hello there."], "Answer 1.")
            for typed, value in ((" /rl good", 1.0), ("-1", -1.0), ("+1", 1.0), ("👎", -1.0)):
                await codex.types(typed)
                await until(lambda value=value: said_so(scene, bot, value), seconds=30)
                await codex.sees("“Answer 1.”")
            await codex.types("rl undo")
            await until(lambda: said_so(scene, bot, None), seconds=30)
            await codex.types("rl status")
            await codex.sees("0 of 8")
            assert len(scene.model.calls) == 1, "none of it reached the model"
            await codex.types("+1 is what I say to that, so go on")
            await codex.sees("Answer 2.")
            await until(lambda: captured(scene, bot, 2), seconds=30)
        [found] = await scene.setup.examine()
        assert found.state is CheckState.OK
        await scene.setup.install(dry_run=False)
        assert (await scene.setup.examine())[0].state is CheckState.OK, "connected again, it is still trusted"
    async with scene.goodbot() as bot, scene.person.sits_down("resume", "--last") as codex:
        await codex.sees("Answer 2.")
        await codex.types("-1")
        await codex.sees("“Answer 2.”")
        assert await scene.labels(bot) == [("Answer 2.", -1.0)]
    lines = await scene.setup.remove(dry_run=False)
    assert len(lines) == 3
    assert not (scene.person.codex_home / "hooks.json").exists()
    text = (scene.person.codex_home / "config.toml").read_text()
    assert text.startswith(before), "what Codex has added itself stays behind it"
    assert "hooks" not in tomllib.loads(text)


async def said_so(scene: Scene, bot: Bot, value: float | None) -> bool:
    return await scene.labels(bot) == ([("Answer 1.", value)] if value is not None else [])


async def test_a_rating_while_the_agent_is_at_work_or_was_stopped_is_a_sentence(scene: Scene) -> None:
    async with scene.goodbot() as bot:
        await scene.setup.install(dry_run=False)
        async with scene.person.sits_down(TRUSTED) as codex:
            await codex.types("Hello there.")
            await codex.sees("goodbot: rate this answer")
            await codex.types("Now ZSLOW please.")
            await until(lambda: len(scene.model.calls) == 2, seconds=30)
            await codex.types("+1")
            await codex.sees("to be submitted")
            scene.model.go.set()
            await codex.sees("still being written")
            scene.model.go.clear()
            await codex.types("Again ZSLOW please.")
            await until(lambda: scene.model.asked("Again ZSLOW") == 1, seconds=30)
            await codex.presses("\x1b")
            await codex.sees("interrupted")
            await codex.types("+1")
            await codex.sees("not seen to its end")
            assert await scene.labels(bot) == []
            await codex.types("And ZAGENT please.")
            await until(lambda: subagents(scene) > 0, seconds=60)
        answers = [words[-1] for words, _ in await scene.turns(bot)]
        assert answers[0] == "Hello there."
        assert "Inner." not in answers


async def test_what_was_taken_back_is_not_rated(scene: Scene) -> None:
    async with scene.goodbot() as bot:
        await scene.setup.install(dry_run=False)
        async with scene.person.sits_down(TRUSTED) as codex:
            for number, words in enumerate(("One, please.", "Two, please."), 1):
                await codex.types(words)
                await until(lambda number=number: captured(scene, bot, number), seconds=30)
                await codex.sees(f"Answer {number}. ↳ Hook · {HINT} Worked for")
            await codex.presses("\x1b")
            await codex.sees("esc again to")
            await codex.presses("\x1b")
            await codex.sees("rewind")
            await codex.presses("\r")
            await codex.sees("reverted to this point", gone="Answer 2.")
            await codex.presses("\x7f" * 20)
            await codex.types("+1")
            await codex.sees("is known here yet")
            assert await scene.labels(bot) == []
            await codex.types("Three, please.")
            await until(lambda: captured(scene, bot, 3), seconds=30)
            await codex.sees("Answer 3.")
            await codex.types("-1")
            await until(lambda: rated(scene, bot), seconds=30)
            await until(lambda: len(scene.person.notes()) >= 4, seconds=30)
        assert await scene.labels(bot) == [("Answer 3.", -1.0)]
        assert len(await scene.turns(bot)) == 3


def subagents(scene: Scene) -> int:
    return sum(note["input-messages"] == ["Inner."] for note in scene.person.notes())


async def test_without_goodbot_codex_goes_on_and_no_rating_reaches_the_model(scene: Scene) -> None:
    async with scene.goodbot():
        await scene.setup.install(dry_run=False)
    said = await scene.person.runs(TRUSTED, prompt="Hello there.")
    assert "Answer 1." in said
    await scene.person.runs("resume", "--last", TRUSTED, prompt="+1")
    assert len(scene.model.calls) == 1
    async with scene.goodbot() as bot:
        await scene.person.runs("resume", "--last", TRUSTED, prompt="+1")
        assert len(scene.model.calls) == 1
        assert await scene.labels(bot) == []
        assert await scene.turns(bot) == []


async def test_where_nothing_is_trusted_notify_captures_what_a_person_asked(scene: Scene) -> None:
    async with scene.goodbot() as bot:
        await scene.setup.install(dry_run=False)
        async with scene.person.sits_down() as codex:
            await codex.sees("Hooks need review")
            await codex.presses("3\r")
            await codex.sees("Ask Codex")
            await codex.types("Hello there.")
            await codex.sees("Answer 1.")
            await until(lambda: len(scene.person.notes()) == 2, seconds=60)
            titles = [note for note in scene.person.notes() if TITLE in note["input-messages"][0]]
            assert len(titles) == 1, "the thread that nobody sees"
            await until(lambda: captured(scene, bot, 1), seconds=30)
            await codex.types("-1")
            await codex.sees("Answer 2.")
            await until(lambda: rated(scene, bot), seconds=30)
            assert await scene.labels(bot) == [("Answer 1.", -1.0)]
        assert await scene.turns(bot) == [(["Hello there."], "Answer 1.")]


async def captured(scene: Scene, bot: Bot, count: int) -> bool:
    return len(await scene.turns(bot)) == count


async def rated(scene: Scene, bot: Bot) -> bool:
    return len(await scene.labels(bot)) > 0
