# SPDX-License-Identifier: Apache-2.0
"""What pages send, as events."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from goodbot.api.events import (
    ChannelKind,
    CommandEvent,
    Event,
    MessageEvent,
    PressEvent,
    RatingEvent,
    RatingKind,
)
from goodbot.base.errors import UsageError
from goodbot_connectors.web import normalize
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_800_000_000_000
VALUES: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.lists(st.text(), max_size=2),
    st.dictionaries(st.text(), st.text(), max_size=2),
    st.sampled_from(["good", "star:3", "again:long", "button", "main", "a1", "/rl", "/rl good"]),
)
NAMES = ("id", "in", "at", "say", "press", "undo", "comment", "better", "turn", "message")


def event(**json: Any) -> Event:
    return normalize.event({"id": "a1", "in": "main", "at": NOW, **json}, user="ada", alias="f00", now_ms=NOW)


def test_a_message_is_told_as_it_was_typed() -> None:
    said = event(say="  one\ntwo  ")
    assert isinstance(said, MessageEvent)
    assert (said.text, said.message_id, said.addressed) == ("one\ntwo", "a1", True)
    assert (said.channel.id, said.channel.thread) == ("ada", "main")
    assert said.channel.kind is ChannelKind.PRIVATE
    assert said.event_id == "f00-a1", "no user's id is in it"


@pytest.mark.parametrize(
    ("typed", "name", "args"),
    [
        ("/rl", "help", ""),
        ("/RL Status", "Status", ""),
        ("/rl  good  t1 ", "good", "t1"),
        ("/rl better It is\nfour.", "better", "It is\nfour."),
        ("/good", "good", ""),
        ("/Better\nIt is four.", "Better", "It is four."),
        ("/?", "?", ""),
    ],
)
def test_commands_are_typed(typed: str, name: str, args: str) -> None:
    command = event(say=typed)
    assert isinstance(command, CommandEvent)
    assert (command.name, command.args) == (name, args)


def test_what_only_looks_like_a_command_is_said() -> None:
    assert isinstance(event(say="/rlx good"), MessageEvent)
    assert isinstance(event(say="say /rl good"), MessageEvent)


@pytest.mark.parametrize(
    ("action", "source", "value"),
    [("good", "button", 1.0), ("bad", "button", -1.0), ("star:2", "stars", -0.5)],
)
def test_presses_that_rate(action: str, source: str, value: float) -> None:
    rate = event(press=action, turn="t1", message="a-a1")
    assert isinstance(rate, RatingEvent)
    assert (rate.kind, rate.source, rate.value) == (RatingKind.RATE, source, value)
    assert (rate.turn, rate.message_id) == ("t1", "a-a1")


def test_other_presses_are_the_core_s_to_understand() -> None:
    press = event(press="again:long", turn="t1", message="a-a1")
    assert isinstance(press, PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:long", "t1", "a-a1")
    assert event(press="run:reset yes") == PressEvent(
        event_id="f00-a1", order=press.order, user=press.user, channel=press.channel, action="run:reset yes"
    )


@pytest.mark.parametrize("source", ["", "button", "stars"])
def test_taking_back(source: str) -> None:
    back = event(undo=source, turn="t1")
    assert isinstance(back, RatingEvent)
    assert (back.kind, back.source, back.value) == (RatingKind.RETRACT, source, None)


def test_a_page_s_clock_is_believed_as_far_as_it_can_be() -> None:
    hour = 3_600_000
    for at, believed in ((NOW - hour, NOW - hour), (NOW + hour, NOW), (NOW - 8 * 24 * hour, NOW)):
        assert event(say="x", at=at).order.time_ms == believed
    for at in (None, True, "1", 1.5):
        assert event(say="x", at=at).order.time_ms == NOW


def test_too_long_is_told_in_numbers() -> None:
    with pytest.raises(UsageError, match="at most 32000 characters"):
        event(say="x" * 32_001)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_whatever_is_sent_is_an_event_or_a_sentence(json: dict[str, Any]) -> None:
    made: Event | None = None
    with contextlib.suppress(UsageError):
        made = normalize.event(json, user="ada", alias="f00", now_ms=NOW)
    if made is not None:
        assert made.event_id.startswith("f00-")
        assert made.user.id == made.channel.id == "ada"
        for name in ("event_id", "text", "action", "args", "name", "turn"):
            str(getattr(made, name, "")).encode()  # no lone surrogate
