# SPDX-License-Identifier: Apache-2.0
"""The candidate's figures: how it and the base answer, and what it makes of held-out ratings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.model import identity
from goodbot.api.sampler import Sampled, Sampler, SampleRequest, TokenizedTurn
from goodbot.base.errors import AdapterError, ServerError

from goodbot_training.backends.fingerprint import NEUTRAL
from goodbot_training.backends.scoring import Tell, prompt_tokens, score
from goodbot_training.gate.answers import compare_answers
from goodbot_training.gate.decide import CLAIM_LEVEL, HARM_LEVEL, foreign_allowed
from goodbot_training.gate.margin import margin, sums
from goodbot_training.gate.retention import foreign, foreign_below, retained
from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import Job, data_error

if TYPE_CHECKING:
    from goodbot.api.step import Floats

PORTION = 64
"""Answers sampled at once."""


def measure(
    job: Job,
    backend: TrainingBackend,
    candidate: Path,
    *,
    held_out: Sequence[Rollout],
    parent_logprobs: Sequence[Floats],
    temperature: float,
    base_answers: list[Sampled] | None = None,
    tell: Tell | None = None,
) -> dict[str, float]:
    """The figures that `decide` goes by. `candidate` is its directory; the backend holds it in place.

    `parent_logprobs` are those of `held_out` under the policy before the round. Answers are sampled
    at `temperature`; see `make_requests`. `base_answers` are the base's from an earlier look at the
    same round, and grow: they need not be sampled twice. `tell` hears of the answers of both: at most two
    for each anchor.
    """
    from goodbot_training.backends.adapters import read_adapter

    sampler = backend.sampler()
    try:
        read_adapter(candidate)
    except AdapterError:
        return {"finite": 0.0}
    try:
        sampler.load_adapter(1, candidate)  # what will be served, as it lies on the disk
    except AdapterError:
        return {"finite": 1.0, "fits": 0.0}
    if any(_of_another_base(adapter, job.model) for adapter in (candidate, job.parent)):
        return {"finite": 1.0, "fits": 0.0}
    metrics = {"finite": 1.0, "fits": 1.0}
    metrics |= _held_out(job, backend, held_out, parent_logprobs)
    if not job.settings.gate_anchors or not metrics.get("speaks", 1.0):
        return metrics
    kept = [] if base_answers is None else base_answers
    return metrics | _answers(job, backend, sampler, temperature, kept, tell or _silent)


def _held_out(
    job: Job, backend: TrainingBackend, held_out: Sequence[Rollout], before: Sequence[Floats]
) -> dict[str, float]:
    """This round's margin with its interval, its sums for the rounds to come, and that of them all."""
    now = score(
        backend,
        [rollout.turn for rollout in held_out],
        [rollout.temperature for rollout in held_out],
        adapter=True,
        budget=job.settings.tokens_per_forward,
    )
    if not all(np.isfinite(row).all() for row in now):
        return {"speaks": 0.0}
    own = sums(held_out, before, now)
    metrics = {"held_out": float(own.n), "xx": own.xx, "xy": own.xy, "yy": own.yy}
    for name, rounds, level in (("margin", [own], HARM_LEVEL), ("told", [own, *job.judged], CLAIM_LEVEL)):
        found = margin(rounds, level)
        if name == "told":
            metrics |= {"told": float(found.ratings), "told_rounds": float(found.rounds)}
        if math.isfinite(found.low):
            metrics |= {f"{name}_change": found.change, f"{name}_low": found.low, f"{name}_high": found.high}
    return metrics


def make_requests(job: Job, backend: TrainingBackend, temperature: float, count: int) -> list[SampleRequest]:
    """The first `count` that the gate samples answers to.

    To the job's anchors, or to its items' conversations where none of them is short enough, or to
    neutral ones: what is too long to train on is too long to ask, and what the template refuses cannot
    be asked. They are drawn as the bot's answers are. None belongs to a conversation: a kept cache serves one
    of them, which is then read alone, and so drawn from other last digits, while these are read side by side.
    """

    def short(anchors: Iterable[Sequence[Message]]) -> list[Sequence[Message]]:
        most = job.settings.max_sequence_tokens
        return [one for one in anchors if 0 < prompt_tokens(backend, one) < most]

    anchors = short(job.anchors) or short(item.messages for item in job.rated) or short(NEUTRAL)
    if not anchors:
        raise data_error("The model's chat template refuses every question of the safety check.")
    return [
        SampleRequest(
            messages=anchors[index % len(anchors)],
            max_tokens=job.settings.gate_max_tokens,
            temperature=temperature,
            thinking=None,  # it is the answer that is judged
            filters=job.filters,
            seed=index,  # the same numbers for base and candidate: what differs is the policy
        )
        for index in range(count)
    ]


def _silent(_: int) -> None:
    """Nobody listens."""


def _answers(
    job: Job, backend: TrainingBackend, sampler: Sampler, temperature: float, kept: list[Sampled], tell: Tell
) -> dict[str, float]:
    """How the candidate answers, beside the base, whose answers are in `kept` as far as it was asked."""
    settings = job.settings
    requests = make_requests(job, backend, temperature, settings.gate_anchors)

    def reads(turns: Sequence[TokenizedTurn], *, adapter: bool = False) -> list[Floats]:
        heat = [temperature or 1.0] * len(turns)
        return score(backend, turns, heat, adapter=adapter, budget=settings.tokens_per_forward)

    def by_base_upto(count: int) -> list[Sampled]:
        if len(kept) < count:
            sampler.activate(0)
            kept.extend(new := sampler.sample_many(requests[len(kept) : count]))
            tell(len(new))
        return kept[:count]

    before = by_base_upto(min(PORTION, len(requests)))
    after: list[Sampled] = []
    read: list[Floats] = []
    strange, usual = 0, 0
    while len(after) < len(requests):
        portion = requests[len(after) : len(after) + PORTION]
        sampler.activate(1)
        try:
            after += sampler.sample_many(portion)
        except ServerError:  # the base can answer: the candidate's numbers overflow
            return {"speaks": 0.0}
        tell(len(portion))
        read += reads([answer.turn for answer in after[len(read) :]])
        strange, usual = _foreign(read, before)
        fewer = len(before) < len(after)
        if fewer and (usual or strange > foreign_allowed(settings, usual)):
            # chance has a part in it, or would be blamed on the candidate
            before = by_base_upto(len(after))
            strange, usual = _foreign(read, before)
        more, allowed = strange - usual, foreign_allowed(settings, usual)
        if more > allowed:
            break
        if 4 * more <= allowed and 2 * len(after) >= len(requests):
            break  # half of them with half of that rate: the others would not change the verdict
    sampler.activate(1)
    by_base, by_candidate = _own(before), reads([one.turn for one in before], adapter=True)
    expected, sure = retained(by_base, by_candidate)
    return compare_answers(before, after, reads) | {
        "anchors": float(len(after)),
        "foreign": float(strange),
        "foreign_before": float(usual),
        "retained": expected,
        "sure": float(sure),
        "anchor_loss_change": _mean_difference(by_base, by_candidate),
        "drift": _mean_difference(_own(after), read),
    }


def _foreign(read: Sequence[Floats], before: Sequence[Sampled]) -> tuple[int, int]:
    """How many of the candidate's answers, as the base reads them, and of the base's own are foreign."""
    own = _own(before)
    below = foreign_below(own)
    return foreign(read, below), foreign(own, below)


def _own(answers: Sequence[Sampled]) -> list[Floats]:
    """What the policy itself gave the tokens that it chose, before anything was filtered."""
    return [np.asarray(answer.own_logprobs[answer.answer_at :], np.float32) for answer in answers]


def _mean_difference(ones: Sequence[Floats], others: Sequence[Floats]) -> float:
    """Nats a token: an estimate of a KL divergence where `ones` are the sampler's own log-probs."""
    return float((np.concatenate([*ones]) - np.concatenate([*others])).mean(dtype=np.float64))


def _of_another_base(adapter: Path | None, model: Path) -> bool:
    """Whether an adapter says which base it was made for, and it is another one.

    `NAME@xxxxxxxx` are the same where the digits are, for a directory may be renamed.
    """
    if adapter is None:
        return False
    stored = json.loads((adapter / "adapter_config.json").read_bytes())
    name = str(stored.get("base_model_name_or_path") or "")
    ours = identity(model)
    return bool(name) and name.rpartition("@")[2] != ours.rpartition("@")[2]
