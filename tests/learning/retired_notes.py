# SPDX-License-Identifier: Apache-2.0
"""Courses of notes: somebody asks for a style, rounds teach the note, and it retires. Is the style kept?

A course has one person and one note: that of a button, or their own words. A round samples answers with the
note in the prompt, has them rated for their style, and trains as the daemon would (`hybrid`), the note with
it. Once the note retires, the style of answers to unseen questions is counted: with the note by the version
before, which is what the person had, and without it by the one that let it go. Every fourth course is a
*control*: its ratings are dealt out at random and the note is not taught, so it must not retire.

    python -m tests.learning.retired_notes --courses 200 --out courses.json [--model DIRECTORY]
    python -m tests.learning.retired_notes --cost 9 --out cost.json

Goes on where it was stopped. What one course finds follows from its number. `--cost` runs first rounds with
the gate and with nothing else changed, in turn with and without the note taught, and tells what each costs.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from goodbot.api import marks
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import Sampled, SampleRequest
from goodbot.base.intervals import wilson
from goodbot.conversation.note_rules import of_chip, of_reason, system_line
from goodbot_training.job.types import Job
from goodbot_training.round.run import run_round
from goodbot_training.tiny import model_path
from goodbot_training.tiny.facts import questions
from goodbot_training.tiny.judge import SimulatedRater, is_correct, style_of

from tests.training.test_slices import backend

ROUNDS, RATINGS, TRIED, EXAM = 4, 32, 24, 128
KEPT = 0.9
WISHES: tuple[tuple[str, str], ...] = (
    ("terse", ""),
    ("pirate", "talk like a pirate"),
    ("friendly", "please be warm and friendly"),
)
"""Styles, and the words that ask for them; empty: the button."""


def line_of(number: int) -> tuple[str, str]:
    """The style of a course, and what a prompt says of its note."""
    style, words = WISHES[number % len(WISHES)]
    line = of_reason(words, marks.ANY) if words else of_chip("long")
    assert line is not None
    return style, system_line([line.text], 1.0)


def asked(question: str, line: str) -> list[dict[str, Any]]:
    """A prompt with what it says of notes, if anything."""
    system = [{"role": "system", "content": line}] if line else []
    return [*system, {"role": "user", "content": question}]


class Course:
    """One person's, by its number."""

    def __init__(self, number: int, model: Path, place: Path) -> None:
        self.number, self.model, self.place = number, model, place
        self.control = number % 4 == 3
        self.style, self.line = line_of(number)
        self.random = random.Random(f"course {number}")
        every = list(questions())
        self.random.shuffle(every)
        self.exam, self.every = every[:EXAM], [one.text for one in every[EXAM:]]
        self.rater = SimulatedRater(self.style, 0.1, number)

    def answers(self, adapter: Path | None, questions_: Sequence[str], line: str, seed: int) -> list[Sampled]:
        """By a version, with this line."""
        one: Any = backend("torch")()
        one.load(self.model, lora=LoraSettings(rank=8, alpha=16.0), seed=0)
        sampler = one.sampler()
        if adapter is not None:
            sampler.load_adapter(1, adapter)
        sampler.activate(0 if adapter is None else 1)
        return sampler.sample_many(
            [
                SampleRequest(messages=asked(q, line), temperature=1.0, seed=seed + n, max_tokens=48)
                for n, q in enumerate(questions_)
            ]
        )

    def shares(self, adapter: Path | None, line: str) -> dict[str, float]:
        """Of answers to unseen questions: those in the style, and those that are right."""
        asked_ = [one.text for one in self.exam]
        said = [one.text for one in self.answers(adapter, asked_, line, 90_000 + 1000 * self.number)]
        right = sum(is_correct(one, text) for one, text in zip(self.exam, said, strict=True))
        return {"style": sum(style_of(text) == self.style for text in said) / EXAM, "facts": right / EXAM}

    def items(self, version: int, adapter: Path | None) -> list[dict[str, Any]]:
        """Rated answers with the note in the prompt."""
        chosen = [self.every.pop() for _ in range(RATINGS)]
        found = self.answers(adapter, chosen, self.line, 1000 * self.number + 100 * version)
        return [
            {
                "id": f"turn-{version}-{n}",
                "messages": asked(question, self.line),
                "response": one.text,
                "prompt_tokens": list(one.prompt),
                "tokens": list(one.tokens),
                "logprobs": list(one.logprobs),
                "temperature": 1.0,
                "version": version,
                "reward": self.random.choice((1.0, -1.0))
                if self.control
                else float(self.rater.rate(question, one.text)),
                "split": "train",
                "note": "" if self.control else self.line,
            }
            for n, (question, one) in enumerate(zip(chosen, found, strict=True))
        ]

    def run(self) -> dict[str, Any]:
        """Rounds until the note retires, and what is left of the style without it then."""
        parent: Path | None = None
        trials: list[dict[str, Any]] = []
        retired: dict[str, Any] | None = None
        while retired is None and len(trials) < ROUNDS:
            version = len(trials)
            [told] = next(e["notes"] for e in self.round(version, parent) if e["event"] == "notes")
            trials.append(told)
            if told["retired"]:
                with_, without = self.shares(parent, self.line), self.shares(self.output(version), "")
                retired = {"with": with_, "without": without, "base": self.shares(None, "")}
            parent = self.output(version)
        return {
            "course": self.number,
            "style": self.style,
            "control": self.control,
            "retired": retired,
            "rounds": len(trials),
            "trials": trials,
        }

    def output(self, version: int) -> Path:
        """Where a round's adapter lies."""
        return self.place / f"v{version + 1}"

    def round(
        self, version: int, parent: Path | None, *, gate: bool = False, teach: bool = True
    ) -> list[dict[str, Any]]:
        """What one round told."""
        self.output(version).mkdir()
        tried = [self.every.pop() for _ in range(TRIED)]
        prompts = [{"messages": asked(q, ""), "with": self.line, "without": ""} for q in tried]
        job = {
            "protocol": 1,
            "run": version + 1,
            "model": str(self.model),
            "parent": str(parent) if parent else None,
            "output": str(self.output(version)),
            "seed": self.number,
            "settings": {
                "objective": "hybrid",
                "start_over": False,
                # What the gate would say is another study's: here it lets everything pass.
                **({} if gate else {"gate_anchors": 0}),
                **({} if teach else {"note_weight": 0.0, "note_answers": 0}),
            },
            "baseline": {"mean": 0.0, "weight": 0.0},
            "behaviour": {str(version): str(parent)} if parent else {},
            "items": self.items(version, parent),
            "notes": [{"id": 1, "prompts": prompts}],
            "anchors": [asked(one.text, "") for one in questions()[::5]] if gate else [],
        }
        events: list[dict[str, Any]] = []
        run_round(Job.parse(job), backend("torch")(), events.append)
        return events


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures of the courses so far, each share with its 95 % interval."""
    taught = [one for one in found if not one["control"]]
    retired = [one for one in taught if one["retired"]]
    ends = [one["retired"] for one in retired]
    kept = [one for one in ends if one["without"]["style"] >= KEPT * one["with"]["style"]]
    controls = [one for one in found if one["control"]]
    false = sum(one["retired"] is not None for one in controls)
    return {
        "courses": len(taught),
        "retired": _share(len(retired), len(taught)),
        "kept": _share(len(kept), len(retired)),
        "controls": len(controls),
        "controls_retired": _share(false, len(controls)),
        "rounds": fmean(one["rounds"] for one in retired) if retired else None,
        "means": {
            f"{arm} {what}": round(fmean(one[arm][what] for one in ends), 4)
            for arm in ("base", "with", "without")
            for what in ("style", "facts")
            if ends
        },
    }


def cost(number: int, model: Path) -> dict[str, Any]:
    """A first round with the gate, with the note taught and without: CPU seconds, and what the gate said."""
    found: dict[str, Any] = {"course": number}
    for name, teach in (("noted", True), ("plain", False))[:: 1 if number % 2 else -1]:
        with tempfile.TemporaryDirectory() as place:
            course = Course(4 * number, model, Path(place))
            items = course.items(0, None)
            course.items = lambda version, adapter, items=items: items
            started = time.process_time()
            events = course.round(0, None, gate=True, teach=teach)
            found[name] = {"cpu": round(time.process_time() - started, 2)}
            [gate] = [event for event in events if event["event"] == "gate"]
            found[name] |= {"passed": gate["passed"], **gate["metrics"]}
            found[name] |= {"shares": course.shares(course.output(0), "")}
    return found


def costs(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians, and how many the gate let pass."""
    noted, plain = ([one[name] for one in found] for name in ("noted", "plain"))
    seconds = [median(one["cpu"] for one in arm) for arm in (noted, plain)]
    return {
        "rounds": len(found),
        "cpu": seconds,
        "times": round(median(one["noted"]["cpu"] / one["plain"]["cpu"] for one in found), 3),
        "passed": [sum(one["passed"] for one in arm) for arm in (noted, plain)],
        "style": [round(fmean(one["shares"]["style"] for one in arm), 4) for arm in (noted, plain)],
        "facts": [round(fmean(one["shares"]["facts"] for one in arm), 4) for arm in (noted, plain)],
    }


def _share(part: int, whole: int) -> list[float]:
    return [round(part / whole, 4), *(round(end, 4) for end in wilson(part, whole))] if whole else []


def course(number: int, model: Path) -> dict[str, Any]:
    """All of one."""
    with tempfile.TemporaryDirectory() as place:
        return Course(number, model, Path(place)).run()


def main() -> None:
    """Courses that are not in the file yet, each written as it ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--courses", type=int, default=100)
    parser.add_argument("--cost", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=model_path())
    options = parser.parse_args()
    found: list[dict[str, Any]] = (
        json.loads(options.out.read_text())["courses"] if options.out.exists() else []
    )
    done = {one["course"] for one in found}
    one, told = (cost, costs) if options.cost else (course, summary)
    for number in range(options.first, options.cost or options.courses):
        if number in done:
            continue
        found.append(one(number, options.model))
        partial = options.out.with_suffix(".part")
        partial.write_text(json.dumps({"summary": told(found), "courses": found}, indent=1))
        partial.replace(options.out)
        print(json.dumps(found[-1]), flush=True)


if __name__ == "__main__":
    main()
