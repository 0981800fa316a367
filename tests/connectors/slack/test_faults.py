# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between Slack and us: each time one rating, and an acknowledgement after the commit."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import goodbot_connectors.slack as plugin
import pytest
from goodbot.api.connector import OpenTurn
from goodbot.api.events import ChannelKind, MessageEvent, MessageRef, RatingEvent, RatingKind, Reply
from goodbot.base.clock import SystemClock
from goodbot.daemon.app import App
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import GOOD, build, eventually
from goodbot.testing.connector_ratings import opinion
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack import SPEC, transport
from goodbot_fakes.slack import FakeSlack, Message, Pace, signing

from tests.connectors.slack.conftest import VIRTUAL, pass_time
from tests.connectors.slack.peer import EMOJI, SlackPeer, action_of
from tests.connectors.stalling import stalled
from tests.core.builders import Fake, rows, until
from tests.end_to_end.beside import goodbot
from tests.support import free_port

SHARED = ChannelKind.SHARED
PATIENT = pytest.mark.parametrize("slack", [Pace(ack=0.5, retries=(0.0, *[0.3] * 60))], indirect=True)


@pytest.fixture(autouse=True)
def quick_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """slack_sdk notices a dead connection, and tries again, every so many real seconds."""
    monkeypatch.setattr(transport, "_PING", 0.1)


@pytest.fixture
async def app(peer: SlackPeer, slack: FakeSlack, tmp_path: Path) -> AsyncIterator[App]:
    """A whole goodbot on a fake model, on Slack's clock."""
    section = {"owners": [slack.people.id("ada")], "api_base": slack.api_url, "append_interval": 0.02}
    fake = Fake(tmp_path / "fake")
    async with goodbot(tmp_path / "bot", plugin, section, peer.environ, fake=fake, clock=slack.clock) as app:
        yield app


async def answered(slack: FakeSlack, app: App, text: str = "hello") -> Message:
    """Ada asks in private; the whole answer, which its turn knows."""
    question = slack.people.say("ada", text)

    def whole() -> list[Message]:
        found = slack.workspace.in_channel(question.channel)
        return [m for m in found if m.thread_ts == question.ts and m.streaming != "in_progress"]

    async def known() -> bool:
        return bool(whole()) and await messages(app, whole()[0]) == 1

    await until(known)
    return whole()[0]


async def messages(app: App, message: Message) -> int:
    found = await rows(app.store, "SELECT COUNT(*) FROM messages WHERE message = ?", (message.ts,))
    return found[0][0]


async def rated(app: App) -> list[tuple[float, ...]]:
    return await rows(app.store, "SELECT value FROM labels WHERE value IS NOT NULL")


# -- acknowledged after the commit, and in time


@VIRTUAL
async def test_with_the_database_stalled_2_9_seconds_slack_is_told_in_time_and_after_the_commit(
    slack: FakeSlack, app: App
) -> None:
    answer = await answered(slack, app)
    await slack.settled()
    with stalled(app, slack.clock, 2.9) as stalls:
        slack.people.react("ada", answer.channel, answer.ts, "+1")
        delivery = slack.outbox.log[-1]
        await until(stalls.begins.is_set)
        await pass_time(slack, 2.85)
        assert (delivery.state, delivery.attempts) == ("pending", 1)
        assert not stalls.committed.is_set()
        await pass_time(slack, 0.06)
        await until(lambda: delivery.state == "acknowledged")
        assert stalls.committed.is_set()
    assert delivery.attempts == 1, "within Slack's three seconds"
    await pass_time(slack, 5.0)
    assert await rated(app) == [(1.0,)]


@VIRTUAL
async def test_with_the_database_stalled_too_long_slack_tells_it_again_and_it_counts_once(
    slack: FakeSlack, app: App
) -> None:
    answer = await answered(slack, app)
    await slack.settled()
    with stalled(app, slack.clock, 3.5) as stalls:
        slack.people.react("ada", answer.channel, answer.ts, "+1")
        delivery = slack.outbox.log[-1]
        await until(lambda: stalls.begun == 1)
        await pass_time(slack, 3.2)
        await until(lambda: stalls.begun == 2)
        await pass_time(slack, 0.4)
        await until(lambda: rated(app))
        assert (delivery.state, delivery.attempts) == ("pending", 2), "that was too late"
    while delivery.attempts < 3:
        await pass_time(slack, 1.0)
    await until(lambda: delivery.state == "acknowledged")
    assert await rated(app) == [(1.0,)]
    assert await rows(app.store, "SELECT COUNT(*) FROM events") == [(1,)]


async def test_what_the_store_refuses_is_not_acknowledged(
    slack: FakeSlack, host: RecordingHost, connector: Any
) -> None:
    """Over a button, too: nobody is told that it worked when it did not."""
    host.refuse(100)
    slack.people.say("ada", "the disk is full")
    await host.wait(lambda: len(host.attempts) >= 2)
    assert slack.sockets.acks == []
    host.refuse(0)
    await host.received(MessageEvent)
    await slack.settled()
    assert slack.sockets.acks


# -- one rating, however often it is told


@PATIENT
async def test_retries_on_several_sockets_disconnects_and_reconnects_give_one_rating(
    slack: FakeSlack, app: App
) -> None:
    answer = await answered(slack, app)
    url = f"{slack.api_url}apps.connections.open"
    bearer = {"Authorization": f"Bearer {slack.app.app_token}"}
    async with aiohttp.ClientSession() as http:
        async with http.post(url, headers=bearer) as opened:
            other = await http.ws_connect((await opened.json())["url"])
        assert len(slack.sockets) == 2
        slack.people.react("ada", answer.channel, answer.ts, "+1")  # may land where nobody acks
        slack.people.react("ada", answer.channel, answer.ts, "tada")
        await slack.sockets.disconnect("warning")
        slack.people.press("ada", answer, lambda element: "good" in element.value)
        await slack.until(lambda: all(d.attempts for d in slack.outbox.log))
        await slack.sockets.disconnect("refresh_requested")
        slack.people.unreact("ada", answer.channel, answer.ts, "tada")
        await slack.until(lambda: len(slack.sockets) >= 1)
        slack.sockets.drop()
        for delivery in list(slack.outbox.log):
            if delivery.kind == "events_api":
                slack.redeliver(delivery)
        await slack.settled()
        await other.close()
    assert await rated(app) == [(1.0,)]
    told = await rows(app.store, "SELECT kind, source FROM events ORDER BY kind, source")
    told = [row for row in told if row[1].startswith("reaction")]
    assert told == [("rate", "reaction:+1"), ("rate", "reaction:tada"), ("retract", "reaction:tada")]


async def test_undo_takes_back_what_this_person_rated_last(slack: FakeSlack, app: App) -> None:
    """Not our last answer, which is all that a command without a thread could name."""
    first = await answered(slack, app)
    await answered(slack, app, "another")
    slack.people.react("ada", first.channel, first.ts, "+1")
    await until(lambda: rated(app))
    for said in ("Taken back.", "there is nothing to undo here"):
        slack.people.command("ada", "undo")
        await until(lambda word=said: any(word in n.text for n in slack.people.notices("ada")))
        assert await rated(app) == []


class _Ahead(SystemClock):
    """Slack's, three minutes ahead of the machine's, as after a laptop's sleep."""

    def __init__(self, seconds: float = 180) -> None:
        self._seconds = seconds

    def now(self) -> float:
        return super().now() + self._seconds


@pytest.mark.parametrize("ahead", [True, False])
async def test_what_is_told_counts_though_slacks_clock_is_another(tmp_path: Path, ahead: bool) -> None:
    """It has the reactions' times, the machine those of slash commands."""
    slacks, ours = (_Ahead(), SystemClock()) if ahead else (SystemClock(), _Ahead())
    async with FakeSlack(pace=Pace(ack=0.5, retries=(0.0, 0.3)), clock=slacks) as slack:
        peer, fake = SlackPeer(slack), Fake(tmp_path / "fake")
        section = {"owners": [slack.people.id("ada")], "api_base": slack.api_url, "append_interval": 0.02}
        async with goodbot(tmp_path / "bot", plugin, section, peer.environ, fake=fake, clock=ours) as app:
            message = await answered(slack, app)
            slack.people.react("ada", message.channel, message.ts, "+1")
            await until(lambda: rated(app))
            await until(lambda: slack.people.notices("ada"))  # it comes after what it tells
            steps: list[tuple[str, str, list[tuple[float, ...]]]] = [
                ("bad", "Bad.", [(-1.0,)]),
                ("undo", "Taken back.", []),
            ]
            for said, told, label in (*steps, *steps):
                before = len(slack.people.notices("ada"))
                slack.people.command("ada", said)
                await until(lambda n=before: len(slack.people.notices("ada")) > n)
                assert slack.people.notices("ada")[-1].text.startswith(told)
                assert await rated(app) == label
            slack.people.react("ada", message.channel, message.ts, "heart")
            await until(lambda: rated(app))  # later than what the machine's clock said


async def test_a_warning_alone_changes_nothing(slack: FakeSlack, host: RecordingHost, connector: Any) -> None:
    await slack.sockets.disconnect("warning")
    slack.people.say("ada", "still there?")
    await host.received(MessageEvent)
    await slack.settled()
    assert len(host.events) == 1


# -- limits


async def test_a_limit_is_obeyed_and_the_answer_goes_out_once(
    slack: FakeSlack, peer: SlackPeer, tmp_path: Path
) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=clock)
    connector = build(SPEC, host, peer)
    await connector.start()
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    slack.faults.rate_limit("chat.postMessage", seconds=7, times=2)
    before = len(clock.slept)
    await connector.send(asked.channel, Reply(text="4", turn="abc", buttons=(GOOD,)))
    pauses = [pause for pause in clock.slept[before:] if pause >= 7]
    assert len(pauses) == 2
    assert all(7 <= pause <= 9 for pause in pauses), "with a little more, by chance"
    assert pauses[0] != pauses[1]
    assert [post.text for post in await peer.posts()] == ["4"]
    await connector.stop()
    await host.close()


async def test_a_limit_in_the_middle_of_a_stream_costs_no_words(
    slack: FakeSlack, peer: SlackPeer, host: RecordingHost, connector: Any
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    words = [f"word{n} " for n in range(30)]
    for n, word in enumerate(words):
        if n == 3:
            slack.faults.rate_limit("chat.appendStream", seconds=1)
        await stream.append(word)
        await asyncio.sleep(0.01)
    await stream.finish(Reply(text="".join(words).strip(), turn="abc"))
    [post] = await peer.posts()
    assert post.text == "".join(words).strip()
    limited = [call for call in slack.calls if call.status == 429]
    assert len(limited) == 1


async def test_a_stream_that_slack_has_ended_becomes_a_whole_message(
    slack: FakeSlack, peer: SlackPeer, host: RecordingHost, connector: Any
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    await stream.append("It begins")
    slack.faults.refuse("chat.stopStream", "message_not_in_streaming_state")
    [begun] = [m for m in slack.workspace.messages.values() if m.streaming == "in_progress"]
    begun.streaming = "completed"
    await stream.finish(Reply(text="It begins and ends.", turn="abc", buttons=(GOOD,)))
    [post] = await peer.posts()
    assert (post.text, post.buttons) == ("It begins and ends.", ("good",))


@pytest.mark.parametrize("stored", [False, True])
async def test_where_no_message_can_be_edited_the_answer_comes_as_another(
    stored: bool, slack: FakeSlack, peer: SlackPeer, host: RecordingHost, connector: Any
) -> None:
    """A workspace may allow no edits; or somebody has deleted what was to be edited."""

    async def keep(_: object) -> None: ...

    await peer.say("hello", room=ChannelKind.SHARED, mention=True)
    [asked] = await host.received(MessageEvent)
    slack.faults.refuse("chat.update", "edit_window_closed", times=9)
    stream = connector.stream(asked.channel, asked.message_id)
    if stored:
        stream.keep = keep
    [ref] = await stream.finish(Reply(text="An answer.", turn="abc"))
    if not stored:
        [ref] = await connector.replace([ref], asked.channel).finish(Reply(text="An answer!", turn="abc"))
    shown = slack.workspace.messages[ref.channel.id, ref.id]
    assert shown.text.rstrip("!.") == "An answer"


async def test_where_no_message_can_be_edited_no_second_answer_begins_without_its_words(
    slack: FakeSlack, peer: SlackPeer, host: RecordingHost, connector: Any
) -> None:
    """Each would leave “Thinking …” behind."""

    async def keep(_: object) -> None: ...

    slack.faults.refuse("chat.update", "edit_window_closed", times=9)
    await peer.say("hello", room=ChannelKind.SHARED, mention=True)
    [asked] = await host.received(MessageEvent)
    for text in ("One.", "Two."):
        stream = connector.stream(asked.channel, asked.message_id)
        stream.keep = keep
        await stream.finish(Reply(text=text, turn="abc"))
    ours = [one for one in slack.workspace.messages.values() if slack.workspace.users[one.user].bot_id]
    assert [one.text for one in ours] == ["One.", "Two."]
    assert len([one for one in slack.calls if one.method == "chat.update"]) == 1


# -- outages


@VIRTUAL
async def test_a_network_dead_for_ten_minutes_loses_nothing(slack: FakeSlack, app: App) -> None:
    """Slack gives an event up after six minutes; what it gave up is asked for."""
    answer = await answered(slack, app)
    other = await answered(slack, app, "another")
    await slack.settled()
    slack.people.react("ada", other.channel, other.ts, "-1")
    await slack.settled()
    slack.cut()
    slack.people.react("ada", answer.channel, answer.ts, "+1")
    slack.people.unreact("ada", other.channel, other.ts, "-1")
    first = slack.people.say("ada", "said at the beginning of it")
    await pass_time(slack, 500)
    assert [d.state for d in slack.outbox.log[-3:]] == ["lost"] * 3
    third = slack.people.say("ada", "said at the end of it")
    slack.people.react("ada", other.channel, other.ts, "tada")
    assert "is down" in app.connectors.troubles["slack"], "`status` says so meanwhile"
    await pass_time(slack, 100)
    slack.mend()

    async def back() -> bool:
        await pass_time(slack, 5)
        return len(slack.sockets) == 1

    await eventually(back, 30)

    async def all_there() -> bool:
        await pass_time(slack, 10)
        found = await rows(app.store, "SELECT value FROM labels WHERE value IS NOT NULL")
        return found == [(1.0,), (1.0,)]

    await eventually(all_there, 30)

    async def replied() -> bool:
        await pass_time(slack, 20)
        found = slack.workspace.in_channel(third.channel)
        answers = [m.thread_ts for m in found if m.user == slack.app.user.id]
        return [answers.count(root.ts) for root in (first, third)] == [1, 1]

    await eventually(replied)

    async def at_rest() -> bool:
        await pass_time(slack, 20)
        return not slack.outbox.pending

    await eventually(at_rest)
    assert await rated(app) == [(1.0,), (1.0,)], "told twice, counted once"
    assert app.connectors.troubles == {}


async def test_b1_a_question_of_an_outage_is_read_though_our_clock_is_ahead(
    slack: FakeSlack, peer: SlackPeer, tmp_path: Path
) -> None:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=_Ahead())
    first, second = build(SPEC, host, peer), build(SPEC, host, peer)
    await first.start()
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    await first.send(asked.channel, Reply(text="Hi.", turn="t"))
    await first.stop()
    slack.outbox.pace = Pace(ack=0.1, retries=())
    slack.people.say("ada", "are you there?")
    await slack.settled()
    await second.start()
    [_, missed] = await host.received(MessageEvent, 2)
    assert missed.text == "are you there?"
    await second.stop()
    await host.close()


async def test_a_restart_asks_for_reactions_that_were_missed(
    slack: FakeSlack, peer: SlackPeer, host: RecordingHost
) -> None:
    first = build(SPEC, host, peer)
    await first.start()
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    refs = [(await first.send(asked.channel, Reply(text=str(n), turn=str(n))))[0] for n in range(3)]
    await peer.react(refs[0], new="👍")
    await peer.react(refs[1], new="👎", user="bob")
    before = await host.received(RatingEvent, 2)
    await first.stop()
    slack.outbox.pace = Pace(ack=0.1, retries=())  # gone for longer than Slack has patience
    await peer.react(refs[0], old="👍", new="👎")
    await peer.react(refs[2], new="🎉", user="carl")
    await peer.react(refs[2], new="🤔", user="bob")
    await slack.settled()
    second = build(SPEC, host, peer)
    await second.start()
    known = {refs[0].id: ("ada", "+1"), refs[1].id: ("bob", "-1")}
    turns = [
        OpenTurn(turn=str(n), messages=(ref,), reactions=_known(slack, known, ref))
        for n, ref in enumerate(refs)
    ]
    found = await second.reconcile(turns)
    await second.stop()
    ratings = [event for event in found if isinstance(event, RatingEvent)]
    ada = slack.people.id("ada")
    of_ada = [event for event in (*before, *ratings) if event.user.id == ada]
    assert opinion(of_ada) == -1.0
    [carl] = [event for event in ratings if event.message_id == refs[2].id]
    assert (carl.user.id, carl.kind, carl.value) == (slack.people.id("carl"), RatingKind.RATE, 1.0)
    assert not [event for event in ratings if event.message_id == refs[1].id]


def _known(
    slack: FakeSlack, known: dict[str, tuple[str, str]], ref: MessageRef
) -> frozenset[tuple[str, str, str]]:
    if ref.id not in known:
        return frozenset()
    name, emoji = known[ref.id]
    return frozenset({(ref.id, slack.people.id(name), f"reaction:{emoji}")})


# -- signatures


@pytest.fixture
async def over_http(slack: FakeSlack, peer: SlackPeer) -> None:
    port = free_port()
    peer.settings = dataclasses.replace(peer.settings, mode="http", port=port)
    slack.app.socket_mode = False
    slack.app.request_url = f"http://127.0.0.1:{port}{peer.settings.path}"


def _kinds(slack: FakeSlack) -> dict[str, tuple[bytes, str]]:
    message = slack.workspace.told(slack.people.say("ada", "hello"))
    event = {"type": "event_callback", "event_id": "Ev1", "event": message}
    form = "application/x-www-form-urlencoded"
    command = {"command": "/rl", "text": "train", "user_id": "U1", "channel_id": "D1", "trigger_id": "1.2.3"}
    return {
        "event": (json.dumps(event).encode(), "application/json"),
        "command": (urlencode(command).encode(), form),
        "press": (urlencode({"payload": json.dumps({"type": "block_actions"})}).encode(), form),
        "nothing": (b"", "application/json"),
        # bolt answers these two before it looks at a signature, as an address is entered
        "words": (b"what is this", "text/plain"),
    }


async def test_what_slack_did_not_sign_is_refused_whatever_it_is(
    slack: FakeSlack, peer: SlackPeer, over_http: None, host: RecordingHost, connector: Any
) -> None:
    secret = slack.app.signing_secret
    wrong: list[str] = []
    slack.outbox.pace = Pace(ack=0.5, retries=())
    kinds = _kinds(slack)
    await host.received(MessageEvent)
    taken = len(host.attempts)
    for kind, (body, content_type) in kinds.items():
        for name, signed in signing.forgeries(secret, slack.clock.now(), body).items():
            status, _, text = await slack.requests.post(body, content_type, signed=signed)
            if status != 401 or secret in text:
                wrong.append(f"{kind}, {name}: {status}")
    assert wrong == []
    assert len(host.attempts) == taken
    status, _, _ = await slack.requests.post(*kinds["event"])
    assert status == 200


@pytest.mark.parametrize("ahead", [600, -600])
async def test_what_slack_signs_is_taken_though_our_clock_is_another(
    slack: FakeSlack, peer: SlackPeer, over_http: None, tmp_path: Path, ahead: float
) -> None:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=_Ahead(ahead))
    connector = build(SPEC, host, peer)
    await connector.start()
    slack.people.say("ada", "hello")
    await host.received(MessageEvent)
    await connector.stop()
    await host.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"event": []}',
        b'{"type": "event_callback", "event": {"type": "message", "ts": {}}}',
        b'{"type": "event_callback", "event": "message"}',
        b"payload=",
        b"payload={",
        b"payload=[]",
        b"payload=%5B%5D&payload=1",
        b"command=/rl",
        b"ssl_check=1",
    ],
)
async def test_signed_nonsense_is_no_error_of_ours(
    slack: FakeSlack, peer: SlackPeer, over_http: None, host: RecordingHost, connector: Any, body: bytes
) -> None:
    for kind in ("application/json", "application/x-www-form-urlencoded", "text/plain", ""):
        status, _, text = await slack.requests.post(body, kind)
        assert status < 500, (body[:40], kind, status)
        assert "Traceback" not in text
    await peer.say("still alive")
    await host.received(MessageEvent)
    assert host.failures == []


def test_the_emoji_of_the_driver_are_ratings_here() -> None:
    assert {"+1", "tada"} <= set(peer_settings().good)
    assert {"-1", "hankey"} <= set(peer_settings().bad)
    assert EMOJI["🤔"] not in {*peer_settings().good, *peer_settings().bad}


def peer_settings() -> Any:
    return SPEC.settings()


async def test_who_only_opens_the_home_tab_asks_nobody_to_let_them_in(slack: FakeSlack, app: App) -> None:
    asked = "SELECT person FROM join_requests"
    slack.people.open_home("bob")
    await until(lambda: len(slack.called("views.publish")) == 1)
    view = slack.people.home("bob")
    assert view is not None
    slack.people.press_in_view("bob", view, lambda element: action_of(element) == "show:help")
    await until(lambda: len(slack.called("views.publish")) == 2)
    view = slack.people.home("bob")
    assert view is not None
    assert "nothing here for you" in json.dumps(view.body)
    assert await rows(app.store, asked) == []
    slack.people.say("bob", "hello")
    await until(lambda: rows(app.store, asked))
    assert await rows(app.store, asked) == [(f"slack:{slack.people.id('bob')}",)]
