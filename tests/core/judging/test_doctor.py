# SPDX-License-Identifier: Apache-2.0
"""What `goodbot doctor` says of the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.api.setup import CheckState, Examined
from goodbot.config import Config, JudgeConfig
from goodbot.features.judges import plugin as judges

from tests.core.builders import plugins


async def looked(home: Path, **judge: Any) -> list[tuple[CheckState, str]]:
    config = Config(home=home, judge=JudgeConfig(**judge))
    found = await judges._look(Examined(config=config, plugins=plugins(judges), environ={}, daemon=None))
    return [(check.state, check.text) for check in found]


async def test_it_says_nothing_of_a_judge_that_is_off(tmp_path: Path) -> None:
    assert await looked(tmp_path) == []


@pytest.mark.parametrize(
    ("judge", "state", "words"),
    [
        ({"by": "rule"}, CheckState.OK, "rule judges answers that nobody rated"),
        ({"by": "server", "url": "http://localhost:1", "model": "m"}, CheckState.OK, "http://localhost:1"),
        (
            {"by": "server", "url": "http://gpu.lan:1", "model": "m", "hosts": ("gpu.lan",)},
            CheckState.WARN,
            "what is judged is sent to http://gpu.lan:1: questions, answers and the next messages",
        ),
        ({"by": "server"}, CheckState.FAIL, "url and model"),
        ({"by": "server", "url": "http://gpu.lan:1", "model": "m"}, CheckState.FAIL, "not this machine"),
        ({"by": "ruel"}, CheckState.FAIL, "no judge is named 'ruel'"),
        ({"by": "model", "settings": {"votes": 99}}, CheckState.FAIL, "votes must lie between 1 and 9"),
    ],
)
async def test_it_says_whether_it_can_judge_and_what_leaves_the_machine(
    tmp_path: Path, judge: dict[str, Any], state: CheckState, words: str
) -> None:
    [(found, text)] = await looked(tmp_path, **judge)
    assert found is state
    assert words in text
