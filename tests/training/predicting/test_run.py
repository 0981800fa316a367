# SPDX-License-Identifier: Apache-2.0
"""The mode `predict` with real models: states on both backends, slips found, and when nothing is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings, ShowsStates
from goodbot.api.predicted import LEAST, Predicted
from goodbot.base.errors import TrainingError
from goodbot_training.predicting import PredictJob, run_predict
from goodbot_training.predicting.run import states_of
from goodbot_training.tiny import model_path
from goodbot_training.tiny.facts import FactQuestion, questions
from goodbot_training.tiny.styles import render

from tests.support import patience, require
from tests.training.test_worker import FACTORIES, SECRET, start


def raw(model: Path, rows: Sequence[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """A job as the daemon sends it."""
    items = [{"question": str(n), "person": "0", "good": None, **one} for n, one in enumerate(rows)]
    return {"protocol": 1, "model": str(model), "bits": None, "seed": 0, "items": items, **changes}


def row(n: int, question: str, answer: str, good: bool | None) -> dict[str, Any]:
    asked = [{"role": "user", "content": question}]
    return {"id": f"a{n}", "messages": asked, "response": answer, "good": good}


def in_styles(seed: int, slips: int = 0) -> tuple[list[dict[str, Any]], set[str]]:
    """Answers to different questions, of which the friendly ones are liked; the first have slipped."""
    random = Random(seed)
    asked: list[FactQuestion] = random.sample([*questions()], 300)
    rows: list[dict[str, Any]] = []
    for n, question in enumerate(asked):
        style = random.choice(("friendly", "terse", "pirate"))
        good = (style == "friendly") != (n < slips)
        rows.append(row(n, question.text, render(question, style, random), good))
    return rows, {f"a{n}" for n in range(slips)}


def last(job: dict[str, Any], backend: Any) -> dict[str, Any]:
    """The one event that it says."""
    events: list[dict[str, Any]] = []
    run_predict(PredictJob.parse(job), backend, events.append)
    [done] = events
    assert done["event"] == "done"
    json.dumps(done, allow_nan=False)
    return done


def ran(job: dict[str, Any], backend: Any) -> Predicted:
    return Predicted.parse(last(job, backend)["predicted"])


@pytest.fixture(scope="module")
def torch_backend() -> Any:
    for name in ("torch", "peft"):
        require(name)
    from goodbot_training.backends.torch.trainer import TorchBackend

    return TorchBackend()


def test_slips_among_ratings_of_a_style_are_found_on_the_shipped_model(torch_backend: Any) -> None:
    for seed in range(3):
        rows, slips = in_styles(seed, slips=15)
        found = ran(raw(model_path(), rows), torch_backend)
        assert found.tells
        assert found.low > 0.8
        doubtful = sorted(
            (one for one in found.said if one.doubtful), key=lambda one: -abs(bool(one.good) - one.chance)
        )
        assert len(slips & {one.id for one in doubtful[:10]}) >= 8
        Random(seed).shuffle(goods := [one["good"] for one in rows])
        dealt = [{**one, "good": good} for one, good in zip(rows, goods, strict=True)]
        assert not ran(raw(model_path(), dealt), torch_backend).said


def test_both_backends_see_the_same_states(random_model: Path) -> None:
    for name in ("torch", "peft", "mlx_lm"):
        require(name)
    from goodbot_training.backends.mlx.trainer import MlxBackend
    from goodbot_training.backends.torch.trainer import TorchBackend

    job = PredictJob.parse(
        raw(random_model, [row(n, f"Question {n}?", "Paris. " * (1 + n % 7), True) for n in range(20)])
    )
    found: list[Any] = []
    for backend in (TorchBackend(), MlxBackend()):
        backend.load(random_model, lora=LoraSettings())
        assert isinstance(backend, ShowsStates)
        items, states = states_of(job.items, backend)
        assert [one.id for one in items] == [f"a{n}" for n in range(20)], "in the order that they came"
        found.append(states)
        turn = backend.tokenize(job.items[6].messages, job.items[6].response)
        np.testing.assert_allclose(backend.states([turn], adapter=False)[0], states[6], atol=1e-4)
    np.testing.assert_allclose(*found, atol=1e-3)
    assert len({tuple(one.round(3)) for one in found[0]}) > 10


class Broken:
    """Some of its states are no numbers."""

    def load(self, model: Path, *, lora: Any, bits: int | None = None) -> None:
        self.bits = bits

    def tokenize(self, messages: Sequence[Any], response: str, thought: str = "") -> Any:
        if "untold" in messages[-1]["content"]:
            raise ValueError("a template of its own mind")
        from goodbot.api.sampler import TokenizedTurn

        return TokenizedTurn(prompt=(1, 2), response=tuple(map(ord, response)))

    def states(self, batch: Sequence[Any], *, adapter: bool) -> Any:
        assert not adapter
        made = [np.cos(np.arange(1, 9) * sum(turn.response)) for turn in batch]
        for row_, turn in zip(made, batch, strict=True):
            if turn.response[0] == ord("!"):
                row_[3] = np.nan
            if turn.response[0] == ord("?"):
                row_[3] = np.inf
        return np.array(made, np.float32)


def test_broken_states_and_what_no_template_takes_are_left_out_and_counted() -> None:
    rows = [row(n, "q", f"answer {n}", n % 2 == 0) for n in range(LEAST + 10)]
    bad = [row(1000, "q", "! no number", True), row(1001, "q", "? endless", False)]
    rows += [*bad, row(1002, "untold", "x", True), {**row(1003, "q", "x", True), "messages": "none"}]
    found = ran(raw(Path("m"), rows), Broken())
    assert (found.answers, found.left_out) == (LEAST + 10, 4)


@pytest.mark.parametrize(
    ("rows", "lack"),
    [
        ([row(n, "q", f"a {n}", n % 2 == 0) for n in range(LEAST - 1)], ("ratings", 199, LEAST)),
        ([row(n, "q", f"a {n}", None) for n in range(LEAST + 100)], ("ratings", 0, LEAST)),
        ([row(n, "q", f"a {n}", n > 5) for n in range(LEAST + 100)], ("rarer", 6, 20)),
        (
            [row(n, "q", f"! {n}" if n < 9 else "a", n % 2 == 0) for n in range(LEAST)],
            ("ratings", 191, LEAST),
        ),
        (
            [{**row(n, "q", f"a {n}", n % 2 == 0), "question": str(n % 5)} for n in range(300)],
            ("questions", 5, 20),
        ),
    ],
)
def test_of_too_little_nothing_is_said_but_how_much_it_takes(
    rows: list[dict[str, Any]], lack: tuple[str, int, int]
) -> None:
    of, count, least = lack
    done = last(raw(Path("m"), rows), Broken())
    assert done == {"event": "done", "lack": {"of": of, "count": count, "least": least}}


def test_a_backend_that_shows_no_states_says_so() -> None:
    rows = [row(n, "q", f"a {n}", n % 2 == 0) for n in range(LEAST)]
    with pytest.raises(TrainingError, match="does not show the states"):
        ran(raw(Path("m"), rows), object())


def test_the_child_says_it_as_json_and_no_word_of_anybody(random_model: Path) -> None:
    require("torch")
    rows = [
        row(n, f"{SECRET} {n}", "Yes." if n % 2 else "A long story. " * 3, n % 2 == 0) for n in range(LEAST)
    ]
    with start("predict", FACTORIES["torch"]) as child:
        out, log = child.communicate(json.dumps(raw(random_model, rows)) + "\n", timeout=patience(120))
    assert child.returncode == 0, log
    assert SECRET not in out + log
    [done] = [json.loads(line) for line in out.splitlines()]
    assert Predicted.parse(done["predicted"]).auc > 0.9
