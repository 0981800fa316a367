# SPDX-License-Identifier: Apache-2.0
"""Which courses the study takes: arms on streams, for each base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from goodbot_training.tiny.styles import STYLES

from tests.learning.arms import ARMS, DEFAULT, TRL
from tests.learning.recipes import recipe
from tests.learning.streams import STREAMS

TWO = ("terse", "friendly")
EVERY = tuple(name for name, arm in ARMS.items() if not arm.among_chosen)
MAIN = tuple(dict.fromkeys(("frozen", "shuffled", "scale", DEFAULT, "kto", TRL)))
"""Without the variants that are out of the question by what they gain on one of the others."""
FEW = tuple(dict.fromkeys(("frozen", "shuffled", "scale", DEFAULT, TRL)))
OBJECTIVES = ("reinforce", "sft_good", "kto", "bco")
"""What could be installed in MIS-PO's place; on every stream but the two that cost most. (The variants that
`MAIN` leaves out are behind on what they have run, and more streams can only make a worst one worse.)"""
MANY = tuple(dict.fromkeys(("frozen", "scale", DEFAULT, TRL)))
"""For ten rounds in a row, which cost ten times as much."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Every arm of `arms` on every stream of `streams`, for everybody who likes one of `likes`."""

    base: str
    streams: tuple[str, ...]
    arms: tuple[str, ...] = MAIN
    likes: tuple[str, ...] = TWO
    times: int = 1
    """So many times the study's seeds: where a few points decide, five seeds cannot tell them."""


FULL = (
    Part(base="tiny", streams=("natural",), arms=EVERY, likes=STYLES),
    Part(base="tiny", streams=("bad only",), arms=EVERY, likes=STYLES),
    Part(base="tiny", streams=("adversary",), likes=STYLES),
    Part(base="tiny", streams=("balanced", "mostly good", "noise")),
    Part(base="tiny", streams=("20 ratings", "80 ratings"), arms=FEW),
    Part(base="tiny", streams=("loud adversary",), arms=FEW, likes=STYLES, times=3),
    Part(base="tiny", streams=("flip",), arms=FEW, times=3),
    Part(base="tiny", streams=("flip",), arms=("sign_aware",)),
    Part(base="tiny", streams=("continual",), arms=MANY),
    Part(base="two-style", streams=("natural",)),
    Part(base="llama", streams=("natural",), likes=STYLES),
    Part(base="llama", streams=("bad only", "adversary"), arms=FEW, likes=STYLES),
    Part(base="llama", streams=("balanced", "mostly good", "noise", "80 ratings"), arms=FEW),
    Part(base="tiny", streams=("balanced", "mostly good"), arms=("chosen",)),
    Part(base="llama", streams=("balanced", "mostly good"), arms=("chosen",)),
    Part(base="llama", streams=("balanced", "noise"), arms=("frozen", "scale", DEFAULT), times=3),
    Part(base="llama", streams=("loud adversary",), arms=FEW, likes=STYLES, times=3),
    Part(base="llama", streams=("20 ratings",), arms=FEW),
    Part(base="llama", streams=("flip",), arms=FEW, times=3),
    Part(base="llama", streams=("flip",), arms=("filter", "sign_aware", *OBJECTIVES)),
    Part(base="tiny", streams=("adversary",), arms=OBJECTIVES, likes=STYLES),
    Part(
        base="tiny",
        arms=OBJECTIVES,
        streams=("balanced", "mostly good", "noise", "20 ratings", "80 ratings", "flip"),
    ),
    Part(base="two-style", streams=("natural",), arms=OBJECTIVES),
    Part(base="llama", streams=("natural", "bad only", "adversary"), arms=OBJECTIVES, likes=STYLES),
    Part(base="llama", streams=("balanced", "mostly good", "noise", "80 ratings"), arms=OBJECTIVES),
)
WORDED = (
    "frozen",
    "any wish",
    "notes",
    DEFAULT,
    "hindsight",
    "hybrid",
    "hybrid, all tokens",
    "hybrid + note",
    "tapered + all notes",
    TRL,
    "OpenClaw, combined",
)
STEERED = tuple(arm for arm in WORDED if arm not in ("any wish", TRL, "OpenClaw, combined"))
ELSEWHERE = ("frozen", "notes", DEFAULT, "hindsight", "hybrid", "hybrid + note", TRL)
"""On the other bases: without what was out of the question on the shipped one."""
COMPARED = ("tapered + note",)
"""Where words can be refuted; with injected ones there is no note of the one who judges."""
MISLED = ("frozen", DEFAULT, "hindsight", "hybrid")
EPISODES = tuple(name for name in STREAMS if name.startswith("episodes"))
WORDS = (
    Part(base="tiny", streams=("reasons",), arms=WORDED, likes=STYLES),
    Part(base="tiny", streams=("chips",), arms=WORDED),
    Part(base="tiny", streams=("irrelevant", "contradicting", "injected"), arms=STEERED, likes=STYLES),
    Part(base="tiny", streams=("12 chips", "80 chips", "better", "flip with reasons"), arms=STEERED),
    Part(base="tiny", streams=("reasons", "irrelevant", "contradicting"), arms=COMPARED, likes=STYLES),
    Part(base="tiny", streams=("chips", "12 chips", "better"), arms=COMPARED),
    Part(
        base="llama", streams=("chips", "reasons", "80 chips", "better", "flip with reasons"), arms=ELSEWHERE
    ),
    Part(base="llama", streams=("irrelevant", "contradicting", "injected"), arms=MISLED),
    Part(base="two-style", streams=("chips", "reasons", "better"), arms=ELSEWHERE),
    Part(base="two-style", streams=("irrelevant", "contradicting", "injected"), arms=MISLED),
    Part(base="tiny", streams=("24 ratings",), arms=("frozen", DEFAULT)),
    Part(base="tiny", streams=("200 chips", "200 reasons"), arms=("frozen", "notes", DEFAULT, "hybrid")),
    Part(base="tiny", streams=("neutral",), arms=("frozen", DEFAULT, "hybrid", "hybrid, all tokens")),
    Part(base="tiny", streams=EPISODES, arms=("frozen", DEFAULT)),
)
"""What people say, beside the same ratings without it."""
QUICK = (
    Part(
        base="tiny",
        streams=("natural", "bad only"),
        arms=tuple(dict.fromkeys(("frozen", "shuffled", DEFAULT, "sign_aware", "kto", TRL))),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Key:
    """What makes a course this one and no other."""

    base: str
    seed: int
    stream: str
    like: str
    arm: str
    answers: int
    recipe: str


def keys(parts: Sequence[Part], seeds: int, answers: int) -> Iterator[Key]:
    """All courses, each once, seed by seed, so that what is done first is a smaller study of everything.

    Arms on the same answers of the base follow one another: a worker samples those once.
    """
    given: set[Key] = set()
    for seed in range(seeds * max((part.times for part in parts), default=0)):
        for part in [part for part in parts if seed < seeds * part.times]:
            for stream in part.streams:
                for like in part.likes:
                    for arm in part.arms:
                        key = Key(
                            base=part.base,
                            seed=seed,
                            stream=stream,
                            like=like,
                            arm=arm,
                            answers=answers,
                            recipe=recipe(arm, stream),
                        )
                        if key not in given:
                            given.add(key)
                            yield key
