# SPDX-License-Identifier: Apache-2.0
"""First rounds of honest ratings through the whole gate, as the product asks it.

    python -m tests.learning.whole_gate              all of it: 23 minutes of one core of a busy machine
    python -m tests.learning.whole_gate --quick      one seed of the shipped model: two CPU-minutes
    python -m tests.learning.whole_gate --write      the page anew

`first_rounds` re-enacts two of the gate's rules. Here the same rounds go through all of them. Rounds that are
done lie in `--runs` and are not run again; after a change of code, take another file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from goodbot.base.intervals import wilson

from tests.learning.bases import BASES
from tests.learning.first_rounds import SEEDS, Key, job_for, rounds
from tests.learning.shipped import headed

PAGE = Path(__file__).parent / "results" / "whole_gate.md"


class Judged(NamedTuple):
    """A round, and the gate's word on it."""

    base: str
    mix: str
    like: str
    seed: int
    live: str
    """*whole*, if that is the gate's first word, *at half*, or *refused*."""
    reason: str

    @property
    def key(self) -> Key:
        return Key(self.base, self.mix, self.like, self.seed)


def wanted(quick: bool = False) -> list[Key]:
    """Every round of the page; of one seed of the shipped model, if `quick`."""
    return rounds(SEEDS[:1], ["tiny"]) if quick else rounds(SEEDS, BASES)


def take(missing: Sequence[Key]) -> Iterator[Judged]:
    """Train each round, and ask the gate."""
    import torch
    from goodbot_training.backends.torch.trainer import TorchBackend
    from goodbot_training.round import run as training_round

    torch.set_num_threads(1)
    for one in missing:
        with tempfile.TemporaryDirectory() as place:
            backend = TorchBackend()
            job = job_for(backend, one, Path(place), {})
            verdict = training_round.run_round(job, backend, lambda event: None)
        half = any(reason.code == "check_kept" for reason in verdict.said)
        live = "refused" if not verdict.passed else "at half" if half else "whole"
        yield Judged(one.base, one.ratings, one.like, one.seed, live, verdict.reason)


def text(found: Sequence[Judged]) -> str:
    """The page."""
    whole = sum(one.live == "whole" for one in found)
    low, high = wilson(whole, len(found))
    rows = [
        f"| {base} | {mix} | {how['whole']} of {how.total()} | {how['at half']} | {how['refused']} |"
        for base in dict.fromkeys(one.base for one in found)
        for mix in dict.fromkeys(one.mix for one in found)
        for how in [Counter(one.live for one in found if (one.base, one.mix) == (base, mix))]
    ]
    others = [
        f"| {one.base} | {one.mix} | {one.like} | {one.seed} | {one.live} | {one.reason} |"
        for one in found
        if one.live != "whole"
    ]
    return f"""\
# First rounds through the whole gate

Made by `python -m tests.learning.whole_gate --write`. {len(found)} first rounds, with the ratings of
[first rounds](first_rounds.md), each judged by all rules of the gate, as installed.

**{whole} of {len(found)} go live whole (95 % interval {low:.0%} to {high:.0%}).**

| base | questions | whole | at half | refused |
|---|---|---|---|---|
{chr(10).join(rows)}

## Those that do not

| base | questions | liked | seed | live | what the gate says |
|---|---|---|---|---|---|
{chr(10).join(others)}
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning.whole_gate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed of the shipped model")
    parser.add_argument("--runs", type=Path, default=Path("build/whole_gate.jsonl"))
    parser.add_argument("--write", action="store_true", help="renew results/whole_gate.md")
    arguments = parser.parse_args(argv)
    if arguments.write and arguments.quick:
        parser.error("the page holds all of it: --write goes without --quick")
    arguments.runs.parent.mkdir(parents=True, exist_ok=True)
    known = arguments.runs.read_text(encoding="utf-8") if arguments.runs.exists() else ""
    lines = known[: known.rfind("\n") + 1].splitlines()  # a kill may have cut the last one off
    done = {one.key: one for one in (Judged(*json.loads(line)) for line in lines)}
    keys = wanted(arguments.quick)
    with arguments.runs.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        for one in take([key for key in keys if key not in done]):
            print(json.dumps(one), file=file, flush=True)
            print(*one, file=sys.stderr, flush=True)
            done[one.key] = one
    page = text([done[key] for key in keys])
    print(page)
    if arguments.write:
        PAGE.write_text(headed(page), encoding="utf-8")


if __name__ == "__main__":
    main()
