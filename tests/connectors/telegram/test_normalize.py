# SPDX-License-Identifier: Apache-2.0
"""Updates as Telegram sends them, and as nobody should, against the events that they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from goodbot.api.commands import find
from goodbot.api.events import CommandEvent, MessageEvent
from goodbot_connectors.telegram import attachments, callback, emoji
from goodbot_connectors.telegram.config import TelegramSettings
from goodbot_connectors.telegram.intake import migration, next_offset, query_ids
from goodbot_connectors.telegram.normalize import BotIdentity, Normalizer
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.recorded import recordings, shown
from tests.connectors.telegram.schema import check_type, standard_emoji

ME = BotIdentity(id="4200001", username="the_good_bot")
SETTINGS = TelegramSettings(good=(*TelegramSettings().good, "5210952531676504517"))
LONG = "run:rollback since 2026-11-21T18:30:00+00:00 yes because it became rude"
KEPT = {callback.key(f"{LONG}:5f1e"): f"{LONG}:5f1e"}
NORMALIZER = Normalizer(me=ME, values=emoji.values(SETTINGS), kept=KEPT)
RECORDINGS = recordings("telegram")
EVERY = pytest.mark.parametrize("case", RECORDINGS.values(), ids=RECORDINGS.keys())


@EVERY
def test_recorded(case: dict[str, Any]) -> None:
    assert shown(NORMALIZER.events(case["update"]), case["events"]) == case["events"]


@EVERY
def test_recordings_are_what_telegram_sends(case: dict[str, Any]) -> None:
    check_type("Update", case["update"])


def test_ids_and_order_are_those_of_the_update() -> None:
    case = RECORDINGS["reactions: changed"]
    back, rate = NORMALIZER.events(case["update"])
    update_id = case["update"]["update_id"]
    assert (back.event_id, rate.event_id) == (f"{update_id}:0", f"{update_id}:1")
    assert back.order < rate.order
    assert NORMALIZER.events(case["update"]) == (back, rate)


@pytest.mark.parametrize("ours", [True, False])
def test_what_somebody_chose_to_quote_of_our_answer_is_read_with_the_question(ours: bool) -> None:
    update = json.loads(json.dumps(RECORDINGS["presses: good"]["update"]))
    target = update.pop("callback_query")["message"]
    person = RECORDINGS["presses: good"]["update"]["callback_query"]["from"]
    if not ours:
        target["from"] = {**person, "id": 1002}
    update["message"] = {
        "message_id": 13,
        "from": person,
        "chat": target["chat"],
        "date": 1789000000,
        "text": "Why so?",
        "reply_to_message": target,
        "quote": {"text": "An\nanswer", "position": 0, "is_manual": True},
    }
    check_type("Update", update)
    [event] = NORMALIZER.events(update)
    assert isinstance(event, MessageEvent)
    assert event.text == ("> An\n> answer\n\nWhy so?" if ours else "Why so?"), "others' words stay theirs"
    del update["message"]["quote"]["is_manual"]  # Telegram has put it there by itself
    [event] = NORMALIZER.events(update)
    assert isinstance(event, MessageEvent)
    assert event.text == "Why so?"


def test_queries_are_found_by_the_event_that_they_become() -> None:
    update = RECORDINGS["presses: good"]["update"]
    [event] = NORMALIZER.events(update)
    assert query_ids([update]) == {event.event_id: "4300001"}


def test_the_default_emoji_are_telegrams() -> None:
    known = standard_emoji()
    settings = TelegramSettings()
    assert all(f'"{emoji.key(each)}"' in known for each in settings.good + settings.bad)
    assert not {*map(emoji.key, settings.good)} & {*map(emoji.key, settings.bad)}
    assert f'"{settings.mark}"' in known, "our own reaction, too"


# Anything at all

LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
ANYTHING = st.recursive(
    LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=15
)
PERSON = st.fixed_dictionaries(
    {
        "id": st.sampled_from([1001, 4200001, 2**60, True, "1001"]),
        "is_bot": st.sampled_from([True, False, 0, None]),
    }
)
CHAT = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**55), 2**55),
        "type": st.sampled_from(["private", "group", "supergroup", "channel", "", 3]),
    }
)
ENTITY = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["mention", "bot_command", "text_mention", "x"]),
        "offset": st.integers(-3, 40),
        "length": st.integers(-3, 40),
    }
)
TEXT = st.sampled_from(["/rl good", "/rl", "@the_good_bot hi", "\ud83d", "/rl@the_good_bot\x00"]) | st.text()
REACTION = st.fixed_dictionaries(
    {"type": st.sampled_from(["emoji", "custom_emoji", "paid"]), "emoji": st.sampled_from(["👍", "👎🏽", ""])}
)
MESSAGE = st.fixed_dictionaries(
    {"message_id": st.integers() | ANYTHING, "chat": CHAT | ANYTHING, "from": PERSON | ANYTHING},
    optional={
        "text": TEXT,
        "caption": TEXT,
        "date": st.integers(),
        "entities": st.lists(ENTITY) | ANYTHING,
        "reply_to_message": ANYTHING,
        "via_bot": ANYTHING,
        "sender_chat": ANYTHING,
        "user": PERSON,
        "quote": ANYTHING,
        "message_thread_id": ANYTHING,
        "is_topic_message": ANYTHING,
        "forward_origin": ANYTHING,
        "old_reaction": st.lists(REACTION) | ANYTHING,
        "new_reaction": st.lists(REACTION) | ANYTHING,
        "data": st.sampled_from(
            [
                "good:t",
                "bad:",
                "good:\ud800",
                "star:3:t",
                "again:long:t",
                "again:x:t",
                "run:off:",
                "run::",
                "reason:t",
                "better:t",
                "note:t",
                "#0",
                *KEPT,
            ]
        )
        | ANYTHING,
        "photo": ANYTHING,
        "document": st.dictionaries(st.just("file_name"), TEXT) | ANYTHING,
        "media_group_id": ANYTHING,
        "migrate_to_chat_id": st.integers() | ANYTHING,
        "message": st.fixed_dictionaries({"chat": CHAT, "message_id": st.integers()}) | ANYTHING,
    },
)
UPDATE = st.fixed_dictionaries(
    {"update_id": st.integers(0, 2**40) | ANYTHING},
    optional={"message": MESSAGE, "message_reaction": MESSAGE, "callback_query": MESSAGE},
)


@given(UPDATE | ANYTHING, st.integers(0, 2**42))
def test_whatever_comes_it_never_raises(update: Any, since_ms: int) -> None:
    events = NORMALIZER.events(update, since_ms)
    assert len({event.event_id for event in events}) == len(events)
    assert NORMALIZER.events(update, since_ms) == events
    assert not (events and NORMALIZER.prompt(update)), "an event, or a wish to type"
    for look in (NORMALIZER.quoted, migration, lambda one: query_ids([one]), lambda one: next_offset([one])):
        look(update)
    for event in events:
        assert 0 <= event.order.time_ms < 2**63
        repr(event).encode("utf-8")  # can be stored


@pytest.mark.parametrize("is_bot", [True, None, 0, "false"])
@pytest.mark.parametrize("name", ["messages: command", "reactions: good", "presses: good"])
def test_who_is_not_said_to_be_a_person_is_none(name: str, is_bot: object) -> None:
    update = json.loads(json.dumps(RECORDINGS[name]["update"]))
    [part] = [value for key, value in update.items() if key != "update_id"]
    person = part["user"] if "user" in part else part["from"]
    assert len(NORMALIZER.events(update)) == 1
    person["is_bot"] = is_bot
    assert NORMALIZER.events(update) == ()
    person |= {"is_bot": False, "id": int(ME.id)}
    assert NORMALIZER.events(update) == (), "our own account"


def test_numbers_that_no_database_holds_count_as_absent() -> None:
    update = json.loads(json.dumps(RECORDINGS["messages: private"]["update"]))
    update["message"]["date"] = 2**62
    [event] = NORMALIZER.events(update)
    assert event.order.time_ms == 0
    assert NORMALIZER.events(update | {"update_id": 2**70}) == ()


@given(TEXT, st.lists(ENTITY), st.booleans())
def test_what_is_not_meant_for_us_leaves_no_text(text: str, entities: list[Any], old: bool) -> None:
    message = {
        "message_id": 1,
        "date": 1,
        "text": text,
        "entities": entities,
        "chat": {"id": -5, "type": "supergroup"},
        "from": {"id": 1001, "is_bot": False},
    } | ({"forward_date": 1} if old else {})
    if NORMALIZER.events({"update_id": 1, "message": message}):
        word = text.casefold()
        assert "@the_good_bot" in word or word.startswith(("/rl", "/start"))


@pytest.mark.parametrize(
    ("text", "kind", "meant"),
    [
        ("/start ABCD-2345", "private", "ABCD-2345"),
        ("/start abcd2345", "private", "abcd2345"),
        ("/start", "private", None),
        ("/start x-9", "private", None),
        ("/start ABCD-2345", "supergroup", None),
    ],
)
def test_the_link_that_pairs_sends_its_code_as_if_it_was_typed(
    text: str, kind: str, meant: str | None
) -> None:
    update = {
        "update_id": 1,
        "message": {
            "message_id": 1,
            "date": 1,
            "text": text,
            "entities": [{"type": "bot_command", "offset": 0, "length": 6}],
            "chat": {"id": 5, "type": kind},
            "from": {"id": 5, "is_bot": False},
        },
    }
    [event] = NORMALIZER.events(update)
    if meant is None:
        assert isinstance(event, CommandEvent)
        found = find(event.name)
        assert found is not None
        assert found.name == "help"
    else:
        assert isinstance(event, MessageEvent)
        assert event.text == meant


@given(st.text(max_size=200))
def test_a_files_name_is_a_short_line_of_text(name: str) -> None:
    [shown] = attachments.names({"document": {"file_name": name}})
    assert shown.startswith("file")
    assert len(shown) <= 70
    assert not set(shown) & set("/\\\n\r\x00\u202e\u2028")
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({"photo": [{"file_id": "x"}]}, ("image",)),
        ({"document": {"file_name": "report.pdf"}}, ("file report.pdf",)),
        ({"document": {"file_id": "x"}}, ("file",)),
        ({"document": {"file_name": "../../etc/passwd"}}, ("file .. .. etc passwd",)),
        ({"document": {"file_name": "a" * 200 + ".pdf"}}, (f"file {'a' * 55}….pdf",)),
        ({"animation": {"file_id": "x"}, "document": {"file_name": "x.mp4"}}, ("animation",)),
        ({"venue": {"title": "x"}, "location": {"latitude": 1.0}}, ("place",)),
        ({"voice": {"duration": 3}}, ("voice message",)),
        ({"contact": {"phone_number": "+49", "first_name": "Ada"}}, ("contact",)),
        ({"text": "nothing", "photo": [], "new_kind": {"a": 1}}, ()),
    ],
)
def test_attachments_are_named_as_people_call_them(message: dict[str, Any], names: tuple[str, ...]) -> None:
    assert attachments.names(message) == names
