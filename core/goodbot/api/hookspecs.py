# SPDX-License-Identifier: Apache-2.0
"""Every hook that a plugin can implement, one sentence each.

Three families. `register_*` collects, once, at start. `on_*` observes: it may be async, its
failure is logged and cannot break the host. `veto_*` may only narrow: a returned sentence refuses,
None has no opinion; a plugin can never grant what the core denies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import argparse

    from goodbot.api.backend import BackendSpec
    from goodbot.api.connector import ConnectorSpec
    from goodbot.api.content_filter import ContentFilterSpec
    from goodbot.api.events import RatingEvent, Receipt
    from goodbot.api.export import ExportForm
    from goodbot.api.feature import FeatureSpec
    from goodbot.api.judge import JudgeSpec
    from goodbot.api.model import ModelSpec
    from goodbot.api.objective import ObjectiveSpec
    from goodbot.api.report import ReportSpec
    from goodbot.api.rewards import RewardPolicy
    from goodbot.api.server import ServerSpec
    from goodbot.api.setup import Probe
    from goodbot.api.tracker import TrackerSpec
    from goodbot.api.turns import Turn

hookspec = pluggy.HookspecMarker("goodbot")
hookimpl = pluggy.HookimplMarker("goodbot")


@hookspec
def register_connector() -> ConnectorSpec:  # pyright: ignore[reportReturnType]
    """Offer a chat platform."""


@hookspec
def register_backend() -> BackendSpec:  # pyright: ignore[reportReturnType]
    """Offer a way to train and sample models."""


@hookspec
def register_server() -> ServerSpec:  # pyright: ignore[reportReturnType]
    """Offer a model server that answers."""


@hookspec
def register_reward_policy() -> RewardPolicy:  # pyright: ignore[reportReturnType]
    """Offer a function that turns the labels of a turn into its reward."""


@hookspec
def register_objective() -> ObjectiveSpec:  # pyright: ignore[reportReturnType]
    """Offer an objective: the loss of a training, and its rule for advantages."""


@hookspec
def register_model() -> ModelSpec:  # pyright: ignore[reportReturnType]
    """Offer a model directory that is shipped with the plugin, under a short name."""


@hookspec
def register_tracker() -> TrackerSpec:  # pyright: ignore[reportReturnType]
    """Offer an experiment tracker, which gets the numbers of each training run."""


@hookspec
def register_judge() -> JudgeSpec:  # pyright: ignore[reportReturnType]
    """Offer a judge of what came after answers that nobody rated."""


@hookspec
def register_filter() -> ContentFilterSpec:  # pyright: ignore[reportReturnType]
    """Offer a filter: it is asked about each answer that a training would take, and may leave it out."""


@hookspec
def register_export_form() -> ExportForm:  # pyright: ignore[reportReturnType]
    """Offer a form in which `goodbot export` writes rated answers."""


@hookspec
def register_feature() -> FeatureSpec:  # pyright: ignore[reportReturnType]
    """Offer what runs beside the bot: it looks on, and may answer over HTTP."""


@hookspec
def register_report() -> ReportSpec:  # pyright: ignore[reportReturnType]
    """Offer a part of `goodbot report`."""


@hookspec
def register_probe() -> Probe:  # pyright: ignore[reportReturnType]
    """Offer a part that `goodbot doctor` looks at."""


@hookspec
def register_commands(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add commands to the `goodbot` program; a command sets `run` as a default on its parser."""


@hookspec
def on_turn(turn: Turn) -> Awaitable[None] | None:
    """Hear that an answer has been sent and stored, or brought in by another program."""


@hookspec
def on_answer(connector: str, outcome: str, seconds: float, turn: str) -> Awaitable[None] | None:
    """Hear what came of a message, or of a press for another answer.

    Args:
        connector: Where it was asked.
        outcome: `sent`, `unsent` (the platform did not take it), `refused` (by the model server),
            `no_model`, `no_room`, `no_room_again`, `forgotten`, `late`, `replaced`, or `broken`.
        seconds: How long it took, from when it was the message's turn to when the answer was stored as sent.
        turn: The answer's id, as `on_turn` has it; where there is none, the one that it would have had.
    """


@hookspec
def on_rating(event: RatingEvent, receipt: Receipt) -> Awaitable[None] | None:
    """Hear that a rating event has been committed; not called for replays or refusals."""


@hookspec
def on_training_started(run: int, items: int, rewards: Sequence[float]) -> Awaitable[None] | None:
    """Hear that a training run has claimed its ratings; its child process starts next.

    Args:
        run: The run's number.
        items: How many answers it learns from, or keeps aside for the checks.
        rewards: The reward of each.
    """


@hookspec
def on_training_progress(run: int, progress: Mapping[str, Any]) -> Awaitable[None] | None:
    """Hear of the trainer's phase, step, loss, acceptance rates and the time left."""


@hookspec
def on_training_interrupted(run: int) -> Awaitable[None] | None:
    """Hear that a run's child was stopped; the run waits, and is started again when it goes on."""


@hookspec
def on_training_finished(run: int, state: str, reason: str) -> Awaitable[None] | None:
    """Hear that a run has ended.

    Args:
        run: The run's number.
        state: `activated`, `refused`, `failed` or `superseded`.
        reason: Why, as a sentence.
    """


@hookspec
def on_adapter_activated(version: int, previous: int) -> Awaitable[None] | None:
    """Hear that another adapter version answers from now on; 0 is the base model."""


@hookspec
def on_forgotten(people: Sequence[str]) -> Awaitable[None] | None:
    """Hear that all that was stored of a person is deleted: drop what you keep of them.

    Args:
        people: All of their accounts, `connector:id`.
    """


@hookspec
def veto_capture(turn: Turn) -> str | None:
    """Refuse to learn from a turn; it is answered, but ratings of it train nothing."""


@hookspec
def veto_training(items: int) -> str | None:
    """Refuse to start an automatic training run, or to go on with one, now."""


@hookspec
def veto_activation(version: int, metrics: Mapping[str, Any]) -> str | None:
    """Refuse an adapter that has passed the gate."""
