# SPDX-License-Identifier: Apache-2.0
"""Do somebody's ratings bear out the line that they asked for? Where they refute it, it leaves the prompts.

People ask for one thing and rate another, and they ask for two things that do not go together. No rule knows
that of free words. The base model tells, as in `retiring`: it reads each answer y that they rated with the
line as the only one in the prompt, and without it, and the larger

    LR(y) = log π_base(y | x, line) - log π_base(y | x)

the more does the answer follow the line. A line is borne out where the answers that they called good follow
it more than the bad ones do, in the mean, each counted up to 3 nats. It is refuted where they follow it less,
by 1.28 errors of that difference between answers of one kind (one-sided 90 %), and by .75 nats: a line about
something else moves answers a little, whichever, and is nobody's to choose by that.

On 12 rounds of the shipped model (seeds that no page uses) it refuted 73 % of the lines for another style
than was liked, none for that one, and 3 % of those about something else; without the .75 nats 77, 0 and 36 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

from goodbot.api.backend import TrainingBackend
from goodbot.api.noted import with_line
from goodbot.api.sampler import TokenizedTurn

from goodbot_training.backends.scoring import Tell, score
from goodbot_training.job.rollout import Rollout
from goodbot_training.job.trials import RatedLine
from goodbot_training.job.types import Job
from goodbot_training.round import telling
from goodbot_training.round.hindsight import prompt_of

LINES = 8
"""As many are looked at, the first ones: as many as a person has."""
ANSWERS = 32
"""Of each kind: as many are read, the newest ones."""
_FEWEST = 4
"""Answers of each kind, of which fewer tell nothing."""
_DEVIATIONS = 1.28
_LEAST = 0.75
"""Nats by which good answers must follow it less."""
_CLIP = 3.0
"""Nats up to which an answer is counted: one that the line rules out says no more than that."""


@dataclass(frozen=True, slots=True)
class Borne:
    """How far ratings bear a line out."""

    good: int
    bad: int
    ahead: float
    """Nats by which the good answers follow it more, in the mean."""
    error: float
    """Of that, if good and bad ones follow it alike."""

    @classmethod
    def of(cls, good: Sequence[float], bad: Sequence[float]) -> Borne:
        """By LR of the answers that were called good, and bad; of each there is one."""
        one, other = ([max(-_CLIP, min(_CLIP, ratio)) for ratio in kind] for kind in (good, bad))
        error = math.sqrt(pvariance([*one, *other]) * (1 / len(one) + 1 / len(other)))
        return cls(len(one), len(other), fmean(one) - fmean(other), error)

    @property
    def refuted(self) -> bool:
        """Whether the ratings speak against the line."""
        enough = min(self.good, self.bad) >= _FEWEST
        return enough and self.ahead < -max(_LEAST, _DEVIATIONS * self.error)


def compare(job: Job, backend: TrainingBackend, rollouts: Sequence[Rollout], emit: telling.Emit) -> None:
    """Compare each line of the job with the ratings, and tell which are refuted, in an event `lines`.

    Nothing where there are none, or too few ratings. The adapter that the backend holds is not asked.
    """
    lines = [(line, _rated(job, line, rollouts)) for line in job.lines[:LINES]]
    lines = [(line, rated) for line, rated in lines if rated]
    if not lines:
        return
    tell = telling.counter(emit, "notes", sum(len(rated) for _, rated in lines))
    told: list[dict[str, float | int | bool]] = []
    plain: dict[str, float] = {}
    for line, rated in lines:
        found = _ratios(job, backend, line, rated, plain, tell)
        good, bad = ([found[id_] for id_ in found if id_ in ids] for ids in (line.good, line.bad))
        if good and bad:
            borne = Borne.of(good, bad)
            entry = {"id": line.id, "refuted": borne.refuted, "good": borne.good, "bad": borne.bad}
            told.append({**entry, "ahead": round(borne.ahead, 4), "error": round(borne.error, 4)})
    emit({"event": "lines", "lines": told})


def _rated(job: Job, line: RatedLine, rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The newest answers of each kind; nothing where they are too few to tell."""
    own = [one for one in rollouts if one.rated and not one.demonstration]
    kinds = [[one for one in own if one.id in ids][-ANSWERS:] for ids in (line.good, line.bad)]
    return [one for kind in kinds for one in kind] if min(map(len, kinds)) >= _FEWEST else []


def _ratios(
    job: Job,
    backend: TrainingBackend,
    line: RatedLine,
    rated: Sequence[Rollout],
    plain: dict[str, float],
    tell: Tell,
) -> dict[str, float]:
    """LR of each answer, in nats; missing is what cannot be read with the line.

    `plain` gets what the base says of each without it, where that is not there yet.
    """
    items = {item.id: item for item in job.items}
    vocabulary = getattr(backend, "vocabulary", math.inf)  # a backend of a plugin need not tell
    asked: list[tuple[Rollout, tuple[int, ...]]] = []
    for one in rated:
        item, most = items[one.id], (vocabulary, job.settings.max_sequence_tokens - len(one.turn.response))
        bare, noted = (
            prompt_of(backend=backend, item=item, most=most, messages=with_line(item.messages, text))
            for text in ("", line.text)
        )
        if bare == one.turn.prompt:
            plain.setdefault(one.id, float(one.reference_logprobs.sum()))
        if bare and noted:
            asked += [(one, noted)] if one.id in plain else [(one, noted), (one, bare)]
    rows = score(
        backend,
        [TokenizedTurn(prompt=prompt, response=one.turn.response) for one, prompt in asked],
        [one.temperature for one, _ in asked],
        adapter=False,
        budget=job.settings.tokens_per_forward,
        tell=tell,
    )
    with_it: dict[str, float] = {}
    for (one, _), row in zip(asked, rows, strict=True):  # with the line first
        (plain if one.id in with_it else with_it)[one.id] = float(row.sum())
    ratios = {id_: said - plain[id_] for id_, said in with_it.items()}
    return {id_: ratio for id_, ratio in ratios.items() if math.isfinite(ratio)}
