# SPDX-License-Identifier: Apache-2.0
"""Real people's ratings: does a round that learnt from some of them tell the others apart?

    python -m tests.learning.people chitchat FILE [--base tiny] [--ratings 200] [--seeds 5] [--write]

`FILE` is what the data set publishes: `dataset.json` of the `chitchat-dataset` package (whole chats, rated by
those who chatted; https://github.com/BYU-PCCL/chitchat-dataset), `utterances.jsonl` of PRISM (answers of 21
models, rated 1 to 100) or `wildfeedback.json` of WildFeedback (pairs). One round of the installed objective
learns from so many ratings, a fifth of them kept for the gate as always. What it has learnt is put to ratings
that it has not seen: an answer's score is how much likelier it has become, in nats a token, against the base.
So a long answer scores no higher than a short one because it is long. The AUC is the chance that a good
answer scores higher than a bad one; 0.5 is none.

Beside it: the same ratings dealt out at random, the base's own likelihood, and the number of tokens alone;
and the AUC among answers of like length, each with others of its tenth only.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any

import numpy as np
from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.events import Message
from goodbot_training.job.types import Job
from goodbot_training.round.run import run_round

from tests.learning.bases import BASES
from tests.learning.shipped import headed

RESULTS = Path(__file__).parent / "results"
HELD_OUT_EVERY = 5
EXAM = 400
"""Ratings that are asked about, half of them good, if there are so many."""
LONGEST = 160
"""Tokens of an answer; what is longer is cut."""
BINS = 10
ROWS = ("learnt", "the ratings dealt out at random", "the base's likelihood", "the number of tokens alone")


@dataclass(frozen=True, kw_only=True)
class Rated:
    """An answer that somebody rated; `good` by the name of the scale."""

    messages: tuple[Message, ...]
    answer: str
    good: dict[str, bool]


def chitchat(path: Path) -> Iterator[Rated]:
    """Whole chats: the first turn is the question, what follows the answer. 5, the default, is no rating."""
    for chat in json.loads(path.read_text(encoding="utf-8")).values():
        turns = ["\n".join(part["text"] for part in turn) for turn in chat["messages"]]
        marks = {scale: mark > 5 for scale, mark in chat.get("ratings", {}).items() if mark != 5}
        if len(turns) > 1 and marks:
            yield Rated(messages=(_user(turns[0]),), answer="\n".join(turns[1:]), good=marks)


def prism(path: Path) -> Iterator[Rated]:
    """`utterances.jsonl`: one answer of a model a line; above the middle of the slider is good."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("user_prompt") and row.get("model_response") and row.get("score") not in (None, 50):
            asked = (_user(row["user_prompt"]),)
            yield Rated(messages=asked, answer=row["model_response"], good={"score": row["score"] > 50})


def wildfeedback(path: Path) -> Iterator[Rated]:
    """`wildfeedback.json`: a chat, the answer that its person would rather have had, and the other one."""
    names = {"human": "user", "gpt": "assistant", "system": "system"}
    for row in json.loads(path.read_text(encoding="utf-8")):
        asked = tuple({"role": names[one["from"]], "content": one["value"]} for one in row["conversations"])
        for which, good in (("chosen", True), ("rejected", False)):
            yield Rated(messages=asked, answer=row[which]["value"], good={"preferred": good})


FORMS: dict[str, Callable[[Path], Iterator[Rated]]] = {
    form.__name__: form for form in (chitchat, prism, wildfeedback)
}


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning.people", description=__doc__)
    parser.add_argument("form", choices=list(FORMS))
    parser.add_argument("file", type=Path)
    parser.add_argument("--base", default="tiny", help=f"{', '.join(BASES)}, or a model's directory")
    parser.add_argument("--ratings", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="renew results/people-FORM.md")
    arguments = parser.parse_args(argv)
    from goodbot_training.backends.torch.trainer import TorchBackend

    model = BASES[arguments.base].obtain() if arguments.base in BASES else Path(arguments.base)
    found = list(FORMS[arguments.form](arguments.file))
    lines = ["| scale | | AUC | among answers of like length |", "|---|---|---|---|"]
    for scale in sorted({scale for one in found for scale in one.good}):
        seen = [
            take(TorchBackend(), model, found, scale, arguments.ratings, seed)
            for seed in range(arguments.seeds)
        ]
        for row in ROWS:
            figures = [_figure([one[row][n] for one in seen]) for n in (0, 1)]
            lines.append(f"| {scale} | {row} | {figures[0]} | {figures[1]} |")
            print(lines[-1], flush=True)
    about = (
        f"# Real people's ratings\n\nBy `python -m tests.learning.people {arguments.form} FILE --base"
        f" {arguments.base} --ratings {arguments.ratings} --seeds {arguments.seeds} --write`: mean and"
        f" standard deviation over the seeds.\n\n"
    )
    if arguments.write:
        result = RESULTS / f"people-{arguments.form}.md"
        result.write_text(headed(about + "\n".join(lines) + "\n"), encoding="utf-8")


def take(
    backend: TrainingBackend, model: Path, found: Sequence[Rated], scale: str, ratings: int, seed: int
) -> dict[str, tuple[float, float]]:
    """One seed: row → the AUC, and that among answers of like length."""
    training, exam = _dealt([one for one in found if scale in one.good], scale, ratings, seed)
    good = np.array([one.good[scale] for one in exam])
    marks = [one.good[scale] for one in training]
    shuffled = Random(seed).sample(marks, len(marks))
    before, after = (_scores(backend, model, training, how, exam, seed) for how in (marks, shuffled))
    tokens = before[2]
    columns = (before[1] - before[0], after[1] - after[0], before[0], tokens)
    return {
        row: (auc(column, good), auc_within(column, good, tokens))
        for row, column in zip(ROWS, columns, strict=True)
    }


def _dealt(found: Sequence[Rated], scale: str, ratings: int, seed: int) -> tuple[list[Rated], list[Rated]]:
    """What is learnt from, as it comes, and what is asked, half of it good; no question is in both."""
    order = Random(seed).sample(list(found), len(found))
    training = order[:ratings]
    asked = {json.dumps(one.messages) for one in training}
    rest = [one for one in order[ratings:] if json.dumps(one.messages) not in asked]
    sides = [[one for one in rest if one.good[scale] is side] for side in (True, False)]
    each = min(EXAM // 2, *map(len, sides))
    if not each or len({one.good[scale] for one in training}) < 2:
        raise SystemExit(f"{scale}: too few good or bad ratings to learn from {ratings} and ask about others")
    return training, [one for side in sides for one in side[:each]]


def _scores(
    backend: TrainingBackend,
    model: Path,
    training: Sequence[Rated],
    marks: Sequence[bool],
    exam: Sequence[Rated],
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each answer of `exam`: nats a token by the base, by what the round has learnt; its tokens."""
    backend.load(model, lora=LoraSettings(), seed=seed)
    with tempfile.TemporaryDirectory() as directory:
        run_round(_job(backend, model, training, marks, seed, Path(directory)), backend, lambda _: None)
        backend.load_adapter(Path(directory))
        turns = [backend.tokenize(one.messages, _cut(backend, one)) for one in exam]
        means: list[np.ndarray] = []
        for adapter in (False, True):
            nats: list[float] = []
            for at in range(0, len(turns), 8):
                batch = turns[at : at + 8]
                found = backend.logprobs(batch, temperature=[1.0] * len(batch), adapter=adapter)
                nats += [float(np.mean(one)) for one in found]
            means.append(np.array(nats))
    return means[0], means[1], np.array([float(len(turn.response)) for turn in turns])


def _job(
    backend: TrainingBackend,
    model: Path,
    training: Sequence[Rated],
    marks: Sequence[bool],
    seed: int,
    output: Path,
) -> Job:
    items: list[dict[str, Any]] = [
        {
            "id": f"turn-{number:04d}",
            "messages": [dict(message) for message in one.messages],
            "response": _cut(backend, one),
            "temperature": 1.0,
            "version": None,
            "reward": 1.0 if good else -1.0,
            "weight": 1.0,
            "split": "held_out" if number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else "train",
        }
        for number, (one, good) in enumerate(zip(training, marks, strict=True))
    ]
    return Job.parse(
        {
            "protocol": 1,
            "run": 1,
            "model": str(model),
            "parent": None,
            "output": str(output),
            "seed": seed,
            "settings": {},
            "baseline": {"mean": 0.0, "weight": 0.0},
            "behaviour": {},
            "items": items,
            "anchors": [item["messages"] for item in items],
        }
    )


def _cut(backend: TrainingBackend, one: Rated) -> str:
    """The answer, at most `LONGEST` tokens of it, at the end of a word."""
    words, least, most = one.answer.split(" "), 1, len(one.answer.split(" "))
    while least < most:  # the most words that fit
        middle = (least + most + 1) // 2
        fits = len(backend.tokenize(one.messages, " ".join(words[:middle])).response) <= LONGEST
        least, most = (middle, most) if fits else (least, middle - 1)
    return " ".join(words[:least])


def auc(scores: np.ndarray, good: np.ndarray) -> float:
    """The chance that a good one has the higher score; equal ones are half each. Mann and Whitney (1947)."""
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[which]
    many = int(good.sum())
    pairs = many * (len(good) - many)
    return float((ranks[good].sum() - many * (many + 1) / 2) / pairs) if pairs else float("nan")


def auc_within(scores: np.ndarray, good: np.ndarray, lengths: np.ndarray) -> float:
    """The same over pairs of like length only: both in one of `BINS` bins of equally many."""
    edges = np.quantile(lengths, np.linspace(0, 1, BINS + 1)[1:-1])
    bins = np.searchsorted(edges, lengths)
    parts = [(auc(scores[bins == n], good[bins == n]), *_sides(good[bins == n])) for n in range(BINS)]
    pairs = [(value, many * others) for value, many, others in parts if many and others]
    return sum(v * n for v, n in pairs) / sum(n for _, n in pairs) if pairs else float("nan")


def _sides(good: np.ndarray) -> tuple[int, int]:
    return int(good.sum()), int((~good).sum())


def _figure(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


if __name__ == "__main__":
    main()
