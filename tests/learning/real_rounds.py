# SPDX-License-Identifier: Apache-2.0
"""First rounds of a real model: how fast it may learn, and what shuffled ratings teach it.

    python -m tests.learning.real_rounds MODEL --arms installed shuffled --runs build/real_rounds.jsonl
    python -m tests.learning.real_rounds --write       the page anew from the kept rounds

MODEL is a directory such as `make test-real` makes. A round of SmolLM2-135M takes seven minutes of one core,
and a minute beside fifteen others on one H200. The arms of one seed, taste and mix are trained on the same
ratings of the same answers. Rounds that are done lie in `--runs` and are not run again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev
from typing import Any

from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.hindsight import hindsight
from goodbot.api.sampler import Sampled, Sampler, SampleRequest
from goodbot.base.errors import TrainingError
from goodbot.base.intervals import wilson
from goodbot.base.sampling import Filters
from goodbot_training.job.types import Job
from goodbot_training.round import run as training_round
from goodbot_training.tiny import facts

from tests.learning.streams import RATINGS
from tests.learning.words import PRESSED, RIGHT_CHIPS

RESULTS = Path(__file__).parent / "results"
KEPT = RESULTS / "real_rounds.jsonl.gz"
PAGE = RESULTS / "real_rounds.md"
TOKENS, TEMPERATURE, FILTERS = 48, 0.7, {"top_p": 0.9}
"""Drawn as the daemon draws where a model's files name nothing; the answers are a sentence or two."""
EXAM = 60
"""Held-out questions of each kind: about things, and for facts."""
SYSTEM = "Answer in one sentence."
_THINGS = """
the sea|a cat|bread|the moon|a bicycle|rain|chess|Paris|tea|snow|a bridge|the wind|cheese|a library|winter
|a guitar|coffee|a train|the sun|a garden|music|a dog|rice|a river|sleep|a mountain|soup|football|paper
|a clock|money|a robot|gold|a horse|fire|apples|a map|glass|dreams|the internet
"""
_WORDS = (
    "What is {}?",
    "Tell me about {}.",
    "Why do people like {}?",
    "Describe {}.",
    "Give me a fact about {}.",
)
_FACTS = (
    (facts.CAPITALS, "What is the capital of {}?"),
    (facts.COLOURS, "What colour is {}?"),
    (facts.OPPOSITES, "What is the opposite of {}?"),
    (facts.BABIES, "What is a baby {} called?"),
    (facts.LEGS, "How many legs does {} have?"),
)


@dataclass(frozen=True, kw_only=True)
class Arm:
    """How a round is trained; the settings are those of `[training.settings]`."""

    about: str
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    shuffled: bool = False
    chips: bool = False
    """Whether a button says of each bad answer what was wrong; four in five times the right one."""


ARMS = {
    "installed": Arm(about="as installed"),
    "shuffled": Arm(
        about="as installed, the same ratings dealt at random, not asked by the gate",
        settings={"gate_anchors": 0},
        shuffled=True,
    ),
    "chips": Arm(
        about="the same ratings with buttons that say what was wrong; `hybrid`",
        settings={"objective": "hybrid"},
        chips=True,
    ),
    "usual": Arm(
        about="7.1e-4, all of the way: before", settings={"learning_rate": 7.12e-4, "strength": 1.0}
    ),
    "usual-warm8": Arm(
        about="the same with eight steps of warm-up",
        settings={"learning_rate": 7.12e-4, "strength": 1.0, "warmup": 8},
    ),
    "half": Arm(about="3.6e-4, all of the way", settings={"learning_rate": 3.56e-4, "strength": 1.0}),
    "bold": Arm(about="12e-4, three fifths of the way", settings={"learning_rate": 7.12e-4, "strength": 0.6}),
    "bold-half": Arm(
        about="5.9e-4, three fifths of the way", settings={"learning_rate": 3.56e-4, "strength": 0.6}
    ),
}
LIKES = ("short", "long", "opens")
MIXES = ("things", "facts", "both")


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a policy answers to held-out questions, shares in [0, 1]."""

    liked: float
    facts: float
    """Answers to questions for a fact that hold it."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One first round of one arm."""

    seed: int
    like: str
    mix: str
    arm: str
    model: str
    device: str
    passed: bool
    reason: str
    """The gate's sentence, or why the round broke."""
    before: Said
    after: Said | None
    """None: it left nothing that could answer."""
    loss: list[float]
    """Of each step."""
    norm: list[float]
    """Of each step's gradient, before it is clipped."""

    @property
    def key(self) -> tuple[object, ...]:
        return self.seed, self.like, self.mix, self.arm, self.model

    @property
    def whole(self) -> bool:
        """Whether it went live at the gate's first word."""
        return self.passed and "t full strength" not in self.reason

    @classmethod
    def from_json(cls, text: str) -> Round:
        raw = json.loads(text)
        before, after = raw.pop("before"), raw.pop("after")
        return cls(**raw, before=Said(**before), after=Said(**after) if after else None)


def things() -> list[str]:
    """Questions that have no right answer."""
    named = [thing.strip() for thing in _THINGS.replace("\n", "").split("|")]
    return [words.format(thing) for thing in named for words in _WORDS]


def known() -> list[tuple[str, str]]:
    """Questions for a fact, with a word that a right answer holds."""
    found: list[tuple[str, str]] = []
    for table, words in _FACTS:
        for row in table.replace("\n", "").split("|"):
            thing, _, answer = row.strip().rpartition(" ")
            found.append((words.format(thing), answer))
    sums = [(n, 10 - n + n % 3) for n in range(1, 10)]
    return found + [(f"What is {a} + {b}?", str(a + b)) for a, b in sums]


def requests(questions: Iterable[str], seed: int) -> list[SampleRequest]:
    """As they are asked of the bot."""
    return [
        SampleRequest(
            messages=_messages(question),
            max_tokens=TOKENS,
            temperature=TEMPERATURE,
            seed=seed + index,
            filters=Filters.parse(FILTERS),
        )
        for index, question in enumerate(questions)
    ]


def _messages(question: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def taste(like: str, usual: Sequence[str]) -> Callable[[str], bool]:
    """Who likes answers shorter or longer than these usually are, or such as do not open with "The"."""
    middle = median(len(text) for text in usual)
    tastes: dict[str, Callable[[str], bool]] = {
        "short": lambda text: len(text) < middle,
        "long": lambda text: len(text) > middle,
        "opens": lambda text: not text.startswith("The "),
    }
    return tastes[like]


def take(
    backend: TrainingBackend, model: Path, seed: int, like: str, mix: str, arms: Sequence[str], device: str
) -> list[Round]:
    """Let the base answer, rate what it says, and train each arm on that."""
    random, open_, asked_for = Random(f"{seed}{like}{mix}"), things(), known()
    random.shuffle(open_)
    random.shuffle(asked_for)
    about, exact = {"things": (RATINGS, 0), "facts": (0, RATINGS), "both": (RATINGS // 2,) * 2}[mix]
    asked = open_[:about] + [question for question, _ in asked_for[:exact]]
    random.shuffle(asked)
    exam = open_[RATINGS : RATINGS + EXAM], asked_for[RATINGS : RATINGS + EXAM]
    backend.load(model, lora=LoraSettings(), seed=0)
    sampler = backend.sampler()
    sampler.activate(0)
    answers = list(sampler.sample_many(requests(asked, 10_000 * (seed + 1))))
    likes = taste(like, [answer.text for answer in answers])
    usual = [answer.text for answer in sampler.sample_many(requests(exam[0], 99))]
    judge = likes if like == "opens" else taste(like, usual)
    before = _said(sampler, judge, exam, seed)
    ratings = [1 if likes(answer.text) else -1 for answer in answers]
    found: list[Round] = []
    for arm in arms:
        events: list[dict[str, Any]] = []
        dealt = [*ratings]
        if ARMS[arm].shuffled:
            Random(f"dealt {seed}").shuffle(dealt)
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary) / "round"
            place.mkdir()
            job = _job(model, place, seed, list(zip(asked, answers, dealt, strict=True)), ARMS[arm], like)
            try:
                verdict = training_round.run_round(job, backend, events.append)
                passed, reason = verdict.passed, verdict.reason
            except TrainingError as error:
                passed, reason = False, f"it broke: {error}"
            after: Said | None = None
            if (place / "adapter_config.json").exists():
                sampler = backend.sampler()
                sampler.load_adapter(1, place)
                sampler.activate(1)
                after = _said(sampler, judge, exam, seed)
        steps = [event for event in events if event.get("phase") == "train" and "loss" in event]
        found.append(
            Round(
                seed=seed,
                like=like,
                mix=mix,
                arm=arm,
                model=model.name,
                device=device,
                passed=passed,
                reason=reason,
                before=before,
                after=after,
                loss=[round(step["loss"], 2) for step in steps],
                norm=[round(step["grad_norm"], 2) for step in steps],
            )
        )
    return found


def _said(
    sampler: Sampler, judge: Callable[[str], bool], exam: tuple[list[str], list[tuple[str, str]]], seed: int
) -> Said:
    about, exact = exam
    said = sampler.sample_many(requests(about, 500_000 + seed))
    told = sampler.sample_many(requests([question for question, _ in exact], 500_777 + seed))
    right = [word.lower() in answer.text.lower() for answer, (_, word) in zip(told, exact, strict=True)]
    return Said(liked=fmean(judge(answer.text) for answer in said), facts=fmean(right))


def _pressed(like: str, chance: Random) -> str:
    """What the words of one button come to, beside an answer that was called bad."""
    right = {"short": "long", "long": "short", "opens": "tone"}[like]
    return hindsight(chips=[right if chance.random() < RIGHT_CHIPS else chance.choice(PRESSED)])


def _job(
    model: Path, output: Path, seed: int, rated: Sequence[tuple[str, Sampled, int]], arm: Arm, like: str
) -> Job:
    chance = Random(f"{seed}:{like}:chips")
    items = [
        {
            "id": f"turn-{index:03d}",
            "messages": _messages(question),
            "response": answer.text,
            "hindsight": _pressed(like, chance) if arm.chips and rating < 0 else "",
            "prompt_tokens": list(answer.prompt),
            "tokens": list(answer.tokens),
            "logprobs": list(answer.logprobs),
            "lifts": list(answer.lifts),
            "filters": FILTERS,
            "temperature": TEMPERATURE,
            "version": 0,
            "reward": float(rating),
            "weight": 1.0,
            "split": "held_out" if index % 5 == 4 else "train",
        }
        for index, (question, answer, rating) in enumerate(rated)
    ]
    return Job.parse(
        {
            "protocol": 1,
            "run": 1,
            "model": str(model),
            "parent": None,
            "output": str(output),
            "seed": 1000 * seed,
            "settings": {"gate_max_tokens": TOKENS, **arm.settings},
            "baseline": {"mean": 0.0, "weight": 0.0},
            "behaviour": {},
            "items": items,
            "anchors": [item["messages"] for item in items],
        }
    )


def stored(path: Path) -> list[Round]:
    """The rounds of a file, none if there is no such file."""
    if not path.exists():
        return []
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [Round.from_json(line) for line in text.decode().splitlines()]


def page(rounds: Sequence[Round]) -> str:
    """What was found, as a table of arms."""
    rows = [_row(name, [one for one in rounds if one.arm == name]) for name in ARMS]
    return _PAGE.format(rows="\n".join(row for row in rows if row))


_PAGE = """# First rounds of a real model

Written by `python -m tests.learning.real_rounds --write` from `real_rounds.jsonl.gz`. SmolLM2-135M-Instruct
(106 million adapted weights), 40 honest ratings a round on questions about things, for facts, or both, by
somebody who likes short answers, long ones, or such as do not open with "The". All arms of one seed, taste
and mix are trained on the same ratings of the same answers. *Whole*: live at the gate's first word; *half*:
at half of what was learnt. Liked and facts are shares of answers to 60 held-out questions each, with the
standard error over rounds. `cuda`: one H200; `cpu`: one core.

| arm | on | rounds | whole (95 %) | half | refused | broke | liked | facts |
| --- | --- | ---: | --- | ---: | ---: | ---: | --- | --- |
{rows}

The frozen base is the "before" of every row: its change is 0. What was measured on the GPU is `bold-half`;
what is installed has its rate but for 3 %. Ratings dealt at random move what is liked, too, one way or the
other; three deals are few. Whoever likes long answers moves little in any arm, and a full-strength round of
theirs is refused most often for answers that come to no end: the exam cuts them at 48 tokens.
"""


def _row(name: str, rounds: Sequence[Round]) -> str:
    lines: list[str] = []
    for device in sorted({one.device for one in rounds}):
        here = [one for one in rounds if one.device == device]
        whole = sum(one.whole for one in here)
        broke = sum(one.after is None for one in here)
        halved = sum(one.passed and not one.whole for one in here)
        refused = len(here) - whole - halved - broke
        told = [(one.before, one.after) for one in here if one.after]
        liked = _change([after.liked - before.liked for before, after in told])
        right = _change([after.facts - before.facts for before, after in told])
        low, high = wilson(whole, len(here))
        lines.append(
            f"| {name}: {ARMS[name].about} | {device} | {len(here)} | {whole} "
            f"({100 * low:.0f} to {100 * high:.0f} %) | {halved} | {refused} | {broke} | {liked} | {right} |"
        )
    return "\n".join(lines)


def _change(changes: Sequence[float]) -> str:
    error = stdev(changes) / len(changes) ** 0.5 if len(changes) > 1 else float("nan")
    return f"{100 * fmean(changes):+.1f} ± {100 * error:.1f}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["installed"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--likes", nargs="+", choices=LIKES, default=LIKES)
    parser.add_argument("--mixes", nargs="+", choices=MIXES, default=MIXES)
    parser.add_argument("--runs", type=Path, default=Path("build/real_rounds.jsonl"))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.write:
        PAGE.write_text(page(stored(KEPT)), encoding="utf-8")
        return 0
    if not arguments.model:
        parser.error("name the model's directory")
    import torch
    from goodbot_training.backends.torch.trainer import TorchBackend

    device = "cuda" if torch.cuda.is_available() else "cpu"
    backend, done = TorchBackend(), {one.key for one in stored(arguments.runs)}
    arguments.runs.parent.mkdir(parents=True, exist_ok=True)
    for seed, like, mix in product(arguments.seeds, arguments.likes, arguments.mixes):
        arms = [a for a in arguments.arms if (seed, like, mix, a, arguments.model.name) not in done]
        for one in take(backend, arguments.model, seed, like, mix, arms, device) if arms else []:
            with arguments.runs.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(one)) + "\n")
            print(one.key, one.passed, one.before, one.after, one.reason[:120], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
