# SPDX-License-Identifier: Apache-2.0
"""Updates on their way into the store: order, albums, cursors, and questions that are answered."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import MessageEvent, OrderKey, RatingEvent, RatingKind
from goodbot.api.labels import LedgerEvent, fold
from goodbot.base.errors import StoreError
from goodbot.testing import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.telegram import SPEC, emoji
from goodbot_connectors.telegram.config import TelegramSettings
from goodbot_connectors.telegram.intake import Cursor, Intake, migration, next_offset
from goodbot_connectors.telegram.normalize import BotIdentity, Normalizer
from goodbot_connectors.telegram.prompts import Prompts

ADA = {"id": 1001, "is_bot": False, "first_name": "Ada"}
CHAT = {"id": 1001, "type": "private", "first_name": "Ada"}
PHOTO = [{"file_id": "x", "file_unique_id": "y", "width": 1, "height": 1}]


@pytest.fixture
def host(tmp_path: Path) -> RecordingHost:
    return RecordingHost(SPEC, state_dir=tmp_path)


ME = "4200001"


async def intake_of(host: RecordingHost) -> Intake:
    """As after a start: with what was kept."""
    me = BotIdentity(id=ME, username="the_good_bot")
    prompts = Prompts(host)
    await prompts.load()
    normalizer = Normalizer(me=me, values=emoji.values(TelegramSettings()))
    cursor = Cursor.read(await host.cursor() or "", ME)
    return Intake(host, normalizer, prompts, lambda _: None, cursor)


def message(update_id: int, date: int = 100, **fields: Any) -> dict[str, Any]:
    body = {"message_id": update_id, "date": date, "from": ADA, "chat": CHAT, **fields}
    return {"update_id": update_id, "message": body}


def press(update_id: int, data: str = "good:5f1e") -> dict[str, Any]:
    of = {"message_id": 5, "date": 7, "chat": CHAT}
    query = {"id": f"q{update_id}", "from": ADA, "data": data, "message": of}
    return {"update_id": update_id, "callback_query": query}


async def test_a_press_comes_after_the_event_before_it(host: RecordingHost) -> None:
    """A press carries no time; its message's is long before what was said since."""
    first = await intake_of(host)
    taken = await first.take([message(10, 100, text="a"), press(11), message(12, 100, text="b")], 13)
    orders = [event.order for event in taken.events]
    assert orders == sorted(orders)
    assert orders[1] == OrderKey(100_000, f"{11:020d}:000")
    assert host.commits[-1].cursor == "4200001 13 100000"
    second = await intake_of(host)
    again = await second.take([press(11)])
    assert again.events == taken.events[1:2], "the same after a restart in between"


@pytest.mark.parametrize("undone", [True, False], ids=["press, undo", "undo, press"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
async def test_a_press_and_an_undo_count_as_they_were_made_however_they_come(
    host: RecordingHost, order: tuple[int, ...], undone: bool
) -> None:
    """Calls of a webhook come side by side, and again where one has failed: a press then was too late."""
    typed = {"text": "/rl undo", "entities": [{"type": "bot_command", "offset": 0, "length": 3}]}
    both = [press(11), message(12, 102, **typed)] if undone else [message(11, 102, **typed), press(12)]
    updates = [message(10, 100, text="a"), *both, message(13, 110, text="b")]
    intake = await intake_of(host)
    found = [event for n in order for event in (await intake.take([updates[n]])).events]
    assert [event.order.tiebreak for event in sorted(found, key=lambda one: one.order)] == [
        f"{number:020d}:000" for number in (10, 11, 12, 13)
    ]
    said = [
        LedgerEvent(
            event_id=event.event_id,
            order=event.order,
            kind=RatingKind.RATE if isinstance(event, RatingEvent) else RatingKind.RETRACT,
            value=1.0 if isinstance(event, RatingEvent) else None,
        )
        for event in found
        if not isinstance(event, MessageEvent)
    ]
    label = fold(said)
    assert (label.value if label else None) == (None if undone else 1.0)


async def test_after_a_week_without_updates_numbers_say_nothing_of_those_before(host: RecordingHost) -> None:
    """Telegram may then go on with any number."""
    week = 8 * 86400
    host.clock = clock = VirtualClock()
    intake = await intake_of(host)
    await intake.take([message(1000, 100, text="a")])
    clock.advance(week)
    [event] = (await intake.take([message(10, 100 + week, text="b")])).events
    assert event.order.time_ms == 1000 * (100 + week)
    [pressed] = (await intake.take([press(11)])).events
    assert pressed.order > event.order


async def test_without_a_poll_there_is_no_offset(host: RecordingHost) -> None:
    """Calls of a webhook come side by side: a later one confirms no earlier one."""
    await (await intake_of(host)).take([message(10, 100, text="a")])
    assert host.commits[-1].cursor == "4200001  100000"


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("", Cursor(ME)),
        ("4200001 13 100000", Cursor(ME, 13, 100_000)),
        ("4200001  100000", Cursor(ME, None, 100_000)),
        ("13 100000", Cursor(ME, 13, 100_000)),
        (" 100000", Cursor(ME, None, 100_000)),
        ("77 13 100000", Cursor("77")),
    ],
)
def test_how_far_it_was_is_one_accounts(text: str, cursor: Cursor) -> None:
    """Two words are what goodbot 0.1.0 wrote, which had one account for ever."""
    assert Cursor.read(text, ME) == cursor


async def test_an_album_is_one_message(host: RecordingHost) -> None:
    intake = await intake_of(host)
    album = [message(n, photo=PHOTO, media_group_id="77") for n in (20, 21, 22)]
    album[0]["message"]["caption"] = "Look!"
    await intake.take(album[:2], 22)
    await intake.take([*album[2:], message(23, photo=PHOTO, media_group_id="78")], 24)
    [one, other] = host.events
    assert isinstance(one, MessageEvent)
    assert (one.text, one.attachments) == ("Look!", ("image",))
    assert other.event_id == "23:0"


async def test_an_album_that_comes_side_by_side_is_one_message(host: RecordingHost) -> None:
    """As calls of a webhook do."""
    intake = await intake_of(host)
    album = [message(n, photo=PHOTO, media_group_id="77") for n in range(20, 25)]
    host.hold()
    taking = [asyncio.create_task(intake.take([update])) for update in album]
    await host.wait(lambda: bool(host.attempts))
    await asyncio.sleep(0)
    host.release()
    await asyncio.gather(*taking)
    assert [event.event_id for event in host.events] == ["20:0"]


async def test_an_album_that_could_not_be_stored_comes_again(host: RecordingHost) -> None:
    intake = await intake_of(host)
    album = [message(n, photo=PHOTO, media_group_id="77") for n in (20, 21)]
    host.refuse()
    with pytest.raises(StoreError):
        await intake.take(album, 22)
    await intake.take(album, 22)
    assert [event.event_id for event in host.events] == ["20:0"]


@pytest.mark.parametrize("kind", [RatingKind.COMMENT, RatingKind.BETTER])
async def test_an_answered_question_is_a_rating_also_after_a_restart(
    kind: RatingKind, host: RecordingHost
) -> None:
    await host.set("prompts", f'{{"1001:40":"{kind.value} 5f1e"}}')
    intake = await intake_of(host)
    question = {"message_id": 40, "date": 1, "chat": CHAT, "text": "Why?"}
    await intake.take(
        [
            message(50, text="too\nshort", reply_to_message=question),
            message(51, text="hi", reply_to_message=question | {"message_id": 41}),
            message(52, text="hi", reply_to_message=question, chat=CHAT | {"id": 9}),
            message(53, photo=PHOTO, reply_to_message=question),
        ]
    )
    first, *others = host.events
    assert isinstance(first, RatingEvent)
    assert (first.kind, first.text, first.turn) == (kind, "too\nshort", "5f1e")
    assert (first.value, first.event_id, first.order.time_ms) == (None, "50:0", 100_000)
    assert {type(event) for event in others} == {MessageEvent}


async def test_whoever_answers_faster_than_telegram_is_understood(host: RecordingHost) -> None:
    """The reply comes before the question's id is known, or that was lost on its way to us."""
    await host.set("prompts", '{"1001:better":"better 5f1e","1001:comment":"comment 77aa"}')
    intake = await intake_of(host)
    asked = {"message_id": 40, "date": 1, "chat": CHAT, "text": "How should the answer have been?"}
    us = {"from": {"id": 4200001, "is_bot": True, "first_name": "Good Bot"}}
    them = {"from": {"id": 9, "is_bot": True, "first_name": "Echo"}}
    await intake.take(
        [
            message(60, text="It is 5.", reply_to_message=asked | us),
            message(
                61, text="no", reply_to_message=asked | us | {"text": "What was wrong with that answer?"}
            ),
            message(62, text="hi", reply_to_message=asked | them),
            message(63, text="hi", reply_to_message=asked | us | {"text": "An answer."}),
            message(64, text="hi", reply_to_message=asked | us, chat=CHAT | {"id": 9}),
        ]
    )
    better, why, *others = host.events
    assert isinstance(better, RatingEvent)
    assert isinstance(why, RatingEvent)
    assert (better.kind, better.turn, why.kind, why.turn) == (
        RatingKind.BETTER,
        "5f1e",
        RatingKind.COMMENT,
        "77aa",
    )
    assert {type(event) for event in others} == {MessageEvent}


async def test_a_wish_to_type_is_no_event_and_foreign_data_ends_its_spinner(host: RecordingHost) -> None:
    taken = await (await intake_of(host)).take([press(1, "reason:5f1e"), press(2, "junk"), press(3)])
    assert [event.event_id for event in taken.events] == ["3:0"]
    assert taken.spare == ("q1", "q2")
    [prompt] = taken.prompts
    assert (prompt.action, prompt.turn, prompt.message_id) == ("reason", "5f1e", 5)


def test_a_move_is_told_in_both_chats() -> None:
    old = message(1, chat={"id": -5, "type": "group"}, migrate_to_chat_id=-100)
    new = message(2, chat={"id": -100, "type": "supergroup"}, migrate_from_chat_id=-5)
    assert migration(old) == migration(new) == (-5, -100)
    assert migration(message(3, text="hi")) is None


def test_the_offset_is_after_the_newest() -> None:
    assert next_offset([message(4), {"update_id": 9}, {"update_id": "?"}, None]) == 10
    assert next_offset([]) is None
