# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code, with the hooks that `connect` installs. `RECORD=1` renews `recorded/`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
from goodbot_connectors.claude_code import plugin_files, script, sidecar
from goodbot_connectors.claude_code.config import ClaudeCodeSettings

from tests.agents import programs
from tests.agents.claude_scene import Scene, scene, setup_of
from tests.core.builders import until
from tests.support import patience

pytestmark = [pytest.mark.agents, pytest.mark.timeout(240)]


@pytest.fixture(params=["auto", "http"])
async def hooked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    """Installed by our script, and by HTTP."""
    programs.claude()
    async with scene(tmp_path, ClaudeCodeSettings(hooks=request.param)) as made:
        await setup_of(made, tmp_path / "goodbot").install(dry_run=False)
        await sidecar.refresh(made.state_dir, made.address)
        yield made


def pairs(scene: Scene) -> list[tuple[str, str]]:
    return [(str(one.messages[-1]["content"]), one.response) for one in scene.captures]


async def test_what_is_printed_is_captured(hooked: Scene) -> None:
    done = await hooked.person.prints("Hello there.")
    assert done["result"] == "Answer 1."
    [turn] = hooked.captures
    [stop] = hooked.told("Stop")
    assert turn.messages == ({"role": "user", "content": "Hello there."},)
    assert turn.response == "Answer 1."
    assert turn.event_id.startswith(stop["prompt_id"])
    assert turn.channel.thread == done["session_id"] == stop["session_id"]
    hooked.record("printed")


async def test_after_a_tool_call_the_prompt_is_still_the_persons(hooked: Scene) -> None:
    await hooked.person.prints("Please ZTOOL.")
    assert len(hooked.model.calls) == 2
    assert "THE-TOOLS-WORDS" in json.dumps(hooked.model.calls[1]["messages"])
    assert pairs(hooked) == [("Please ZTOOL.", "Answer 2.")]
    hooked.record("tool")


async def test_what_a_subagent_says_is_no_answer(hooked: Scene) -> None:
    await hooked.person.prints("Please ZAGENT.")
    assert len(hooked.told("Stop")) == 2, "the second when the subagent is done"
    assert pairs(hooked) == [("Please ZAGENT.", "Answer 2.")]
    hooked.record("subagent")


async def test_rating_in_the_terminal_calls_no_model(hooked: Scene) -> None:
    async with hooked.person.sits_down() as terminal:
        await terminal.types("What is 2 + 2?")
        await terminal.sees("👍 /rl good · 👎 /rl bad")
        await terminal.types("/rl good")
        await terminal.sees("12 of 40 ratings (28 to go)")
        await terminal.types("Another one.")
        await terminal.sees("/rl bad · 12 of 40")
        await terminal.types("/rl bad")
        await terminal.sees("13 of 40")
        await terminal.types("/rl undo")
        await terminal.sees("Did undo.")
        await terminal.types("/rl")
        await terminal.sees("Did help.")
    assert len(hooked.model.calls) == 2
    assert pairs(hooked) == [("What is 2 + 2?", "Answer 1."), ("Another one.", "Answer 2.")]
    turns = [hooked._receipts[one.event_id].turn for one in hooked.captures]
    assert [(one.turn, one.value) for one in hooked.rated] == [(turns[0], 1.0), (turns[1], -1.0)]
    hooked.record("rated")


async def test_prompts_that_had_to_queue_are_joined_with_their_own_answers(hooked: Scene) -> None:
    async with hooked.person.sits_down() as terminal:
        hooked.model.hold.clear()
        await terminal.types("First question.")
        await until(lambda: len(hooked.told("UserPromptSubmit")) == 1, seconds=60)
        await terminal.types("Second question.")
        await until(lambda: len(hooked.told("UserPromptSubmit")) == 2, seconds=60)
        hooked.model.hold.set()
        await hooked.stops(2)
        await until(lambda: len(hooked.captures) == 2, seconds=60)
    first, second = hooked.told("UserPromptSubmit")
    assert first["prompt_id"] == second["prompt_id"], "which is why the hooks alone do not tell"
    assert pairs(hooked) == [("First question.", "Answer 1."), ("Second question.", "Answer 2.")]
    hooked.record("queued")


async def test_what_is_said_while_a_tool_runs_is_part_of_the_prompt(hooked: Scene) -> None:
    async with hooked.person.sits_down() as terminal:
        await terminal.types("Please ZSLOW.")
        await until(lambda: len(hooked.model.calls) == 1, seconds=60)
        await terminal.types("And be kind.")
        await hooked.stops(1)
        await until(lambda: len(hooked.captures) == 1, seconds=60)
    assert pairs(hooked) == [("Please ZSLOW.\n\nAnd be kind.", "Answer 2.")]
    hooked.record("during")


async def test_answers_that_nobody_asked_for_are_neither_kept_nor_rated(hooked: Scene) -> None:
    async with hooked.person.sits_down() as terminal:
        await terminal.types("Please ZBACK.")
        await hooked.stops(2)
        await terminal.sees("Answer 3.")
        await terminal.types("/rl good")
        await terminal.sees("Which of these do you mean?")
        turn = hooked._receipts[hooked.captures[0].event_id].turn
        await terminal.types(f"/rl good {turn[:6]}")
        await terminal.sees("12 of 40")
        await terminal.types("! echo THE-SHELLS-WORDS")
        await hooked.stops(3)
    assert pairs(hooked) == [("Please ZBACK.", "Answer 2.")]
    assert [one.turn for one in hooked.rated] == [turn]
    hooked.record("background")


async def test_after_an_interruption_nothing_is_guessed(hooked: Scene) -> None:
    async with hooked.person.sits_down() as terminal:
        await terminal.types("A good question.")
        await hooked.stops(1)
        hooked.model.hold.clear()
        await terminal.types("One that takes long.")
        await until(lambda: len(hooked.model.calls) == 2, seconds=60)
        await terminal.sees("esc to interrupt")
        await terminal.presses("\x1b")
        await terminal.gone("esc to interrupt")  # the prompt is back where it was typed
        await terminal.presses("\x15")
        await terminal.gone("One that takes long.")
        hooked.model.hold.set()
        await terminal.types("/rl good")
        await terminal.sees("Your last prompt has no finished answer")
    assert hooked.rated == []
    hooked.record("interrupted")


async def test_a_restart_between_prompt_and_answer(hooked: Scene) -> None:
    hooked.model.hold.clear()
    asked = asyncio.create_task(hooked.person.prints("Over the restart."))
    await until(lambda: len(hooked.told("UserPromptSubmit")) == 1, seconds=60)
    await hooked.restart()
    hooked.model.hold.set()
    await asked
    assert pairs(hooked) == [("Over the restart.", "Answer 1.")]


async def test_while_goodbot_is_down_one_line_says_so(tmp_path: Path) -> None:
    if not script.possible():
        pytest.skip("there is no curl")
    async with scene(tmp_path) as made:
        setup = setup_of(made, tmp_path / "goodbot")
        setup.address = "http://127.0.0.1:9"  # the discard port: nobody listens there
        await setup.install(dry_run=False)
        async with made.person.sits_down() as terminal:
            await terminal.types("Hello.")
            await terminal.sees("goodbot is not running, so this answer is not kept")
            await terminal.types("Again.")
            await terminal.sees("Answer 2.")
            await terminal.types("/rl good")
            screen = await terminal.sees("so nothing was rated")
        assert len(made.model.calls) == 2, "no model saw the /rl"
        assert screen.count("not kept") == 1, screen
        assert "hook failed" not in screen
        assert "problem" not in screen


async def test_without_the_script_claude_code_itself_complains(tmp_path: Path) -> None:
    async with scene(tmp_path, ClaudeCodeSettings(hooks="http")) as made:
        setup = setup_of(made, tmp_path / "goodbot")
        setup.address = "http://127.0.0.1:9"
        await setup.install(dry_run=False)
        async with made.person.sits_down() as terminal:
            await terminal.types("Hello.")
            await terminal.sees("Answer 1.")
            await terminal.sees("Stop hook failed")


async def test_a_link_to_its_directory_works(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        dotfiles = tmp_path / "dotfiles"
        made.person.directory.rename(dotfiles)
        made.person.directory.symlink_to(dotfiles)
        before = (dotfiles / "settings.json").read_bytes()
        setup = setup_of(made, tmp_path / "goodbot")
        await setup.install(dry_run=False)
        await sidecar.refresh(made.state_dir, made.address)
        await made.person.prints("Through a link.")
        assert pairs(made) == [("Through a link.", "Answer 1.")]
        await setup.remove(dry_run=False)
        assert (dotfiles / "settings.json").read_bytes() == before
        assert made.person.directory.is_symlink()


def test_the_plugin_is_one_that_its_directory_takes(tmp_path: Path) -> None:
    packed = plugin_files.manifest("http://127.0.0.1:8321").packed
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        archive.extractall(tmp_path / "plugin")
    done = subprocess.run(
        [str(programs.claude()), "plugin", "validate", str(tmp_path / "plugin"), "--profile", "directory"],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "DISABLE_AUTOUPDATER": "1"},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✘" not in done.stdout
    assert "rl:good" in done.stdout


async def test_the_plugin_rates_without_a_model(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        folder = tmp_path / "plugin"
        for name, content in plugin_files.files(made.address):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        made.person.token = made.token
        done = await made.person.prints("By the plugin.", "--plugin-dir", str(folder))
        await made.person.prints("/rl:good", "--plugin-dir", str(folder), "--resume", done["session_id"])
        assert pairs(made) == [("By the plugin.", "Answer 1.")]
        assert [one.value for one in made.rated] == [1.0]
        assert len(made.model.calls) == 1
