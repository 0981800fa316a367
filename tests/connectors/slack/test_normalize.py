# SPDX-License-Identifier: Apache-2.0
"""Payloads as Slack sends them, and as nobody should, against the events that they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from goodbot.api.events import CommandEvent, MessageEvent
from goodbot_connectors.slack import emoji, mrkdwn, presses
from goodbot_connectors.slack.config import SlackSettings
from goodbot_connectors.slack.emoji import emoji_key
from goodbot_connectors.slack.identity import BotIdentity
from goodbot_connectors.slack.normalize import EVENTS, Normalizer
from goodbot_connectors.slack.threads import Threads
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.recorded import recordings, shown
from tests.connectors.slack import schema
from tests.support import within

ME = BotIdentity(user="U0G00DB0T", team="T0G00DB0T", bot="B0G00DB0T", name="goodbot")
SETTINGS = SlackSettings(good=(*SlackSettings().good, ":party_parrot:"))
NOW_MS = 1795299999000
RECORDINGS = recordings("slack")
EVERY = pytest.mark.parametrize("case", RECORDINGS.values(), ids=RECORDINGS.keys())


def normalizer() -> Normalizer:
    """One that has answered in a direct message and in a channel."""
    threads = Threads()
    threads.note("D0ADA0001", "1795291534.000200", "1795291540.000100", answer=True)
    threads.note("C0LAB0001", "1795290000.000100", "1795290010.000100", answer=True)
    return Normalizer(me=ME, values=emoji.values(SETTINGS), threads=threads)


NORMALIZER = normalizer()


@EVERY
def test_recorded(case: dict[str, Any]) -> None:
    assert shown(NORMALIZER.events(case["payload"], NOW_MS), case["events"]) == case["events"]


UNTYPED = {
    "messages: a thread reply that is sent to the channel too",
    "messages: joined",
    "messages: an integration without a user",
    "reactions: on a file",
    "reactions: author unknown",
}
"""Payloads that Slack's documentation shows and its types do not have."""


@pytest.mark.skipif(bool(schema.unavailable()), reason=schema.unavailable())
@pytest.mark.parametrize("name", sorted(RECORDINGS.keys() - UNTYPED))
def test_recordings_are_what_slack_sends(name: str) -> None:
    payload = RECORDINGS[name]["payload"]
    kind = "slash_commands" if "command" in payload else "interactive"
    kind = "events_api" if payload.get("type") == "event_callback" else kind
    schema.check_payload(kind, payload)


@EVERY
def test_a_delivery_is_the_same_event_whenever_it_comes_again(case: dict[str, Any]) -> None:
    first = NORMALIZER.events(case["payload"], NOW_MS)
    again = NORMALIZER.events(case["payload"], NOW_MS + 60_000)
    assert [event.event_id for event in first] == [event.event_id for event in again]
    assert len({event.event_id for event in first}) == len(first)


def test_every_event_that_is_asked_for_is_recorded() -> None:
    recorded = {case["payload"].get("event", {}).get("type") for case in RECORDINGS.values()}
    assert {name.partition(".")[0] for name in EVENTS} <= recorded


def test_two_presses_and_two_texts_are_two_events() -> None:
    good = RECORDINGS["presses: good"]["payload"]
    later = json.loads(json.dumps(good).replace("1795291550.123456", "1795291551.000000"))
    [one], [two] = NORMALIZER.events(good), NORMALIZER.events(later)
    assert one.event_id != two.event_id
    assert one.order < two.order
    modal = RECORDINGS["presses: modal, reason and better answer"]["payload"]
    other = json.loads(json.dumps(modal).replace("too long", "too short"))
    assert NORMALIZER.events(modal)[0].event_id != NORMALIZER.events(other)[0].event_id


def test_the_shortcut_opens_the_modal_and_knows_what_is_not_ours() -> None:
    body = RECORDINGS["presses: shortcut"]["payload"]
    opening = presses.opening(body, ME.user)
    assert opening is not None
    assert (opening.ours, opening.rate, opening.user) == (True, True, "U0ADA0001")
    assert opening.about.message == "1795291540.000100"
    body = body | {"message": body["message"] | {"user": "U0B0B0002"}}
    foreign = presses.opening(body, ME.user)
    assert foreign is not None
    assert not foreign.ours


def test_say_why_opens_the_modal_for_that_answer() -> None:
    opening = presses.opening(RECORDINGS["presses: say why"]["payload"], ME.user)
    assert opening is not None
    assert not opening.rate
    about = presses.load(opening.about.dump())
    assert (about.turn, about.message) == ("5f1e0c7a9b3d2468", "1795291540.000100")
    assert (about.channel, about.thread) == ("D0ADA0001", "1795291534.000200")
    assert presses.opening(RECORDINGS["presses: good"]["payload"], ME.user) is None


@EVERY
def test_same_id_other_workspace_denied(case: dict[str, Any]) -> None:
    """An id is somebody in one workspace only; the app may be in several."""
    payload = json.loads(json.dumps(case["payload"]).replace(ME.team, "T0THER001"))
    assert NORMALIZER.events(payload, NOW_MS) == ()
    assert ME.foreign(payload)


@pytest.mark.parametrize("field", ["user_team", "source_team"])
def test_a_guest_of_a_shared_channel_is_nobody(field: str) -> None:
    for name, case in RECORDINGS.items():
        payload = json.loads(json.dumps(case["payload"]))
        if payload.get("type") == "event_callback":
            payload["event"][field] = "T0THER001"
        elif "user" in payload:
            payload["user"]["team_id"] = "T0THER001"
        else:
            continue
        assert NORMALIZER.events(payload, NOW_MS) == (), name


def test_words_that_stand_in_blocks_alone_are_read() -> None:
    """As the clients send them: `text` is what apps make of it, and may be empty."""
    words = [
        {"type": "user", "user_id": ME.user},
        {"type": "text", "text": " is 2 < 3 &amp; see "},
        {"type": "link", "url": "https://e.example", "text": "here"},
        {"type": "emoji", "name": "wave"},
    ]
    section = {"type": "rich_text_section", "elements": words}
    item = {"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]}
    listed = {"type": "rich_text_list", "elements": [item]}
    event = {
        "type": "message",
        "user": "U0ADA0001",
        "ts": "1795291534.000200",
        "channel": "D0ADA0001",
        "team": ME.team,
        "text": "",
        "blocks": [{"type": "rich_text", "elements": [section, listed]}],
    }
    body = {"type": "event_callback", "event_id": "Ev1", "team_id": ME.team, "event": event}
    [found] = normalizer().events(body)
    assert isinstance(found, MessageEvent)
    assert found.text == "is 2 < 3 &amp; see here (https://e.example):wave:\none"


def test_a_forwarded_message_is_named_and_not_taken_for_ones_own_words() -> None:
    shared = {"is_share": True, "is_msg_unfurl": True, "text": "my secret", "author_id": "U0BOB0001"}
    event = {
        "type": "message",
        "user": "U0ADA0001",
        "ts": "1795291534.000200",
        "channel": "D0ADA0001",
        "team": ME.team,
        "text": "",
        "attachments": [shared],
    }
    body = {"type": "event_callback", "event_id": "Ev1", "team_id": ME.team, "event": event}
    [found] = normalizer().events(body)
    assert isinstance(found, MessageEvent)
    assert (found.text, found.attachments) == ("", ("forwarded message",))


def test_an_edit_is_no_command() -> None:
    """Slack tells an edit that mentions us as an app_mention with the message's old `ts`."""
    mention = {
        "type": "app_mention",
        "user": "U0ADA0001",
        "ts": "1795291600.000100",
        "channel": "C0LAB0001",
        "text": f"<@{ME.user}> rl reset",
    }
    edited = {"edited": {"user": "U0ADA0001", "ts": "1795291700.000000"}}

    def events(**event: Any) -> list[str]:
        body = {"type": "event_callback", "team_id": ME.team, "event": mention | event}
        return [type(event).__name__ for event in NORMALIZER.events(body)]

    assert events() == events(type="message") == ["CommandEvent"]
    assert events(**edited) == events(**edited, type="message") == []
    assert events(**edited, text=f"<@{ME.user}> hello") == []
    again = events(**edited, type="message", text=f"<@{ME.user}> hello")
    assert again == ["MessageEvent"], "read after an outage"


@pytest.mark.parametrize(
    ("said", "names"), [("undo", False), ("u", False), ("stars 0", False), ("good", True), ("stars 4", True)]
)
def test_taking_back_is_about_what_this_person_rated_last(said: str, names: bool) -> None:
    body = {
        "command": "/rl",
        "text": said,
        "user_id": "U0ADA0001",
        "team_id": ME.team,
        "channel_id": "C0LAB0001",
        "trigger_id": "1.2.3",
    }
    [slash] = NORMALIZER.events(body, NOW_MS)
    event = {
        "type": "app_mention",
        "user": "U0ADA0001",
        "ts": "1795291600.000100",
        "channel": "C0LAB0001",
        "text": f"<@{ME.user}> rl {said}",
    }
    [typed] = NORMALIZER.events({"type": "event_callback", "team_id": ME.team, "event": event}, NOW_MS)
    for command in (slash, typed):
        assert isinstance(command, CommandEvent)
        assert command.reply_to == ("1795290010.000100" if names else "")


@pytest.mark.parametrize(
    "words", ["rl note\nmy pager", "rl note  my pager", "rl\nnote my pager", "/rl\u00a0note\tmy pager"]
)
def test_a_word_of_a_command_ends_at_any_white_space(words: str) -> None:
    event = {
        "type": "app_mention",
        "user": "U0ADA0001",
        "ts": "1795291600.000100",
        "channel": "C0LAB0001",
        "text": f"<@{ME.user}> {words}",
    }
    [typed] = NORMALIZER.events({"type": "event_callback", "team_id": ME.team, "event": event}, NOW_MS)
    assert isinstance(typed, CommandEvent)
    assert (typed.name, typed.args) == ("note", "my pager")


@EVERY
def test_no_id_of_an_event_names_a_person(case: dict[str, Any]) -> None:
    """It is kept longer than what it stands for, also of somebody who is forgotten."""
    for event in NORMALIZER.events(case["payload"], NOW_MS):
        assert event.user.id not in event.event_id


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("thumbsup", "+1"),
        (":+1::skin-tone-4:", "+1"),
        ("👍", "+1"),
        ("❤️", "heart"),
        ("poop", "hankey"),
        ("my-own_1", "my-own_1"),
    ],
)
def test_emoji_names(name: str, key: str) -> None:
    assert emoji_key(name) == key


def test_an_emoji_is_good_or_bad_and_not_both() -> None:
    settings = SlackSettings()
    good, bad = ({emoji_key(name) for name in names} for names in (settings.good, settings.bad))
    assert good.isdisjoint(bad)
    assert emoji.values(settings) == dict.fromkeys(good, 1.0) | dict.fromkeys(bad, -1.0)


def test_threads_outlive_a_restart() -> None:
    threads = Threads()
    for n in range(1000):
        threads.note("C1", f"{n}.0", f"{n}.1", answer=n % 2 == 0)
    second = Threads()
    second.load(threads.dump())
    assert second.ours("C1", "999.0") == "999.1"
    assert second.answer("C1") == "998.1"
    assert second.answer("C1", "999.0") == ""
    assert second.root("C1", "998.1") == "998.0"
    assert second.ours("C1", "1.0") == "", "only the newest are kept"
    for broken in (None, "", "{", "7", '["x"]', '[{"channel": 7}]'):
        Threads().load(broken)


def test_s6_who_began_a_thread_outlives_a_restart_and_takes_it_along() -> None:
    """In shared channels those go, too, of which nobody knows who began them."""
    threads = Threads()
    places = (("C1", "0.0", "UADA"), ("C1", "1.0", "UBOB"), ("C1", "2.0", ""), ("D2", "3.0", ""))
    for channel, root, who in places:
        threads.began(channel, root, who)
        threads.note(channel, root, f"{root}1", answer=True)
    second = Threads()
    second.load(threads.dump())
    second.note("C1", "0.0", "0.02", answer=True)
    assert "UADA" in second.dump()
    second.forget("UADA")
    assert [thread.root for thread in second.newest()] == ["3.0", "1.0"]
    assert (second.root("C1", "0.01"), second.root("C1", "1.01")) == ("", "1.0")
    second.forget("UBOB")
    second.drop("D2")
    assert second.dump() == ""


SPECIAL = st.sampled_from(
    [
        f"<@{ME.user}>",
        "<@U1|ada>",
        "<",
        ">",
        "|",
        "<!here>",
        "<#C1|lab>",
        "&lt;",
        "&amp;",
        "<http://a|b>",
        "<>",
        "<|>",
        "<@>",
        "rl",
        "/rl",
        "\x00",
        "\ud800",
        "\n",
    ]
)
TEXTS = st.lists(SPECIAL | st.text(max_size=5), max_size=12).map("".join)


@given(TEXTS)
def test_any_text_can_be_read(text: str) -> None:
    words = mrkdwn.read(text, ME.user)
    words.text.encode()
    if "&" not in text:
        assert f"<@{ME.user}>" not in words.text
    assert words.mentioned == (f"<@{ME.user}>" in text)


def test_a_hostile_text_is_read_in_time() -> None:
    for text in ("<" * 40_000, "<@" * 20_000, "<a|" * 13_000, f"<@{ME.user}>" * 3000, "&" * 40_000):
        with within(1):
            mrkdwn.read(text, ME.user)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def damaged(draw: st.DrawFn) -> object:
    """A recorded payload with some of its values replaced by anything."""
    payload: Any = json.loads(json.dumps(draw(st.sampled_from(list(RECORDINGS.values())))["payload"]))
    for _ in range(draw(st.integers(1, 3))):
        place = payload
        while isinstance(place, (dict, list)) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            name = draw(st.sampled_from(keys))
            if isinstance(place[name], (dict, list)) and place[name] and draw(st.booleans()):
                place = place[name]
                continue
            place[name] = draw(JSON)
            break
    return payload


@given(damaged() | JSON)
def test_no_payload_raises(payload: object) -> None:
    for event in NORMALIZER.events(payload, NOW_MS):
        assert event.event_id
        assert event.user.id not in ("", ME.user)
        assert event.channel.id
        assert event.order.time_ms >= 0
    if isinstance(payload, dict):
        presses.opening(payload, ME.user)
