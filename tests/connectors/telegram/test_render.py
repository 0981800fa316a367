# SPDX-License-Identifier: Apache-2.0
"""Replies as Telegram gets them; every payload is checked against Telegram's own types."""

from __future__ import annotations

from typing import Any

from goodbot.api import actions
from goodbot.api.events import Button, ChannelKind, ChannelRef, Reply
from goodbot.base.text import units
from goodbot_connectors.telegram import callback, render
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors import parsing
from tests.connectors.telegram.schema import check_call

BUTTONS = (Button(action="good", label="👍 Good"), Button(action="bad", label="👎 Bad"))
TURN = "5f1e0c7a9b3d2468"
WORDS = st.sampled_from(
    [
        "@ada",
        "@",
        "ada@example.org",
        "`",
        "``",
        "`@ada`",
        "@`ada`",
        "   ```",
        "```",
        "```python",
        "@decorator",
        "😀",
        "\u202eevil",
        "word",
        "\n",
        "\ud800",
        "x" * 500,
        "@a " * 300,
    ]
)
TEXT = st.lists(WORDS | st.text(max_size=20), min_size=1, max_size=60).map(" ".join)


def channel(kind: ChannelKind = ChannelKind.PRIVATE, thread: str = "") -> ChannelRef:
    id_ = "1001" if kind is ChannelKind.PRIVATE else "-1001700000001"
    return ChannelRef(connector="telegram", account="42", id=id_, kind=kind, thread=thread)


def sent(text: str, kind: ChannelKind = ChannelKind.PRIVATE, **reply: Any) -> list[dict[str, Any]]:
    messages = render.messages(channel(kind), Reply(text=text, **reply))
    for message in messages[:3]:
        check_call("sendMessage", message)
        check_call("editMessageText", render.edit(message, 7))
    return list(messages)


@given(TEXT)
def test_every_message_is_valid_and_fits(text: str) -> None:
    for message in sent(text, ChannelKind.SHARED, reply_to="5", turn=TURN, buttons=BUTTONS):
        assert message["text"].strip()
        assert units(message["text"]) <= render.LIMIT
        message["text"].encode("utf-8")
        assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & set(message["text"])
        for entity in message.get("entities", []):
            end = entity["offset"] + entity["length"]
            assert 0 <= entity["offset"] < end <= units(message["text"])
        assert parsing.mentions_on_telegram(message["text"], message.get("entities", [])) == []


def test_neutralised_mentions_still_fit() -> None:
    messages = sent("@ab " * 3000)
    assert len(messages) > 1
    assert max(units(message["text"]) for message in messages) <= render.LIMIT


def test_buttons_carry_a_key_in_private_chats() -> None:
    [message] = sent("4", turn=TURN, buttons=BUTTONS)
    assert message["reply_markup"]["inline_keyboard"] == [
        [
            {"text": "👍 Good", "callback_data": f"good:{TURN}"},
            {"text": "👎 Bad", "callback_data": f"bad:{TURN}"},
        ]
    ]
    assert callback.read(f"good:{TURN}") == ("good", TURN)


def test_groups_get_no_buttons_unless_wanted() -> None:
    [message] = sent("4", ChannelKind.SHARED, turn=TURN, buttons=BUTTONS)
    assert "reply_markup" not in message
    reply = Reply(text="4", turn=TURN, buttons=BUTTONS)
    [message] = render.messages(channel(ChannelKind.SHARED), reply, group_buttons=True)
    assert "reply_markup" in message


def test_only_the_last_part_has_buttons_and_in_a_topic_only_the_first_answers() -> None:
    """In comments under a channel's post, which are no topic, a part that answers nothing is lost."""
    reply = Reply(text="word " * 2000, reply_to="5")
    messages = render.messages(channel(ChannelKind.SHARED), reply)
    answered = [message["reply_parameters"]["message_id"] for message in messages]
    assert answered == [5, 5, 5]
    messages = render.messages(channel(ChannelKind.SHARED, "77"), reply)
    assert ["reply_parameters" in message for message in messages] == [True, False, False]
    assert {message["message_thread_id"] for message in messages} == {77}
    messages = sent("word " * 2000, turn=TURN, buttons=BUTTONS, reply_to="5")
    assert ["reply_markup" in message for message in messages] == [False, False, True]
    assert not any("reply_parameters" in message for message in messages), "private: no need to say"


def test_code_blocks_are_entities() -> None:
    [message] = sent("😀 see @ada:\n```python\n@cache\ndef f(): ...\n```\ndone")
    assert message["text"] == "😀 see @\u2060ada:\n@cache\ndef f(): ...\ndone"
    assert message["entities"] == [{"type": "pre", "offset": 14, "length": 19, "language": "python"}]


def test_inline_code_is_an_entity_and_stays_as_it_is() -> None:
    [message] = sent("😀 Use `Vec<String>`, `` `@Override` `` and `items[0](x)`; npm i @types/node")
    text = "😀 Use Vec<String>, `@Override` and items[0](x); npm i @\u2060types/node"
    assert message["text"] == text
    found = [(entity["type"], entity["offset"], entity["length"]) for entity in message["entities"]]
    assert found == [("code", 7, 11), ("code", 20, 11), ("code", 36, 11)]


def test_code_in_a_list_is_copied_without_its_indent() -> None:
    [message] = sent("1. So:\n\n   ```java\n   @Override\n     List<T> a;\n   ```\ndone")
    assert message["text"] == "1. So:\n\n@Override\n  List<T> a;\ndone"
    assert message["entities"] == [{"type": "pre", "offset": 8, "length": 22, "language": "java"}]


def test_more_code_than_telegram_takes_stays_text_in_which_nobody_is_named() -> None:
    [message] = sent("`@ada` " * 120)
    assert len(message["entities"]) == 90
    assert message["text"].count("@\u2060ada") == 30


def test_a_block_without_code_is_shown_as_it_is() -> None:
    assert [message["text"] for message in sent("```\n```")] == ["```\n```"]


def test_links_are_not_fetched_and_nothing_is_markup() -> None:
    [message] = sent("<b>see</b> [x](https://example.org/?q=secret)")
    assert message["link_preview_options"] == {"is_disabled": True}
    assert "parse_mode" not in message


def test_an_address_is_no_mention() -> None:
    assert sent("ada@example.org")[0]["text"] == "ada@example.org"


def test_topics_and_silence() -> None:
    reply = Reply(text="4", silent=True)
    [message] = render.messages(channel(ChannelKind.SHARED, "77"), reply)
    check_call("sendMessage", message)
    assert (message["message_thread_id"], message["disable_notification"]) == (77, True)


@given(st.text(max_size=80), st.sampled_from(["", TURN]))
def test_data_fits_and_comes_back(words: str, turn: str) -> None:
    """Whatever a button of the core's is called, 64 bytes carry it, if need be as a key."""
    action = f"run:x{words.replace(chr(0), '')}"
    data = callback.write(action, turn)
    assert len(data.encode("utf-8", "surrogatepass")) <= 64
    whole = f"{action}:{turn}"
    kept = {callback.key(whole): whole} if callback.too_long(action, turn) else {}
    if words.isprintable():
        assert callback.read(data, kept) == (action, turn)
        assert callback.read(data) == (None if kept else (action, turn))


@given(st.text(max_size=80) | st.sampled_from([*actions.HINTS]).map("again:{}:t".format))
def test_foreign_data_is_nothing_or_a_key(text: str) -> None:
    data = callback.read(text)
    if data is not None:
        assert data.turn.isascii()
        assert ":" in text
        assert data.turn or data.action.startswith("run:")


def rows(*groups: tuple[Button, ...]) -> list[list[str]]:
    markup = render.keyboard(TURN, *groups)
    message = {"chat_id": 1, "text": "x", "reply_markup": markup}
    check_call("sendMessage", message)
    assert markup is not None
    return [[button["text"] for button in row] for row in markup["inline_keyboard"]]


def test_buttons_stand_in_rows_that_a_phone_can_show() -> None:
    assert [len(row) for row in rows(actions.THUMBS)] == [2]
    assert [len(row) for row in rows(actions.STAR_ROW)] == [5]
    offered = rows(actions.THUMBS, (), actions.retry_row())
    assert offered[0] == ["👍 Good", "👎 Bad"]
    assert len(offered) == 3
    assert all(sum(map(len, row)) <= render.ROW for row in offered)
    long = Button(action="run:x", label="word " * 40)
    [[label]] = rows((long,))
    assert len(label) == 60
    assert render.keyboard(TURN, (), ()) is None


def test_a_question_opens_the_keyboard_of_whoever_is_asked() -> None:
    message = render.prompt(channel(), "Why?", "What was wrong", 12)
    check_call("sendMessage", message)
    assert message["reply_markup"] == {
        "force_reply": True,
        "selective": True,
        "input_field_placeholder": "What was wrong",
    }
    assert message["reply_parameters"]["message_id"] == 12


@given(st.text(max_size=300), st.sampled_from(["", TURN]))
def test_any_label_makes_a_valid_keyboard(label: str, turn: str) -> None:
    markup = render.keyboard(turn, (Button(action="run:x", label=label or "x"),))
    check_call("sendMessage", {"chat_id": 1, "text": "x", "reply_markup": markup})


def test_toasts_are_short() -> None:
    assert render.toast("12 of 40") == "12 of 40"
    assert len(render.toast("x" * 500)) == 200
