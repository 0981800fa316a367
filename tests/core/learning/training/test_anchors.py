# SPDX-License-Identifier: Apache-2.0
"""Anchor prompts: a list or a file of what the gate asks every new version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import ConfigError
from goodbot.config import Config, SamplingConfig, ServingConfig, TrainingConfig
from goodbot.learning import worker_process
from goodbot.learning.training import anchors

from tests.core.builders import open_bot


def config(home: Path, *, system: str = "", **training: object) -> Config:
    return Config(
        home=home,
        serving=ServingConfig(system_prompt=system),
        training=TrainingConfig(**training),  # type: ignore[arg-type]
    )


def test_without_any_the_rounds_own_prompts_serve(tmp_path: Path) -> None:
    assert anchors.load(config(tmp_path)) == []


def test_a_list_and_a_file_begin_conversations_as_the_bot_does(tmp_path: Path) -> None:
    (tmp_path / "anchors.txt").write_text("# what must not change\n\nWho are you?\n  2 + 2?  \n")
    found = anchors.load(config(tmp_path, system="Be brief.", anchors=("Hello",), anchors_file="anchors.txt"))
    assert [messages[-1]["content"] for messages in found] == ["Hello", "Who are you?", "2 + 2?"]
    assert {messages[0]["content"] for messages in found} == {"Be brief."}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read"),
        (b"# nothing\n\n", "holds no prompt: write one a line"),
        (b"\xff\xfe", "cannot be read"),
        (b"x" * 5000, "1 to 4,000 characters"),
        (b"x\n" * 600_000, "larger than 1 MB"),
    ],
)
def test_a_file_that_does_not_serve_is_refused(tmp_path: Path, content: bytes | None, why: str) -> None:
    if content is not None:
        (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(ConfigError, match=why):
        anchors.load(config(tmp_path, anchors_file="a.txt"))


async def test_a_job_carries_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    train = worker_process.train

    def looked_at(backend: Any, job: Any, *rest: Any, **more: Any) -> Any:
        seen.append((job["anchors"], job["sampling"]))
        return train(backend, job, *rest, **more)

    monkeypatch.setattr(worker_process, "train", looked_at)
    drawn = ServingConfig(sampling=SamplingConfig(temperature=0.6, top_k=5, top_p=1.0))
    async with open_bot(tmp_path, sections={"serving": drawn}, anchors=("Hello", "Bye")) as bot:
        await bot.rated(8)
        await bot.train()
    asked = [[{"role": "user", "content": text}] for text in ("Hello", "Bye")]
    assert seen == [(asked, {"temperature": 0.6, "top_k": 5})]
