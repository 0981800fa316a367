# SPDX-License-Identifier: Apache-2.0
"""What a policy says of answers: their log-probs, in forward passes that cost least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from goodbot.api.backend import TellsOverhead, TrainingBackend
from goodbot.api.events import Message
from goodbot.api.sampler import TokenizedTurn

if TYPE_CHECKING:
    from goodbot.api.step import Floats

Tell = Callable[[int], None]
"""Takes how many more are done."""
OVERHEAD = 16
"""What one more forward pass costs, in tokens. Measured on a CPU; a GPU has room for far more."""


def prompt_tokens(backend: TrainingBackend, messages: Sequence[Message]) -> int:
    """How many tokens a conversation has; 0 where the template refuses it."""
    try:
        return len(backend.tokenize(messages, "").prompt)
    except MemoryError:
        raise
    except Exception:  # a template is a program: it may fail in any way
        return 0


def score(
    backend: TrainingBackend,
    sequences: Sequence[TokenizedTurn],
    temperatures: Sequence[float],
    *,
    adapter: bool,
    budget: int,
    tell: Tell | None = None,
) -> list[Floats]:
    """Log-probs of each response, in the given order, computed in length-sorted micro-batches.

    `budget` is the number of padded tokens of one forward pass; `tell` hears of each.
    """
    lengths = [len(turn.prompt) + len(turn.response) for turn in sequences]
    result: list[Floats | None] = [None] * len(sequences)
    overhead = backend.overhead if isinstance(backend, TellsOverhead) else OVERHEAD
    for part in split_by_budget(lengths, budget, overhead):
        rows = backend.logprobs(
            [sequences[i] for i in part], temperature=[temperatures[i] for i in part], adapter=adapter
        )
        for index, row in zip(part, rows, strict=True):
            result[index] = row
        if tell is not None:
            tell(len(part))
    return [row for row in result if row is not None]


def split_by_budget(lengths: Sequence[int], budget: int, overhead: int = OVERHEAD) -> list[list[int]]:
    """Indices, longest first, in the groups that cost least.

    A group costs its padded size (rows · longest), which is at most `budget`, and `overhead`, in
    tokens. A sequence that is longer than the budget gets a group of its own.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    cost = [0] + [0] * len(order)  # of the first so many
    start = list(cost)  # where their last group begins
    for end in range(1, len(order) + 1):
        choices: list[tuple[int, int]] = []
        for begin in range(end - 1, -1, -1):
            size = (end - begin) * lengths[order[begin]]
            if size > budget and choices:
                break
            choices.append((cost[begin] + size + overhead, begin))
        cost[end], start[end] = min(choices)
    groups: list[list[int]] = []
    end = len(order)
    while end:
        groups.append(order[start[end] : end])
        end = start[end]
    return groups[::-1]
