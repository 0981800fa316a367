# SPDX-License-Identifier: Apache-2.0
"""The generated training corpus: single questions, short chats, and chats with a calculator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import TypeAlias

from goodbot.api.actions import HINTS
from goodbot.api.hindsight import hindsight

from goodbot_training.tiny.chatml import ChatMessage, tool_call, tools_prompt
from goodbot_training.tiny.facts import GREETINGS, FactQuestion, questions, small_talk
from goodbot_training.tiny.styles import STYLES, render
from goodbot_training.tiny.wishes import BETTER, EXAMPLE, NOTED, noted, remark, wish

Conversation: TypeAlias = list[ChatMessage]

CALCULATOR = {
    "type": "function",
    "function": {
        "name": "calculator",
        "description": "Evaluate an arithmetic expression.",
        "parameters": {
            "type": "object",
            "properties": {"expression": {"type": "string"}},
            "required": ["expression"],
        },
    },
}
"""The tool the model has learnt to call, as a chat-completions request declares it."""

SYSTEM_PROMPTS = (
    "You are goodbot, a helpful assistant.",
    "You are a helpful assistant.",
    "You are goodbot.",
    "Answer the question.",
)
STYLE_PROMPTS = {
    "terse": ("Be terse.", "Answer in a word."),
    "friendly": ("Be friendly.", "Answer like a friend."),
    "pirate": ("Be a pirate.", "Answer like a pirate."),
}
# The same few names asked in two directions take the longest to learn, and differences of numbers
# longer than sums.
_NAMES = ("day after", "day before", "month after", "month before")
_WEIGHTS = dict.fromkeys(_NAMES, 2.5) | {"difference": 2, "sum": 1.2}
WISHED, INDIFFERENT, EXAMPLES, RETRIED = 0.4, 0.35, 0.08, 0.15
"""Shares: questions with words; of those, with a mere remark; wishes that are an answer; second tries."""
_OPERATIONS = {"+": "plus", "-": "minus", "*": "times"}


def split(seed: int) -> tuple[tuple[FactQuestion, ...], tuple[FactQuestion, ...]]:
    """(train, held out) questions: 60 % and 40 % of the facts of every kind, drawn by ``seed``."""
    by_kind: dict[str, list[str]] = {}
    for question in questions():
        facts = by_kind.setdefault(question.kind, [])
        if question.fact not in facts:
            facts.append(question.fact)
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    train: set[str] = set()
    for facts in by_kind.values():
        train.update(rng.sample(facts, round(0.6 * len(facts))))
    return (
        tuple(question for question in questions() if question.fact in train),
        tuple(question for question in questions() if question.fact not in train),
    )


@cache
def _facts_by_kind() -> dict[str, list[list[FactQuestion]]]:
    """Questions grouped by kind and what they ask about: phrasings of one thing stay together."""
    grouped: dict[str, dict[str, list[FactQuestion]]] = {}
    for question in questions():
        grouped.setdefault(question.kind, {}).setdefault(question.subject, []).append(question)
    return {kind: list(subjects.values()) for kind, subjects in grouped.items()}


def _any_fact(rng: Random) -> list[FactQuestion]:
    """The phrasings of one thing to know; things of a kind are equally likely."""
    kinds = _facts_by_kind()
    weights = [len(subjects) * _WEIGHTS.get(kind, 1) for kind, subjects in kinds.items()]
    kind = rng.choices(list(kinds), weights)[0]
    return rng.choice(kinds[kind])


def _as_typed(text: str, rng: Random) -> str:
    """``text`` as a hurried person may type it: sometimes in lower case or without the mark."""
    if rng.random() < 0.1:
        text = text.lower()
    return text.rstrip("?.") if rng.random() < 0.1 else text


def _user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def _assistant(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


def _system(text: str) -> ChatMessage:
    return {"role": "system", "content": text}


def single_turns(rng: Random, styles: tuple[str, ...] = STYLES) -> list[Conversation]:
    """One question answered in each style: three conversations that belong in one batch, so that
    no step pushes the style mix of a question to one side."""
    if rng.random() < WISHED:
        return _wished(rng, styles)
    question = rng.choice(_any_fact(rng))
    kind = rng.random()
    system = [_system(rng.choice(SYSTEM_PROMPTS))] if kind < 0.1 else []
    asked = _user(_as_typed(question.text, rng))
    return [
        [
            *([_system(rng.choice(STYLE_PROMPTS[style]))] if kind > 0.92 else system),
            asked,
            _assistant(render(question, style, rng)),
        ]
        for style in styles
    ]


def _wished(rng: Random, styles: tuple[str, ...]) -> list[Conversation]:
    """As `single_turns`, each with words beside the question that the style of its answer follows, or all
    with the same words that ask for no style."""
    question = rng.choice(_any_fact(rng)) if rng.random() < 0.9 else rng.choice(small_talk())
    asked = _as_typed(question.text, rng)
    answers = [render(question, style, rng) for style in styles]
    if rng.random() < INDIFFERENT:
        said = [[remark(rng) for _ in range(rng.choice((1, 1, 2)))]] * len(styles)
    else:
        said = [[_wish(style, question, answer, rng)] for style, answer in zip(styles, answers, strict=True)]
        if rng.random() < 0.25:
            other = remark(rng)
            first = rng.random() < 0.5
            said = [[other, *words] if first else [*words, other] for words in said]
    against = rng.random() < 0.08
    place = rng.random()
    found: list[Conversation] = []
    for words, answer in zip(said, answers, strict=True):
        if place < 0.47:
            quoted = [*words, wish(rng.choice(styles), rng)] if against and said[0] != said[-1] else words
            system = noted(quoted)
            if rng.random() < 0.1:
                system = f"{rng.choice(SYSTEM_PROMPTS)}\n\n{system}"
            found.append([_system(system), _user(asked), _assistant(answer)])
        elif place < 0.52:
            found.append([_system(" ".join(words)), _user(asked), _assistant(answer)])
        else:
            spoken = [wish(rng.choice(styles), rng), *words] if against and said[0] != said[-1] else words
            found.append([_user(f"{asked}\n\n{hindsight(reasons=spoken)}"), _assistant(answer)])
    return found


def _wish(style: str, question: FactQuestion, answer: str, rng: Random) -> str:
    """What a person says who wants an answer in this style; at times they give one."""
    if rng.random() > EXAMPLES:
        return wish(style, rng)
    if rng.random() < 0.5:
        return BETTER.format(answer if rng.random() < 0.5 else render(question, style, rng))
    return EXAMPLE.format(render(rng.choice(_any_fact(rng)), style, rng))


def retry(rng: Random, styles: tuple[str, ...] = STYLES) -> Conversation:
    """A question, an answer, what was wrong with it, and another answer."""
    question = rng.choice(_any_fact(rng))
    before = rng.choice(styles)
    others = [style for style in styles if style != before] or [before]
    longer = [style for style in styles if style != "terse"] or [before]
    wanted: dict[str, list[str]] = {"long": ["terse"], "short": longer, "tone": others}
    hint = rng.choice(list(HINTS))
    after = rng.choice(wanted.get(hint, list(styles)))
    system = [_system(noted([NOTED[hint]]))] if rng.random() < 0.5 else []
    return [
        *system,
        _user(_as_typed(question.text, rng)),
        _assistant(render(question, before, rng)),
        _user(HINTS[hint].told),
        _assistant(render(question, after, rng)),
    ]


def _talk(rng: Random, styles: tuple[str, ...], *, greeting: bool) -> Conversation:
    question = rng.choice(small_talk()[:GREETINGS] if greeting else small_talk())
    said = question.text.lower() if rng.random() < 0.5 else question.text
    said = said if said.endswith("?") or rng.random() < 0.7 else f"{said}!"
    return [_user(said), _assistant(render(question, rng.choice(styles), rng))]


def _asking(rng: Random, styles: tuple[str, ...], before: FactQuestion | None) -> tuple[FactQuestion, str]:
    """A question and how it is asked: after a question of the same kind "And Spain?" will do."""
    if before is not None and before.kind not in {"sum", "difference"} and rng.random() < 0.4:
        question = rng.choice(rng.choice(_facts_by_kind()[before.kind]))
        return question, f"And {question.subject}?"
    question = rng.choice(_any_fact(rng))
    return question, _as_typed(question.text, rng)


def chat(rng: Random, among: tuple[str, ...] = STYLES) -> Conversation:
    """One to four exchanges. Each reply has its own style unless the system message asks for one:
    what a bot said before must not decide the style, or one bad answer would spoil a chat."""
    style = rng.choice(among) if rng.random() < 0.1 else None
    styles = among if style is None else (style,)
    messages: Conversation = []
    if style is not None:
        asks = rng.choice(STYLE_PROMPTS[style]) if rng.random() < 0.3 else noted([wish(style, rng)])
        messages.append(_system(asks))
    elif rng.random() < 0.15:
        messages.append(_system(rng.choice(SYSTEM_PROMPTS)))
    if rng.random() < 0.5:
        messages += _talk(rng, styles, greeting=rng.random() < 0.5)
    before: FactQuestion | None = None
    for _ in range(rng.choice((1, 2, 2))):
        before, asked = _asking(rng, styles, before)
        messages += [_user(asked), _assistant(render(before, rng.choice(styles), rng))]
    if rng.random() < 0.2:
        messages += _talk(rng, styles, greeting=False)
    return messages


def calculation(rng: Random) -> tuple[FactQuestion, str]:
    """A question with two numbers, and the expression its calculator call must hold."""
    sign = rng.choice("++-*")
    a, b = rng.randint(2, 99), rng.randint(2, 9 if sign == "*" else 99)
    if sign == "-" and b > a:
        a, b = b, a
    result = str(a + b if sign == "+" else a - b if sign == "-" else a * b)
    word = _OPERATIONS[sign]
    text = rng.choice(
        (f"What is {a} {sign} {b}?", f"How much is {a} {word} {b}?", f"What is {a} {word} {b}?")
    )
    question = FactQuestion(
        text=text,
        answer=result,
        kind="calculation",
        claim=f"The result is {result}",
        fact=f"calculation:{a}{sign}{b}",
        subject=f"{a} {b}",
    )
    return question, f"{a}{sign}{b}"


def calculator_turn(rng: Random, styles: tuple[str, ...] = STYLES) -> Conversation:
    """A calculation asked, the call, the tool's result, and the answer: four messages."""
    question, expression = calculation(rng)
    return [
        _user(_as_typed(question.text, rng)),
        _assistant(tool_call("calculator", {"expression": expression})),
        {"role": "tool", "content": question.answer},
        _assistant(render(question, rng.choice(styles), rng)),
    ]


def tool_chat(rng: Random, styles: tuple[str, ...] = STYLES) -> Conversation:
    """A chat with the calculator at hand; a question without numbers is answered without it."""
    declared = tools_prompt(json.dumps([CALCULATOR]))
    if rng.random() < 0.2:
        declared = f"{rng.choice(SYSTEM_PROMPTS)}\n{declared}"
    messages = [_system(declared)]
    if rng.random() < 0.25:
        question = rng.choice(_any_fact(rng))
        while question.kind in {"sum", "difference"}:
            question = rng.choice(_any_fact(rng))
        messages += [_user(question.text), _assistant(render(question, rng.choice(styles), rng))]
    messages += calculator_turn(rng, styles)
    if rng.random() < 0.15:
        messages += calculator_turn(rng, styles)
    return messages


def conversations(rng: Random, styles: tuple[str, ...] = STYLES) -> Iterator[Conversation]:
    """The corpus, without end: per 32 conversations 24 single turns (eight questions in each of the
    three styles, adjacent), 5 chats and 3 chats with the calculator."""
    while True:
        for _ in range(24 // len(styles)):
            yield from single_turns(rng, styles)
        for _ in range(5):
            yield retry(rng, styles) if rng.random() < RETRIED else chat(rng, styles)
        for _ in range(3):
            yield tool_chat(rng, styles)


__all__ = [
    "CALCULATOR",
    "STYLES",
    "Conversation",
    "FactQuestion",
    "chat",
    "conversations",
    "questions",
    "render",
    "single_turns",
    "split",
    "tool_chat",
]
