# SPDX-License-Identifier: Apache-2.0
"""A bot on the real model before it has learnt anything: how it starts, talks, streams and draws."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.real import yardstick
from tests.real.conftest import MAKERS, Talker
from tests.real.model import NAME

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]


def test_the_model_is_taken_and_looked_at(talker: Talker) -> None:
    text = (talker.bot.home / "config.toml").read_text()
    assert text.startswith("# mine")
    assert f'path = "{talker.bot.model}"' in text
    assert (talker.cost["backend"], talker.cost["parameters"]) == (
        talker.bot.size.backend,
        pytest.approx(134_515_008, rel=1e-3),
    )
    said = " ".join(talker.doctor.split())
    assert f"{NAME}@" in said
    assert "269 MB, every file is whole" in said
    assert "fail model" not in said


def test_status_tells_that_it_loads_and_then_that_it_answers(talker: Talker) -> None:
    *first, last = talker.bot.said
    assert {one["server"] for one in first} == {"starting"}
    told = [one["starting"] for one in first]
    assert told[-1] == "connecting" or "loading the model" in told[-1]
    assert any("loading the model" in one for one in told)
    assert (last["server"], last["version"], last["backend"]) == ("up", 0, talker.bot.size.backend)
    assert last["model"].startswith(f"{NAME}@")


def test_a_chat_goes_on_from_what_was_said(talker: Talker) -> None:
    said = talker.bot.done("chat", input="My name is Ada.\nWhat is 2 + 2?\n")
    assert said.strip()
    first, second = talker.bot.turns("WHERE connector = 'terminal'")[-2:]
    assert said.split() == [*first.response.split(), *second.response.split()]
    whole = talker.bot.text(second.prompt)
    assert whole.endswith("<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n")
    assert "<|im_start|>user\nMy name is Ada.<|im_end|>" in whole
    assert f"<|im_start|>assistant\n{first.response}<|im_end|>" in whole
    assert whole.startswith("<|im_start|>system\nAnswer in one sentence.<|im_end|>")


def test_a_stream_comes_in_pieces_that_are_the_answer(talker: Talker) -> None:
    async def read() -> tuple[str, list[str], str]:
        async with talker.bot.client() as client:
            made = await client.chat.completions.with_raw_response.create(
                model="goodbot", messages=[{"role": "user", "content": "Where is Rome?"}], stream=True
            )
            chunks = [chunk async for chunk in made.parse()]
            pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
            ends = [one.choices[0].finish_reason for one in chunks if one.choices]
            return made.headers["x-goodbot-turn"], pieces, str(ends[-1])

    turn_id, pieces, end = asyncio.run(read())
    [turn] = talker.bot.turns("WHERE id = ?", turn_id)
    assert "".join(pieces) == turn.response
    assert sum(bool(piece) for piece in pieces) > 2, "not all at once"
    stopped = turn.tokens[-1] == 2
    assert end == ("stop" if stopped else "length")
    assert len(turn.tokens) <= talker.bot.size.tokens + stopped


def test_it_draws_as_its_files_say_and_tells_what_was_drawn(talker: Talker, real_model: Path) -> None:
    """The log-probs that are stored are those of the distribution that was drawn from."""
    makers = talker.bot.size.backend == "mlx"
    told = talker.bot.said[-1]["sampling"]
    wanted = dict(MAKERS) if makers else {"temperature": 0.7, "top_p": 0.9}
    wanted.pop("do_sample", None)
    assert {name: told[name] for name in wanted} == wanted
    assert told["text"].startswith("as the model's makers say" if makers else "goodbot's default")
    asked = talker.bot.asked(["What is a star?", "Name a city in Italy."])
    causal = yardstick.load(real_model)
    for turn in asked:
        assert {"temperature": turn.temperature, **turn.filters} == wanted
        drawn = yardstick.drawn_logprobs(causal, turn)
        np.testing.assert_allclose(turn.logprobs, drawn, atol=5e-3)
        own = np.asarray(turn.logprobs) - turn.lifts
        np.testing.assert_allclose(own, yardstick.own_logprobs(causal, turn), atol=5e-3)
        assert np.any(np.abs(turn.lifts) > 1e-3), "the filters have taken something out"
