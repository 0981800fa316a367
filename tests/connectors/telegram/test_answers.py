# SPDX-License-Identifier: Apache-2.0
"""Answers that are written as drafts, that replace others, that follow a group to its new id; menus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from goodbot.api.actions import THUMBS
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, ChannelRef, MessageEvent, MessageRef, RatingEvent, Reply
from goodbot.api.texts import LANGUAGES, say
from goodbot.base.errors import RetriableError
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.telegram import SPEC
from goodbot_connectors.telegram.menus import SCOPES, menus
from goodbot_fakes.telegram import FakeTelegram

from tests.connectors.telegram.fake import Driver, channel

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector

TURN = "5f1e0c7a9b3d2468"
SHARED = ChannelKind.SHARED
LONG = "word " * 1700


@pytest.fixture
def driver(fake: FakeTelegram) -> Driver:
    return Driver(fake, edit_interval=0.0, group_edit_interval=0.0)


@pytest.fixture
async def host(driver: Driver, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ)
    yield host
    await host.close()
    assert host.failures == []


@pytest.fixture
async def connector(driver: Driver, host: RecordingHost) -> AsyncIterator[TelegramConnector]:
    connector = cast("TelegramConnector", build(SPEC, host, driver))
    await connector.start()
    yield connector
    await connector.stop()


# Drafts


async def test_what_is_being_written_is_a_draft_and_then_one_message(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    stream = connector.stream(channel(driver))
    for piece in ("```py\n", "print(1)\n", "```\nDo", "ne."):
        await stream.append(piece)
    drafts = fake.calls("sendMessageDraft")
    assert [draft["text"] for draft in drafts[1:]] == ["print(1)\n", "print(1)\nDo", "print(1)\nDone."]
    assert len({draft["draft_id"] for draft in drafts}) == 1, "one id: clients animate"
    assert drafts[-1]["entities"][0]["type"] == "pre"
    assert driver.people["ada"].draft == "print(1)\nDone."
    assert driver.people["ada"].sees() == []
    whole = Reply(text="```py\nprint(1)\n```\nDone.", turn=TURN, buttons=THUMBS)
    [ref] = await stream.finish(whole)
    [post] = await driver.posts()
    assert (post.id, post.text, post.buttons) == (ref.id, "print(1)\nDone.", ("good", "bad"))
    assert fake.calls("editMessageText") == []


async def test_of_a_long_answer_the_draft_shows_what_is_written_now(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    stream = connector.stream(channel(driver))
    await stream.append(LONG + "the end")
    [draft] = fake.calls("sendMessageDraft")
    assert draft["text"].endswith("the end")
    refs = await stream.finish(Reply(text=LONG + "the end"))
    assert [post.id for post in await driver.posts()] == [ref.id for ref in refs]
    assert len(refs) == 3


@pytest.mark.parametrize(("code", "text"), [(404, "Not Found"), (400, "Bad Request: no drafts")])
async def test_where_there_are_no_drafts_the_message_is_edited(
    code: int, text: str, connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    """An older Bot API server of one's own, for example."""
    fake.fail("sendMessageDraft", code, text)
    stream = connector.stream(channel(driver))
    await stream.append("It be")
    await stream.append("gins")
    [post] = await driver.posts()
    assert post.text == "It begins"
    assert len(fake.calls("sendMessageDraft")) == 1
    [ref] = await stream.finish(Reply(text="It begins."))
    assert [(p.id, p.text) for p in await driver.posts()] == [(ref.id, "It begins.")]
    assert post.id == ref.id


async def test_a_flood_only_skips_drafts(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    fake.fail("sendMessageDraft", 429, "Too Many Requests: retry after 30", retry_after=30)
    stream = connector.stream(channel(driver))
    for piece in ("one", " two", " three"):
        await stream.append(piece)
    assert len(fake.calls("sendMessageDraft")) == 1, "30 seconds of silence"
    await stream.finish(Reply(text="one two three"))
    assert [post.text for post in await driver.posts()] == ["one two three"]


async def test_what_cannot_be_seen_is_no_draft_and_the_answer_comes(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    """A model may begin with a control of the writing direction, which is left out."""
    stream = connector.stream(channel(driver))
    await stream.append("\u202e")
    assert fake.calls("sendMessageDraft") == []
    await stream.append("Four.")
    await stream.finish(Reply(text="\u202eFour."))
    assert [post.text for post in await driver.posts()] == ["Four."]


async def test_an_answer_of_which_nothing_can_be_seen_says_so(
    connector: TelegramConnector, driver: Driver
) -> None:
    whole = Reply(text="\u202e\u202c", turn=TURN, buttons=THUMBS)
    [ref] = await connector.stream(channel(driver)).finish(whole)
    [post] = await driver.posts()
    assert (post.id, post.text) == (ref.id, "(The model gave an empty answer.)")
    assert post.buttons == ("good", "bad")


async def test_groups_and_those_who_want_none_have_no_drafts(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    settings = replace(driver.settings, drafts=False)
    driver.settings = settings
    connector = build(SPEC, host, driver)
    await connector.start()
    for room in (ChannelKind.PRIVATE, SHARED):
        stream = connector.stream(channel(driver, room))
        await stream.append("It begins")
        assert (await driver.posts(room))[-1].text == "It begins"
        await stream.finish(Reply(text="It begins."))
    await connector.stop()
    assert fake.calls("sendMessageDraft") == []


# Another answer in the place of an old one


async def sent(connector: TelegramConnector, driver: Driver, text: str) -> tuple[MessageRef, ...]:
    return await connector.send(channel(driver), Reply(text=text, turn=TURN, buttons=THUMBS))


async def test_a_new_answer_grows_in_the_old_ones_place(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    old = await sent(connector, driver, "Old.")
    stream = connector.replace(old, channel(driver))
    await stream.append("An")
    [post] = await driver.posts()
    assert (post.text, post.buttons) == ("An", ()), "an answer is rated when it is whole"
    await stream.append("other.")
    new = Reply(text="Another.", turn="another", buttons=THUMBS)
    assert await stream.finish(new) == old
    [post] = await driver.posts()
    assert (post.text, post.buttons) == ("Another.", ("good", "bad"))
    assert fake.calls("sendMessageDraft") == []
    await driver.press(old[0], "good")


async def test_the_rest_of_a_long_answer_goes_only_when_the_new_one_is_there(
    connector: TelegramConnector, driver: Driver
) -> None:
    old = await sent(connector, driver, LONG)
    stream = connector.replace(old, channel(driver))
    await stream.append("Short")
    assert len(await driver.posts()) == 3
    assert await stream.finish(Reply(text="Short.")) == old[:1]
    assert [post.text for post in await driver.posts()] == ["Short."]


async def test_a_part_that_cannot_be_deleted_any_more_says_so(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    old = await sent(connector, driver, LONG)
    fake.fail("deleteMessage", 400, "Bad Request: message can't be deleted for everyone", times=2)
    reply = Reply(text="Short.", turn="short", buttons=THUMBS)
    refs = await connector.replace(old, channel(driver)).finish(reply)
    assert refs == old, "a reaction on any of them is about the new answer"
    posts = await driver.posts()
    assert [post.text for post in posts] == ["Short.", say("part_replaced"), say("part_replaced")]
    assert [post.buttons for post in posts] == [("good", "bad"), (), ()]


async def test_a_part_that_is_gone_already_is_no_trouble(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    old = await sent(connector, driver, LONG)
    chat, message = driver.find(old[1])
    del chat.messages[message.id]
    short = await connector.replace(old, channel(driver)).finish(Reply(text="Short."))
    assert short == old[:1]
    assert [post.text for post in await driver.posts()] == ["Short."]


async def test_an_answer_whose_message_is_gone_comes_in_a_new_one(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    [old] = await sent(connector, driver, "Old.")
    fake.fail("editMessageText", 400, "Bad Request: message to edit not found")
    [new] = await connector.replace([old], channel(driver)).finish(Reply(text="Another."))
    assert new.id != old.id
    assert [(post.id, post.text) for post in await driver.posts()][-1] == (new.id, "Another.")


async def test_what_another_answer_needs_beside_stands_under_the_one_before(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    """In the comments under a channel's post a message that answers nothing is lost."""
    [old] = await connector.send(channel(driver, SHARED), Reply(text="Old."))
    await connector.replace([old], channel(driver, SHARED)).finish(Reply(text=LONG))
    sent = [call for call in fake.calls("sendMessage") if call["text"] != "Old."]
    answered = [call.get("reply_parameters", {}).get("message_id") for call in sent]
    assert answered == [int(old.id)] * 2


async def test_buttons_are_let_alone_while_another_answer_is_written(
    connector: TelegramConnector, driver: Driver, host: RecordingHost
) -> None:
    [old] = await sent(connector, driver, "Old.")
    await connector._keyboards.note(channel(driver).id, old.id, TURN, "noted")
    stream = connector.replace([old], channel(driver))
    await stream.append("An")
    await connector._keyboards.note(channel(driver).id, old.id, TURN, "too late")
    [post] = await driver.posts()
    assert post.buttons == ()
    await stream.finish(Reply(text="Another.", turn="another", buttons=THUMBS))
    await connector.stop()
    _, message = driver.find(old)
    data = [b["callback_data"] for row in _rows(message.json) for b in row]
    assert data == ["good:another", "bad:another"]


async def test_a_replacement_that_fails_does_not_take_the_buttons_for_ever(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    [old] = await sent(connector, driver, "Old.")
    fake.fail("editMessageText", 502, "Bad Gateway")
    with pytest.raises(RetriableError):
        await connector.replace([old], channel(driver)).finish(Reply(text="Another."))
    await connector._keyboards.note(channel(driver).id, old.id, TURN, "noted")
    _, message = driver.find(old)
    data = [b["callback_data"] for row in _rows(message.json) for b in row]
    assert data[:2] == [f"good:{TURN}", f"bad:{TURN}"]
    assert len(data) == 3


def _rows(message: dict[str, object]) -> list[list[dict[str, str]]]:
    markup = cast("dict[str, list[list[dict[str, str]]]]", message.get("reply_markup", {}))
    return markup.get("inline_keyboard", [])


# A group that becomes a supergroup


@pytest.mark.parametrize("told", [True, False])
async def test_an_answer_follows_its_group_to_the_new_id(
    told: bool, connector: TelegramConnector, fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    """By what the service message says, or the error; ratings of it count under the new id."""
    people = [driver.people["ada"], driver.people["bob"]]
    group = fake.group("A group", people, admin=True, kind="group")
    people[0].says("hello", chat=group, mention=True)
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    await stream.append("Let me")
    moved = fake.migrate(group)
    while people[1].says("what I said here", chat=moved) < int(asked.message_id):
        pass
    if told:
        service = {"message_id": 999, "date": 1, "chat": group.json, "migrate_to_chat_id": moved.id}
        fake.updates.put("message", service | {"from": fake.account.users[people[0].id]})

        async def known() -> bool:
            return bool(connector._connected()._moved)

        await eventually(known)
    refs = await stream.finish(Reply(text="Let me see.", reply_to=asked.message_id))
    assert {ref.channel.id for ref in refs} == {str(moved.id)}
    [message] = people[0].sees(moved)
    assert message.json["text"] == "Let me see."
    assert "reply_to_message" not in message.json, "that id means another message there"
    people[1].reacts(message.id, "👍", chat=moved)
    [event] = await host.received(RatingEvent)
    assert MessageRef(channel=event.channel, id=event.message_id) in refs
    again = await connector.send(asked.channel, Reply(text="And again."))
    assert again[0].channel == ChannelRef(
        connector="telegram", account=connector.account, id=str(moved.id), kind=SHARED
    )


# Menus


async def test_menus_are_published_once_by_scope_and_language(
    connector: TelegramConnector, fake: FakeTelegram, driver: Driver
) -> None:
    every = len(SCOPES) * len(LANGUAGES)

    async def published() -> bool:
        return len(fake.calls("setMyCommands")) == every

    await eventually(published)
    german = fake.person("Jo", language_code="de")
    shown = {entry["command"]: entry["description"] for entry in german.menu()}
    japanese = fake.person("Yu", language_code="ja").menu()
    assert "その回答は悪かった" in [entry["description"] for entry in japanese]
    assert shown["rl_good"] == "Die letzte Antwort, oder die genannte, war gut"
    assert "rl_enable" not in shown
    bob = {entry["command"] for entry in driver.people["bob"].menu(driver.group)}
    ada = {entry["command"] for entry in driver.people["ada"].menu(driver.group)}
    assert ada - bob >= {"rl_enable", "rl_disable"}, "she is an administrator there"
    asked = len(fake.calls("getMyCommands"))
    await connector.stop()
    await connector.start()

    async def looked() -> bool:
        return len(fake.calls("getMyCommands")) > asked

    await eventually(looked)
    await asyncio.sleep(0.05)
    assert await published(), "and no more than once"


async def test_menus_that_an_upgrade_has_changed_are_published_again(
    connector: TelegramConnector, fake: FakeTelegram, host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the last of them is the same as before."""
    every = len(SCOPES) * len(LANGUAGES)

    async def published(count: int) -> bool:
        return len(fake.calls("setMyCommands")) == count and bool(await host.get("menus"))

    await eventually(lambda: published(every))
    await connector.stop()
    monkeypatch.setitem(SCOPES, "default", SCOPES["default"][:1])
    await connector.start()
    await eventually(lambda: published(2 * every))


def test_a_menu_suggests_only_what_everybody_there_may() -> None:
    for scope in ("default", "all_private_chats", "all_group_chats"):
        assert SCOPES[scope]
        assert all(command.grant < Grant.ADMINISTER for command in SCOPES[scope])


def test_every_menu_is_whole_in_every_language() -> None:
    found = list(menus())
    assert len(found) == len(SCOPES) * len(LANGUAGES)
    english = {menu.scope: menu.commands for menu in found if not menu.language}
    for menu in found:
        shown = zip(menu.commands, english[menu.scope], strict=True)
        assert not menu.language or [one for one, other in shown if one[1] == other[1]] == []
    for menu in found:
        for command, description in menu.commands:
            assert 1 <= len(command) <= 32
            assert 3 <= len(description) <= 256
