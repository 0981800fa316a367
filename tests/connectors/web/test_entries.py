# SPDX-License-Identifier: Apache-2.0
"""What a conversation on a page holds, how long, and where an entry stands."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.events import Button, OrderKey, RatingEvent, RatingKind
from goodbot_connectors.web.entries import BOT, WRITING, YOU, PageConversation, PageEntry, PersonLabels
from goodbot_connectors.web.normalize import channel_ref, user_ref


def entry(id_: str, by: str = BOT, text: str = "x", **fields: Any) -> PageEntry:
    return PageEntry(**{"id": id_, "by": by, "text": text, "at": 1, **fields})


def rating(kind: RatingKind, **fields: Any) -> RatingEvent:
    return RatingEvent(
        **{
            "event_id": "e",
            "order": OrderKey(1),
            "user": user_ref("ada"),
            "channel": channel_ref("ada", "main"),
            "kind": kind,
            "turn": "t",
            **fields,
        }
    )


def ids(conversation: PageConversation) -> list[str]:
    return [one.id for one in conversation.entries]


def test_an_answer_stands_behind_its_question() -> None:
    talk = PageConversation(id="main")
    for one in (entry("q1", YOU), entry("q2", YOU), entry("a1", to="q1"), entry("a2", to="q2")):
        talk.put(one)
    talk.put(entry("a1-2", to="q1"))
    assert ids(talk) == ["q1", "a1", "a1-2", "q2", "a2"]
    talk.put(entry("a1", to="q1", text="another"))
    assert ids(talk) == ["q1", "a1", "a1-2", "q2", "a2"], "in its old place"


def test_only_the_newest_are_kept() -> None:
    talk = PageConversation(id="main")
    for number in range(250):
        talk.put(entry(str(number)))
    assert ids(talk) == [str(number) for number in range(50, 250)]


@pytest.mark.parametrize("letter", ["x", "ü", "🙂", "\N{EURO SIGN}"])
def test_a_conversation_has_a_bounded_number_of_bytes(letter: str) -> None:
    talk = PageConversation(id="main")
    for number in range(100):
        talk.put(entry(str(number), text=letter * 32_000, turn=f"t{number}"))
        talk.rate(rating(RatingKind.BETTER, turn=f"t{number}", text=letter * 32_000))
    assert talk.entries[-1].id == "99"
    assert {one.turn for one in talk.entries} <= set(talk.said)
    assert 3 < len(talk.entries) <= len(talk.said) <= len(talk.entries) + 1
    for dumped in (talk.dump(), PageConversation.load("main", talk.dump()).dump()):
        assert len(dumped.encode()) < 2_000_000
        assert letter in dumped


def test_what_was_said_of_answers_that_are_gone_takes_no_room() -> None:
    """A retry changes the answer of an entry."""
    talk = PageConversation(id="main")
    talk.put(entry("q", YOU))
    for number in range(100):
        talk.put(entry("a", turn=f"t{number}"))
        talk.rate(rating(RatingKind.COMMENT, turn=f"t{number}", text="x" * 32_000))
    assert ids(talk) == ["q", "a"]
    assert len(talk.said) < 20
    assert "t99" in talk.said


def test_its_size_is_that_of_what_is_in_it() -> None:
    talk = PageConversation(id="main")
    talk.ask(entry("q1", YOU, "What?"))
    for text in ("An", "An answer", "No"):
        talk.put(entry("a1", text=text, to="q1", turn="t"))
        talk.rate(rating(RatingKind.COMMENT, text=text))
    talk.put(entry("a2", text="more", to="q1"))
    talk.rate(rating(RatingKind.RETRACT, source="button"))
    assert talk.size == PageConversation.load("main", talk.dump()).size > 3000
    for one in ("a2", "a2", "q1"):
        talk.drop(one)
    assert talk.size == PageConversation.load("main", talk.dump()).size


def test_half_a_character_does_not_end_it() -> None:
    talk = PageConversation(id="main")
    talk.put(entry("a", text="a \ud83d b"))
    assert PageConversation.load("main", talk.dump()).entries[0].text == "a \ufffd b"


def test_it_is_read_as_it_was_written() -> None:
    talk = PageConversation(id="main")
    talk.put(entry("q1", YOU, "What is “it”? 🙂"))
    talk.put(entry("a1", to="q1", turn="t", buttons=(Button(action="good", label="👍"),)))
    talk.rate(rating(RatingKind.RATE, source="button", value=1.0))
    again = PageConversation.load("main", talk.dump())
    assert again == talk
    talk.put(entry("a2", state=WRITING))
    assert PageConversation.load("main", talk.dump()) == again, "half an answer is not stored"


@pytest.mark.parametrize("text", [None, "", "{", "[]", "null", '{"entries": [1, {"id": 2}]}'])
def test_what_cannot_be_read_is_nothing(text: str | None) -> None:
    assert all(not one.text for one in PageConversation.load("main", text).entries)


def test_what_was_said_of_an_answer() -> None:
    talk = PageConversation(id="main")
    for kind, fields, expected in (
        (RatingKind.RATE, {"source": "button", "value": -1.0}, {"thumb": -1}),
        (RatingKind.RATE, {"source": "stars", "value": 0.5}, {"thumb": -1, "stars": 4}),
        (RatingKind.COMMENT, {"text": "Hm."}, {"thumb": -1, "stars": 4, "comment": "Hm."}),
        (RatingKind.RETRACT, {"source": "button"}, {"stars": 4, "comment": "Hm."}),
        (RatingKind.BETTER, {"text": "4"}, {"stars": 4, "comment": "Hm.", "better": "4"}),
        (RatingKind.RETRACT, {"source": ""}, {}),
    ):
        assert talk.rate(rating(kind, **fields)) == expected


def test_the_ledger_knows_better() -> None:
    said = {"thumb": 1, "comment": "Hm."}
    assert PersonLabels({"t": {"thumb": -1}}, complete=True).over("t", said) == {
        "thumb": -1,
        "comment": "Hm.",
    }
    assert PersonLabels({}, complete=True).over("t", said) == {"comment": "Hm."}
    assert PersonLabels({}, complete=False).over("t", said) == said


def test_a_title_is_one_short_line() -> None:
    talk = PageConversation(id="main")
    assert talk.title == ""
    talk.put(entry("q1", YOU, "What is\n\n  the best way to say something long? " * 3))
    assert talk.title.startswith("What is the best way")
    assert len(talk.title) <= 60
