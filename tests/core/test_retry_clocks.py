# SPDX-License-Identifier: Apache-2.0
"""Which answer of a message a rating speaks of, and what takes a chip back: no two clocks are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import OrderKey, Outcome, RatingEvent, RatingKind
from goodbot.conversation.generate import Generator
from goodbot.daemon.loopback import Answer
from goodbot.store import inbox, people, reconciling, words

from tests.core.builders import Bot, check_store, open_bot, rate, retract, until
from tests.core.test_retry import again, bad, carried, overtaken, press

AHEAD = 1_800_000_000_000
"""What our clock shows, far ahead of the platform's, which counts from 1."""


def ours(made: RatingEvent, at: int) -> RatingEvent:
    return replace(made, order=OrderKey(at, ours=True))


def reaction(answer: Answer, id_: str, at: int, value: float | None = -1.0) -> RatingEvent:
    fields: dict[str, Any] = {"message_id": answer.message.id, "source": "reaction:👎"}
    return rate(id_, at, value, **fields) if value else retract(id_, at, **fields)


def said(answer: Answer, at: int, value: float | None, source: str = "") -> RatingEvent:
    """Of the answer itself, whatever stands in its place; without a value all is taken back."""
    fields: dict[str, Any] = {"message_id": "", "turn": answer.turn, "channel": answer.message.channel}
    id_ = f"{source}{at}{value}"
    return replace(rate(id_, at, value, source=source) if value else retract(id_, at), **fields)


async def on_the_page(bot: Bot, answer: Answer, value: float | None, at: int = AHEAD) -> None:
    """The same person says it by our clock."""
    made = said(answer, 0, value, "page")
    [receipt] = await bot.chat.host.submit([ours(made, at)])
    assert receipt.outcome is Outcome.ACCEPTED


async def pressed(bot: Bot, answer: Answer, order: OrderKey) -> Answer:
    """Another answer that is asked for at that time."""
    await bot.chat.host.submit([replace(press(bot, answer), order=order)])
    await until(lambda: bot.chat.edits)
    [edit] = bot.chat.edits

    async def recorded() -> bool:
        return await carried(bot, answer) == [edit.turn]

    await until(recorded)
    return edit


async def test_b1_a_reaction_behind_our_fast_clock_stays_and_is_taken_back_where_it_was_given(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        await on_the_page(bot, answer, 1.0)
        await bot.react(answer, "👎")
        new = await again(bot, answer)
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {}
        await bot.unreact(new, "👎")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}
        assert await bot.labels(new) == {}
        await check_store(bot.store)


@pytest.mark.parametrize("asked", [OrderKey(AHEAD, ours=True), OrderKey(0, ours=True)])
async def test_b1_a_press_by_our_clock_is_before_what_comes_after_it(tmp_path: Path, asked: OrderKey) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        new = await pressed(bot, answer, asked)
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        await bot.react(new, "👍", user="rater")
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {"loopback:rater": 1.0}


async def test_b1_what_is_seen_on_the_new_answer_by_our_slow_clock_is_of_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        new = await again(bot, answer)
        seen = replace(reaction(new, "seen", 0, 1.0), source="reaction:👍")
        await bot.chat.host.submit([ours(seen, 0)])
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {"loopback:owner": 1.0}
        await bot.chat.host.submit([ours(reaction(new, "off", 0, None), 0)])
        assert await bot.labels(answer) == {}, "the reaction that stood there since then"


@pytest.mark.parametrize("at", [0, AHEAD])
async def test_b1_what_overtook_the_record_by_our_clock_is_told_apart_as_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        await bot.chat.host.submit([ours(reaction(answer, "before", 0), at)])
        overtaken(
            monkeypatch, bot, ours(replace(reaction(answer, "after", 0, 1.0), source="reaction:👍"), at)
        )
        new = await again(bot, answer)
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert await bot.labels(new) == {"loopback:owner": 1.0}


async def test_b1_where_the_platform_s_clock_stands_what_comes_after_a_press_is_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        real = Generator.send

        async def send(*args: Any) -> Any:
            sent = await real(*args)
            await bot.chat.host.submit([replace(reaction(answer, "on", 50, 1.0), source="reaction:👍")])
            return sent

        monkeypatch.setattr(Generator, "send", send)
        new = await pressed(bot, answer, OrderKey(50))
        assert await bot.labels(new) == {"loopback:owner": 1.0}
        made = replace(reaction(new, "later", 50), user=replace(press(bot, new).user, id="rater"))
        await bot.chat.host.submit([made])
        assert await bot.labels(new) == {"loopback:owner": 1.0, "loopback:rater": -1.0}


async def chips(bot: Bot, answer: Answer) -> list[str]:
    said = await bot.store.read(lambda db: words.said(db, [answer.turn]))
    return [word.hint for word in said.get(answer.turn, ())]


@pytest.mark.parametrize("at", [0, AHEAD])
async def test_b1_a_chip_is_taken_back_by_what_comes_after_it_whatever_our_clock_says(
    tmp_path: Path, at: int
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        await on_the_page(bot, answer, None, at)
        await bot.react(answer, "👎")
        await again(bot, answer)
        assert await chips(bot, answer) == ["long"]
        [chip] = (await bot.store.read(lambda db: words.said(db, [answer.turn])))[answer.turn]
        assert not await bot.store.read(lambda db: words.lost(db, answer.turn, [chip]))
        await bot.chat.host.submit([ours(replace(said(answer, 0, None), event_id="undo"), at)])
        assert await chips(bot, answer) == []
        assert await bot.store.read(lambda db: words.lost(db, answer.turn, [chip]))


async def test_on_one_clock_an_undo_that_comes_late_takes_no_later_chip_back(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        bot.chat._count += 1
        late = said(answer, bot.chat._count, None)
        await again(bot, answer)
        [receipt] = await bot.chat.host.submit([late])
        assert receipt.outcome is Outcome.ACCEPTED
        assert await chips(bot, answer) == ["long"]


async def test_b1_a_chip_is_in_a_quarantine_by_our_clock_and_not_by_the_platform_s(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer, other = await bad(bot), await bad(bot)
        await again(bot, answer)  # the platform's clock says 1970
        await bot.command("rollback", "since 2001-01-01")
        await bot.command("rollback", "since 2001-01-01 yes")
        assert await chips(bot, answer) == []
        await bot.chat.again(other, "short")
        assert await chips(bot, other) == ["short"]


@pytest.mark.parametrize("at", [0, AHEAD])
async def test_b1_of_several_better_answers_the_last_is_the_one_that_came_last(
    tmp_path: Path, at: int
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bad(bot)
        await bot.chat.host.submit([ours(better(answer, "first", "rater"), at)])
        await bot.chat.host.submit([better(answer, "last", "owner")])
        said = (await bot.store.read(lambda db: words.said(db, [answer.turn])))[answer.turn]
        assert [word.rater for word in said] == ["loopback:rater", "loopback:owner"]


def better(answer: Answer, text: str, who: str) -> RatingEvent:
    place = {"message_id": "", "turn": answer.turn, "channel": answer.message.channel}
    made = rate(text, 10, None, kind=RatingKind.BETTER, source="form", text=text)
    return replace(made, user=replace(made.user, id=who), **place)


async def test_b1_an_undo_by_another_account_of_theirs_takes_words_back(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#lab")
        answer = await bad(bot, channel="#lab")
        await bot.store.write(lambda db: people.link(db, "loopback:owner", "loopback:rater", 1.0))
        await bot.chat.comment(answer, "It is 4 km.", better=True)
        await bot.command("undo", answer.turn, channel="#lab", user="rater")
        assert await bot.labels(answer) == {}
        assert await bot.store.read(lambda db: words.said(db, [answer.turn])) == {}


async def test_b1_a_reaction_that_is_given_again_to_the_new_answer_stands(tmp_path: Path) -> None:
    """Reconciling would find it anew at every start, and count it after what was said since."""
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What is love?")
        await on_the_page(bot, answer, 1.0)
        await bot.react(answer, "👎")
        new = await again(bot, answer)
        await bot.unreact(new, "👎")
        await bot.react(new, "👎")
        [open_] = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0))
        assert open_.reactions == {(answer.message.id, "owner", "reaction:👎")}
        await bot.unreact(new, "👎")
        [open_] = await bot.store.read(lambda db: reconciling.open_turns(db, "loopback", 0))
        assert open_.reactions == frozenset()


async def test_b1_what_waits_is_done_as_it_came_though_the_clock_was_set_back(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        made = [replace(bot.chat.typed("good"), event_id=id_) for id_ in ("b", "a", "c")]
        for event, now in zip(made, (AHEAD / 1000, 5.0, 5.0), strict=True):
            accepted = event.receipt(Outcome.ACCEPTED)
            await bot.store.write(
                lambda db, e=event, r=accepted, at=now: inbox.insert(db, e, r, at, open_=True)
            )
        waiting = await bot.store.read(inbox.unfinished)
        assert [event.event_id for event, _ in waiting] == ["b", "a", "c"]
