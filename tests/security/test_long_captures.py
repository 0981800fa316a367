# SPDX-License-Identifier: Apache-2.0
"""Long answers of other programs: asked for by what may be kept, then masked beside what others wait for."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from goodbot.api.events import Outcome
from goodbot.base.redact import redact
from goodbot.conversation import capture_rules
from goodbot.store import traces

from tests.core.builders import OWNER, open_bot, rows, until
from tests.core.test_captures import capture, count, elsewhere, one, stored
from tests.security.test_quotas import HALF, SMALL, of

KEY = "sk-proj-" + "aB3" * 10


class Masking:
    """Where captures were masked, and when they may be."""

    def __init__(self) -> None:
        self.threads = list[threading.Thread]()
        self.goes_on = threading.Event()
        self.goes_on.set()

    def __call__(self, text: str) -> str:
        self.threads.append(threading.current_thread())
        if threading.current_thread() is not threading.main_thread():
            self.goes_on.wait()
        return redact(text)


@pytest.fixture
def masking(monkeypatch: pytest.MonkeyPatch) -> Masking:
    made = Masking()
    monkeypatch.setattr(capture_rules, "redact", made)
    return made


async def test_a_long_one_is_masked_beside_what_others_wait_for(tmp_path: Path, masking: Masking) -> None:
    async with open_bot(tmp_path) as bot:
        done = await one(bot, capture("a", response=f"{HALF} {KEY}"))
        kept = await stored(bot, done.turn)
    assert (done.outcome, kept.response) == (Outcome.ACCEPTED, f"{HALF} ***")
    assert masking.threads
    assert threading.current_thread() not in masking.threads


async def test_others_are_served_meanwhile_and_who_hangs_up_leaves_it_there(
    tmp_path: Path, masking: Masking
) -> None:
    async with open_bot(tmp_path) as bot:
        masking.goes_on.clear()
        try:
            long = asyncio.create_task(one(bot, capture("a", response=HALF)))
            await until(lambda: masking.threads)
            assert (await one(bot, capture("b", of("talker")))).outcome is Outcome.ACCEPTED
            assert not long.done()
            long.cancel()
        finally:
            masking.goes_on.set()

        async def both() -> bool:
            return await count(bot, "turns") == 2

        await until(both)


async def test_those_of_one_person_are_stored_in_the_order_in_which_they_came(
    tmp_path: Path, masking: Masking
) -> None:
    async with open_bot(tmp_path) as bot:
        masking.goes_on.clear()
        try:
            long = asyncio.create_task(one(bot, capture("a", response=HALF)))
            await until(lambda: masking.threads)
            short = asyncio.create_task(one(bot, capture("b")))
            assert (await one(bot, capture("c", of("talker")))).outcome is Outcome.ACCEPTED
            assert not short.done()
        finally:
            masking.goes_on.set()
        kept = [receipt.turn for receipt in await asyncio.gather(long, short)]
        mine = f"SELECT id FROM turns WHERE talker = '{OWNER.id}' ORDER BY seq"
        assert [id_ for (id_,) in await rows(bot.store, mine)] == kept


async def test_what_is_not_kept_is_not_masked_either(tmp_path: Path, masking: Masking) -> None:
    async with open_bot(tmp_path, sections=SMALL) as bot:
        first, _ = [
            await one(bot, capture(name, of("talker"), response=HALF, kind="side")) for name in ("a", "b")
        ]
        masking.threads.clear()
        refused = await one(bot, capture("c", of("talker"), response=HALF, kind="side"))
        assert (refused.outcome, "more than 1 MB" in refused.text) == (Outcome.IGNORED, True)
        again = await one(bot, capture("a", of("talker"), response=HALF, kind="side"))
        assert (again.turn, again.duplicate) == (first.turn, True)
        stranger = await one(bot, capture("d", elsewhere("nobody"), response=HALF))
        assert stranger.outcome is Outcome.DENIED
        assert masking.threads == []
        assert await count(bot, "turns") == 2


def test_two_reports_of_one_answer_are_compared_by_its_first_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """All words of an answer of megabytes were counted while others waited."""
    monkeypatch.setattr(traces, "_WORDS", 3)
    first = traces._hash("one two three four")
    assert first == traces._hash(" one  two\nthree five")
    assert first != traces._hash("one two four")
