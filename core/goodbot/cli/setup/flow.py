# SPDX-License-Identifier: Apache-2.0
"""The steps in their order, and the way back through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from goodbot.cli.setup.asked import needs_owner, needs_token
from goodbot.cli.setup.backend import ask_backend
from goodbot.cli.setup.dialogue import Back, Dialogue
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.cli.setup.learning import ask_preset, ask_schedule
from goodbot.cli.setup.model import ask_model
from goodbot.cli.setup.owner import ask_owner
from goodbot.cli.setup.platform import ask_platform, take_platform
from goodbot.cli.setup.program import ask_program, needs_program
from goodbot.cli.setup.start import ask_start
from goodbot.cli.setup.token import ask_token


@dataclass(frozen=True, kw_only=True)
class Step:
    """One heading."""

    title: str
    """Its key in the catalogue."""
    ask: Callable[[Dialogue, StateFound, Draft], None]
    matters: Callable[[StateFound, Draft], bool] = lambda place, draft: True
    """Whether there is anything to ask, by the answers so far."""
    of_bot: bool = False
    """Whether it is no matter of the platform's."""


STEPS = (
    Step(title="setup_step_platform", ask=ask_platform),
    Step(title="setup_step_token", ask=ask_token, matters=needs_token),
    Step(title="setup_step_program", ask=ask_program, matters=needs_program),
    Step(title="setup_step_backend", ask=ask_backend, of_bot=True),
    Step(title="setup_step_model", ask=ask_model, of_bot=True),
    Step(title="setup_step_preset", ask=ask_preset, of_bot=True),
    Step(title="setup_step_schedule", ask=ask_schedule, of_bot=True),
    Step(title="setup_step_owner", ask=ask_owner, matters=needs_owner),
    Step(title="setup_step_ready", ask=ask_start),
)


def walk(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """Ask what `draft` leaves open. Raises Left when the person leaves.

    Where it names a platform already, that is not asked for.
    """
    given = bool(draft.platform)
    while given:
        try:
            take_platform(dialogue, place, draft)
            break
        except Back:
            dialogue.say(dialogue.phrase("setup_first_question"))
    visited: list[int] = []
    at = 0
    while at < len(STEPS):
        steps = [
            i
            for i, step in enumerate(STEPS)
            if step.matters(place, draft)
            and not (draft.alone and step.of_bot)
            and not (given and step.ask is ask_platform)
        ]
        if at not in steps:
            at += 1
            continue
        if dialogue.asks:
            dialogue.step(steps.index(at) + 1, len(steps), dialogue.phrase(STEPS[at].title))
        before = dialogue.asked
        try:
            STEPS[at].ask(dialogue, place, draft)
        except Back:
            if dialogue.asked - before > 1:
                continue  # the first question of this step
            if visited:
                at = visited.pop()
            else:
                dialogue.say(dialogue.phrase("setup_first_question"))
            continue
        if dialogue.asked > before:
            visited.append(at)
        at += 1
