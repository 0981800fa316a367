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
