# SPDX-License-Identifier: Apache-2.0
"""What a version has changed in answers: the figures for everybody, and each their own words."""

from __future__ import annotations

from goodbot.api.learnt import card, drifted, shown
from goodbot.api.texts import joined, say
from goodbot.store import Store, comparisons, people, shifts
from goodbot.store.runs import Run


async def said(store: Store, run: Run, language: str = "") -> str:
    """What answers and ratings prove, and a warning where the language is another one; empty: neither.

    Empty, too, while owners are asked which version is better: they would know which answer is whose.
    """
    if await store.read(lambda db: comparisons.asks(db, run.id)):
        return ""
    found = await store.read(lambda db: shifts.of(db, run.id))
    told = card(found, language)
    what = say("what_changed", language, told=told) if told else ""
    return joined(language, what, drifted(found, language))


async def example(store: Store, run: int, version: int, person: str, language: str = "") -> str:
    """The question of this person (`connector:id`) of which the answer has changed most, to be put below."""
    if await store.read(lambda db: comparisons.asks(db, run)):
        return ""
    accounts = await store.read(lambda db: people.accounts(db, person))
    pairs = await store.read(lambda db: shifts.examples(db, run, accounts, 1))
    lines = shown(pairs, say("before_and_after", language), f"v{version}", language)
    return "".join(f"\n{one}" for one in lines)
