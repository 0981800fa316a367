# SPDX-License-Identifier: Apache-2.0
"""What takes a family's weights: an answer as its makers want it drawn, and a whole round at each preset's
own rank: trained, judged, loaded again, and asked."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api import model_shape
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import SampleRequest, TokenizedTurn
from goodbot.base import sampling

from tests.support import missing
from tests.training.backends import test_filtering as by_hand
from tests.training.test_worker import make_job
from tests.training.zoo import making, table
from tests.training.zoo.dialects import DIALECTS, ROWS

if making.BACKEND is None:
    missing("neither torch nor mlx_lm is installed")

from goodbot_training.backends.adapters import read_adapter
from goodbot_training.job.presets import resolve
from goodbot_training.job.settings import TrainingSettings
from goodbot_training.job.types import Job
from goodbot_training.round.run import run_round

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
ASKED = [{"role": "user", "content": "What colour is grass?"}]
SHORT = {"steps": 1, "gate_anchors": 2, "gate_max_tokens": 4}
OUTVOTED = {"weight": 0.0}
"""An item that is not heard: the candidate is weakened, and so read and written once more, before the gate
loads it."""


EVERY = {"temperature": 0.6, "top_k": 40, "top_p": 0.95, "min_p": 0.5, "repetition_penalty": 1.1}
"""All that makers may recommend; few of them name more than three."""


@pytest.mark.parametrize("row", ROWS)
def test_an_answer_is_drawn_as_the_makers_say_and_weighs_what_that_leaves(
    row: str, zoo: making.Zoo, tmp_path: Path
) -> None:
    """By hand, from all that the model says; and training finds what was said before anything was cut."""
    if making.BACKEND == "mlx" and not table.mlx(row):
        pytest.skip("mlx-lm does not load this family, and torch is not installed")
    directory, _ = zoo.model(row)
    makers = DIALECTS[ROWS[row][1]].sampling
    usual = {"temperature": 1.0} if makers else {"temperature": 0.7, "top_p": 0.9}
    (tmp_path / "generation_config.json").write_text(json.dumps(EVERY))
    backend: Any = making.backend()
    backend.load(directory, lora=LoraSettings(rank=4, alpha=4.0), seed=1)
    sampler = backend.sampler()
    sampler.activate(0)
    for files, named in ((directory, {**usual, **makers}), (tmp_path, EVERY)):
        drawn = sampling.of(files, {})
        assert {"temperature": drawn.temperature, **drawn.filters.told()} == named
        request = SampleRequest(
            messages=ASKED, max_tokens=4, temperature=drawn.temperature, filters=drawn.filters, seed=3
        )
        answer = sampler.sample(request)
        assert answer.tokens
        assert any(answer.lifts), "something was cut"
        by_hand.check(backend, answer, request)
        turn = TokenizedTurn(prompt=answer.prompt, response=answer.tokens)
        [own] = backend.logprobs([turn], temperature=[request.temperature], adapter=False)
        np.testing.assert_allclose(own, answer.own_logprobs, atol=2e-3)


def presets(config: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Settings by the rank that they give: presets of one rank differ in nothing that depends on shapes."""
    found: dict[int, dict[str, Any]] = {}
    for name in ("balanced", "careful", "aggressive", "custom"):
        own = {"preset": name}
        values = {**own, **resolve(own, model_shape.read(config)).values}
        found.setdefault(TrainingSettings.from_mapping(values).rank, values)
    return found


@pytest.mark.parametrize("row", ROWS)
def test_a_round_trains_at_each_presets_rank_and_the_gate_loads_it_again(
    row: str, zoo: making.Zoo, tmp_path: Path
) -> None:
    if making.BACKEND == "mlx" and not table.mlx(row):
        pytest.skip("mlx-lm does not load this family, and torch is not installed")
    directory, config = zoo.model(row)
    for rank, settings in presets(config).items():
        output, events = tmp_path / str(rank), []
        output.mkdir()
        job = make_job(directory, output, settings={**settings, **SHORT})
        job["items"][0] |= OUTVOTED
        run_round(Job.parse(job), making.backend(), events.append)
        assert events[-1]["event"] == "done"
        [gate] = [event for event in events if event["event"] == "gate"]
        assert gate["metrics"]["strength"] < 1, "it was weakened"
        assert gate["metrics"]["anchors"] == 2, "the gate has asked it"
        learnt = read_adapter(output)
        assert learnt.rank == rank
        assert all(b.any() for _, b in learnt.pairs.values()), "every projection has learnt"
        asked_again(directory, output, rank)


def asked_again(directory: Path, adapter: Path, rank: int) -> None:
    """Another process's load: what it draws is what it scores, and it is not the base."""
    again: Any = making.backend()
    again.load(directory, lora=LoraSettings(rank=rank, alpha=float(rank)), adapter=adapter, seed=1)
    sampler = again.sampler()
    sampler.load_adapter(1, adapter)
    sampler.activate(1)
    drawn = sampler.sample(SampleRequest(messages=ASKED, max_tokens=6, temperature=1.0, seed=3))
    assert drawn.tokens
    turn = dataclasses.replace(again.tokenize(ASKED, "x"), prompt=drawn.prompt, response=drawn.tokens)
    scored, base = (again.logprobs([turn], temperature=[1.0], adapter=by)[0] for by in (True, False))
    np.testing.assert_allclose(drawn.logprobs, scored, atol=2e-3)
    assert np.abs(scored - base).max() > 0
