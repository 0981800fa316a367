# SPDX-License-Identifier: Apache-2.0
"""F14: comments, topics and other places of Telegram, and words and reactions as its clients send them."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, CommandEvent, MessageEvent, RatingEvent, Reply
from goodbot_connectors.telegram import emoji, render
from goodbot_connectors.telegram.config import TelegramSettings
from goodbot_connectors.telegram.normalize import BotIdentity, Normalizer

NORMALIZER = Normalizer(
    me=BotIdentity(id="7000", username="GoodBot"), values=emoji.values(TelegramSettings())
)
BOT = {"id": 7000, "is_bot": True, "first_name": "G", "username": "GoodBot"}
PRIVATE = {"id": 42, "type": "private"}


def message(**more: Any) -> dict[str, Any]:
    made = {
        "message_id": 1,
        "date": 1795291534,
        "from": {"id": 42, "is_bot": False, "first_name": "Ada"},
        "chat": {"id": -1001, "type": "supergroup", "title": "g", "is_forum": True},
        **more,
    }
    return {"update_id": 1, "message": made}


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


def called(text: str, at: int = 0, **more: Any) -> dict[str, Any]:
    return message(text=text, entities=[entity("mention", at, 8)], **more)


def typed(text: str, length: int = 3, **more: Any) -> dict[str, Any]:
    return message(text=text, entities=[entity("bot_command", 0, length)], **more)


TOPIC = {"message_thread_id": 77, "is_topic_message": True}
CHAT = {"id": -1001, "type": "supergroup"}
# What somebody says to us: the words, the topic, and what they answer.
TALK: dict[str, tuple[dict[str, Any], tuple[str, str, str] | None]] = {
    "a mention behind an emoji": (called("👩‍👩‍👧 @GoodBot hi", 9), ("👩‍👩‍👧 hi", "", "")),
    "a mention in Hebrew": (called("שלום @GoodBot מה", 5), ("שלום מה", "", "")),
    "in a topic": (called("@GoodBot hi", **TOPIC), ("hi", "77", "")),
    "in a topic, whose first message is told as answered": (
        called(
            "@GoodBot hi",
            **TOPIC,
            reply_to_message={"message_id": 77, "forum_topic_created": {"name": "x"}, "from": BOT},
        ),
        ("hi", "77", ""),
    ),
    "an answer to us in the general topic": (
        message(
            text="thanks!",
            message_thread_id=55,
            reply_to_message={"message_id": 55, "from": BOT, "text": "hello"},
        ),
        ("thanks!", "", "55"),
    ),
    "a comment under a channel's post": (
        called(
            "@GoodBot what?",
            message_thread_id=12,
            reply_to_message={
                "message_id": 12,
                "from": {"id": 777000, "is_bot": False},
                "sender_chat": {"id": -100222},
            },
        ),
        ("what?", "", "12"),
    ),
    "in a topic of a private chat": (
        message(text="hi", chat=PRIVATE, message_thread_id=9, is_topic_message=True),
        ("hi", "9", ""),
    ),
    "a quotation out of another chat": (
        message(
            text="and this?",
            chat=PRIVATE,
            external_reply={"origin": {}},
            quote={"text": "part", "position": 0},
        ),
        ("and this?", "", ""),
    ),
    "our name as a mention": (
        message(text="Good Bot, hi", entities=[entity("text_mention", 0, 8, user=BOT)]),
        ("hi", "", ""),
    ),
    # Nobody who speaks to us.
    "people in a topic that we have made": (
        message(
            text="just chatting among people",
            **TOPIC,
            reply_to_message={"message_id": 77, "from": BOT, "forum_topic_edited": {"name": "y"}},
        ),
        None,
    ),
    "people in a topic whose first message is out of reach": (
        message(text="chat", **TOPIC, reply_to_message={"message_id": 77, "date": 0, "chat": CHAT}),
        None,
    ),
    "an administrator without a name": (
        typed(
            "/rl status",
            sender_chat=CHAT,
            **{"from": {"id": 1087968824, "is_bot": True, "username": "GroupAnonymousBot"}},
        ),
        None,
    ),
    "a channel's post, forwarded by Telegram": (
        called(
            "@GoodBot hi",
            sender_chat={"id": -100222, "type": "channel"},
            is_automatic_forward=True,
            **{"from": {"id": 777000, "is_bot": False, "first_name": "Telegram"}},
        ),
        None,
    ),
    "an edit": ({"update_id": 2, "edited_message": message(text="hi", chat=PRIVATE)["message"]}, None),
    "a message of a business": ({"update_id": 2, "business_message": message(text="x")["message"]}, None),
    "a command of another bot": (typed("/start@OtherBot", 15, chat=PRIVATE), None),
    "direct messages of a channel": (
        message(text="hi", chat={"id": -100333, "type": "supergroup", "is_direct_messages": True}),
        None,
    ),
    # Siblings: other scripts around the mention, other messages of Telegram's own at a topic's beginning.
    "a mention behind a flag and in Thai": (called("🏴‍☠️ @GoodBot สวัสดี", 6), ("🏴‍☠️ สวัสดี", "", "")),
    "a mention behind signs of four bytes": (called("𐍈𐍈 @GoodBot ok", 5), ("𐍈𐍈 ok", "", "")),
    "a mention in other letters' case": (called("@goodBOT hi"), ("hi", "", "")),
    "people in a topic of ours that was closed": (
        message(
            text="so", **TOPIC, reply_to_message={"message_id": 77, "from": BOT, "forum_topic_closed": {}}
        ),
        None,
    ),
    "an answer to us in a topic": (
        message(text="thanks!", **TOPIC, reply_to_message={"message_id": 80, "from": BOT, "text": "hello"}),
        ("thanks!", "77", "80"),
    ),
    "a comment that answers us": (
        message(
            text="thanks!",
            message_thread_id=12,
            reply_to_message={"message_id": 14, "from": BOT, "text": "hello"},
        ),
        ("thanks!", "", "14"),
    ),
}


@pytest.mark.parametrize("name", TALK)
def test_f14_who_speaks_to_us_is_heard_where_they_speak(name: str) -> None:
    update, expected = TALK[name]
    found = [
        (event.text, event.channel.thread, event.reply_to)
        for event in NORMALIZER.events(update)
        if isinstance(event, MessageEvent)
    ]
    assert found == ([] if expected is None else [expected])
    assert len(NORMALIZER.events(update)) == len(found)


COMMANDS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "in the general topic, as an answer": (
        typed("/rl good", message_thread_id=55, reply_to_message={"message_id": 55, "from": BOT}),
        ("good", "", "55"),
    ),
    "over two lines": (typed("/rl\ngood", chat=PRIVATE), ("good", "", "")),
    "with our name in another case": (typed("/RL@goodbot Good", 11), ("Good", "", "")),
    "bold": (
        message(text="/rl good", entities=[entity("bold", 0, 8), entity("bot_command", 0, 3)], chat=PRIVATE),
        ("good", "", ""),
    ),
    # `I` and `1` are in no code: it is not taken for one.
    "a link with something that is no code": (typed("/start PAIR-1234", 6, chat=PRIVATE), ("help", "", "")),
    # Siblings.
    "in a topic": (typed("/rl good", **TOPIC), ("good", "77", "")),
    "in a topic, whose first message is told as answered": (
        typed("/rl good", **TOPIC, reply_to_message={"message_id": 77, "from": BOT, "date": 0}),
        ("good", "77", ""),
    ),
    "italic and bold": (
        message(
            text="/rl good",
            entities=[entity("italic", 0, 8), entity("bold", 0, 8), entity("bot_command", 0, 3)],
            chat=PRIVATE,
        ),
        ("good", "", ""),
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_f14_a_command_is_one_wherever_and_however_it_is_typed(name: str) -> None:
    update, expected = COMMANDS[name]
    [event] = NORMALIZER.events(update)
    assert isinstance(event, CommandEvent)
    assert (event.name, event.channel.thread, event.reply_to) == expected


def test_f14_a_command_that_stands_behind_words_is_none() -> None:
    for text, at in ((" /rl good", 1), ("try /rl good", 4)):
        update = message(text=text, entities=[entity("bot_command", at, 3)], chat=PRIVATE)
        [event] = NORMALIZER.events(update)
        assert isinstance(event, MessageEvent)
    caption = [entity("bot_command", 0, 3)]
    update = message(caption="/rl good", caption_entities=caption, photo=[{"file_id": "x"}], chat=PRIVATE)
    [event] = NORMALIZER.events(update)
    assert isinstance(event, MessageEvent)
    assert (event.text, event.attachments) == ("/rl good", ("image",))


def reaction(*new: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = {
        "chat": CHAT,
        "message_id": 5,
        "date": 1795291534,
        "user": {"id": 42, "is_bot": False, "first_name": "A"},
        "old_reaction": [],
        "new_reaction": list(new),
        **more,
    }
    return {"update_id": 1, "message_reaction": made}


def sign(text: str) -> dict[str, str]:
    return {"type": "emoji", "emoji": text}


REACTIONS: dict[str, tuple[dict[str, Any], list[tuple[str, float | None]]]] = {
    "a thumb with its variant": (reaction(sign("👍️")), [("reaction:👍", 1.0)]),
    "paid": (reaction({"type": "paid"}), []),
    "a skin tone": (reaction(sign("👍🏽")), [("reaction:👍", 1.0)]),
    "an emoji of somebody's own": (reaction({"type": "custom_emoji", "custom_emoji_id": "53"}), []),
    "a heart without its variant": (reaction(sign("❤")), [("reaction:❤", 1.0)]),
    "nobody in particular": (reaction(sign("👍"), user=None, actor_chat={"id": -1001}), []),
    # Siblings.
    "a heart with its variant": (reaction(sign("❤️")), [("reaction:❤", 1.0)]),
    "a burning heart": (reaction(sign("❤️‍🔥")), [("reaction:❤‍🔥", 1.0)]),
    "a dark thumb down": (reaction(sign("👎🏿")), [("reaction:👎", -1.0)]),
    "the tone changes": (reaction(sign("👍🏽"), old_reaction=[sign("👍")]), []),
    "paid beside a thumb": (reaction({"type": "paid"}, sign("👍")), [("reaction:👍", 1.0)]),
}


@pytest.mark.parametrize("name", REACTIONS)
def test_f14_reactions_are_what_people_mean_by_them(name: str) -> None:
    update, expected = REACTIONS[name]
    found = NORMALIZER.events(update)
    assert all(isinstance(event, RatingEvent) for event in found)
    assert [(event.source, event.value) for event in found if isinstance(event, RatingEvent)] == expected


@pytest.mark.parametrize("words", ["word " * 2500, "слово " * 2500, "🎉" * 6000, "字" * 12_500])
def test_f14_every_part_of_a_long_answer_stands_under_the_post(words: str) -> None:
    place = ChannelRef(connector="telegram", account="1", id="-1001", kind=ChannelKind.SHARED)
    parts = render.messages(place, Reply(text=words, reply_to="12"))
    assert len(parts) > 2
    assert {part["reply_parameters"]["message_id"] for part in parts} == {12}
    assert not [part for part in parts if "message_thread_id" in part]
