# SPDX-License-Identifier: Apache-2.0
"""The fake Telegram, with python-telegram-bot on one side and people on the other.

Each test ends with all that was said in it being held to Telegram's own types (`conftest.fake`).
"""

from __future__ import annotations

import asyncio
import datetime
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest
from goodbot.testing.clock import VirtualClock
from goodbot_fakes.telegram import TOKEN, WRONG_TOKEN, Chat, FakeTelegram, FloodLimits, Person
from goodbot_fakes.telegram.reactions import STANDARD
from goodbot_fakes.telegram.updates import KINDS

from tests.connectors.telegram.schema import check_type, standard_emoji, update_kinds
from tests.support import require

if TYPE_CHECKING:
    from telegram import Bot

ALL = ["message", "edited_message", "message_reaction", "callback_query", "my_chat_member"]


@pytest.fixture
async def bot(fake: FakeTelegram) -> AsyncIterator[Bot]:
    async with bot_on(fake) as bot:
        yield bot


def bot_on(fake: FakeTelegram, token: str = TOKEN) -> Bot:
    return require("telegram").Bot(token, base_url=fake.api)


@pytest.fixture
def ada(fake: FakeTelegram) -> Person:
    return fake.person("Ada", language_code="de")


@pytest.fixture
def lab(fake: FakeTelegram, ada: Person) -> Chat:
    return fake.group("The lab", [ada, fake.person("Bob")])


def keyboard(*data: str) -> Any:
    telegram = require("telegram")
    row = [telegram.InlineKeyboardButton(one, callback_data=one) for one in data]
    return telegram.InlineKeyboardMarkup([row])


async def refused(call: Any, said: str, kind: str = "BadRequest") -> Exception:
    """Await a call that Telegram refuses with these words."""
    error = getattr(require("telegram").error, kind)
    with pytest.raises(error) as caught:
        await call
    assert said.casefold() in str(caught.value).casefold()
    return caught.value


# -- receiving


async def test_updates_wait_until_a_higher_offset_confirms_them(
    fake: FakeTelegram, bot: Bot, ada: Person
) -> None:
    first = ada.says("one")
    ada.says("two", reply_to=first)
    updates = await bot.get_updates(allowed_updates=ALL)
    assert [update.message.text for update in updates] == ["one", "two"]
    assert updates[1].message.reply_to_message.text == "one"
    assert updates[1].update_id == updates[0].update_id + 1
    again = await bot.get_updates(offset=updates[1].update_id)
    assert [update.message.text for update in again] == ["two"]
    assert await bot.get_updates(offset=updates[1].update_id + 1) == ()
    assert fake.updates.pending == ()
    assert list(fake.updates.confirmed) == [update.update_id for update in updates]
    for text in ("three", "four", "five"):
        ada.says(text)
    [last] = await bot.get_updates(offset=-1)
    assert last.message.text == "five", "from the end; what was before it is gone"
    assert len(fake.updates.pending) == 1


async def test_a_long_poll_ends_with_what_it_waited_for(fake: FakeTelegram, bot: Bot, ada: Person) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=10, allowed_updates=ALL))
    await asyncio.sleep(0.1)
    assert not poll.done()
    before = fake.account.clock.now()
    ada.says("hello")
    [update] = await poll
    assert update.message.chat.type == "private"
    assert update.message.from_user.id == ada.id
    assert int(before) <= update.message.date.timestamp() <= fake.account.clock.now()


async def test_at_most_a_hundred_updates_at_once(bot: Bot, ada: Person) -> None:
    for n in range(120):
        ada.says(str(n))
    assert len(await bot.get_updates()) == 100
    assert len(await bot.get_updates(limit=7)) == 7


async def test_a_second_poller_ends_the_first(bot: Bot, fake: FakeTelegram, ada: Person) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=10))
    await fake.updates.until(lambda: fake.updates.polled)
    async with bot_on(fake) as other:
        second = asyncio.create_task(other.get_updates(timeout=10))
        await refused(first, "terminated by other getUpdates request", "Conflict")
        ada.says("for the second")
        assert len(await second) == 1


async def test_unconfirmed_updates_are_gone_after_a_day() -> None:
    clock = VirtualClock()
    async with FakeTelegram(clock=clock) as fake, bot_on(fake) as bot:
        ada = fake.person("Ada")
        ada.says("old")
        clock.advance(23 * 3600)
        ada.says("newer")
        clock.advance(2 * 3600)
        [update] = await bot.get_updates()
        assert update.message.text == "newer"


async def test_reactions_are_told_only_to_who_asks_for_them(
    fake: FakeTelegram, bot: Bot, ada: Person
) -> None:
    answer = await bot.send_message(ada.id, "4")
    ada.reacts(answer.message_id, "👍")
    assert await bot.get_updates() == ()
    await bot.get_updates(allowed_updates=["message_reaction"])
    ada.says("and words are not, then")
    ada.reacts(answer.message_id, "👎")
    ada.reacts(answer.message_id)
    added, taken = await bot.get_updates()
    emoji = [
        [
            [one.emoji for one in side]
            for side in (update.message_reaction.old_reaction, update.message_reaction.new_reaction)
        ]
        for update in (added, taken)
    ]
    assert emoji == [[["👍"], ["👎"]], [["👎"], []]]
    assert added.message_reaction.user.id == ada.id
    ada.reacts(answer.message_id)  # nothing changes
    assert len(fake.updates.pending) == 2


async def test_in_groups_only_administrators_are_told_of_reactions(
    fake: FakeTelegram, bot: Bot, ada: Person, lab: Chat
) -> None:
    await bot.get_updates(allowed_updates=ALL)
    answer = await bot.send_message(lab.id, "4")
    ada.reacts(answer.message_id, "👍", chat=lab)
    assert fake.updates.pending == ()
    assert (await bot.get_chat_member(lab.id, bot.id)).status == "member"
    ada.promotes(lab)
    assert (await bot.get_chat_member(lab.id, bot.id)).status == "administrator"
    ada.reacts(answer.message_id, "❤", chat=lab)
    became, reaction = await bot.get_updates()
    assert became.my_chat_member.new_chat_member.status == "administrator"
    assert [one.emoji for one in reaction.message_reaction.old_reaction] == ["👍"]


async def test_custom_and_paid_reactions_and_three_with_premium(fake: FakeTelegram, bot: Bot) -> None:
    rich = fake.person("Rich", is_premium=True)
    await bot.get_updates(allowed_updates=["message_reaction"])
    answer = await bot.send_message(rich.id, "4")
    rich.reacts(answer.message_id, "👍", "5368324170671202286", "paid")
    [update] = await bot.get_updates()
    kinds = [one.type for one in update.message_reaction.new_reaction]
    assert kinds == ["emoji", "custom_emoji", "paid"]
    with pytest.raises(ValueError, match="no reaction on Telegram"):
        rich.reacts(answer.message_id, "🦖")
    with pytest.raises(AssertionError, match="without Premium"):
        fake.person("Ada").reacts(1, "👍", "👎")


async def test_privacy_mode_hides_idle_talk(fake: FakeTelegram, bot: Bot, ada: Person, lab: Chat) -> None:
    answer = await bot.send_message(lab.id, "4")
    ada.says("idle talk", chat=lab)
    ada.says("/rl@another_bot good", chat=lab)
    ada.says("mail me at ada@the_good_bot", chat=lab)
    ada.says("thanks", chat=lab, reply_to=answer.message_id)
    ada.says("/rl good", chat=lab)
    ada.says("hello", chat=lab, mention=True)
    fake.person("Carl").joins(lab)
    seen = [update.message.text for update in await bot.get_updates()]
    assert seen == ["thanks", "/rl good", "@the_good_bot hello", None]
    fake.account.reads_groups = True
    ada.says("🙂 idle @the_good_bot", chat=lab)
    [*_, update] = await bot.get_updates()
    [entity] = update.message.entities
    assert update.message.parse_entity(entity) == "@the_good_bot", "offsets are UTF-16"
    assert entity.offset == len("🙂 idle ") + 1


# -- sending


async def test_a_message_is_what_was_sent(bot: Bot, ada: Person) -> None:
    telegram = require("telegram")
    entities = [telegram.MessageEntity("pre", 3, 5, language="python")]
    asked = ada.says("?")
    reply = telegram.ReplyParameters(asked)
    sent = await bot.send_message(
        ada.id, "🙂 print ", entities=entities, reply_markup=keyboard("good", "bad"), reply_parameters=reply
    )
    assert sent.text == "🙂 print"
    assert sent.parse_entity(sent.entities[0]) == "print"
    assert sent.reply_to_message.message_id == asked
    [seen] = ada.sees()
    assert seen.json["reply_markup"]["inline_keyboard"][0][1]["callback_data"] == "bad"


@pytest.mark.parametrize(
    ("text", "entity", "said"),
    [
        ("", None, "message text is empty"),
        (" \n", None, "message text is empty"),
        ("🙂" * 2049, None, "message is too long"),
        ("🙂!", ("bold", 1, 2), "Entity begins in a middle of a UTF-16 symbol at byte offset 4"),
        ("🙂!", ("bold", 0, 1), "ends in a middle of a UTF-16 symbol at byte offset 4"),
        ("abc", ("bold", 1, 3), "ends after the end of the text at UTF-16 offset 4"),
        ("abc", ("bold", 9, 1), "Entity begins after the end of the text at UTF-16 offset 9"),
        ("abc", ("bold", -1, 1), "Receive an entity with incorrect offset -1"),
    ],
)
async def test_texts_that_telegram_does_not_take(
    bot: Bot, ada: Person, text: str, entity: tuple[str, int, int] | None, said: str
) -> None:
    entities = [require("telegram").MessageEntity(*entity)] if entity else None
    await refused(bot.send_message(ada.id, text, entities=entities), said)
    assert ada.sees() == []


async def test_where_a_bot_may_not_write(fake: FakeTelegram, bot: Bot, ada: Person, lab: Chat) -> None:
    stranger = fake.person("Dora", started=False)
    await refused(bot.send_message(4711, "?"), "chat not found")
    initiate = "bot can't initiate conversation with a user"
    await refused(bot.send_message(stranger.id, "?"), initiate, "Forbidden")
    stranger.says("/start")
    await bot.send_message(stranger.id, "now")
    ada.blocks()
    await refused(bot.send_message(ada.id, "?"), "bot was blocked by the user", "Forbidden")
    ada.says("come back")
    await bot.send_message(ada.id, "here")
    ada.removes(lab)
    kicked = "bot was kicked from the supergroup chat"
    await refused(bot.send_message(lab.id, "?"), kicked, "Forbidden")
    moved = fake.migrate(fake.group("Old", [ada], kind="group"))
    error = await refused(
        bot.send_message(next(chat.id for chat in fake.account.chats.values() if chat.moved_to), "?"),
        "migrated",
        "ChatMigrated",
    )
    assert error.new_chat_id == moved.id  # type: ignore[attr-defined]


async def test_topics_are_threads(fake: FakeTelegram, bot: Bot, ada: Person) -> None:
    forum = fake.group("Forum", [ada], topics=["one", "two"])
    one, two = forum.topics
    sent = await bot.send_message(forum.id, "in two", message_thread_id=two)
    assert (sent.message_thread_id, sent.is_topic_message) == (two, True)
    await refused(bot.send_message(forum.id, "?", message_thread_id=99), "message thread not found")
    ada.says("hi", chat=forum, thread=one, mention=True)
    [update] = await bot.get_updates()
    assert update.message.message_thread_id == one
    assert update.message.chat.is_forum


async def test_edits_and_their_errors(bot: Bot, ada: Person) -> None:
    chat, id_ = (ada.id, (await bot.send_message(ada.id, "one", reply_markup=keyboard("a"))).message_id)
    same = "message is not modified"
    await refused(bot.edit_message_text("one", chat, id_, reply_markup=keyboard("a")), same)
    edited = await bot.edit_message_text("two", chat, id_, reply_markup=keyboard("a"))
    assert edited.edit_date
    await refused(bot.edit_message_reply_markup(chat, id_, reply_markup=keyboard("a")), same)
    await bot.edit_message_reply_markup(chat, id_, reply_markup=keyboard("b"))
    [seen] = ada.sees()
    assert seen.json["text"] == "two"
    assert seen.json["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "b"
    told = await bot.edit_message_reply_markup(chat, id_, reply_markup=keyboard("c"))
    assert (told.text, told.edit_date) == ("two", edited.edit_date), "other buttons are no edit to people"
    asks = await bot.send_message(ada.id, "which?", reply_markup=require("telegram").ForceReply())
    await refused(bot.edit_message_reply_markup(chat, asks.message_id), "message can't be edited")
    await bot.delete_message(chat, asks.message_id)
    gone = await bot.edit_message_text("three", chat, id_)
    assert gone.reply_markup is None, "an edit without a keyboard takes it away"
    hers = ada.says("hers")
    await refused(bot.edit_message_text("?", chat, hers), "message can't be edited")
    await refused(bot.edit_message_text("?", chat, 999), "message to edit not found")
    await bot.delete_message(chat, id_)
    await refused(bot.delete_message(chat, id_), "message to delete not found")
    assert await bot.delete_messages(chat, [id_, hers])
    assert ada.chat.messages == {}


async def test_drafts_are_for_private_chats_and_end_with_the_message(
    fake: FakeTelegram, bot: Bot, ada: Person, lab: Chat
) -> None:
    await bot.send_message_draft(ada.id, 7, "It beg")
    await bot.send_message_draft(ada.id, 7, "It begins")
    assert ada.draft == "It begins"
    assert ada.sees() == []
    await refused(bot.send_message_draft(lab.id, 7, "?"), "only in private chats")
    await bot.send_message(ada.id, "It begins.")
    assert ada.draft == ""


async def test_typing(fake: FakeTelegram, bot: Bot, ada: Person) -> None:
    await bot.send_chat_action(ada.id, "typing")
    assert fake.seen.actions == [(ada.id, "typing")]
    await refused(bot.send_chat_action(ada.id, "dreaming"), "wrong parameter action")


async def test_the_bots_own_reaction(fake: FakeTelegram, bot: Bot, ada: Person) -> None:
    await bot.get_updates(allowed_updates=ALL)
    hers = ada.says("hi")
    await bot.set_message_reaction(ada.id, hers, "👌")
    assert ada.chat.messages[hers].reactions[bot.id] == [{"type": "emoji", "emoji": "👌"}]
    await bot.set_message_reaction(ada.id, hers)
    assert ada.chat.messages[hers].reactions[bot.id] == []
    assert len(fake.updates.pending) == 1, "nobody is told of a bot's reaction"
    await refused(bot.set_message_reaction(ada.id, hers, "🦖"), "REACTION_INVALID")
    await refused(bot.set_message_reaction(ada.id, hers, ["👌", "👍"]), "REACTIONS_TOO_MANY")
    await refused(bot.set_message_reaction(ada.id, 999, "👌"), "message to react not found")


# -- presses and prompts


async def test_a_press_is_answered_once_and_by_a_toast(bot: Bot, ada: Person) -> None:
    sent = await bot.send_message(ada.id, "4", reply_markup=keyboard("good", "bad"))
    ada.presses_label(sent.message_id, "bad")
    [update] = await bot.get_updates()
    query = update.callback_query
    assert (query.data, query.message.message_id) == ("bad", sent.message_id)
    assert query.message.reply_markup.inline_keyboard[0][1].callback_data == "bad"
    await query.answer("Bad. 12 of 40.")
    assert [toast.text for toast in ada.toasts] == ["Bad. 12 of 40."]
    await refused(query.answer("again"), "query is too old and response timeout expired")
    await refused(bot.send_message(ada.id, "x", reply_markup=keyboard("b" * 65)), "BUTTON_DATA")
    await bot.delete_message(ada.id, sent.message_id)
    ada.presses(sent.message_id, "made up")
    [*_, update] = await bot.get_updates()
    assert update.callback_query.message.date == datetime.datetime.fromtimestamp(0, datetime.UTC)


async def test_an_old_press_can_no_longer_be_answered() -> None:
    clock = VirtualClock()
    async with FakeTelegram(clock=clock) as fake, bot_on(fake) as bot:
        ada = fake.person("Ada")
        query = ada.presses((await bot.send_message(ada.id, "4")).message_id, "good")
        clock.advance(3600)
        await refused(bot.answer_callback_query(query), "query is too old")


async def test_who_is_asked_to_reply_replies(bot: Bot, ada: Person) -> None:
    telegram = require("telegram")
    prompt = await bot.send_message(
        ada.id,
        "What should it have been?",
        reply_markup=telegram.ForceReply(input_field_placeholder="Your answer"),
    )
    ada.answers("It is 4 km.")
    [update] = await bot.get_updates()
    assert update.message.reply_to_message.message_id == prompt.message_id
    long = telegram.ForceReply(input_field_placeholder="x" * 65)
    await refused(bot.send_message(ada.id, "?", reply_markup=long), "REPLY_MARKUP_INVALID")


async def test_an_edited_message_comes_as_one(bot: Bot, ada: Person) -> None:
    ada.edits(ada.says("/rl bda"), "/rl bad")
    first, second = await bot.get_updates()
    assert (first.update_id + 1, second.edited_message.text) == (second.update_id, "/rl bad")


# -- the bot itself


async def test_the_narrowest_menu_is_shown(fake: FakeTelegram, bot: Bot, ada: Person, lab: Chat) -> None:
    telegram = require("telegram")
    private = telegram.BotCommandScopeAllPrivateChats()
    await bot.set_my_commands([("rl", "Rate")])
    await bot.set_my_commands([("rl_good", "Good")], scope=private)
    await bot.set_my_commands([("rl_good", "Gut")], scope=private, language_code="de")
    shown = [one["description"] for chat in (None, lab) for one in ada.menu(chat)]
    assert shown == ["Gut", "Rate"]
    assert [c.command for c in await bot.get_my_commands(private)] == ["rl_good"]
    await bot.delete_my_commands(private, "de")
    assert [one["description"] for one in ada.menu()] == ["Good"]
    assert await bot.get_my_commands(private, "de") == ()
    await refused(bot.set_my_commands([("No", "x")]), "BOT_COMMAND_INVALID")


async def test_who_the_bot_is(fake: FakeTelegram, bot: Bot) -> None:
    me = await bot.get_me()
    assert (me.id, me.username, me.can_read_all_group_messages) == (4200001, "the_good_bot", False)
    assert (await bot.get_webhook_info()).url == ""
    wrong = bot_on(fake, WRONG_TOKEN)
    await refused(wrong.initialize(), "rejected by the server", "InvalidToken")
    await wrong.shutdown()


async def test_groups_can_be_looked_at(fake: FakeTelegram, bot: Bot, ada: Person, lab: Chat) -> None:
    assert (await bot.get_chat(lab.id)).title == "The lab"
    ada.promotes(lab)
    statuses = {member.user.id: member.status for member in await bot.get_chat_administrators(lab.id)}
    assert statuses == {ada.id: "creator", bot.id: "administrator"}
    assert (await bot.get_chat_member(lab.id, fake.person("Eve").id)).status == "left"


# -- limits and faults


@pytest.mark.parametrize(("group", "pause", "taken", "wait"), [(False, 0.0, 1, 1), (True, 1.0, 20, 40)])
async def test_telegrams_limits_are_kept(group: bool, pause: float, taken: int, wait: int) -> None:
    """One message a second in a chat, twenty a minute in a group."""
    clock = VirtualClock()
    async with FakeTelegram(clock=clock, limits=FloodLimits()) as fake, bot_on(fake) as bot:
        ada = fake.person("Ada")
        chat = fake.group("The lab", [ada]).id if group else ada.id
        for _ in range(taken):
            await bot.send_message(chat, "x")
            clock.advance(pause)
        error = await refused(bot.send_message(chat, "x"), "Flood control exceeded", "RetryAfter")
        assert _seconds(error) == wait
        clock.advance(wait)
        await bot.send_message(chat, "x")


async def test_thirty_messages_a_second_overall() -> None:
    async with FakeTelegram(clock=VirtualClock(), limits=FloodLimits()) as fake, bot_on(fake) as bot:
        people = [fake.person(f"Person {n}") for n in range(31)]
        for person in people[:30]:
            await bot.send_message(person.id, "x")
        await refused(bot.send_message(people[30].id, "x"), "Retry in 1 second", "RetryAfter")


async def test_failures_on_demand(fake: FakeTelegram, bot: Bot, ada: Person) -> None:
    fake.fail("sendMessage", 429, "Too Many Requests: retry after 7", times=2, retry_after=7)
    for _ in range(2):
        error = await refused(bot.send_message(ada.id, "x"), "Retry in 7", "RetryAfter")
        assert _seconds(error) == 7
    await bot.send_message(ada.id, "x")
    fake.fail("getMe", 502, "Bad Gateway")
    await refused(bot.get_me(), "Bad Gateway", "NetworkError")
    fake.online = False
    await refused(bot.get_me(), "", "NetworkError")
    fake.online = True
    await bot.get_me()


def _seconds(error: Any) -> int:
    pause = error.retry_after
    return pause if isinstance(pause, int) else int(pause.total_seconds())


# -- it is like Telegram


async def test_a_method_or_token_that_is_not_there(fake: FakeTelegram, bot: Bot) -> None:
    """Also what other clients send: JSON, any case."""
    aiohttp = require("aiohttp")
    async with aiohttp.ClientSession() as http:
        for path, status in (("sendNothing", 404), ("GETME", 200), ("getme", 200)):
            async with http.get(f"{fake.api}{TOKEN}/{path}") as response:
                body = await response.json()
                assert (response.status, body["ok"]) == (status, status == 200)
        wrong = {"chat_id": "nobody", "text": "x"}
        async with http.post(f"{fake.api}{TOKEN}/sendMessage", json=wrong) as response:
            assert await response.json() == {
                "ok": False,
                "error_code": 400,
                "description": "Bad Request: chat not found",
            }


def test_who_tests_without_a_fake_needs_no_aiohttp() -> None:
    code = "import sys; sys.modules['aiohttp'] = None; from goodbot.testing import ConnectorContract"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_lists_are_telegrams() -> None:
    told = standard_emoji()
    assert all(f'"{emoji}"' in told for emoji in STANDARD)
    assert told.count('"') == 2 * len(STANDARD) + 2, 'every emoji, and "emoji" itself'
    assert list(KINDS) == update_kinds()


def test_what_is_wrong_is_found() -> None:
    """The check of all the tests here can fail."""
    check: Callable[[Any], None] = lambda value: check_type("Update", value)  # noqa: E731
    check({"update_id": 1})
    for wrong in ({}, {"update_id": "1"}, {"update_id": 1, "news": {}}):
        with pytest.raises(Exception, match="Failed validating"):
            check(wrong)
