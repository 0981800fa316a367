# SPDX-License-Identifier: Apache-2.0
"""What a round tells while it runs: the events of the worker protocol, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from goodbot.api.backend import OptimizerSettings, StepStats

from goodbot_training.backends.scoring import Tell
from goodbot_training.gate import Verdict

Emit = Callable[[dict[str, Any]], None]
"""Takes one event of the worker protocol."""


def progress(emit: Emit, phase: str, step: int, steps: int, **more: float) -> None:
    """Tell how far a phase is."""
    emit({"event": "progress", "phase": phase, "step": step, "steps": steps, **more})


def counter(emit: Emit, phase: str, steps: int, *, timed: bool = True) -> Tell:
    """What counts a phase up; `timed`: and how long the rest of it will take at most."""
    began, done = time.monotonic(), 0

    def tell(more: int) -> None:
        nonlocal done
        done = min(done + more, steps)
        eta = (time.monotonic() - began) / done * (steps - done)
        progress(emit, phase, done, steps, **({"eta": round(eta, 2)} if timed else {}))

    progress(emit, phase, 0, steps)
    return tell


def teller(
    emit: Emit, optimizer: OptimizerSettings, planned: int, before: int
) -> Callable[[Sequence[StepStats]], None]:
    """What tells each step, and how long the others will take. `before` were done earlier."""
    began = last = time.monotonic()

    def tell(steps: Sequence[StepStats]) -> None:
        nonlocal last
        now, done = time.monotonic(), len(steps)
        eta = (now - began) / (done - before) * (planned - done)
        taken = sum(not stats.skipped for stats in steps)
        shown = _shown(steps[-1], optimizer.rate_at(taken))
        progress(emit, "train", done, planned, eta=round(eta, 2), seconds=round(now - last, 4), **shown)
        last = now

    return tell


def safe(emit: Emit, planned: int, step: int) -> None:
    """Tell that so many steps would survive a kill."""
    emit({"event": "checkpoint", "step": step, "steps": planned})


def quarantine(turns: Mapping[str, str]) -> dict[str, Any]:
    """The event that says without which turns the round goes, and why."""
    return {"event": "quarantine", "turns": [{"id": id_, "reason": reason} for id_, reason in turns.items()]}


def verdict(found: Verdict) -> dict[str, Any]:
    """The event that says what the gate has found."""
    said = {"passed": found.passed, "said": found.said, "reason": found.reason}
    return {"event": "gate", **said, "metrics": rounded(found.metrics)}


def _shown(stats: StepStats, learning_rate: float) -> dict[str, float]:
    if stats.skipped:
        return {}
    numbers = {
        "loss": stats.loss,
        "kl": stats.kl,
        "token_acceptance": stats.token_acceptance,
        "trajectory_acceptance": stats.trajectory_acceptance,
        "grad_norm": stats.grad_norm,
    }
    return {**rounded(numbers), "learning_rate": learning_rate, "tokens": stats.tokens}


def rounded(metrics: Any) -> dict[str, float]:
    """To the six digits that are told."""
    return {name: round(value, 6) for name, value in metrics.items()}
