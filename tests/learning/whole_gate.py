# SPDX-License-Identifier: Apache-2.0
"""First rounds of honest ratings through the whole gate, as the product asks it.

    python -m tests.learning.whole_gate [--like friendly] [--write]      two CPU-minutes; renews its page

`first_rounds` re-enacts two of the gate's rules on many rounds. Here one seed of each mix, on the shipped
model, goes through all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from goodbot.base.intervals import wilson

from tests.learning.first_rounds import LIKES, MIXES, SEEDS, Key, job_for
from tests.learning.shipped import headed

PAGE = Path(__file__).parent / "results" / "whole_gate.md"


class Judged(NamedTuple):
    """A round, and the gate's word on it."""

    mix: str
    like: str
    passed: bool
    reason: str

    @property
    def whole(self) -> bool:
        """Whether it goes live at the gate's first word, not at half of its strength."""
        return self.passed and "t full strength" not in self.reason


def take(likes: Sequence[str]) -> Iterator[Judged]:
    """Train each round, and ask the gate."""
    import torch
    from goodbot_training.backends.torch.trainer import TorchBackend
    from goodbot_training.round import run as training_round

    torch.set_num_threads(1)
    for like in likes:
        for mix in MIXES:
            with tempfile.TemporaryDirectory() as place:
                backend = TorchBackend()
                job = job_for(backend, Key("tiny", mix, like, SEEDS[0]), Path(place), {})
                verdict = training_round.run_round(job, backend, lambda event: None)
            yield Judged(mix, like, verdict.passed, verdict.reason)


def text(found: Sequence[Judged]) -> str:
    """The page."""
    whole = sum(one.whole for one in found)
    low, high = wilson(whole, len(found))
    rows = [
        f"| {one.mix} | {one.like} | {'whole' if one.whole else 'at half' if one.passed else 'refused'} "
        f"| {one.reason} |"
        for one in found
    ]
    return f"""\
# First rounds through the whole gate

Made by `python -m tests.learning.whole_gate --write`. {len(found)} first rounds of the shipped model,
seed {SEEDS[0]}, of the mixes and ratings of [first rounds](first_rounds.md), each judged by all rules of
the gate.

**{whole} of {len(found)} go live whole (95 % interval {low:.0%} to {high:.0%}).**

| questions | liked | live | what the gate says |
|---|---|---|---|
{chr(10).join(rows)}
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning.whole_gate", description=__doc__)
    parser.add_argument("--like", nargs="*", default=list(LIKES), choices=list(LIKES))
    parser.add_argument("--write", action="store_true", help="renew results/whole_gate.md")
    arguments = parser.parse_args(argv)
    found: list[Judged] = []
    for one in take(arguments.like):
        print(json.dumps(one), flush=True)
        found.append(one)
    print(text(found))
    if arguments.write:
        PAGE.write_text(headed(text(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
