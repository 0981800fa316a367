# SPDX-License-Identifier: Apache-2.0
"""The evaluation printed at the end of the script and kept in the model card.

Framework-free: the model comes in as a function from chats to sampled answers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from goodbot_training.tiny.chatml import ChatMessage, tool_call, tools_prompt
from goodbot_training.tiny.corpus import CALCULATOR, calculation
from goodbot_training.tiny.facts import GREETINGS, FactQuestion, questions, small_talk
from goodbot_training.tiny.judge import is_correct, style_of
from goodbot_training.tiny.styles import STYLES, render
from goodbot_training.tiny.wishes import HELD_OUT, noted

Sampler = Callable[[Sequence[Sequence[ChatMessage]]], list[str]]

SAMPLES = 4
"""Answers judged per question."""

_CHATS = 200
"""Fresh chats of each sort: with a history, with a calculator to call, with its result."""
_SAID = 10
"""Questions asked with each wording."""


@dataclass(kw_only=True)
class Accuracy:
    """How many answers there were and how many were right."""

    answers: int = 0
    right: int = 0

    def add(self, right: bool) -> None:
        self.answers += 1
        self.right += right

    @property
    def accuracy(self) -> float:
        """Right answers by answers, 0 where there were none."""
        return self.right / self.answers if self.answers else 0.0


@dataclass(kw_only=True)
class Evaluation:
    """What the judge found. A malformed answer counts as wrong, overall and for its kind."""

    overall: Accuracy = field(default_factory=Accuracy)
    malformed: int = 0
    styles: dict[str, Accuracy] = field(default_factory=lambda: {style: Accuracy() for style in STYLES})
    kinds: dict[str, Accuracy] = field(default_factory=lambda: defaultdict(Accuracy))
    chats: dict[str, Accuracy] = field(default_factory=lambda: defaultdict(Accuracy))
    followed: dict[str, Accuracy] = field(default_factory=lambda: defaultdict(Accuracy))
    """By where the words stand: whether an answer has the style that they ask for."""

    def table(self) -> str:
        """The evaluation as Markdown."""
        total = self.overall.answers
        lines = ["| answers | share | accuracy |", "|---|---|---|"]
        for style, tally in self.styles.items():
            lines.append(f"| {style} | {tally.answers / total:.3f} | {tally.accuracy:.3f} |")
        lines.append(f"| malformed | {self.malformed / total:.3f} | |")
        lines.append(f"| **all {total}** | 1 | **{self.overall.accuracy:.3f}** |")
        lines += ["", "| kind | answers | accuracy |", "|---|---|---|"]
        for name, tally in (self.kinds | self.chats).items():
            lines.append(f"| {name} | {tally.answers} | {tally.accuracy:.3f} |")
        lines += ["", "| asked for, in words that it was not taught | answers | followed |", "|---|---|---|"]
        for name, tally in self.followed.items():
            lines.append(f"| {name} | {tally.answers} | {tally.accuracy:.3f} |")
        return "\n".join(lines)


def _user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def _system(text: str) -> ChatMessage:
    return {"role": "system", "content": text}


def _assistant(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


def _with_history(question: FactQuestion, rng: Random) -> list[ChatMessage]:
    """A greeting and another question, answered, and then ``question``."""
    messages: list[ChatMessage] = []
    for before in (rng.choice(small_talk()[:GREETINGS]), rng.choice(questions())):
        answer = render(before, rng.choice(STYLES), rng)
        messages += [_user(before.text), _assistant(answer)]
    return [*messages, _user(question.text)]


def _judge_chats(sample: Sampler, rng: Random, found: Evaluation) -> None:
    """Small talk, chats with a history, calls of the calculator, and answers from its result."""
    talk = [question for question in small_talk() for _ in range(SAMPLES)]
    later = [rng.choice(questions()) for _ in range(_CHATS)]
    sums = [calculation(rng) for _ in range(_CHATS)]
    declared: ChatMessage = {"role": "system", "content": tools_prompt(json.dumps([CALCULATOR]))}
    calls = [tool_call("calculator", {"expression": expression}) for _, expression in sums]
    asked = [[declared, _user(question.text)] for question, _ in sums]
    results: list[list[ChatMessage]] = [
        [*chat, _assistant(call), {"role": "tool", "content": question.answer}]
        for chat, call, (question, _) in zip(asked, calls, sums, strict=True)
    ]
    judged = {
        "small talk": (talk, [[_user(question.text)] for question in talk]),
        "after a history": (later, [_with_history(question, rng) for question in later]),
        "from a tool's result": ([question for question, _ in sums], results),
    }
    for name, (wanted, chats) in judged.items():
        for question, answer in zip(wanted, sample(chats), strict=True):
            found.chats[name].add(is_correct(question, answer))
    for call, answer in zip(calls, sample(asked), strict=True):
        found.chats["tool call"].add(answer == call)


def _judge_words(sample: Sampler, rng: Random, found: Evaluation) -> None:
    """Whether wishes in wordings that the corpus never has are followed, noted and behind the question."""
    for style, texts in HELD_OUT.items():
        asked = [(text, rng.choice(questions()).text) for text in texts for _ in range(_SAID)]
        noted_ = [[_system(noted([text])), _user(question)] for text, question in asked]
        behind = [[_user(f"{question}\n\n{text}")] for text, question in asked]
        for name, chats in ((f"{style}, in a note", noted_), (f"{style}, behind the question", behind)):
            for answer in sample(chats):
                found.followed[name].add(style_of(answer) == style)


def evaluate(sample: Sampler, seed: int) -> Evaluation:
    """Judges ``SAMPLES`` answers to every question, and fresh chats drawn by ``seed``."""
    found = Evaluation()
    asked = [question for question in questions() for _ in range(SAMPLES)]
    answers = sample([[_user(question.text)] for question in asked])
    for question, answer in zip(asked, answers, strict=True):
        right, style = is_correct(question, answer), style_of(answer)
        found.overall.add(right)
        found.kinds[question.kind].add(right)
        if style is None:
            found.malformed += 1
        else:
            found.styles[style].add(right)
    rng = Random(f"evaluate {seed}")  # noqa: S311 - reproducible
    _judge_chats(sample, rng, found)
    _judge_words(sample, rng, found)
    return found
