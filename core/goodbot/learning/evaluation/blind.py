# SPDX-License-Identifier: Apache-2.0
"""The words of a blind question: two answers without names, in an order that a seed decides. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from goodbot.api.actions import run
from goodbot.api.events import Button
from goodbot.api.sentences import version
from goodbot.api.texts import commas, ended, joined, quoted, say
from goodbot.learning.evaluation.rule import loses
from goodbot.store.comparisons import Comparison, Pair, Tally

WORDS = ("a", "b", "same", "skip")
"""What can be said of a pair."""
_LABELS = {"a": "A", "b": "B"}
_LONGEST = 800
"""Characters of an answer that are shown: with two of them it fits every platform's message."""
_LONGEST_QUESTION = 160


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


def question(pairs: Sequence[Pair], pair: Pair, language: str = "") -> str:
    """One pair, as its owner is asked."""
    first, second = (_cut(text, _LONGEST, language) for text in answers(pair))
    number = [one.id for one in pairs].index(pair.id) + 1
    asks = say("compare_question", language, number=number, of=len(pairs))
    return (
        f"{asks}\n{quoted(_line(pair.question, language), language)}\n\n"
        f"A:\n{first}\n\nB:\n{second}\n\n{say('compare_how', language)}"
    )


def invitation(comparison: Comparison, language: str = "") -> str:
    """What comes before the first question."""
    new, old = version(comparison.new, language), version(comparison.old, language)
    key = "compare_held" if comparison.held else "compare_live"
    return joined(language, say("compare_invitation", language), say(key, language, new=new, old=old))


def buttons(pair: Pair, language: str = "") -> tuple[Button, ...]:
    """The choices; each names its pair, so that an old message never answers a new question."""
    labels = {**_LABELS, "same": say("choose_same", language), "skip": say("choose_skip", language)}
    return tuple(run(f"compare {pair.id} {word}", labels[word]) for word in WORDS)


def summed(old: int, new: int, tally: Tally, language: str = "") -> str:
    """`3 for v7, 1 for v6, 1 the same`; skipped ones are not told."""
    counts = ((tally.new, new), (tally.old, old))
    chosen = [say("choice_for", language, count=n, name=version(one, language)) for n, one in counts]
    return commas(language, *chosen, say("choice_same", language, count=tally.same) if tally.same else "")


def outcome(comparison: Comparison, tally: Tally, state: str, language: str = "") -> str:
    """What came of it; empty where nothing was asked, or nobody has chosen and nothing changes."""
    new, old = (version(one, language, begins=True) for one in (comparison.new, comparison.old))
    said = ended(summed(comparison.old, comparison.new, tally, language), language)
    if state == "lost":
        lost = say("compare_lost_held" if comparison.held else "compare_lost", language, new=new, old=old)
        return joined(language, said, lost)
    if tally.decided or tally.same:
        stays = say("compare_passed_held" if comparison.held else "compare_passed", language, new=new)
        return joined(language, said, stays)
    if not comparison.held or not (asked := tally.open + tally.skip):
        return ""
    enough = loses(Tally(old=asked))
    return say("compare_unchosen" if enough else "compare_alike", language, new=new)


def _line(text: str, language: str) -> str:
    return _cut(" ".join(text.split()), _LONGEST_QUESTION, language)


def _cut(text: str, longest: int, language: str) -> str:
    text = text.strip() or say("no_answer", language)
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
