# SPDX-License-Identifier: Apache-2.0
"""Slack's own places: the Home tab, modals, shortcuts, commands, ephemeral messages, streams."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import STAR_ROW, THUMBS, retry_row
from goodbot.api.connector import OpenTurn
from goodbot.api.events import (
    ChannelKind,
    CommandEvent,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.base.errors import ConnectorError, FatalConnectorError
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack import SPEC, transport
from goodbot_connectors.slack.api import RefusedError
from goodbot_connectors.slack.config import APP_TOKEN
from goodbot_connectors.slack.presses import SHORTCUT, read
from goodbot_connectors.slack.threads import KEY
from goodbot_fakes.slack import FakeSlack, Pace
from goodbot_fakes.slack.blocks import elements, shown

from tests.connectors.remembered import holds
from tests.connectors.slack.peer import SlackPeer, action_of, actions
from tests.support import free_port

TURN = "5f1e0c7a9b3d2468"
SHARED = ChannelKind.SHARED


def receipt(event: Any, text: str, **more: Any) -> Receipt:
    return Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text, **more)


def sees(found: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    async def look() -> Any:
        return found()

    return look


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """slack_sdk notices a dead connection, and we that it is dead, every so many seconds."""
    monkeypatch.setattr(transport, "_PING", 0.1)
    monkeypatch.setattr(transport, "_LOOK", 0.1)


@pytest.fixture
async def host(host: RecordingHost) -> AsyncIterator[RecordingHost]:
    """Nothing fails there."""
    yield host
    assert host.failures == []


async def answered(connector: Any, host: RecordingHost, peer: SlackPeer, **said: Any) -> Any:
    """A question and our answer to it: the message's reference."""
    count = len([e for e in host.events if isinstance(e, MessageEvent)])
    await peer.say("hello", **said)
    asked = (await host.received(MessageEvent, count + 1))[-1]
    stream = connector.stream(asked.channel, asked.message_id)
    [ref] = await stream.finish(Reply(text="An answer.", turn=TURN, buttons=THUMBS))
    return ref


# -- the Home tab


async def test_the_home_tab_shows_the_status_and_what_a_button_asked_for(
    slack: FakeSlack, connector: Any, host: RecordingHost
) -> None:
    slack.people.open_home("ada", tab="messages")
    slack.people.open_home("ada")
    [opened] = await host.received(CommandEvent)
    assert (opened.name, opened.channel.kind) == ("status", ChannelKind.PRIVATE)
    await connector.acknowledge(opened, receipt(opened, "v3 answers; 12 of 40 until <!here>"))
    view = slack.people.home("ada")
    assert view is not None
    assert "v3 answers; 12 of 40 until <!here>" in json.dumps(view.body)
    slack.people.press_in_view("ada", view, lambda e: action_of(e) == "show:history 10")
    pressed = (await host.received(CommandEvent, 2))[-1]
    assert (pressed.name, pressed.args, pressed.channel) == ("history", "10", opened.channel)
    await connector.acknowledge(pressed, receipt(pressed, "one\ntwo"))
    view = slack.people.home("ada")
    assert view is not None
    assert "12 of 40" in json.dumps(view.body)
    assert "one\\ntwo" in json.dumps(view.body)
    assert slack.people.notices("ada") == [], "what is asked for in the tab is shown in the tab"


async def test_who_may_not_know_sees_an_empty_home_tab(
    slack: FakeSlack, connector: Any, host: RecordingHost
) -> None:
    slack.people.open_home("bob")
    [opened] = await host.received(CommandEvent)
    denied = Receipt(event_id=opened.event_id, outcome=Outcome.DENIED)
    await connector.acknowledge(opened, denied)
    view = slack.people.home("bob")
    assert view is not None
    assert "nothing here for you" in json.dumps(view.body)


# -- modals


async def test_the_shortcut_asks_for_verdict_reason_and_better_answer(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer, room=SHARED, mention=True)
    message = slack.workspace.message(ref.channel.id, ref.id)
    slack.people.shortcut("bob", message, SHORTCUT)
    view = await eventually(sees(lambda: slack.people.modal("bob")))
    slack.people.submit("bob", view, {"verdict": "bad", "reason": "too long", "better": "4."})
    said = await host.received(RatingEvent, 3)
    kinds = [(e.kind, e.value, e.text) for e in said]
    assert kinds == [
        (RatingKind.RATE, -1.0, ""),
        (RatingKind.COMMENT, None, "too long"),
        (RatingKind.BETTER, None, "4."),
    ]
    assert {(e.message_id, e.channel.id, e.user.id) for e in said} == {
        (ref.id, ref.channel.id, slack.people.id("bob"))
    }
    assert len(host.commits[-1].events) == 3, "all that a modal said is one commit"
    await slack.until(lambda: slack.people.modal("bob") is None)


async def test_the_shortcut_on_somebody_elses_message_says_so(
    slack: FakeSlack, connector: Any, peer: SlackPeer
) -> None:
    theirs = slack.people.say("bob", "my own words", peer.lab.id)
    slack.people.shortcut("ada", theirs, SHORTCUT)
    view = await eventually(sees(lambda: slack.people.modal("ada")))
    assert "not one of my answers" in json.dumps(view.body)
    assert "submit" not in view.body


async def test_a_modal_that_could_not_be_stored_stays_open(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer)
    slack.people.shortcut("ada", slack.workspace.message(ref.channel.id, ref.id), SHORTCUT)
    view = await eventually(sees(lambda: slack.people.modal("ada")))
    host.refuse(1)
    lost = slack.people.submit("ada", view, {"verdict": "bad", "better": "4."})
    await slack.until(lambda: lost.state == "lost")
    assert slack.people.modal("ada") is view
    slack.people.submit("ada", view, {"verdict": "bad", "better": "4."})
    assert len(await host.received(RatingEvent, 2)) == 2


# -- buttons, offers


async def test_an_offer_is_ephemeral_and_gone_once_it_is_used(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer)
    await peer.press(ref, "bad")
    [rated] = await host.received(RatingEvent)
    offer = receipt(rated, "Bad. 3 of 40.", turn=TURN, offer=retry_row())
    await connector.acknowledge(rated, offer)
    [notice] = slack.people.notices("ada")
    assert notice.thread_ts == ref.channel.thread
    await peer.press(ref, "again:long")
    [press] = await host.received(PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:long", TURN, ref.id)
    await connector.acknowledge(press, Receipt(event_id=press.event_id, outcome=Outcome.ACCEPTED))
    assert slack.people.notices("ada") == []
    assert len(await peer.posts()) == 1


async def test_an_offer_that_cannot_be_taken_away_keeps_no_answer_back(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await answered(connector, host, peer)
    await peer.press(ref, "bad")
    [rated] = await host.received(RatingEvent)
    await connector.acknowledge(rated, receipt(rated, "Bad.", turn=TURN, offer=retry_row()))
    await peer.press(ref, "again:long")
    [press] = await host.received(PressEvent)

    def fails(*_: Any, **__: Any) -> Any:
        raise OSError("reset")

    monkeypatch.setattr(connector._api._session, "post", fails)  # slack_sdk's calls are `request`
    await connector.acknowledge(press, receipt(press, "My model is not running."))
    assert "My model is not running." in [n.text for n in slack.people.notices("ada")]


async def test_s6_a_person_is_forgotten_with_the_threads_that_they_began(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    """Of their direct messages, and in channels; one that somebody else began is gone on with."""
    ada, bob = slack.people.id("ada"), slack.people.id("bob")
    private = await answered(connector, host, peer)
    shared = await answered(connector, host, peer, room=SHARED, mention=True)
    other = await answered(connector, host, peer, room=SHARED, mention=True, user="bob")
    await answered(connector, host, peer, room=SHARED, mention=True, reply_to=other.id)
    began = [ref.channel.thread for ref in (private, shared, other)]

    async def known() -> list[bool]:
        kept = await host.get(KEY) or ""
        assert (ada in kept, bob in kept) == (began[0] in kept, began[2] in kept)
        return [root in kept for root in began]

    await slack.settled()
    assert await known() == [True, True, True]
    assert holds(connector, ada)
    for _ in range(2):
        await connector.forget(ada)
    assert await known() == [False, False, True]
    assert private.channel.id not in (await host.get(KEY) or "")
    assert holds(connector, ada) == []
    await connector.forget(bob)
    assert await known() == [False, False, False]
    assert holds(connector, bob) == []
    slack.faults.refuse("conversations.open", "user_not_found")
    await connector.forget("U0GONE0001")


async def test_a_scope_that_is_missing_is_no_wrong_token(slack: FakeSlack, connector: Any) -> None:
    slack.faults.refuse("usergroups.users.list", "no_permission")
    with pytest.raises(RefusedError, match="no_permission"):
        await connector.members("S0TEACHERS")


async def test_a_response_address_elsewhere_is_never_asked(
    slack: FakeSlack, connector: Any, host: RecordingHost
) -> None:
    before = len(slack.calls)
    await connector._api.dismiss("http://127.0.0.1:9/response/x")
    await connector._api.dismiss("")
    assert len(slack.calls) == before


async def test_stars_are_plain_buttons(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    reply = Reply(text="An answer.", turn=TURN, buttons=STAR_ROW)
    [ref] = await connector.send(asked.channel, reply)
    await peer.press(ref, "star:4")
    [rated] = await host.received(RatingEvent)
    assert (rated.source, rated.value, rated.turn) == ("stars", 0.5, TURN)


async def test_feedback_is_pressed_again_without_being_taken_back(
    connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer)
    for action in ("good", "bad", "good"):
        await peer.press(ref, action)
    said = await host.received(RatingEvent, 3)
    assert [e.value for e in said] == [1.0, -1.0, 1.0]
    assert said[0].order < said[1].order < said[2].order
    assert {e.source for e in said} == {"button"}, "so that the last one counts"


# -- commands


async def test_a_slash_command_means_our_last_answer_in_that_channel(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer, room=SHARED, mention=True)
    await answered(connector, host, peer)
    slack.people.command("bob", "good", peer.lab.id)
    [command] = await host.received(CommandEvent)
    assert (command.name, command.reply_to, command.channel.id) == ("good", ref.id, peer.lab.id)
    await connector.acknowledge(command, receipt(command, "Good. 12 of 40."))
    [notice] = slack.people.notices("bob")
    assert shown(notice.text, notice.blocks) == "Good. 12 of 40."
    assert len(await peer.posts(SHARED)) == 1, "never a second public message"


async def test_a_command_in_a_thread_is_answered_there_and_to_one_person(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer, room=SHARED, mention=True)
    await peer.say("rl bad", room=SHARED, mention=True, reply_to=ref.id)
    [command] = await host.received(CommandEvent)
    assert (command.name, command.reply_to) == ("bad", ref.id)
    await connector.acknowledge(command, receipt(command, "Bad."))
    [notice] = slack.people.notices("ada")
    assert notice.thread_ts == ref.channel.thread


async def test_where_we_cannot_speak_the_person_is_told_in_private(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    elsewhere = slack.workspace.add_channel("elsewhere", [slack.people.id("ada")])
    slack.people.command("ada", "status", elsewhere.id)
    [command] = await host.received(CommandEvent)
    await connector.acknowledge(command, receipt(command, "v3 answers."))
    assert [post.text for post in await peer.posts()] == ["v3 answers."]


async def test_a_question_that_is_refused_in_a_channel_is_refused_in_private(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    await peer.say("hello", room=SHARED, mention=True)
    [asked] = await host.received(MessageEvent)
    await connector.acknowledge(asked, receipt(asked, "Not today."))
    [notice] = slack.people.notices("ada")
    assert notice.thread_ts == "", "nobody would see it in a thread that is not begun"
    await peer.say("hello")
    private = (await host.received(MessageEvent, 2))[-1]
    await connector.acknowledge(private, receipt(private, "You are my owner now."))
    assert [post.text for post in await peer.posts()] == ["You are my owner now."]


# -- streams


async def test_a_channel_is_streamed_to_whoever_asked(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    await answered(connector, host, peer, room=SHARED, mention=True, user="bob")
    await peer.say("again", room=SHARED, mention=True, user="bob")
    asked = (await host.received(MessageEvent, 2))[-1]
    stream = connector.stream(asked.channel, asked.message_id)
    assert await eventually(sees(lambda: slack.workspace.statuses))
    await stream.append("It begins")
    [started] = slack.called("chat.startStream")
    assert started["recipient_user_id"] == slack.people.id("bob")
    assert started["recipient_team_id"] == "T0G00DB0T"
    await stream.finish(Reply(text="It begins and ends."))
    assert not slack.workspace.statuses, "no status is left behind"


async def test_where_slack_does_not_stream_the_answer_grows_by_edits(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    slack.faults.refuse("chat.startStream", "channel_type_not_supported")
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    await stream.append("It begins")
    await asyncio.sleep(0.06)
    await stream.append(" and grows")
    assert [post.text for post in await peer.posts()] == ["It begins and grows"]
    [ref] = await stream.finish(Reply(text="It begins and ends.", turn=TURN, buttons=THUMBS))
    [post] = await peer.posts()
    assert (post.id, post.text, post.buttons) == (ref.id, "It begins and ends.", ("good", "bad"))
    other = connector.stream(asked.channel, asked.message_id)
    await other.append("Another")
    await other.finish(Reply(text="Another."))
    assert len([c for c in slack.calls if c.method == "chat.startStream"]) == 1, "asked once"


async def test_an_answer_that_turned_out_otherwise_is_put_right(
    connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    await peer.say("hello")
    [asked] = await host.received(MessageEvent)
    stream = connector.stream(asked.channel, asked.message_id)
    await stream.append("It begins with a mistake")
    [ref] = await stream.finish(Reply(text="It begins well.", turn=TURN, buttons=THUMBS))
    [post] = await peer.posts()
    assert (post.id, post.text, post.buttons) == (ref.id, "It begins well.", ("good", "bad"))


async def test_nothing_is_unfurled_and_nobody_is_pinged(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer)
    text = "<!channel> <@U00000002> [bank](https://evil.example/?q=secret)"
    await connector.send(dataclasses.replace(ref.channel, thread=""), Reply(text=text))
    stream = connector.stream(ref.channel)
    for piece in ("<", "!chan", "nel> <@U0000", "0002> [bank]", "(https://evil.example)"):
        await stream.append(piece)
        await asyncio.sleep(0.03)
    await stream.finish(Reply(text="<!channel> <@U00000002> [bank](https://evil.example)"))
    await peer.say("hello")
    asked = (await host.received(MessageEvent, 2))[-1]
    await connector.acknowledge(asked, receipt(asked, "https://evil.example/?q=secret"))
    elsewhere = slack.workspace.add_channel("elsewhere", [slack.people.id("ada")])
    slack.people.command("ada", "history", elsewhere.id)
    [command] = await host.received(CommandEvent)
    await connector.acknowledge(command, receipt(command, "https://evil.example/?q=secret"))
    posted = slack.called("chat.postMessage")
    assert sum("evil" in call["text"] for call in posted) == 3, "an answer and two receipts"
    assert all(call["unfurl_links"] is call["unfurl_media"] is False for call in posted)
    said = json.dumps([call.arguments for call in slack.calls])
    assert "<!channel" not in said
    assert "<@U00000002" not in said
    assert "](https" not in said


# -- what can be asked


async def test_a_user_group_by_its_id_and_not_by_a_name(slack: FakeSlack, connector: Any) -> None:
    people = [slack.people.id(name) for name in ("ada", "bob")]
    group = slack.workspace.add_usergroup("teachers", people)
    assert await connector.members(group.id) == frozenset(people)
    for name in ("@teachers", "teachers"):
        with pytest.raises(ConnectorError, match=f'write its id, "{group.id}"'):
            await connector.members(name)
    with pytest.raises(ConnectorError, match="no user group @nobody"):
        await connector.members("@nobody")


async def test_reconciling_asks_once_a_start_and_only_tells_differences(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    refs = [await answered(connector, host, peer) for _ in range(3)]
    ada = slack.people.id("ada")
    for ref in refs[:2]:
        slack.workspace.message(ref.channel.id, ref.id).reactions["+1"] = [ada]
    known = {(refs[0].id, ada, "reaction:+1"), (refs[2].id, ada, "reaction:-1")}
    turns = [
        OpenTurn(turn=f"t{n}", messages=(ref,), reactions=frozenset(k for k in known if k[0] == ref.id))
        for n, ref in enumerate(refs)
    ]
    found = {event.message_id: event for event in await connector.reconcile(turns)}
    assert set(found) == {refs[1].id, refs[2].id}
    assert (found[refs[1].id].kind, found[refs[1].id].value) == (RatingKind.RATE, 1.0)
    assert (found[refs[2].id].kind, found[refs[2].id].source) == (RatingKind.RETRACT, "reaction:-1")
    assert len(slack.called("reactions.get")) == 3
    # What was found is looked at again, for it may not have been stored; then it is.
    stored = [
        turns[0],
        dataclasses.replace(turns[1], reactions=frozenset({(refs[1].id, ada, "reaction:+1")})),
        dataclasses.replace(turns[2], reactions=frozenset()),
    ]
    for _ in range(2):
        assert await connector.reconcile(stored) == []
        assert len(slack.called("reactions.get")) == 5


async def test_a_deleted_message_does_not_stop_reconciling(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    refs = [await answered(connector, host, peer) for _ in range(2)]
    slack.workspace.delete(slack.workspace.message(refs[1].channel.id, refs[1].id))
    slack.workspace.message(refs[0].channel.id, refs[0].id).reactions["-1"] = [slack.people.id("ada")]
    turns = [OpenTurn(turn=str(n), messages=(ref,)) for n, ref in enumerate(refs)]
    [event] = await connector.reconcile(turns)
    assert (event.message_id, event.value) == (refs[0].id, -1.0)


# -- what was written while nobody listened


async def test_messages_that_slack_gave_up_are_read_after_a_restart(
    slack: FakeSlack, host: RecordingHost, peer: SlackPeer
) -> None:
    first = build(SPEC, host, peer)
    await first.start()
    shared = await answered(first, host, peer, room=SHARED, mention=True)
    await answered(first, host, peer)
    await first.stop()
    slack.outbox.pace = Pace(ack=0.1, retries=())  # gone for longer than Slack has patience
    await peer.say("in private")
    await peer.say("by mention", room=SHARED, mention=True)
    await peer.say("in our thread", room=SHARED, reply_to=shared.id)
    await peer.say("not for us", room=SHARED)
    await peer.say_as_bot("by a bot")
    await slack.settled()
    second = build(SPEC, host, peer)
    await second.start()
    events = await host.received(MessageEvent, 5)
    await asyncio.sleep(0.2)
    await second.stop()
    texts = [event.text for event in host.events if isinstance(event, MessageEvent)]
    assert sorted(texts[2:]) == ["by mention", "in our thread", "in private"]
    assert len(texts) == len(events) == 5, "what was known is not told again"


async def test_what_was_missed_is_read_once_slack_can_be_asked(
    slack: FakeSlack, host: RecordingHost, peer: SlackPeer
) -> None:
    first = build(SPEC, host, peer)
    await first.start()
    await answered(first, host, peer)
    await first.stop()
    slack.outbox.pace = Pace(ack=0.1, retries=())
    await peer.say("is anybody there?")
    await slack.settled()
    slack.faults.rate_limit("conversations.history", seconds=1)
    slack.faults.refuse("conversations.replies", "thread_not_found")
    second = build(SPEC, host, peer)
    await second.start()
    assert (await host.received(MessageEvent, 2))[-1].text == "is anybody there?"
    await second.stop()


async def test_after_an_outage_messages_and_reactions_are_asked_for(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer)
    turns = [OpenTurn(turn=TURN, messages=(ref,))]
    assert await connector.reconcile(turns) == []
    slack.outbox.pace = Pace(ack=0.1, retries=())
    slack.cut()
    await peer.say("is anybody there?")
    await peer.react(ref, new="👍")
    await slack.settled()
    slack.mend()
    assert (await host.received(MessageEvent, 2))[-1].text == "is anybody there?"
    [missed] = await connector.reconcile(turns)
    assert (missed.message_id, missed.value) == (ref.id, 1.0)


async def test_a_token_that_is_revoked_while_we_run_is_said(
    slack: FakeSlack, peer: SlackPeer, tmp_path: Path
) -> None:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    connector = build(SPEC, host, peer)
    await connector.start()
    slack.faults.refuse("apps.connections.open", "token_revoked", times=99)
    slack.sockets.drop()
    await host.wait(lambda: bool(host.failures))
    [error] = host.failures
    assert isinstance(error, FatalConnectorError)
    assert APP_TOKEN in str(error)
    await connector.stop()
    await host.close()


async def test_socket_mode_that_is_switched_off_while_we_run_is_said(
    slack: FakeSlack, peer: SlackPeer, tmp_path: Path
) -> None:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    connector = build(SPEC, host, peer)
    await connector.start()
    slack.app.socket_mode = False
    await slack.sockets.disconnect("link_disabled")
    await host.wait(lambda: bool(host.failures))
    assert "Socket Mode is off" in str(host.failures[0])
    await connector.stop()
    await host.close()


# -- HTTP mode


async def test_slack_can_check_the_address_and_a_taken_port_is_told(
    slack: FakeSlack, peer: SlackPeer, tmp_path: Path
) -> None:
    port = free_port()
    settings = dataclasses.replace(peer.settings, mode="http", port=port)
    peer.settings, slack.app.socket_mode = settings, False
    slack.app.request_url = f"http://127.0.0.1:{port}{settings.path}"
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    connector = build(SPEC, host, peer)
    await connector.start()
    challenge = json.dumps({"type": "url_verification", "challenge": "3eZbrw1a", "token": "x"})
    status, _, text = await slack.requests.post(challenge.encode())
    assert (status, json.loads(text)) == (200, {"challenge": "3eZbrw1a"})
    other = build(SPEC, RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ), peer)
    with pytest.raises(ConnectorError, match=f"cannot listen on 127.0.0.1 port {port}"):
        await other.start()
    await connector.stop()
    await host.close()


async def test_buttons_read_back_what_they_were_given(
    slack: FakeSlack, connector: Any, host: RecordingHost, peer: SlackPeer
) -> None:
    ref = await answered(connector, host, peer)
    message = slack.workspace.message(ref.channel.id, ref.id)
    assert actions(message) == ["good", "bad"]
    assert {read(e.value)[1].turn for e in elements(message.blocks)} == {TURN}
