# SPDX-License-Identifier: Apache-2.0
"""The real model, or the reason why it cannot be had, which is a failure where a CI runs; and bots on it.

What takes minutes is done once for all tests that look at it: a bot a backend, from `model use` to the
version that it has learnt.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.machine.device import openblas

from tests.real import model
from tests.real.taught import QUESTIONS, Real, Size, Taken, Turn, Watch
from tests.support import missing, require

SIZES = (
    Size(backend="torch", ratings=40, held_out=8, tokens=24, passes=2, anchors=32),
    Size(backend="mlx", ratings=40, held_out=8, tokens=12, passes=2, anchors=16),
)
MODULES = {"torch": ("torch", "peft", "transformers"), "mlx": ("mlx.core", "mlx_lm")}
MAKERS = {
    "do_sample": True,
    "temperature": 0.6,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.02,
    "repetition_penalty": 1.1,
}
"""What makers may recommend; those of SmolLM2 leave it to whoever runs it."""


def model_or_reason() -> Path:
    """The model's directory. Else the test is skipped with the reason, which is a failure where a CI runs."""
    for module in ("gguf", "tokenizers", "safetensors"):
        require(module)
    try:
        return model.directory()
    except model.UnavailableError as error:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"CI is set, but {error}")
        missing(str(error))


@pytest.fixture(scope="session")
def real_model() -> Path:
    """The directory of SmolLM2-135M-Instruct, made once for all runs."""
    return model_or_reason()


@pytest.fixture(scope="session")
def recommending(real_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model, whose `generation_config.json` says how it is to be drawn."""
    made = tmp_path_factory.mktemp("models") / real_model.name
    shutil.copytree(real_model, made)
    said = json.loads((made / "generation_config.json").read_text())
    (made / "generation_config.json").write_text(json.dumps(said | MAKERS))
    return made


@dataclass(kw_only=True)
class Talker:
    """A bot that runs, and has learnt nothing yet."""

    bot: Real
    cost: dict[str, Any]
    """What `model use` said."""
    doctor: str


@dataclass(kw_only=True)
class Pupil(Talker):
    """The same bot after one round."""

    before: list[Turn]
    """What was rated."""
    planned: dict[str, Any]
    """What `train --dry-run` said."""
    trained: str
    """The lines that `train` showed on the way, and its last words."""
    taken: dict[str, Taken]
    after: list[Turn]
    """Answers of what was learnt."""


@pytest.fixture(
    scope="session",
    params=[  # with two processes each has one backend to itself
        pytest.param(size, id=size.backend, marks=pytest.mark.xdist_group(size.backend)) for size in SIZES
    ],
)
def talker(
    request: pytest.FixtureRequest,
    real_model: Path,
    recommending: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Talker]:
    size: Size = request.param
    for module in MODULES[size.backend]:
        require(module)
    used = recommending if size.backend == "mlx" else real_model
    bot = Real(tmp_path_factory.mktemp(size.backend) / "home", used, size)
    cost = bot.set_up()
    doctor = bot.call("doctor").stdout
    try:
        bot.start()
        yield Talker(bot=bot, cost=cost, doctor=doctor)
        assert bot.stop() == 0, bot.log.read_text()
        assert "Traceback" not in bot.log.read_text(), bot.log.read_text()
    finally:
        bot.stop(signal.SIGKILL)
        shutil.rmtree(bot.home, ignore_errors=True)


@pytest.fixture(scope="session")
def pupil(talker: Talker) -> Pupil:
    """Rated as somebody rates who likes short answers, and trained."""
    bot, size = talker.bot, talker.bot.size
    if size.backend == "mlx" and sys.platform == "linux" and not openblas():
        missing("without OpenBLAS a round on MLX takes half an hour: apt-get install libopenblas0")
    before = bot.asked(QUESTIONS[: size.ratings])
    longest = sorted(len(turn.response) for turn in before)[size.ratings // 2]
    bot.rate({turn.id: 1.0 if len(turn.response) < longest else -1.0 for turn in before})
    planned = bot.json("train", "--dry-run")
    assert bot.process is not None
    watch = Watch(bot.process.pid)
    with watch.on():
        ran = bot.call("train")
    assert ran.returncode == 0, (ran.stdout, ran.stderr, bot.log.read_text())
    return Pupil(
        **vars(talker),
        before=before,
        planned=planned,
        trained=ran.stderr + ran.stdout,
        taken=watch.taken,
        after=bot.asked(QUESTIONS[:2]),
    )
