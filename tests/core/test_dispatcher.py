# SPDX-License-Identifier: Apache-2.0
"""Rule 2: at least once in, exactly once in effect, for ratings, messages and commands."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, MessageEvent, OrderKey, Outcome, Receipt
from goodbot.base.errors import StoreError
from goodbot.conversation import under_way
from goodbot.daemon.loopback import Loopback
from goodbot.store import Store, inbox
from goodbot.testing import VirtualClock

from tests.core.builders import CHANNEL, OWNER, Bot, open_bot, rate, retract, rows, until


def message(id_: str, text: str = "Hello?", **fields: Any) -> MessageEvent:
    given: dict[str, Any] = {"user": OWNER, "channel": CHANNEL, "addressed": True}
    return MessageEvent(event_id=id_, order=OrderKey(1), message_id=id_, text=text, **{**given, **fields})


async def count(bot: Bot, table: str) -> int:
    return (await rows(bot.store, f"SELECT count(*) FROM {table}"))[0][0]


async def test_a_rating_that_comes_again_gets_the_same_receipt_also_after_a_restart(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        event = rate("r1", 5, 1.0, message_id=answer.message.id)
        [first] = await bot.chat.host.submit([event])
        again = await bot.chat.host.submit([event, event])
        assert again == (first, first)
        assert (first.duplicate, again[0].duplicate) == (False, True)
        assert await count(bot, "events") == 1
    async with open_bot(tmp_path) as bot:
        assert await bot.chat.host.submit([event]) == (first,)
        assert await count(bot, "events") == 1


async def test_a_rating_is_few_statements(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.settle()

        async def closed() -> bool:  # the question's own last write is no part of a rating
            return not await rows(bot.store, "SELECT 1 FROM inbox WHERE payload <> ''")

        await until(closed)
        seen: list[str] = []
        await bot.store._writing.set_trace_callback(seen.append)
        await bot.chat.host.submit([rate("r1", 5, 1.0, message_id=answer.message.id)])
        [said] = [at for at, text in enumerate(seen) if text.startswith("INSERT INTO events")][:1]
        begun = max(at for at, text in enumerate(seen[:said]) if text.startswith("BEGIN"))
        rating = list(dict.fromkeys(seen[begun : seen.index("COMMIT", said)]))  # triggers repeat
        # begin, find, refused before?, append, fold, label, labels, if they teach, level, milestone, receipt
        assert len(rating) <= 11, rating


async def test_a_message_that_comes_again_is_answered_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        [first, second] = await bot.chat.host.submit([message("m"), message("m")])
        assert first == second
        await until(lambda: bot.replies)
        await bot.chat.host.submit([message("m")])
        await bot.say("another")
        assert [reply.text for reply in bot.replies] == ["v0 says: Hello?", "v0 says: another"]
    async with open_bot(tmp_path) as bot:
        await bot.chat.host.submit([message("m")])
        await bot.say("a third")
        assert len(bot.replies) == 1
        assert await count(bot, "turns") == 3


async def test_a_command_that_comes_again_is_done_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.say("Hello?")
        event = bot.chat.typed("good")
        await bot.chat.host.submit([event])
        await until_closed(bot)
        [receipt] = await bot.chat.host.submit([event])
        assert receipt.duplicate
        assert receipt.text.startswith("Good. 1 of 8")
        assert await count(bot, "events") == 1


async def test_events_and_cursor_are_one_commit(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        host = bot.chat.host
        answer = await bot.say("Hello?")
        bad = rate("bad", 6, 7.0, message_id=answer.message.id)  # out of range: a broken connector
        with pytest.raises(StoreError):
            await host.submit([rate("r", 5, 1.0, message_id=answer.message.id), bad], cursor="9")
        assert await count(bot, "events") == 0
        assert await host.cursor() != "9"
        await host.submit([rate("r", 5, 1.0, message_id=answer.message.id)], cursor="9")
        assert await host.cursor() == "9"


async def test_what_follows_a_commit_follows_though_the_caller_is_gone(tmp_path: Path) -> None:
    """An HTTP client hangs up: the event is stored, and a replay is a duplicate."""
    async with open_bot(tmp_path) as bot:
        task = asyncio.create_task(bot.chat.host.submit([message("m")]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: bot.replies)


@pytest.mark.parametrize("what", ["questions", "commands"])
async def test_who_asks_a_crowd_of_things_keeps_no_owner_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Whoever teaches asks as often as they like; what is under way at once has a limit."""
    monkeypatch.setattr(under_way, "MOST", 3)
    go = asyncio.Event()
    async with open_bot(tmp_path) as bot:
        dispatcher, chat = bot.app.dispatcher, bot.chat

        async def waits(*_: object) -> None:
            await go.wait()

        def asked(number: int, who: str) -> Any:
            if what == "commands":
                return chat.typed("status", user=who)
            return message(f"{who} {number}", user=replace(OWNER, id=who), channel=replace(CHANNEL, id=who))

        dispatcher._then = replace(dispatcher._then, answer=waits)
        bot.app._tasks["commands"].cancel()
        commands = asyncio.create_task(dispatcher.loop(waits))

        async def outcomes(count: int, who: str) -> list[Outcome]:
            return [(await chat.host.submit([asked(n, who)]))[0].outcome for n in range(count)]

        assert await outcomes(5, "rater") == [Outcome.ACCEPTED] * 3 + [Outcome.IGNORED] * 2
        assert await outcomes(5, "owner") == [Outcome.ACCEPTED] * 5
        go.set()
        await until(lambda: not dispatcher._under_way._count)
        [last] = await chat.host.submit([asked(9, "rater")])
        assert last.outcome is Outcome.ACCEPTED
        commands.cancel()


async def test_whose_questions_are_too_many_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They met silence, as if the bot were broken."""
    monkeypatch.setattr(under_way, "MOST", 4)
    go = asyncio.Semaphore(0)
    async with open_bot(tmp_path) as bot:
        dispatcher, chat = bot.app.dispatcher, bot.chat
        told: list[str] = []
        acknowledge = dispatcher._then.acknowledge

        async def waits(_: object) -> None:
            await go.acquire()

        async def says(event: Any, receipt: Receipt) -> None:
            told.append(receipt.text)
            await acknowledge(event, receipt)

        dispatcher._then = replace(dispatcher._then, answer=waits, acknowledge=says)

        def asked(number: int) -> MessageEvent:
            user = replace(OWNER, id="rater", language="de" if number < 20 else "en")
            return message(f"q{number}", user=user, channel=replace(CHANNEL, id="rater"))

        async def at_once(*numbers: int) -> list[str]:
            return [one.text for one in await chat.host.submit([asked(n) for n in numbers])]

        assert await at_once(0, 1, 2, 3) == [""] * 4
        bad = rate("bad", 6, 7.0, message_id="none", user=asked(0).user)  # out of range: it is not stored
        with pytest.raises(StoreError):
            await chat.host.submit([asked(4), bad])
        first, *more = await at_once(4, 5, 6)
        assert first.startswith("Ich bin noch mit 4 Dingen beschäftigt"), "not stored, it was not told"
        assert [*more, *await at_once(4, 7)] == [""] * 4, "once, also where one comes again"
        await until(lambda: told == [first])
        assert await count(bot, "inbox") == 4, "of what was refused nothing is kept"
        go.release()
        await until(lambda: dispatcher._under_way._count["loopback:rater"] == 3)
        assert [*await at_once(8), *await at_once(9)] == ["", ""], "not told anew with each answer"
        for _ in range(3):
            go.release()
        await until(lambda: dispatcher._under_way._count["loopback:rater"] == 1)
        assert await at_once(20, 21, 22) == [""] * 3
        assert await at_once(23) == [
            "I am still at work on 4 things that you asked for: ask again when some are done."
        ]
        for _ in range(4):
            go.release()


async def test_a_question_that_a_crash_interrupted_is_answered_after_the_restart(tmp_path: Path) -> None:
    await leave_open(tmp_path, message("q1", "first"), message("q2", "second"), age=5)
    async with open_bot(tmp_path) as bot:
        await until(lambda: len(bot.replies) == 2)
        assert {reply.text for reply in bot.replies} == {"v0 says: first", "v0 says: second"}
        await until_closed(bot)
    async with open_bot(tmp_path) as bot:
        await bot.say("another")
        assert len(bot.replies) == 1


async def until_closed(bot: Bot) -> None:
    async def closed() -> bool:
        return not await rows(bot.store, "SELECT 1 FROM inbox WHERE payload <> ''")

    await until(closed)


async def leave_open(home: Path, *events: Any, age: float) -> None:
    """What a crash leaves in the inbox: accepted and acknowledged, not done."""
    home.joinpath("bot").mkdir(exist_ok=True)
    store = await Store.open(home / "bot" / "goodbot.db")
    for event in events:
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED)
        await store.write(
            lambda db, e=event, r=receipt: inbox.insert(db, e, r, time.time() - age, open_=True)
        )
    await store.close()


async def test_after_a_long_time_ratings_still_count_and_questions_do_not(tmp_path: Path) -> None:
    """What was acknowledged as a rating is never lost, however long the machine was off."""
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        good = bot.chat.typed("good")
    await leave_open(tmp_path, message("m"), good, age=86400)
    async with open_bot(tmp_path) as bot:
        await until_closed(bot)
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        assert bot.replies == ()


async def test_what_comes_in_while_it_starts_is_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the inbox when the unfinished are looked for."""
    real = Loopback.start

    async def eager(self: Loopback) -> None:
        await real(self)
        await self.host.submit([message("early", "early")])

    monkeypatch.setattr(Loopback, "start", eager)
    async with open_bot(tmp_path) as bot:
        await bot.say("another")
        await until_closed(bot)
        assert sorted(reply.text for reply in bot.replies) == ["v0 says: another", "v0 says: early"]


async def test_a_rollback_that_a_crash_interrupted_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going back one version twice is not going back one version."""
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            await bot.train()
        assert "v1" in await bot.command("rollback")  # asks back
        writes = 0
        real = inbox.close

        async def dies(*args: Any) -> None:
            nonlocal writes
            writes += 1
            if writes == 2:  # the one with the true receipt; the rollback is done
                raise StoreError("the process died")
            await real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(inbox, "close", dies)
            event = bot.chat.typed("rollback", "yes")
            await bot.chat.host.submit([event], cursor=str(bot.chat._count))
            await until(lambda: writes == 2)
        assert await bot.app.registry.active() == 1
    async with open_bot(tmp_path) as bot:
        await bot.command("status")
        assert await bot.app.registry.active() == 1
        [receipt] = await bot.chat.host.submit([event])
        assert "stopped before this was done" in receipt.text


async def test_a_command_that_breaks_is_closed_and_the_next_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:

        async def broken() -> None:
            raise LookupError("oh")

        monkeypatch.setattr(bot.app.scheduler, "readiness", broken)
        assert "Something went wrong" in await bot.command("status")
        assert "/rl good" in await bot.command("help")
        assert await bot.app.dispatcher.unfinished() == []


@pytest.mark.parametrize("args", ["9" * 5000, "٣", "-1", "v", "1e9", "base base", "\ud83d"])
async def test_odd_words_of_a_command_are_told_and_change_nothing(tmp_path: Path, args: str) -> None:
    async with open_bot(tmp_path) as bot:
        assert await bot.command("rollback", args)
        assert await bot.command("history", args)
        assert await bot.app.registry.active() == 0


async def test_half_a_surrogate_pair_is_no_poison(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("half \ud83d and whole \ud83d\udc4d and \0 nothing")
        assert "half \ufffd and whole 👍" in answer.text
        event = rate("r", 5, 1.0, message_id=answer.message.id, text="\udc4d")
        [receipt] = await bot.chat.host.submit([event])
        assert receipt.outcome is Outcome.ACCEPTED


async def test_a_reaction_that_overtakes_our_record_of_the_message_counts(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        [unknown] = await bot.chat.host.submit([rate("r", 5, 1.0, message_id="later")])
        assert unknown.outcome is Outcome.UNKNOWN_TARGET
        await bot.chat.host.submit([retract("x", 6, message_id="", retracts="r2")])
        await bot.chat.host.submit([rate("r2", 7, -1.0, message_id="later")])
        real = bot.chat._post

        def post(channel: Any, reply: Any, reply_to: str) -> Any:
            made = real(channel, reply, reply_to)
            return type(made)(channel=made.channel, id="later")

        bot.chat._post = post  # type: ignore[method-assign]
        answer = await bot.say("Hello?")
        await until_closed(bot)
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        assert await bot.chat.host.submit([rate("r", 5, 1.0, message_id="later")]) == (unknown,)


async def test_nothing_is_taken_in_while_it_stops(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.app.dispatcher.drain(0)
        with pytest.raises(StoreError, match="stopping"):
            await bot.chat.host.submit([message("m")])
        assert await count(bot, "inbox") == 0


async def test_an_answer_under_way_at_the_stop_is_still_sent(tmp_path: Path) -> None:
    """While the connector can still send: it is stopped after the answers are done."""
    async with open_bot(tmp_path) as bot:
        stopped_with: list[int] = []
        real = bot.chat.stop

        async def stop() -> None:
            stopped_with.append(len(bot.replies))
            await real()

        bot.chat.stop = stop  # type: ignore[method-assign]
        await bot.chat.host.submit([message(f"m{i}", channel=CHANNEL) for i in range(5)])
    assert stopped_with == [5]


async def test_what_is_done_is_forgotten_in_time_and_not_before(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.say("Hello?")
        await until_closed(bot)
        clock.advance(6 * 86400)
        await bot.app.maintenance.once()
        assert await count(bot, "inbox") == 1
        clock.advance(2 * 86400)
        await bot.app.maintenance.once()
        assert await count(bot, "inbox") == 0


async def test_a_clock_that_jumps_ahead_deletes_nothing_until_that_has_lasted(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.say("Hello?")
        await until_closed(bot)
        clock.jump(8 * 86400)
        for passes, kept in ((0, 1), (3590, 1), (20, 0)):
            clock.advance(passes)
            await bot.app.maintenance.once()
            assert await count(bot, "inbox") == kept


async def test_b1_a_clock_that_is_ahead_at_the_start_deletes_nothing_until_that_has_lasted(
    tmp_path: Path,
) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.say("Hello?")
        await until_closed(bot)
    later = VirtualClock(clock.now() + 400 * 86400, waits=True)
    async with open_bot(tmp_path, clock=later) as bot:
        for passes, kept in ((30, 1), (3500, 1), (100, 0)):
            later.advance(passes)
            assert bot.chat.host.steady is (kept == 0)
            await bot.app.maintenance.once()
            assert await count(bot, "turns") == kept


async def test_encrypted_rooms_are_refused_whole(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        room = replace(CHANNEL, kind=ChannelKind.ENCRYPTED)
        events = [
            message("m", channel=room),
            rate("r", 1, 1.0, message_id=answer.message.id, channel=room),
            replace(bot.chat.typed("pause"), channel=room),
        ]
        receipts = await bot.chat.host.submit(events)
        assert {receipt.outcome for receipt in receipts} == {Outcome.DENIED}
        assert await bot.labels(answer) == {}
        assert not (await bot.status())["paused"]
