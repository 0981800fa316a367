# SPDX-License-Identifier: Apache-2.0
"""A bad rating does something at once: another answer takes the place of the one that was bad."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import HINTS, retry_row
from goodbot.api.events import Event, Outcome, PressEvent, RatingEvent, Receipt
from goodbot.api.server import Server
from goodbot.api.turns import turn_id
from goodbot.config import Grants, ServingConfig
from goodbot.conversation.generate import Generator
from goodbot.daemon.app import App
from goodbot.daemon.loopback import Answer
from goodbot.store import Store, inbox, reconciling, retries, turns
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, Fake, check_store, config, open_bot, plugins, rate, retract, rows, until

SHORTER = HINTS["long"].told


async def bad(bot: Bot, **fields: Any) -> Answer:
    """An answer that its reader called bad."""
    answer = await bot.say("What is love?", **fields)
    await bot.react(answer, "👎", user=fields.get("user", "owner"))
    return answer


def press(bot: Bot, answer: Answer, action: str = "again:long", user: str = "owner") -> PressEvent:
    """A press, not submitted."""
    return PressEvent(**bot.chat._at(answer, user), action=action)


async def turn(bot: Bot, id_: str) -> Any:
    return await bot.store.read(lambda db: turns.get(db, id_))


async def again(bot: Bot, answer: Answer, hint: str = "long", user: str = "owner") -> Answer:
    """What stands in its place then, as soon as that is recorded."""
    made = await bot.chat.again(answer, hint, user=user)

    async def recorded() -> bool:
        return await carried(bot, made) == [made.turn]

    await until(recorded)
    return made


async def carried(bot: Bot, answer: Answer) -> list[str]:
    """The turn that a message carries."""
    found = await rows(bot.store, "SELECT turn FROM messages WHERE message = ?", (answer.message.id,))
    return [id_ for (id_,) in found]


async def test_another_answer_takes_the_place_of_a_bad_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        receipt = await bot.react(answer, "👎")
        assert receipt.offer == retry_row()
        new = await again(bot, answer)
        assert (new.message, new.text) == (answer.message, f"v0 says: {SHORTER}")
        assert new.turn != answer.turn
        assert new.buttons == ("good", "bad")
        assert len(bot.replies) == 1, "no second message"
        assert await carried(bot, answer) == [new.turn]
        made, first = await turn(bot, new.turn), await turn(bot, answer.turn)
        assert list(made.messages) == [  # what the model was really shown
            *first.messages,
            {"role": "assistant", "content": "v0 says: What is love?"},
            {"role": "user", "content": SHORTER},
        ]
        assert made.context == ((answer.turn, "loopback:owner"),)
        [joined] = await bot.store.read(lambda db: retries.line(db, new.turn))
        assert (joined.instead_of, joined.depth, joined.hint) == (answer.turn, 1, "long")
        assert joined.asked_by == "loopback:owner"
        await check_store(bot.store)


async def test_a_retry_of_a_retry_knows_both(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        first = await bad(bot)
        second = await bot.chat.again(first, "long")
        third = await bot.chat.again(second, "wrong")
        made = await turn(bot, third.turn)
        said = [str(message["content"]) for message in made.messages]
        assert said == ["What is love?", first.text, SHORTER, second.text, HINTS["wrong"].told]
        line = await bot.store.read(lambda db: retries.line(db, third.turn))
        assert [(r.instead_of, r.depth) for r in line] == [(second.turn, 2), (first.turn, 1)]


async def test_only_what_is_bad_and_still_there_is_offered_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        assert (await bot.react(answer, "👍")).offer == ()
        assert (await bot.chat.press(answer, "star:2")).offer == retry_row()
        assert (await bot.chat.press(answer, "star:4")).offer == ()
        receipt = await bot.chat.command("bad")
        assert (receipt.offer, receipt.turn) == (retry_row(), answer.turn)
        await bot.chat.again(answer, "long")
        late = rate("late", 1, -1.0, message_id=answer.message.id, turn=answer.turn)
        assert (await bot.chat.host.submit([late]))[0].offer == (), "it was replaced"


async def test_an_offer_comes_again_with_its_receipt(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        event = rate("r", 5, -1.0, message_id=answer.message.id)
        first = await bot.chat.host.submit([event])
    async with open_bot(tmp_path) as bot:
        assert await bot.chat.host.submit([event]) == first
        assert first[0].offer


async def test_the_conversation_goes_on_from_the_answer_that_stands_there(tmp_path: Path) -> None:
    async with open_bot(tmp_path, history=8) as bot:
        answer = await bad(bot)
        new = await again(bot, answer)
        last = await bot.say("And hate?")
        shown = await turn(bot, last.turn)
        assert [m["content"] for m in shown.messages] == ["What is love?", new.text, "And hate?"]
        history = (await bot.app.commands.execute(bot.chat.typed("history"))).data["turns"]
        assert [(t["prompt"], t["instead_of"]) for t in history[1:]] == [
            ("What is love?", answer.turn),
            ("What is love?", ""),
        ]
        assert "↻ What is love?" in await bot.command("history")


# -- which answer a rating speaks of


async def test_what_was_said_of_the_old_answer_stays_with_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        new = await again(bot, answer)
        await bot.react(new, "👍")
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {"loopback:owner": 1.0}
        await check_store(bot.store)


async def test_a_reaction_that_is_removed_later_is_taken_back_where_it_was_given(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        new = await again(bot, answer)
        await bot.react(new, "👎", user="rater")
        await bot.unreact(new, "👎")
        assert await bot.labels(answer) == {}
        assert await bot.labels(new) == {"loopback:rater": -1.0}
        await bot.react(new, "👎")  # given anew, it speaks of what is there
        assert await bot.labels(answer) == {}
        assert await bot.labels(new) == {"loopback:rater": -1.0, "loopback:owner": -1.0}
        await bot.unreact(new, "👎")
        assert await bot.labels(new) == {"loopback:rater": -1.0}


async def test_a_reaction_that_is_changed_speaks_of_the_new_answer(tmp_path: Path) -> None:
    """One reaction a person is all that Telegram has: 👎, try again, 👍."""
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        new = await again(bot, answer)
        now = bot.chat._count + 1
        id_ = answer.message.id
        await bot.chat.host.submit(
            [
                replace(retract("u:0", now, message_id=id_), source="reaction:👎"),
                replace(rate("u:1", now, 1.0, message_id=id_), source="reaction:👍"),
            ]
        )
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {"loopback:owner": 1.0}


async def test_what_was_said_before_the_press_and_comes_late_is_of_the_old_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        before = RatingEvent(**_reaction(bot, answer, "rater"))
        new = await again(bot, answer)
        await bot.chat.host.submit([before])
        assert await bot.labels(answer) == {"loopback:rater": -1.0}
        assert await bot.labels(new) == {}


async def test_a_reaction_that_stands_is_read_again_as_what_it_was(tmp_path: Path) -> None:
    """Reconciling finds it on the message, without an id or a time of its own."""
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        new = await again(bot, answer)
        [open_] = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0))
        assert open_.turn == new.turn
        assert open_.reactions == {(answer.message.id, "owner", "reaction:👎")}
        await bot.react(new, "👎")
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {}


async def test_a_reaction_that_overtakes_our_record_of_the_new_answer_is_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there before the platform has told us that it shows the new one."""
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        real = Generator.send

        async def send(*args: Any) -> Any:
            sent = await real(*args)
            await bot.chat.host.submit([RatingEvent(**_reaction(bot, answer, "rater"))])
            return sent

        monkeypatch.setattr(Generator, "send", send)
        new = await again(bot, answer)
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {"loopback:rater": -1.0}
        await check_store(bot.store)


def overtaken(monkeypatch: pytest.MonkeyPatch, bot: Bot, *events: RatingEvent) -> None:
    """These come in after the new answer is shown and before we have noted which messages it has."""
    real = Generator.send

    async def send(*args: Any) -> Any:
        sent = await real(*args)
        for event in events:
            await bot.chat.host.submit([event])
        return sent

    monkeypatch.setattr(Generator, "send", send)


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_press_that_overtakes_our_record_of_the_new_answer_is_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    """Its button is there before we have noted which answer the message carries; not elsewhere."""
    async with open_bot(tmp_path) as bot:
        answer, other = await bad(bot), await bot.say("Another question")
        if depth == 2:
            answer = await again(bot, answer)
        before = await bot.labels(answer)
        real, told = Generator.send, []

        async def send(*args: Any) -> Any:
            sent = await real(*args)
            at, message = bot.chat._count + 100, answer.message.id
            press = rate("press", at, 1.0, message_id=message, source="button")
            press = replace(press, turn=args[-1].turn)
            forged = replace(press, event_id="forged", message_id=other.message.id)
            told.extend(await bot.chat.host.submit([press, forged]))
            return sent

        monkeypatch.setattr(Generator, "send", send)
        new = await again(bot, answer, "short")
        assert [(one.outcome, one.turn) for one in told] == [
            (Outcome.ACCEPTED, new.turn),
            (Outcome.UNKNOWN_TARGET, ""),
        ]
        assert await bot.labels(answer) == before
        assert await bot.labels(new) == {"loopback:owner": 1.0}
        await check_store(bot.store)


async def test_another_answer_is_asked_for_before_we_have_recorded_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not for one that stands elsewhere."""
    async with open_bot(tmp_path) as bot:
        answer, other = await bad(bot), await bot.say("Another question")
        real, told = Generator.send, []

        async def send(*args: Any) -> Any:
            monkeypatch.setattr(Generator, "send", real)
            sent = await real(*args)
            again = replace(press(bot, answer, "again:short"), turn=args[-1].turn)
            forged = replace(again, event_id="forged", message_id=other.message.id)
            told.extend(await bot.chat.host.submit([forged, again]))
            return sent

        monkeypatch.setattr(Generator, "send", send)
        await bot.chat.again(answer, "long")

        async def decided() -> bool:
            return bool(told)

        await until(decided)
        assert [one.outcome for one in told] == [Outcome.UNKNOWN_TARGET, Outcome.ACCEPTED]

        async def made() -> bool:
            depth = await rows(bot.store, "SELECT depth FROM retries JOIN messages USING (turn)")
            return depth == [(2,)]

        await until(made)
        await check_store(bot.store)


async def test_a_reaction_that_is_taken_off_while_the_new_answer_is_noted_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        at, key = bot.chat._count + 100, answer.message.id  # after the press
        on = replace(rate("on", at, 1.0, message_id=key), source="reaction:👍")
        off = replace(retract("off", at + 1, message_id=key), source="reaction:👍")
        old = replace(retract("old", at + 2, message_id=key), source="reaction:👎")
        overtaken(monkeypatch, bot, on, off, old)
        new = await again(bot, answer)
        assert await bot.labels(new) == {}
        assert await bot.labels(answer) == {}, "what was given to it was taken back from it"
        [open_] = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0))
        assert open_.reactions == frozenset()
        of = await rows(bot.store, "SELECT event_id, turn FROM events WHERE event_id LIKE 'o%'")
        assert dict(of) == {"on": new.turn, "off": new.turn, "old": answer.turn}
        await check_store(bot.store)


async def test_a_reaction_taken_back_by_its_event_alone_moves_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        at = bot.chat._count + 100
        on = replace(rate("on", at, 1.0, message_id=answer.message.id), source="reaction:👍")
        off = replace(retract("off", at + 1), source="", message_id="", retracts="on")
        overtaken(monkeypatch, bot, on, off)
        new = await again(bot, answer)
        assert await bot.labels(new) == {}
        assert await bot.labels(answer) == {"loopback:owner": -1.0}


async def test_a_reaction_that_is_exchanged_while_the_new_answer_is_noted_is_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        at, key = bot.chat._count + 100, answer.message.id
        off = replace(retract("off", at, message_id=key), source="reaction:👎")
        on = replace(rate("on", at, 1.0, message_id=key), source="reaction:👍")
        overtaken(monkeypatch, bot, off, on)
        new = await again(bot, answer)
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {"loopback:owner": 1.0}


async def test_not_when_it_arrives_but_the_platforms_order_says_what_overtook_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new words are seen while they stream; and what was sent before may arrive late."""
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        late = RatingEvent(**_reaction(bot, answer, "rater"))  # before the press
        overtaken(monkeypatch, bot, late)
        real = Generator.write

        async def write(*args: Any) -> Any:
            key, at = answer.message.id, bot.chat._count + 100
            early = rate("early", at, 1.0, message_id=key)
            await bot.chat.host.submit([replace(early, source="reaction:👍")])
            return await real(*args)

        monkeypatch.setattr(Generator, "write", write)
        new = await again(bot, answer)
        assert await bot.labels(answer) == {"loopback:owner": -1.0, "loopback:rater": -1.0}
        assert await bot.labels(new) == {"loopback:owner": 1.0}


async def test_a_button_names_its_answer_and_one_that_was_never_there_is_refused(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer, other = await bad(bot), await bot.say("Another question")
        new = await again(bot, answer)
        await bot.chat.press(answer, "good")  # under a copy that was not redrawn yet
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        assert await bot.labels(new) == {}
        forged = await bot.chat.press(replace(new, turn=other.turn), "good")
        assert forged.outcome is Outcome.UNKNOWN_TARGET
        assert await bot.labels(other) == {}
        assert await rows(bot.store, "SELECT 1 FROM events WHERE turn IS NULL") == []


# -- who may, and how often


@pytest.mark.parametrize("user", ["stranger", "talker"])
async def test_who_may_not_rate_gets_no_other_answer(tmp_path: Path, user: str) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        receipt = await bot.chat.press(answer, "again:long", user=user)
        assert receipt.outcome is Outcome.DENIED
        told = "Only people that my owner has chosen can rate my answers." if user == "talker" else ""
        assert receipt.text in ("", told)
        assert bot.chat.edits == []


async def test_where_the_bot_is_off_nobody_gets_another_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#lab")
        answer = await bot.say("What is love?", channel="#lab")
        await bot.command("disable", channel="#lab")
        receipt = await bot.chat.press(answer, "again:long", user="rater")
        assert (receipt.outcome, receipt.text) == (Outcome.DENIED, "")
        assert (await bot.react(answer, "👎", user="rater")).offer == ()
        await bot.command("enable", channel="#lab")
        assert (await bot.react(answer, "👎")).offer
        new = await again(bot, answer, user="rater")
        assert new.turn != answer.turn
        assert (await turn(bot, new.turn)).talker.id == "owner", "whose words it answers"


async def test_a_press_is_looked_up_and_never_believed(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        theirs = await bot.say("Mine!", user="rater")
        foreign = replace(press(bot, answer), turn=theirs.turn, message_id="")
        unknown = replace(press(bot, answer), turn="f" * 16, message_id="nowhere")
        for event in (foreign, unknown):
            [receipt] = await bot.chat.host.submit([event])
            assert receipt.outcome is Outcome.UNKNOWN_TARGET
        for action in ("again:nonsense", "again:", "again", "good", "", "drop:table", "run"):
            [receipt] = await bot.chat.host.submit([press(bot, answer, action)])
            assert receipt.outcome is Outcome.IGNORED, action
        assert bot.chat.edits == []


async def test_another_answer_is_not_to_be_had_without_end(tmp_path: Path) -> None:
    """Raters may ask as often as they like, but each of these costs an answer."""
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bad(bot)
        for _ in range(12):
            answer = await bot.chat.again(answer, "better", user="owner")
        receipt = await bot.chat.press(answer, "again:better")
        assert receipt.outcome is Outcome.IGNORED
        assert "try again in a minute" in receipt.text
        clock.advance(60)
        assert (await bot.chat.again(answer, "better")).turn != answer.turn


# -- once, and nothing lost


async def test_a_press_that_comes_again_is_done_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        event = press(bot, answer)
        await bot.chat.host.submit([event, event])
        await until(lambda: bot.chat.edits)
        [receipt] = await bot.chat.host.submit([event])
        assert receipt.duplicate
        await bot.say("another")
        assert len(bot.chat.edits) == 1
        assert len(await rows(bot.store, "SELECT 1 FROM retries")) == 1


async def test_of_two_who_press_at_once_one_gets_another_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        told: list[str] = []
        real = bot.chat.acknowledge

        async def acknowledge(event: Event, receipt: Receipt) -> None:
            told.append(receipt.text)
            await real(event, receipt)

        bot.chat.acknowledge = acknowledge  # type: ignore[method-assign]
        both = [press(bot, answer), press(bot, answer, "again:wrong", user="rater")]
        await bot.chat.host.submit(both)
        await until(lambda: len(told) == 3)
        assert sorted(told) == ["", "", "That answer was replaced already."]
        assert len(await rows(bot.store, "SELECT 1 FROM retries")) == 1
        stale = await bot.chat.press(answer, "again:long")
        assert (stale.outcome, stale.text) == (Outcome.UNKNOWN_TARGET, told[-1])


async def test_a_crash_before_the_answer_loses_no_press(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        event = replace(press(bot, answer), turn=answer.turn)
    store = await Store.open(tmp_path / "bot" / "goodbot.db")
    receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=answer.turn)
    await store.write(lambda db: inbox.insert(db, event, receipt, time.time(), open_=True))
    await store.close()
    async with open_bot(tmp_path) as bot:
        await until(lambda: bot.chat.edits)
        assert [edit.turn for edit in bot.chat.edits] == [turn_id(event)]


async def test_a_crash_between_storing_and_showing_shows_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        async def dies(*_: Any) -> bool:
            await asyncio.Event().wait()
            return False

        async with open_bot(tmp_path) as bot:
            answer = await bad(bot)
            patch.setattr(Generator, "deliver", dies)
            patch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
            await bot.chat.press(answer, "again:long")

            async def stored() -> bool:
                return bool(await rows(bot.store, "SELECT 1 FROM retries"))

            await until(stored)
            assert await carried(bot, answer) == [answer.turn]
            last = await bot.store.read(lambda db: turns.conversation(db, answer.message.channel, 8))
            assert [exchange.turn for exchange in last] == [answer.turn], "nobody has seen it"
    async with open_bot(tmp_path) as bot:
        await until(lambda: bot.chat.edits)
        [edit] = bot.chat.edits

        async def recorded() -> bool:
            return await carried(bot, answer) == [edit.turn]

        await until(recorded)
        assert len(await rows(bot.store, "SELECT 1 FROM retries")) == 1


@pytest.mark.parametrize("stored", [False, True], ids=["half of it", "all of it"])
async def test_a_press_that_is_found_long_after_a_crash_leaves_no_half_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bad(bot)
        if stored:
            with monkeypatch.context() as patch:

                async def dies(*_: Any) -> bool:
                    await asyncio.Event().wait()
                    return False

                patch.setattr(Generator, "deliver", dies)
                monkeypatch.setattr("goodbot.daemon.app._DRAIN_SECONDS", 0.0)
                await bot.chat.press(answer, "again:long")
                await until(lambda: rows(bot.store, "SELECT 1 FROM retries"))
        else:
            event = replace(press(bot, answer), turn=answer.turn)
            receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=answer.turn)
            now = clock.now()
            await bot.store.write(lambda db: inbox.insert(db, event, receipt, now, open_=True))
    clock.advance(3600)
    async with open_bot(tmp_path, clock=clock) as bot:
        await until(lambda: bot.chat.edits)
        [edit] = bot.chat.edits
        assert (edit.text == answer.text) == (not stored)
        assert edit.buttons == answer.buttons

        async def closed() -> bool:
            return not await rows(bot.store, "SELECT 1 FROM inbox WHERE payload <> ''")

        await until(closed)
        assert await carried(bot, answer) == [edit.turn]


async def test_when_no_other_answer_comes_the_old_one_is_put_back(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        waiting = asyncio.get_running_loop().create_future()
        bot.chat._answers[answer.message.id] = waiting
        server: Server = bot.app.server
        await server.stop()
        bot.fake.set(**{"no start": "There was not enough memory."})
        event = press(bot, answer)
        told = bot.chat._receipts[event.event_id] = asyncio.get_running_loop().create_future()
        await bot.chat.host.submit([event])
        back: Answer = await waiting
        assert (back.turn, back.text, back.buttons) == (answer.turn, answer.text, answer.buttons)
        receipt: Receipt = await told
        assert receipt.outcome is Outcome.FAILED
        assert "my model is not running" in receipt.text
        assert await carried(bot, answer) == [answer.turn]
        assert await bot.app.dispatcher.unfinished() == []


async def test_a_connector_that_breaks_leaves_the_old_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)

        async def broken(*_: Any, **__: Any) -> None:
            raise LookupError("oh")

        monkeypatch.setattr(Generator, "write", broken)
        back = await bot.chat.again(answer, "long")
        assert (back.turn, back.text) == (answer.turn, answer.text)


# -- what is learnt


async def test_a_retry_trains_like_any_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        new = await again(bot, answer)
        await bot.react(new, "👍")
        await bot.rated(6)
        verdict = await bot.train()
        assert verdict.state == "activated"
        found = dict(await rows(bot.store, "SELECT turn, reward FROM run_items"))
        assert (found[answer.turn], found[new.turn]) == (-1.0, 1.0), "the pair teaches by its two ratings"


async def test_a_retry_that_nobody_rated_teaches_nothing(tmp_path: Path) -> None:
    """That somebody goes on after it is no preference: a judge may say what it is, where there is one."""
    async with open_bot(tmp_path) as bot:
        new = await again(bot, await bad(bot))
        await bot.say("And now?")
        await bot.rated(7)
        assert (await bot.train()).state == "activated"
        assert new.turn not in {id_ for (id_,) in await rows(bot.store, "SELECT turn FROM run_items")}


# -- forgetting


async def test_forgetting_takes_a_retry_along_with_the_question(tmp_path: Path) -> None:
    grants = Grants(owners=("owner",), raters=("rater", "ada"))
    async with open_bot(tmp_path, grants=grants, history=8) as bot:
        await bot.command("enable", channel="#lab")
        answer = await bot.say("My name is Ada Lovelace of London", user="ada", channel="#lab")
        new = await again(bot, answer, user="rater")
        await bot.chat.again(new, "wrong", user="rater")
        await bot.command("forget", "loopback:ada")
        await bot.command("forget", "loopback:ada yes")
        assert await rows(bot.store, "SELECT id FROM turns") == []
        assert await rows(bot.store, "SELECT * FROM retries") == []


async def test_a_retry_goes_with_an_answer_that_quotes_somebody_who_is_forgotten(tmp_path: Path) -> None:
    """Without the earlier answer its prompt says nothing."""
    grants = Grants(owners=("owner",), raters=("rater", "ada"))
    async with open_bot(tmp_path, grants=grants, history=8) as bot:
        await bot.command("enable", channel="#lab")
        words = "My name is Ada Lovelace of London"
        await bot.say(words, user="ada", channel="#lab")
        quoting = await bot.say(f"She said: {words}", user="rater", channel="#lab")
        new = await again(bot, quoting, user="rater")
        assert "Ada" not in new.text
        kept = await bot.say("Something else", user="rater")
        await bot.command("forget", "loopback:ada")
        await bot.command("forget", "loopback:ada yes")
        assert await rows(bot.store, "SELECT id FROM turns") == [(kept.turn,)]


async def test_forgetting_who_pressed_leaves_the_answer_and_not_the_name(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#lab")
        answer = await bot.say("What is love?", channel="#lab")
        new = await again(bot, answer, user="rater")
        await bot.command("forget", "loopback:rater")
        await bot.command("forget", "loopback:rater yes")
        assert (await turn(bot, new.turn)) is not None
        assert await rows(bot.store, "SELECT asked_by FROM retries") == [("forgotten",)]


async def test_stars_stand_under_answers_where_they_are_wanted(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        thumbs = await bot.say("What is love?")
        assert thumbs.buttons == ("good", "bad")
        settings = ServingConfig(history=0, stars=True)
        fake = Fake(tmp_path / "fake")
        starred = replace(config(tmp_path / "stars", fake), serving=settings)
        async with App.open(starred, plugins(), grants={"loopback": Grants(owners=("owner",))}) as app:
            other = Bot(app, fake)
            answer = await other.say("What is love?")
            assert answer.buttons == ("star:1", "star:2", "star:3", "star:4", "star:5")
            receipt = await other.chat.press(answer, "star:4")
            assert receipt.text.startswith("4 of 5 stars. 1 of 8 ratings (7 to go).")
            assert await other.labels(answer) == {"loopback:owner": 0.5}


def _reaction(bot: Bot, answer: Answer, user: str) -> dict[str, Any]:
    common = bot.chat._at(answer, user)
    return {**common, "turn": "", "kind": "rate", "source": "reaction:👎", "value": -1.0}
