# SPDX-License-Identifier: Apache-2.0
"""What people are shown of what became of their ratings, presses and commands, and nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from goodbot.api.actions import STAR_ROW, THUMBS, retry_row
from goodbot.api.events import (
    Button,
    ChannelKind,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.base.errors import StoreError
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import QUIET, build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.telegram import SPEC
from goodbot_connectors.telegram.keyboards import typed
from goodbot_fakes.telegram import FakeTelegram
from goodbot_fakes.telegram.keyboards import buttons

from tests.connectors.remembered import holds
from tests.connectors.telegram.fake import Driver, channel
from tests.support import patience

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector

TURN = "5f1e0c7a9b3d2468"
BAD = "Bad. 12 of 40 ratings (28 to go)."
RETRY = [button.label for button in retry_row()]
TYPED = ["Say why…", "Better answer…"]
SHARED = ChannelKind.SHARED


@pytest.fixture
def driver(fake: FakeTelegram) -> Driver:
    return Driver(fake)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(waits=True)


@pytest.fixture
async def host(driver: Driver, clock: VirtualClock, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ, clock=clock)
    yield host
    await host.close()
    assert host.failures == []


@pytest.fixture
async def connector(driver: Driver, host: RecordingHost) -> AsyncIterator[TelegramConnector]:
    connector = await started(driver, host)
    yield connector
    await connector.stop()


async def started(driver: Driver, host: RecordingHost) -> TelegramConnector:
    connector = cast("TelegramConnector", build(SPEC, host, driver))
    await connector.start()
    return connector


async def answered(
    connector: TelegramConnector, driver: Driver, row: tuple[Button, ...] = THUMBS
) -> MessageRef:
    [ref] = await connector.send(channel(driver), Reply(text="4", turn=TURN, buttons=row))
    return ref


def labels(driver: Driver, ref: MessageRef) -> list[str]:
    """What stands under a message."""
    _, message = driver.find(ref)
    return [button["text"] for button in buttons(message.json)]


def receipt(event: Event, text: str = BAD, *, offer: tuple[Button, ...] = ()) -> Receipt:
    return Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text, turn=TURN, offer=offer)


async def rated_bad(
    connector: TelegramConnector, driver: Driver, host: RecordingHost, ref: MessageRef
) -> RatingEvent:
    """Ada's reaction, and what the core says to it."""
    count = len([event for event in host.events if isinstance(event, RatingEvent)])
    await driver.react(ref, new="👎")
    event = (await host.received(RatingEvent, count + 1))[-1]
    await connector.acknowledge(event, receipt(event, offer=retry_row()))
    return event


async def is_shown(driver: Driver, ref: MessageRef, wanted: list[str]) -> None:
    async def so() -> bool:
        return labels(driver, ref) == wanted

    try:
        await eventually(so, 3.0)
    except TimeoutError:
        assert labels(driver, ref) == wanted


THUMB_LABELS = [button.label for button in THUMBS]


async def test_a_reaction_in_private_shows_its_effect_for_ten_seconds(
    connector: TelegramConnector, driver: Driver, host: RecordingHost, clock: VirtualClock
) -> None:
    ref = await answered(connector, driver)
    await driver.react(ref, new="👍")
    [event] = await host.received(RatingEvent)
    await connector.acknowledge(event, receipt(event, "Good. 12 of 40."))
    assert labels(driver, ref) == [*THUMB_LABELS, "Good. 12 of 40."]
    assert len(await driver.posts()) == 1, "no second message"
    clock.advance(9.9)
    await asyncio.sleep(0.05)
    assert labels(driver, ref) == [*THUMB_LABELS, "Good. 12 of 40."]
    clock.advance(0.2)
    await is_shown(driver, ref, THUMB_LABELS)


async def test_a_bad_rating_offers_retries_until_the_talk_goes_on(
    connector: TelegramConnector, driver: Driver, host: RecordingHost, clock: VirtualClock
) -> None:
    ref = await answered(connector, driver)
    await rated_bad(connector, driver, host, ref)
    assert labels(driver, ref) == [*THUMB_LABELS, BAD, *RETRY, *TYPED]
    clock.advance(11)
    await is_shown(driver, ref, [*THUMB_LABELS, *RETRY, *TYPED])
    await driver.say("Something else now")
    await is_shown(driver, ref, THUMB_LABELS)


async def test_an_offer_goes_when_it_is_used_and_ratings_stay(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ref = await answered(connector, driver)
    await rated_bad(connector, driver, host, ref)
    await driver.press(ref, "again:wrong")
    [press] = await host.received(PressEvent)
    assert (press.turn, press.message_id) == (TURN, ref.id)
    await is_shown(driver, ref, [*THUMB_LABELS, BAD])


async def test_one_offer_a_chat_and_none_after_a_change_of_mind(
    connector: TelegramConnector, driver: Driver, host: RecordingHost, clock: VirtualClock
) -> None:
    first, second = await answered(connector, driver), await answered(connector, driver)
    await rated_bad(connector, driver, host, first)
    clock.advance(11)
    await is_shown(driver, first, [*THUMB_LABELS, *RETRY, *TYPED])
    await rated_bad(connector, driver, host, second)
    await is_shown(driver, first, THUMB_LABELS)
    await driver.press(second, "good")
    event = (await host.received(RatingEvent, 3))[-1]
    await connector.acknowledge(event, receipt(event, "Good."))
    await is_shown(driver, second, [*THUMB_LABELS, BAD])
    assert "Good." in await driver.notices()


async def test_what_stands_under_an_answer_survives_a_restart(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    """An edit must repeat the buttons, and Telegram does not say which they were."""
    ref = await answered(connector, driver, STAR_ROW)
    await connector.stop()
    second = await started(driver, host)
    await rated_bad(second, driver, host, ref)
    stars = [button.label for button in STAR_ROW]
    assert labels(driver, ref) == [*stars, BAD, *RETRY, *TYPED]
    await second.stop()
    assert labels(driver, ref) == [*stars, *RETRY, *TYPED], "a stop leaves no note behind"
    third = await started(driver, host)
    await driver.say("Something else now")
    await is_shown(driver, ref, stars)
    await third.stop()


async def test_the_first_part_of_a_long_answer_has_no_buttons_after_a_restart_either(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    reply = Reply(text="word " * 900, turn=TURN, buttons=THUMBS)
    first, last = await connector.send(channel(driver), reply)
    await connector.stop()
    second = await started(driver, host)
    await rated_bad(second, driver, host, first)
    assert labels(driver, first) == [BAD, *RETRY, *TYPED]
    assert labels(driver, last) == THUMB_LABELS
    await second.stop()


async def test_s7_who_may_not_rate_is_asked_for_no_words(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    """What a press says can be forged: each made it send a message, and put others' questions out."""
    host.talkers.add(str(driver.chat(ChannelKind.PRIVATE, "bob").id))
    for name in ("bob", "ada"):
        *_, ref = await connector.send(
            channel(driver, user=name), Reply(text="word", turn=TURN, buttons=THUMBS)
        )
        driver.people[name].presses(int(ref.id), f"reason:{TURN}")
    ada = str(driver.chat(ChannelKind.PRIVATE, "ada").id)

    async def asked() -> bool:
        return len(json.loads(await host.get("prompts") or "{}")) == 2

    await eventually(asked)
    kept = json.loads(await host.get("prompts") or "{}")
    assert {place.partition(":")[0] for place in kept} == {ada}


@pytest.mark.parametrize("running", [True, False])
async def test_who_wants_to_be_forgotten_is_in_no_value(
    running: bool, connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ada, bob = (str(driver.chat(ChannelKind.PRIVATE, name).id) for name in ("ada", "bob"))
    for name in ("ada", "bob"):
        where = channel(driver, user=name)
        reply = Reply(text="word " * 900, turn=TURN, buttons=THUMBS)
        *_, ref = await connector.send(where, reply)
        await connector._keyboards.offer(where.id, ref.id, TURN, (*retry_row(), *typed("en")))
        driver.people[name].presses(int(ref.id), f"reason:{TURN}")
    forget = Button(action=f"run:forget telegram:{ada} and more words to fill it", label="Yes")
    await connector._keyboards.prepare(TURN, [forget])
    names = ("prompts", "offers", "parts", "data")

    async def values(user: str) -> list[str]:
        return [name for name in names if user in (await host.get(name) or "")]

    async def asked() -> bool:
        return len(json.loads(await host.get("prompts") or "{}")) == 4

    await eventually(asked)
    assert await values(ada) == list(names)
    if not running:
        await connector.stop()
    await connector.forget(ada)
    await connector.forget(ada)
    assert await values(ada) == []
    assert not running or holds(connector, ada) == []
    assert await values(bob) == ["prompts", "offers", "parts"]


async def test_what_could_not_be_forgotten_is_forgotten_by_the_next_try(
    connector: TelegramConnector, driver: Driver, host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = str(driver.chat(ChannelKind.PRIVATE, "ada").id)
    await connector.send(channel(driver), Reply(text="word " * 900, turn=TURN))

    async def full(key: str, value: str) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(host, "set", full)
        with pytest.raises(StoreError):
            await connector.forget(ada)
    await connector.forget(ada)
    assert ada not in (await host.get("parts") or "")


async def test_stars_are_pressed(connector: TelegramConnector, driver: Driver, host: RecordingHost) -> None:
    ref = await answered(connector, driver, STAR_ROW)
    await driver.press(ref, "star:4")
    [event] = await host.received(RatingEvent)
    assert (event.source, event.value, event.turn) == ("stars", 0.5, TURN)


@pytest.mark.parametrize("better", [False, True])
async def test_a_question_that_was_asked_before_a_restart_is_answered_after_it(
    better: bool, connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ref = await answered(connector, driver)
    await rated_bad(connector, driver, host, ref)
    driver.people["ada"].presses(int(ref.id), f"{'better' if better else 'reason'}:{TURN}")

    async def prompt() -> bool:
        return any(message.force_reply for message in driver.people["ada"].sees())

    await eventually(prompt)
    await connector.stop()
    second = await started(driver, host)
    driver.people["ada"].answers("It is 5.")
    _, event = await host.received(RatingEvent, 2)
    assert event.kind is (RatingKind.BETTER if better else RatingKind.COMMENT)
    assert (event.text, event.turn, event.message_id) == ("It is 5.", TURN, "")
    await second.acknowledge(event, receipt(event, "Noted."))
    assert [post.text for post in await driver.posts()][-1] == "Noted."
    await second.stop()


async def test_each_question_is_about_its_own_answer(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ada, ref = driver.people["ada"], await answered(connector, driver)
    for number, turn in enumerate(("aaaa", "bbbb"), 1):
        ada.presses(int(ref.id), f"better:{turn}")

        async def asked(wanted: int = number) -> bool:
            return len(json.loads(await host.get("prompts") or "{}")) == wanted + 1

        await eventually(asked)
    first, second = [message for message in ada.sees() if message.force_reply]
    ada.says("of the first", reply_to=first.id)
    ada.says("of the second", reply_to=second.id)
    events = await host.received(RatingEvent, 2)
    assert [event.turn for event in events] == ["aaaa", "bbbb"]


async def test_a_confirmation_is_a_button_for_one_press(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    await driver.say("/rl reset")
    [event] = await host.received(CommandEvent)
    yes = Button(action="run:reset yes", label="Yes, reset it")
    await connector.acknowledge(event, receipt(event, "Really?", offer=(yes,)))
    [post] = await driver.posts()
    ref = MessageRef(channel=channel(driver), id=post.id)
    assert labels(driver, ref) == ["Yes, reset it"]
    await driver.press(ref, "run:reset yes")
    [press] = await host.received(PressEvent)
    assert press.action == "run:reset yes"
    await is_shown(driver, ref, [])
    await connector.acknowledge(press, receipt(press, ""))
    await connector.acknowledge(press, receipt(press, "It is reset."))
    assert [post.text for post in await driver.posts()] == ["Really?", "It is reset."]


async def test_a_command_that_calls_an_answer_bad_offers_the_same_under_its_own_text(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ref = await answered(connector, driver)
    await driver.say("/rl bad")
    [event] = await host.received(CommandEvent)
    await connector.acknowledge(event, receipt(event, offer=retry_row()))
    told = MessageRef(channel=ref.channel, id=(await driver.posts())[-1].id)
    assert labels(driver, told) == [*RETRY, *TYPED]
    assert labels(driver, ref) == THUMB_LABELS
    await driver.press(told, "again:tone")
    [press] = await host.received(PressEvent)
    assert (press.action, press.turn) == ("again:tone", TURN)
    await is_shown(driver, told, [])
    new = await answered(connector, driver)
    assert labels(driver, new) == THUMB_LABELS
    await rated_bad(connector, driver, host, new)
    await is_shown(driver, new, [*THUMB_LABELS, BAD, *RETRY, *TYPED])


async def test_an_offer_under_its_own_text_goes_with_the_next_message_after_a_restart(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    await driver.say("/rl bad")
    [event] = await host.received(CommandEvent)
    await connector.acknowledge(event, receipt(event, offer=retry_row()))
    [post] = await driver.posts()
    await connector.stop()
    second = await started(driver, host)
    await driver.say("Something else now")
    await is_shown(driver, MessageRef(channel=channel(driver), id=post.id), [])
    await second.stop()


async def test_a_long_word_to_a_press_is_a_message_and_a_short_one_a_toast(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ref = await answered(connector, driver)
    for number, text in enumerate(("short", "long " * 50), 1):
        driver.people["ada"].presses(int(ref.id), "run:status:")
        press = (await host.received(PressEvent, number))[-1]
        await connector.acknowledge(press, receipt(press, text))
    assert [toast.text for toast in driver.people["ada"].toasts] == ["short", ""]
    assert [post.text for post in await driver.posts()][1:] == [("long " * 50).strip()]


# In a group


async def in_the_group(connector: TelegramConnector, driver: Driver, host: RecordingHost) -> MessageRef:
    await driver.say("hello", room=SHARED, mention=True)
    [asked] = await host.received(MessageEvent)
    reply = Reply(text="4", turn=TURN, buttons=THUMBS, reply_to=asked.message_id)
    [ref] = await connector.send(asked.channel, reply)
    return ref


def marks(driver: Driver, ref: MessageRef) -> list[str]:
    """Our own reactions on a message."""
    chat, message = driver.find(ref)
    del chat
    return [one["emoji"] for one in message.reactions.get(driver.telegram.account.id, [])]


async def unmarked(driver: Driver, ref: MessageRef) -> None:
    async def so() -> bool:
        return not marks(driver, ref)

    await eventually(so)


async def test_a_reaction_in_a_group_is_answered_by_our_own_for_ten_seconds(
    connector: TelegramConnector, driver: Driver, host: RecordingHost, clock: VirtualClock
) -> None:
    ref = await in_the_group(connector, driver, host)
    await rated_bad(connector, driver, host, ref)
    assert marks(driver, ref) == ["👌"]
    assert labels(driver, ref) == [], "an offer would be everybody's"
    clock.advance(6)
    await driver.react(ref, new="👍", user="bob")
    event = (await host.received(RatingEvent, 2))[-1]
    await connector.acknowledge(event, receipt(event, "Good."))
    clock.advance(6)
    await asyncio.sleep(0.05)
    assert marks(driver, ref) == ["👌"], "ten seconds from the last one"
    clock.advance(5)
    await unmarked(driver, ref)
    assert len(await driver.posts(SHARED)) == 1


async def test_a_stop_takes_our_reaction_away(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ref = await in_the_group(connector, driver, host)
    await rated_bad(connector, driver, host, ref)
    assert marks(driver, ref) == ["👌"]
    await connector.stop()
    assert marks(driver, ref) == []


@pytest.mark.parametrize(("command", "marked"), [("good", True), ("👎", True), ("status", False)])
async def test_a_rating_command_in_a_group_gets_a_nod_and_no_message(
    command: str, marked: bool, connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ref = await in_the_group(connector, driver, host)
    said = await driver.say(f"/rl {command}", room=SHARED, reply_to=ref.id)
    [event] = await host.received(CommandEvent)
    await connector.acknowledge(event, receipt(event, "Done."))
    spot = MessageRef(channel=ref.channel, id=said)
    assert marks(driver, spot) == (["👌"] if marked else [])
    assert len(await driver.posts(SHARED)) == (1 if marked else 2)


async def test_where_our_reaction_is_not_allowed_nothing_is_said(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    ref = await in_the_group(connector, driver, host)
    fake.fail("setMessageReaction", 400, "Bad Request: REACTION_INVALID")
    await rated_bad(connector, driver, host, ref)
    await asyncio.sleep(QUIET)
    assert len(await driver.posts(SHARED)) == 1


async def test_a_crowd_gets_few_nods(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    """Each costs two calls of a group's twenty a minute."""
    ref = await in_the_group(connector, driver, host)
    refs = [(await connector.send(ref.channel, Reply(text=str(n), turn=TURN)))[0] for n in range(5)]
    for each in refs:
        await rated_bad(connector, driver, host, each)
    assert len(fake.calls("setMessageReaction")) == 1


async def test_a_flood_of_ratings_is_counted_and_not_commented(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver, host: RecordingHost, clock: VirtualClock
) -> None:
    ref = await answered(connector, driver)
    for number in range(30):
        await driver.react(ref, **({"new": "👍"} if number % 2 == 0 else {"old": "👍"}))
    for event in await host.received(RatingEvent, 30):
        await connector.acknowledge(event, receipt(event, f"Good. {event.event_id}"))
    assert len(fake.calls("editMessageReplyMarkup")) == 20
    clock.advance(1.1)
    await rated_bad(connector, driver, host, ref)
    assert labels(driver, ref) == [*THUMB_LABELS, BAD, *RETRY, *TYPED]


async def test_an_offer_waits_when_telegram_asks_for_a_pause(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver, host: RecordingHost, clock: VirtualClock
) -> None:
    ref = await answered(connector, driver)
    fake.fail("editMessageReplyMarkup", 429, "Too Many Requests: retry after 3", retry_after=3)
    await rated_bad(connector, driver, host, ref)
    assert labels(driver, ref) == THUMB_LABELS
    await asyncio.sleep(patience(0.05))
    clock.advance(3.5)
    await is_shown(driver, ref, [*THUMB_LABELS, BAD, *RETRY, *TYPED])
    clock.advance(7)
    await is_shown(driver, ref, [*THUMB_LABELS, *RETRY, *TYPED])


async def test_a_stranger_hears_nothing_of_a_refusal_in_a_group(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    ref = await in_the_group(connector, driver, host)
    await driver.react(ref, new="👍", user="carl")
    [event] = await host.received(RatingEvent)
    refused = Receipt(event_id=event.event_id, outcome=Outcome.DENIED, text="Ada teaches me.")
    await connector.acknowledge(event, refused)
    assert marks(driver, ref) == []
    assert len(await driver.posts(SHARED)) == 1
