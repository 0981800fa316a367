# SPDX-License-Identifier: Apache-2.0
"""What is found out afterwards counts, whatever the clock says meanwhile."""

from __future__ import annotations

from pathlib import Path

from goodbot.api.events import MessageRef
from goodbot.store import ledger, reconciling
from goodbot_connectors.kit.lru import Recent
from goodbot_connectors.kit.reconciling import Reconciler, Standing

from tests.core.builders import add_turn, open_bot


async def test_messages_that_are_cleared_all_day_take_no_room_while_no_answer_is_open(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(ref: MessageRef) -> Standing:
        asked.append(ref.id)
        return set()

    seen = Reconciler(ask=ask, value=lambda _: 1.0, now_ms=lambda: 1_800_000_000_000)
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        known = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0))
        [ours] = [ref.id for turn in known for ref in turn.messages]
        for n in range(5_000):
            seen.look_at(f"somebody's {n}")
        seen.look_at(ours)
        assert len(seen._swept) == Recent.most
        await seen.look(known)
        assert asked == [ours], "the newest are looked at"
        assert not seen._swept


async def test_b1_a_reaction_comes_goes_and_comes_again_while_the_clock_stands(tmp_path: Path) -> None:
    there: Standing = set()

    async def ask(_: MessageRef) -> Standing:
        return there

    seen = Reconciler(ask=ask, value=lambda _: 1.0, now_ms=lambda: 1_800_000_000_000)
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        for expected in ([1.0], [], [1.0], []):
            there ^= {("owner", "reaction:👍")}
            seen.again()
            known = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0))
            await bot.chat.host.submit(await seen.look(known))
            labels = await bot.store.read(lambda db: ledger.labels(db, "t"))
            assert [*labels.values()] == expected


def liked() -> Reconciler:
    """Of a platform where an owner's 👍 stands at each answer."""

    async def ask(_: MessageRef) -> Standing:
        return {("owner", "reaction:👍")}

    return Reconciler(ask=ask, value=lambda _: 1.0, now_ms=lambda: 1_800_000_000_000)


async def test_b1_what_was_found_and_not_stored_is_found_again_but_not_for_ever(tmp_path: Path) -> None:
    """The disk was full, or it was not known yet who is in a group."""
    seen = liked()
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        seen.again()
        known = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0))
        assert [len(await seen.look(known)) for _ in range(6)] == [1, 1, 1, 1, 0, 0]
        seen.again()
        await bot.chat.host.submit(await seen.look(known))
        known = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0))
        assert [len(await seen.look(known)) for _ in range(2)] == [0, 0]


async def test_s6_the_reaction_of_who_was_forgotten_is_not_taken_for_a_missed_one(tmp_path: Path) -> None:
    async def ask(_: MessageRef) -> Standing:
        return {("rater", "reaction:👍")}

    seen = Reconciler(ask=ask, value=lambda _: 1.0, now_ms=lambda: 1_800_000_000_000)
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍", user="rater")
        assert await bot.labels(answer) == {"loopback:rater": 1.0}
        for words in ("me", "me yes"):
            await bot.command("forget", words, user="rater")
        assert await bot.labels(answer) == {}
        seen.again()
        known = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0))
        await bot.chat.host.submit(await seen.look(known))
        assert await bot.labels(answer) == {}


async def test_s6_no_message_of_an_answer_that_is_gone_is_remembered(tmp_path: Path) -> None:
    seen = liked()
    async with open_bot(tmp_path) as bot:
        await add_turn(bot.store, "t")
        seen.again()
        assert await seen.look(await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0.0)))
        assert seen._differs
        await seen.look([])
        assert not seen._differs
