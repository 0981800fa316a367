# SPDX-License-Identifier: Apache-2.0
"""`goodbot demo`, as `make demo` runs it: a program that a person starts, with nothing set up."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from goodbot import GoodbotError
from goodbot.base import full_disk, priority
from goodbot_training.tiny import demo, show
from goodbot_training.tiny.demo import play
from goodbot_training.tiny.judge import style_of

from tests.support import patience, require


def _demo(home: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "goodbot", "--home", str(home), "demo", "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=patience(600),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout)


def _without_times(result: dict[str, Any]) -> dict[str, Any]:
    moving = ("seconds", "train_seconds", "home", "adapter_directory", "reason")
    return {key: value for key, value in result.items() if key not in moving}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", ["torch", "mlx"])
def test_the_demo_learns_and_a_seed_repeats_it(backend: str, tmp_path: Path) -> None:
    for module in {"torch": ("torch", "peft"), "mlx": ("mlx", "mlx_lm")}[backend]:
        require(module)
    words = ("--backend", backend, "--seed", "0", "--like", "friendly", "--questions", "60")
    result = _demo(tmp_path, *words)

    word = result["word"]
    assert word["followed"]
    assert style_of(word["answer"]) != "terse"
    assert style_of(word["again"]) == "terse"
    short = [style_of(one["answer"]) for one in word["next"]]
    assert short.count("terse") >= 2, "what comes after one word, and no training"

    assert result["ratings"] == 40
    assert len({one["before"].split()[0] for one in result["answers"]} & {"Great", "Arr"}) == 2, "it is over"
    before, after = result["before"], result["after"]
    assert after["liked_share"] - before["liked_share"] >= 0.15, (before, after)
    assert after["liked_low"] <= after["liked_share"] <= after["liked_high"]
    assert after["facts"] >= before["facts"] - 0.06, (before, after)

    weights = Path(result["adapter_directory"]) / "adapter_model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == result["adapter"]["sha256"]

    status = subprocess.run(
        [sys.executable, "-m", "goodbot", "--home", result["home"], "status", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(status.stdout)["waiting_for_consent"] == 0, "its owner has agreed"

    if backend == "torch":  # the faster one on a CPU: once more, from nothing
        again = _demo(tmp_path, *words)
        assert _without_times(again) == _without_times(result)


@pytest.mark.parametrize(
    ("state", "followed", "status"), [("activated", True, 0), ("activated", False, 1), ("refused", True, 1)]
)
def test_the_exit_status_is_of_both_acts(
    state: str, followed: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def played(*_: object) -> dict[str, Any]:
        return {"state": state, "word": {"followed": followed}}

    monkeypatch.setattr("goodbot_training.tiny.demo.play.play", played)
    assert demo.main(argparse.Namespace(json=True)) == status


def test_its_training_does_not_stand_behind_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside four busy processes it had a fortieth of the time that its person waited."""
    seen: list[str | None] = []

    async def played(*_: object) -> dict[str, Any]:
        seen.append(os.environ.get(priority.KEEP))
        return {"state": "activated", "word": {"followed": True}}

    monkeypatch.delenv(priority.KEEP)
    monkeypatch.setattr("goodbot_training.tiny.demo.play.play", played)
    demo.main(argparse.Namespace(json=True))
    assert seen == ["1"]


async def test_without_room_it_says_so_and_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its training would have waited for the disk, and the demo for its training, without a word."""
    monkeypatch.setattr(full_disk, "_free", lambda _: 10_000_000)
    arguments = argparse.Namespace(home=tmp_path, seed=0, backend="auto", questions=1, like="friendly")
    with pytest.raises(GoodbotError, match="MB of the disk are free"):
        async with asyncio.timeout(patience(60)):
            await play.play(arguments, show.DemoPrinter(quiet=True))


def test_it_says_something_before_it_imports_what_takes_a_while(tmp_path: Path) -> None:
    """Ten seconds without a sign of life made people press Ctrl-C."""
    code = (
        "import argparse, builtins, sys\n"
        "from goodbot_training.tiny import demo\n"
        "assert 'goodbot.daemon.app' not in sys.modules\n"
        "sys.modules['goodbot_training.tiny.demo.play'] = None\n"
        "demo.main(argparse.Namespace(json=False))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=patience(60))
    assert done.stdout.startswith("Good bot. Bad bot. It learns.")
    assert "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr


@pytest.mark.parametrize("number", ["19", "201", "-40", "forty", "1" * 5000])
def test_how_many_questions_is_a_number_that_there_are(number: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "goodbot", "--home", str(tmp_path), "demo", "--questions", number],
        capture_output=True,
        text=True,
        timeout=patience(60),
    )
    assert done.returncode == 2
    assert "is not a number from 20 to 200" in done.stderr
    assert not (tmp_path / "demo").exists()


def test_the_demo_removes_nothing_that_it_did_not_make(tmp_path: Path) -> None:
    keep = tmp_path / "demo" / "thesis.txt"
    keep.parent.mkdir()
    keep.write_text("mine")
    done = subprocess.run(
        [sys.executable, "-m", "goodbot", "--home", str(tmp_path), "demo", "--json"],
        capture_output=True,
        text=True,
        timeout=patience(60),
    )
    assert done.returncode == 1
    assert "was not made by the demo" in done.stderr
    assert keep.read_text() == "mine"
