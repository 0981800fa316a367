# SPDX-License-Identifier: Apache-2.0
"""How often the majority finds a liar, and leaves out who is none, on the study's streams of forty ratings.

    python -m tests.learning.majority [--write]      a minute; renews results/majority.md

No model is trained for it: the base answers, simulated people rate, and
`goodbot.learning.rating_quality.consensus` is asked. Rounds on the shipped model and on the Llama, ten
and five seeds, each for three styles.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from goodbot.learning.rating_quality.consensus import RaterOpinion, outvoted
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.styles import STYLES

from tests.learning.bases import BASES
from tests.learning.course import ask
from tests.learning.shipped import headed
from tests.learning.streams import ADVERSARY, RATINGS, STREAMS
from tests.learning.writers import Writer

SEEDS = {"tiny": 10, "llama": 5}
_COUNTED = ("rounds", "liars", "others")
RESULT = Path(__file__).parent / "results" / "majority.md"


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning.majority", description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew results/majority.md")
    arguments = parser.parse_args(argv)
    counts = Counter[tuple[str, str]]()
    for base, seeds in SEEDS.items():
        for seed in range(seeds):
            counts += _rounds(base, seed)
    table = _table(counts)
    print(table)
    if arguments.write:
        about = "# Who is outvoted\n\nBy `python -m tests.learning.majority --write`.\n\n"
        RESULT.write_text(headed(about + table), encoding="utf-8")


def _rounds(base: str, seed: int) -> Counter[tuple[str, str]]:
    """What was found in the rounds of one seed: by the name of the round, how many of what."""
    from goodbot_training.backends.torch.trainer import TorchBackend

    asked = ask(split(seed)[0], RATINGS, seed, 0)
    writer = Writer(model=BASES[base].obtain(print))
    drawn = writer.write(TorchBackend(), asked, None, 1000 * (seed + 1))
    counts = Counter[tuple[str, str]]()

    def count(name: str, ratings: Sequence[RaterOpinion]) -> None:
        found = outvoted(ratings)
        liars = {ADVERSARY} if name in STREAMS else set[str]()  # who is dealt a rating tells no lie
        for what, many in zip(_COUNTED, (1, len(found & liars), len(found - liars)), strict=True):
            counts[name, what] += many

    for like in STYLES:
        for name in ("adversary", "loud adversary"):
            rated = STREAMS[name].rate(asked, drawn, like, 0, seed)
            said = [RaterOpinion(rater=r.rater, answer=r.answer.text, good=r.rating > 0) for r in rated]
            count(name, said)
            signs = [one.good for one in said]
            Random(seed).shuffle(signs)
            dealt = [replace(one, good=good) for one, good in zip(said, signs, strict=True)]
            count(f"the ratings of `{name}` dealt out at random", dealt)
        rated = STREAMS["noise"].rate(asked, drawn, like, 0, seed)
        count(
            "`noise`, by four people in turn",
            [
                RaterOpinion(rater=str(number % 4), answer=r.answer.text, good=r.rating > 0)
                for number, r in enumerate(rated)
            ],
        )
    return counts


def _table(counts: Counter[tuple[str, str]]) -> str:
    lines = ["| ratings | rounds | the liar left out | others left out |", "|---|---|---|---|"]
    for name in dict.fromkeys(name for name, _ in counts):
        rounds, liars, others = (counts[name, what] for what in _COUNTED)
        lines.append(f"| {name} | {rounds} | {liars if name in STREAMS else '–'} | {others} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
