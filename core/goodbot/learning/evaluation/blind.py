# SPDX-License-Identifier: Apache-2.0
"""The words of a blind question: two answers without names, in an order that a seed decides. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from goodbot.api.actions import run
from goodbot.api.events import Button
from goodbot.api.sentences import version
from goodbot.api.texts import commas, say
from goodbot.base.suggest import version_name
from goodbot.learning.evaluation.rule import loses
from goodbot.store.comparisons import Comparison, Pair, Tally

WORDS = ("a", "b", "same", "skip")
"""What can be said of a pair."""
_LABELS = {"a": "A", "b": "B", "same": "Same", "skip": "Skip"}
_LONGEST = 800
"""Characters of an answer that are shown: with two of them it fits every platform's message."""
_LONGEST_QUESTION = 160
_HOW = "`/rl compare a`, `b`, `same` or `skip`"


def new_first(pair: Pair) -> bool:
    """Whether the new version's answer is the one called A."""
    digest = hashlib.sha256(f"{pair.comparison.seed}\0{pair.turn}".encode()).digest()
    return digest[0] % 2 == 0


def answers(pair: Pair) -> tuple[str, str]:
    """The answers called A and B."""
    return (pair.new, pair.old) if new_first(pair) else (pair.old, pair.new)


def choice(pair: Pair, word: str) -> str:
    """Which version one of `WORDS` speaks for: `old` or `new`; `same` and `skip` are themselves."""
    if word in ("same", "skip"):
        return word
    return "new" if (word == "a") is new_first(pair) else "old"


def question(pairs: Sequence[Pair], pair: Pair) -> str:
    """One pair, as its owner is asked."""
    first, second = (_cut(text, _LONGEST) for text in answers(pair))
    number = [one.id for one in pairs].index(pair.id) + 1
    return (
        f"Which is better? ({number} of {len(pairs)})\n“{_line(pair.question)}”\n\n"
        f"A:\n{first}\n\nB:\n{second}\n\n{_HOW}"
    )


def invitation(comparison: Comparison) -> str:
    """What comes before the first question."""
    new, old = version_name(comparison.new), version_name(comparison.old)
    until = (
        f"I switch to {new} unless it loses; without a reply, after 24 hours."
        if comparison.held
        else f"{new} answers already: if it loses, {old} comes back."
    )
    return (
        "I have finished learning. Here are some of your questions, each with two answers: which do you "
        f"prefer? You won’t see which version wrote which. {until}"
    )


def buttons(pair: Pair) -> tuple[Button, ...]:
    """The choices; each names its pair, so that an old message never answers a new question."""
    return tuple(run(f"compare {pair.id} {word}", _LABELS[word]) for word in WORDS)


def summed(old: int, new: int, tally: Tally, language: str = "") -> str:
    """`3 for v7, 1 for v6, 1 the same`; skipped ones are not told."""
    counts = ((tally.new, new), (tally.old, old))
    chosen = [say("choice_for", language, count=n, name=version(one, language)) for n, one in counts]
    return commas(language, *chosen, say("choice_same", language, count=tally.same) if tally.same else "")


def outcome(comparison: Comparison, tally: Tally, state: str) -> str:
    """What came of it; empty where nothing was asked, or nobody has chosen and nothing changes."""
    new, old = (version_name(one, begins=True) for one in (comparison.new, comparison.old))
    said = f"{summed(comparison.old, comparison.new, tally)}."
    if state == "lost":
        return f"{said} {f'{new} does not go live' if comparison.held else f'{old} answers again'}."
    if tally.decided or tally.same:
        return f"{said} {new} {'may go live' if comparison.held else 'stays'}."
    if not comparison.held or not (asked := tally.open + tally.skip):
        return ""
    enough = loses(Tally(old=asked))
    why = "Nobody has chosen" if enough else "Too few of your questions have answers that differ"
    return f"{why}, so the safety check alone decided: {new} may go live."


def _line(text: str) -> str:
    return _cut(" ".join(text.split()), _LONGEST_QUESTION)


def _cut(text: str, longest: int) -> str:
    text = text.strip() or "(empty)"
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
