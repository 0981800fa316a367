# SPDX-License-Identifier: Apache-2.0
"""Runs while people change their minds: how many end in a verdict, how long they take, what is left out.

    python -m tests.benchmarks.bench_changing

A real daemon trains the shipped model on forty ratings, again and again. Meanwhile ratings of that round turn
into their opposite, at moments that are drawn. The row says how many of a round's ratings did; as many as in
`SHARES` are meant to, within the time that the round before took. What no change met is what would be left
if one changed rating ended its run.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.judge import style_of

from tests.benchmarks.table import row
from tests.learning.bases import BASES
from tests.real.taught import Real, Size

RATINGS = 40
RUNS = 10
SHARES = (0.0, 0.02, 0.07, 0.2)
"""Parts of a round's ratings that change while it trains."""
VERDICTS = ("activated", "refused")
SIZE = Size(backend="torch", ratings=RATINGS, held_out=8, tokens=24, passes=2, anchors=16)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_changing")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    options = parser.parse_args(arguments)
    drawn = random.Random(26)
    print(f"\n## {RATINGS} ratings a round, {options.runs} rounds each\n")
    row(
        "change meanwhile",
        "met by no change",
        "end in a verdict",
        "starts over",
        "seconds",
        "changed",
        "learnt from, of a round",
        head=True,
    )
    with tempfile.TemporaryDirectory() as directory:
        bot = Real(Path(directory) / "home", Path(BASES["tiny"].obtain()), SIZE)
        bot.set_up()
        bot.start()
        try:
            for share in options.shares:
                rounds = [_round(bot, 0.0, drawn)]  # how long one takes now
                for _ in range(options.runs):
                    rounds.append(
                        _round(bot, rounds[-1].seconds / (share * RATINGS) if share else 0.0, drawn)
                    )
                del rounds[0]
                took = median(one.seconds for one in rounds)
                changed = sum(one.changed for one in rounds)
                row(
                    f"{changed / (RATINGS * len(rounds)):.0%}",
                    f"{sum(not one.changed for one in rounds)} of {len(rounds)}",
                    f"{sum(one.verdict for one in rounds)} of {len(rounds)}",
                    sum(one.starts_over for one in rounds),
                    f"{took:.1f}",
                    changed,
                    f"{median(one.items for one in rounds):.0f}",
                )
        finally:
            bot.stop()


@dataclass(frozen=True, kw_only=True)
class Round:
    """What became of one."""

    verdict: bool
    seconds: float
    starts_over: int
    changed: int
    items: int
    """Rated answers that it ended with."""


def _round(bot: Real, gap: float, drawn: random.Random) -> Round:
    """One, while a rating changes every `gap` seconds on average; 0: none does."""
    answers = bot.asked([one.text for one in drawn.sample(split(0)[0], RATINGS)])
    turns = [turn.id for turn in answers]
    scores = {turn.id: 1.0 if style_of(turn.response) == "terse" else -1.0 for turn in answers}
    bot.rate(scores)
    before, over, changed = _starts_over(bot), threading.Event(), list[str]()

    def change() -> None:
        headers = {"Authorization": f"Bearer {bot.token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{bot.port}", headers=headers) as client:
            while not over.wait(drawn.expovariate(1 / gap)):
                turn = drawn.choice(turns)
                scores[turn] = -scores[turn]
                said = client.post("/v1/feedback", json={"turn": turn, "score": scores[turn]})
                said.raise_for_status()
                changed.append(turn)

    changing = threading.Thread(target=change)
    began = time.perf_counter()
    if gap:
        changing.start()
    bot.call("train")
    took = time.perf_counter() - began
    over.set()
    if gap:
        changing.join()
    last = bot.json("status")["last_run"]
    with closing(sqlite3.connect(f"file:{bot.home / 'goodbot.db'}?mode=ro", uri=True)) as db:
        [(items,)] = db.execute("SELECT COUNT(*) FROM run_items WHERE run = ?", [last["id"]])
    return Round(
        verdict=last["state"] in VERDICTS,
        seconds=took,
        starts_over=_starts_over(bot) - before,
        changed=len(changed),
        items=items,
    )


def _starts_over(bot: Real) -> int:
    return bot.log.read_text().count(" starts over with ")


if __name__ == "__main__":
    main()
