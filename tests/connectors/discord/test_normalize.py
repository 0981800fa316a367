# SPDX-License-Identifier: Apache-2.0
"""Dispatches as Discord sends them, and as nobody should, against the events that they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, CommandEvent, Event, MessageEvent, OrderKey, RatingEvent
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC, emoji, markdown, presses
from goodbot_connectors.discord.config import DiscordSettings
from goodbot_connectors.discord.identity import BotIdentity
from goodbot_connectors.discord.places import Places
from goodbot_connectors.discord.snowflake import Timeline, at, identifier, order, time_ms
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.discord import schema
from tests.connectors.recorded import facts, recordings, shown
from tests.support import require, within

require("discord")

from goodbot_connectors.discord.normalize import Normalizer, Stamp  # noqa: E402  needs discord.py

BOT, ADA, LAB = "1440000000000000000", "1440000004194304000", "1440000020971520000"
THREAD = "1440000113246208000"
STAMP = Stamp("5e55:7", OrderKey(1763000000000, "x"))


def cases(*files: str) -> dict[str, dict[str, Any]]:
    found = recordings("discord")
    return {name: case for name, case in found.items() if name.partition(":")[0] in files}


RECORDINGS = cases("messages", "reactions", "interactions")
EVERY = pytest.mark.parametrize("case", RECORDINGS.values(), ids=RECORDINGS.keys())


def normalizer(tmp: Path | None = None, *, content: bool = True, **more: Any) -> Normalizer:
    """One that knows its threads, and has spoken in one of them."""
    places = Places(RecordingHost(SPEC, state_dir=tmp or Path()))
    for case in cases("places").values():
        places.note(case["dispatch"], case["payload"])
    places.kept._values[THREAD] = f"s:{LAB}:1"
    settings = DiscordSettings(good=(*DiscordSettings().good, "<:party:1412345678901234567>"))
    return Normalizer(
        me=BotIdentity(user=BOT, application=BOT),
        values=emoji.values(settings),
        places=places,
        content=content,
        **more,
    )


NORMALIZER = normalizer()


def events(case: dict[str, Any], normalize: Normalizer = NORMALIZER, **changes: Any) -> list[Event]:
    payload = json.loads(json.dumps(case["payload"])) | changes
    return list(normalize.events(case["dispatch"], payload, STAMP))


@EVERY
def test_recorded(case: dict[str, Any]) -> None:
    assert shown(events(case), case["events"]) == case["events"]


@EVERY
def test_recordings_are_what_discord_sends(case: dict[str, Any]) -> None:
    schema.require()
    schema.check_event(case["dispatch"], case["payload"])


@EVERY
def test_a_dispatch_is_the_same_event_whenever_it_comes_again(case: dict[str, Any]) -> None:
    first, again = events(case), events(case)
    assert first == again
    assert len({event.event_id for event in first}) == len(first)


@EVERY
def test_no_id_of_an_event_names_a_person(case: dict[str, Any]) -> None:
    """It is kept longer than what it stands for, also of somebody who is forgotten."""
    for event in events(case):
        assert event.user.id not in event.event_id


@EVERY
def test_nothing_of_bots_and_webhooks_is_taken(case: dict[str, Any]) -> None:
    payload = case["payload"]
    as_bot = {"user": {**payload.get("user", {}), "bot": True}} if "user" in payload else {}
    if "member" in payload and "user" in payload["member"]:
        who = {**payload["member"]["user"], "bot": True}
        as_bot["member"] = {**payload["member"], "user": who}
    if "author" in payload:
        as_bot["author"] = {**payload["author"], "bot": True}
        assert events(case, webhook_id="1440000000000000077") == []
    if as_bot:
        assert events(case, **as_bot) == []


@pytest.mark.parametrize("case", cases("interactions").values())
def test_an_interaction_of_another_application_is_not_ours(case: dict[str, Any]) -> None:
    assert events(case, application_id="1440000000000000077") == []


def test_what_another_server_announces_here_is_not_said_to_us() -> None:
    assert events(RECORDINGS["messages: mention"], flags=1 << 1) == []


def test_a_reply_to_another_place_s_message_answers_nothing_here() -> None:
    case = RECORDINGS["messages: reply with a ping"]
    elsewhere = {**case["payload"]["message_reference"], "channel_id": "1440000000000000077"}
    [event] = events(case, message_reference=elsewhere)
    assert isinstance(event, MessageEvent)
    assert event.reply_to == ""


@pytest.mark.parametrize("words", ["/rl\ngood", "/rl\tgood", "/rl\u00a0good", "/RL good"])
def test_a_word_of_a_command_ends_at_any_white_space(words: str) -> None:
    [event] = events(RECORDINGS["messages: command in a direct message"], content=words)
    assert isinstance(event, CommandEvent)
    assert (event.name, event.args) == ("good", "")


def test_a_forwarded_message_is_noted_and_not_obeyed() -> None:
    case = RECORDINGS["messages: command in a direct message"]
    forward = {**case["payload"], "content": "", "message_reference": {"type": 1}}
    words = {"message": {"content": "/rl reset yes"}}
    [event] = events(case, **forward | {"message_snapshots": [words]})
    assert isinstance(event, MessageEvent)
    assert (event.text, event.attachments) == ("", ("forwarded message",))


def test_without_the_intent_words_in_a_thread_need_a_mention() -> None:
    without = normalizer(content=False)
    assert events(RECORDINGS["messages: later words in our thread"], without) == []
    assert len(events(RECORDINGS["messages: mention in a thread"], without)) == 1


def test_who_wrote_a_message_that_is_reacted_to_need_not_be_told() -> None:
    case = RECORDINGS["reactions: on somebody else's message"]
    assert case["payload"]["message_author_id"] == ADA
    assert events(case) == []
    payload = {k: v for k, v in case["payload"].items() if k != "message_author_id"}
    assert len(NORMALIZER.events(case["dispatch"], payload, STAMP)) == 1, "the core knows whose it is"


def test_a_super_reaction_is_another_than_the_plain_one() -> None:
    """Each is taken back by itself: one that stands still rates."""
    sources = {
        burst: [
            event.source
            for name in ("good", "taken back")
            for event in events(RECORDINGS[f"reactions: {name}"], burst=burst)
            if isinstance(event, RatingEvent)
        ]
        for burst in (False, True)
    }
    assert sources == {False: ["reaction:👍"] * 2, True: ["reaction:👍!"] * 2}
    assert emoji.of_source("reaction:👍!") == emoji.of_source("reaction:👍") == "👍"


def test_a_command_of_anywhere_else_is_answered_to_its_person_alone() -> None:
    """Whoever has installed the bot uses it where it is no member, in a group for example."""
    case = RECORDINGS["interactions: slash"]
    group = {**case["payload"]["channel"], "type": 3}
    [event] = events(case, channel=group, context=2)
    assert event.channel.kind is ChannelKind.SHARED
    [event] = events(case, context=None)
    assert event.channel.kind is ChannelKind.PRIVATE, "a client of before contexts"


def test_an_offer_in_a_direct_message_is_about_an_answer_in_its_channel() -> None:
    case = RECORDINGS["interactions: press, another answer"]
    offer = case["payload"]["message"] | {"flags": 0}
    about = "1440000071303168000"
    kept = {offer["id"]: f"{ADA} {LAB} {THREAD} {about}"}
    [event] = events(case, normalizer(offers=kept), message=offer)
    facts_ = facts(event)
    assert (facts_["channel"], facts_["thread"], facts_["kind"]) == (LAB, THREAD, "shared")
    assert facts_["message_id"] == about
    form = RECORDINGS["interactions: form"]
    for event in events(form, normalizer(offers=kept), message=offer):
        assert (event.channel.id, event.channel.thread) == (LAB, THREAD)


def test_a_button_that_is_not_ours_is_nothing() -> None:
    case = RECORDINGS["interactions: press, bad"]
    for custom_id in (
        "",
        "x",
        "gb",
        "gb|t|m|",
        "gb|../..||good",
        "gb|t|9x|good",
        "gb|t||#unknown",
        "a|b|c|good",
    ):
        assert events(case, data={"component_type": 2, "custom_id": custom_id}) == [], custom_id
    kept = normalizer(actions={"#k": "run:status"})
    [event] = events(case, kept, data={"component_type": 2, "custom_id": "gb|t||#k"})
    assert facts(event)["action"] == "run:status"


def test_a_reaction_comes_after_what_was_seen_before_it_and_before_what_comes_next() -> None:
    """Whatever our own clock shows: it is a minute ahead, then an hour behind."""
    for lead in (60_000, -3_600_000):
        timeline = Timeline()
        first, second = str(at(1_763_000_000_000) + 5), str(at(1_763_000_002_000) + 1)
        timeline.seen(first, 1_763_000_000_050 + lead)
        one, two = (timeline.now(n, 1_763_000_001_000 + lead) for n in (9, 10))
        timeline.seen(second, 1_763_000_002_050 + lead)
        three = timeline.now(11, 1_763_000_002_100 + lead)
        assert order(first) < one < two < order(second) < three
        assert timeline.moment_ms(1_763_000_003_000 + lead) > three.time_ms
        late = timeline.now(12, 1_763_000_602_000 + lead)
        assert 560_000 < late.time_ms - three.time_ms <= 600_000, "it does not stand still either"


@given(
    st.lists(
        st.tuples(
            st.integers(-200_000_000, 200_000_000),  # our clock jumps
            st.integers(0, 600_000),  # so much time passes
            st.sampled_from(["message", "reaction", "session", "sweep"]),
        ),
        max_size=20,
    )
)
def test_what_our_own_clock_has_a_part_in_is_never_taken_for_discord_s(
    steps: list[tuple[int, int, str]],
) -> None:
    """Else a reaction in a jump would count for more than every press after it."""
    timeline, true, ours, newest = Timeline(), 1_763_000_000_000, 1_763_000_000_000, 0
    for number, (jump, passes, what) in enumerate(steps):
        true, ours = true + passes + 1, ours + passes + jump
        match what:
            case "message":
                timeline.seen(str(at(true)), ours)
                newest = at(true)
            case "session":
                timeline.began(ours)
            case "sweep":
                timeline.moment_ms(ours)
            case _:
                told = timeline.now(number, ours)
                assert told.ours or told.time_ms <= time_ms(str(newest)), (told, newest)


def test_a_new_session_goes_on_in_time_though_it_counts_from_one() -> None:
    timeline = Timeline()
    timeline.seen(str(at(1_763_000_000_000)), 1_763_000_000_000)
    before = timeline.now(500, 1_763_000_001_000)
    timeline.began(1_763_000_002_000)
    assert timeline.now(2, 1_763_000_002_000) > before
    last = timeline.now(900, 1_763_000_002_000)
    timeline.began(1_763_000_002_000)
    assert timeline.now(2, 1_763_000_002_000) > last, "in the same moment, too"
    looked = timeline.moment_ms(1_763_000_002_500)
    assert timeline.now(3, 1_763_000_002_500).time_ms > looked
    timeline.seen(str(at(9_000_000_000_000)), 1_763_000_003_000)
    assert timeline.now(3, 1_763_000_003_000).time_ms < 1_763_000_010_000, "an absurd id is none"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("👍🏽", "👍"),
        ("❤️", "❤"),
        (" 👍 ", "👍"),
        ("<:yay:1412345678901234567>", "1412345678901234567"),
        ("<a:yay:1412345678901234567>", "1412345678901234567"),
        ("yay:1412345678901234567", "1412345678901234567"),
        ("1412345678901234567", "1412345678901234567"),
        ("❤\u200d🔥", "❤\u200d🔥"),
    ],
)
def test_emoji_are_told_apart_by_what_they_are_to_a_person(given: str, key: str) -> None:
    assert emoji.key(given) == key


def test_an_emoji_is_good_or_bad_and_not_both() -> None:
    settings = DiscordSettings()
    good, bad = ({emoji.key(one) for one in some} for some in (settings.good, settings.bad))
    assert good.isdisjoint(bad)
    assert emoji.values(settings) == dict.fromkeys(good, 1.0) | dict.fromkeys(bad, -1.0)


@pytest.mark.parametrize("value", [None, 7, "", "0", "-1", "12x", "1" * 20, "９", "\ud800"])
def test_what_is_no_id(value: object) -> None:
    assert identifier(value) == ""


def test_an_id_tells_its_time() -> None:
    assert time_ms("175928847299117063") == 1_462_015_105_796  # Discord's own example
    assert time_ms(str(at(1_462_015_105_796))) == 1_462_015_105_796


@pytest.mark.parametrize(
    ("said", "text", "ids"),
    [
        (f"<@{BOT}> hello", "hello", "hello"),
        (f"<@!{BOT}>, hello", "hello", "hello"),
        (f"hello <@{BOT}> there", "hello there", "hello there"),
        (f"<@{BOT}> who is <@{ADA}>?", "who is @Ada?", f"who is {ADA}?"),
        (f"<@{BOT}> <:yay:1> <a:no:2>", ":yay: :no:", ":yay: :no:"),
        (f"<@{BOT}>: hello", "hello", "hello"),
        (f"<@{BOT}>", "", ""),
        ("a\x00b", "ab", "ab"),
        ("1 < 2 and <@&77> <#78>", "1 < 2 and @77 #78", "1 < 2 and @77 #78"),
    ],
)
def test_markdown_is_read_as_plain_words(said: str, text: str, ids: str) -> None:
    words = markdown.read(said, BOT, [{"id": ADA, "global_name": "Ada"}, {"id": BOT, "username": "g"}])
    assert (words.text, words.ids) == (text, ids)


SIGNS = st.sampled_from(
    [
        f"<@{BOT}>",
        f"<@!{ADA}>",
        "<@",
        "<",
        ">",
        "<:a:1>",
        "<#1>",
        "<@&1>",
        "rl",
        "/rl",
        "\x00",
        "\ud800",
        "\n",
    ]
)
TEXTS = st.lists(SIGNS | st.text(max_size=5), max_size=12).map("".join)


@given(TEXTS)
def test_any_text_can_be_read(text: str) -> None:
    words = markdown.read(text, BOT, [{"id": ADA, "username": "ada"}])
    words.text.encode()
    assert f"<@{BOT}>" not in words.text
    assert "\x00" not in words.ids


def test_a_hostile_text_is_read_in_time() -> None:
    for text in ("<" * 40_000, "<@" * 20_000, "<a:" * 13_000, f"<@{BOT}>" * 2000, "<:" + "a" * 40_000):
        with within(1):
            markdown.read(text, BOT, [])


@given(st.text(max_size=120))
def test_no_custom_id_raises(text: str) -> None:
    action, about = presses.read(text, {})
    assert action == "" or text.startswith("gb|")
    assert len(about.turn) <= 48


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(sorted({case["dispatch"] for case in RECORDINGS.values()}))


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, object]:
    """A recorded dispatch with some of its values replaced by anything."""
    case = draw(st.sampled_from(list(RECORDINGS.values())))
    payload: Any = json.loads(json.dumps(case["payload"]))
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
    return case["dispatch"], payload


@given(damaged() | st.tuples(NAMES, JSON))
def test_no_dispatch_raises(dispatch: tuple[str, object]) -> None:
    name, payload = dispatch
    for event in NORMALIZER.events(name, payload, STAMP):
        assert event.event_id
        assert event.user.id not in ("", BOT)
        assert event.channel.id
        assert event.order.time_ms >= 0
        if isinstance(event, CommandEvent):
            assert event.name
    places = Places(RecordingHost(SPEC, state_dir=Path()))
    for other in ("GUILD_CREATE", "THREAD_CREATE", "THREAD_DELETE", "THREAD_LIST_SYNC"):
        places.note(other, payload)
