# SPDX-License-Identifier: Apache-2.0
"""What people see and do: whispers, nods, forms, menus, threads, streams; and what is left over after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import STAR_ROW, retry_row, run
from goodbot.api.events import (
    Button,
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.testing.connector_base import BAD, GOOD, build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC, presses
from goodbot_connectors.discord.presses import EXPLAIN
from goodbot_fakes.discord import FORUM, FakeDiscord, Message, intents

from tests.connectors.discord.peer import DiscordPeer
from tests.connectors.remembered import holds

SHARED = ChannelKind.SHARED
TURN = "5f1e0c7a9b3d2468"
TEXT = "Bad. 12 of 40 ratings (28 to go)."
SEND = "POST /channels/{channel_id}/messages"


@pytest.fixture
async def host(host: RecordingHost) -> AsyncIterator[RecordingHost]:
    """Nothing fails there."""
    yield host
    assert host.failures == []


@pytest.fixture
async def connector(connector: Any, peer: DiscordPeer) -> Any:
    """Once people see its commands."""
    await peer.discord.until(lambda: "Good answer" in peer.people["ada"].commands())
    return connector


async def answer(
    connector: Any, peer: DiscordPeer, room: ChannelKind = SHARED, buttons: Sequence[Button] = ()
) -> Message:
    reply = Reply(text="An answer.", turn=TURN, buttons=tuple(buttons))
    sent: MessageRef = (await connector.send(peer.room(room), reply))[-1]
    return peer.discord.world.messages[sent.id]


async def told(connector: Any, event: Event, text: str = TEXT, offer: tuple[Button, ...] = ()) -> None:
    receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text, turn=TURN, offer=offer)
    await connector.acknowledge(event, receipt)


def mine(message: Message, peer: DiscordPeer) -> bool:
    """Whether our own nod stands there."""
    return peer.discord.world.bot.id in message.reactions.get("✅", [])


# -- after a reaction, which has no private answer on Discord


async def test_a_bad_reaction_in_a_server_is_followed_up_in_private_and_acts_in_the_server(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer)
    await peer.react(peer.ref(message), new="👎")
    [rated] = await host.received(RatingEvent)
    await told(connector, rated, offer=retry_row())
    assert mine(message, peer), "the channel sees a nod and no second message"
    assert [one.content for one in peer.discord.said(peer.lab)] == ["An answer."]
    ada = peer.people["ada"]
    [whisper] = peer.discord.said(ada.dm)
    assert whisper.content == TEXT
    assert whisper.flags & 1 << 12, "without a sound"
    ada.presses(whisper, lambda one: peer.action(one["custom_id"]) == "again:long")
    [press] = await host.received(PressEvent)
    assert (press.action, press.turn, press.message_id) == ("again:long", TURN, message.id)
    assert (press.channel.id, press.channel.kind) == (peer.lab.id, SHARED)
    await told(connector, press, "")
    await peer.discord.until(lambda: not whisper.components)
    assert whisper.content == TEXT, "used buttons go, the words stay"


async def test_what_an_offer_was_about_outlives_a_restart_and_goes_with_its_person(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer)
    for user in ("ada", "bob"):
        await peer.react(peer.ref(message), new="👎", user=user)
        event = (await host.received(RatingEvent, 1 if user == "ada" else 2))[-1]
        await told(connector, event, offer=retry_row())
    assert holds(connector, peer.people["bob"].id)
    await connector.forget(peer.people["bob"].id)
    assert holds(connector, peer.people["bob"].id) == []
    await connector.stop()
    await connector.start()
    for user in ("ada", "bob"):
        person = peer.people[user]
        [whisper] = peer.discord.said(person.dm)
        person.presses(whisper, lambda one: peer.action(one["custom_id"]) == "again:long")
    ada, bob = await host.received(PressEvent, 2)
    assert ada.channel.id == peer.lab.id
    assert bob.channel.id == peer.people["bob"].dm.id, "nothing is known any more"
    kept = "".join(filter(None, [await host.get(name) for name in ("offers", "places")]))
    assert peer.people["bob"].id not in kept
    assert peer.people["bob"].dm.id not in kept


async def test_s6_who_is_told_that_they_are_forgotten_is_not_known_again_by_that(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    dm = peer.people["bob"].dm.id

    async def known() -> bool:
        return dm in (await host.get("places") or "")

    await peer.say("/rl forget me yes", user="bob")
    [command] = await host.received(CommandEvent)
    receipt = Receipt(event_id=command.event_id, outcome=Outcome.ACCEPTED, text="Done.")
    await connector.acknowledge(command, receipt)
    assert await known()
    await connector.forget(peer.people["bob"].id)
    await connector.acknowledge(command, receipt)
    assert [said.content for said in peer.discord.said(peer.people["bob"].dm)] == ["Done."] * 2
    assert not await known()
    await connector.send(command.channel, Reply(text="An answer.", turn=TURN))
    assert await known(), "who comes back is read after an outage"


async def test_a_good_reaction_is_only_nodded_at_and_the_nod_goes(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer)
    await peer.react(peer.ref(message), new="👍")
    [rated] = await host.received(RatingEvent)
    await told(connector, rated, "Good.")
    assert mine(message, peer)
    assert peer.discord.said(peer.people["ada"].dm) == []
    await connector.stop()
    assert not mine(message, peer), "also when we stop: nobody would come back for it"
    assert len(host.events) == 1, "our own reaction is no opinion"


async def test_who_takes_no_direct_messages_is_nodded_at(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    peer.people["ada"].closes_dms()
    message = await answer(connector, peer)
    await peer.react(peer.ref(message), new="👎")
    [rated] = await host.received(RatingEvent)
    await told(connector, rated, offer=retry_row())
    assert mine(message, peer)
    assert host.failures == []


async def test_a_refused_reaction_is_met_with_silence(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer)
    await peer.react(peer.ref(message), new="👎")
    [rated] = await host.received(RatingEvent)
    for receipt_text in ("", "Only its owners teach it."):
        receipt = Receipt(event_id=rated.event_id, outcome=Outcome.DENIED, text=receipt_text)
        await connector.acknowledge(rated, receipt)
    assert not mine(message, peer)
    assert peer.discord.said(peer.people["ada"].dm) == []


# -- interactions


async def test_the_menu_of_a_message_rates_it(connector: Any, peer: DiscordPeer, host: RecordingHost) -> None:
    message = await answer(connector, peer)
    ada = peer.people["ada"]
    for entry in ("Good answer", "Bad answer"):
        ada.menu(entry, message)
    good, bad = await host.received(RatingEvent, 2)
    assert (good.value, bad.value) == (1.0, -1.0)
    assert good.source == bad.source, "the later one counts"
    assert good.message_id == message.id
    await told(connector, bad, offer=retry_row())
    assert TEXT in await eventually(lambda: peer.notices("ada"))
    assert await peer.offers("ada") == [button.action for button in retry_row()]


async def test_somebody_else_s_message_cannot_be_rated(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    ada = peer.people["ada"]
    words = ada.says("my own words", peer.lab)
    for entry in ("Good answer", "Rate this answer…"):
        before = len(await peer.notices("ada"))
        ada.menu(entry, words)
        await peer.discord.until(lambda b=before: len(ada.notices) > b)
    assert set(await peer.notices("ada")) == {"That is not one of my answers."}
    assert host.events == []


async def test_the_form_of_the_menu_takes_all_at_once_and_is_told_about_once(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer)
    ada = peer.people["ada"]
    ada.menu("Rate this answer…", message)
    await peer.discord.until(lambda: ada.form is not None)
    form = ada.form
    assert form is not None
    ada.submits(form, verdict="bad", stars="star:2", reason="too long", better="4")
    events = await host.received(RatingEvent, 4)
    kinds = [event.kind for event in events]
    assert kinds == [RatingKind.RATE, RatingKind.RATE, RatingKind.COMMENT, RatingKind.BETTER]
    assert [event.source for event in events[:2]] == ["button", "stars"]
    assert {event.message_id for event in events} == {message.id}
    for n, event in enumerate(events):
        await told(connector, event, f"Kept {n}.")
    await eventually(lambda: peer.notices("ada"))
    assert await peer.notices("ada") == ["Kept 0.\nKept 1.\nKept 2.\nKept 3."]


async def test_an_empty_form_keeps_nothing_and_says_so(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer)
    ada = peer.people["ada"]
    ada.menu("Rate this answer…", message)
    await peer.discord.until(lambda: ada.form is not None)
    assert ada.form is not None
    ada.submits(ada.form)
    assert "empty" in (await eventually(lambda: peer.notices("ada")))[0]
    assert host.events == []


async def test_stars_rate_where_they_are_the_buttons(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer, ChannelKind.PRIVATE, STAR_ROW)
    await peer.press(peer.ref(message), "star:4")
    [rated] = await host.received(RatingEvent)
    assert (rated.source, rated.value) == ("stars", 0.5)


async def test_a_used_offer_goes(connector: Any, peer: DiscordPeer, host: RecordingHost) -> None:
    message = await answer(connector, peer, ChannelKind.PRIVATE, (GOOD, BAD))
    await peer.press(peer.ref(message), "bad")
    [rated] = await host.received(RatingEvent)
    await told(connector, rated, offer=retry_row())
    ada = peer.people["ada"]
    [notice] = await eventually(lambda: _notices(peer))
    actions = [presses.read(one)[0] for one in _ids(notice)]
    assert actions == [*(button.action for button in retry_row()), EXPLAIN]
    await peer.press(peer.ref(message), "again:long")
    [press] = await host.received(PressEvent)
    await told(connector, press, "")
    await peer.discord.until(lambda: not ada.notices)
    assert presses.read(_ids(message)[0])[0] == "good", "the answer keeps its own"


async def _notices(peer: DiscordPeer) -> list[Message]:
    return peer.people["ada"].notices


def _ids(message: Message) -> list[str]:
    return [one["custom_id"] for row in message.components for one in row["components"]]


async def test_a_confirmation_is_asked_for_once_and_its_answer_takes_its_place(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    peer.command("ada", "rollback", peer.lab)
    [command] = await host.received(CommandEvent)
    assert (command.name, command.channel.id) == ("rollback", peer.lab.id)
    offer = (run("rollback yes", "Yes"), run("rollback no", "No"))
    await told(connector, command, "Back to version 3?", offer)
    [asked] = await eventually(lambda: _notices(peer))
    peer.people["ada"].presses(asked, lambda one: peer.action(one["custom_id"]) == "run:rollback yes")
    [press] = await host.received(PressEvent)
    assert press.action == "run:rollback yes"
    await told(connector, press, "Version 3 answers again.")
    await peer.discord.until(lambda: asked.content == "Version 3 answers again.")
    assert asked.components == []
    assert peer.discord.said(peer.lab) == [], "the channel sees none of it"


async def test_what_others_see_is_not_overwritten_by_what_one_is_told(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    """Only a made-up client can press such a button there."""
    message = await answer(connector, peer, SHARED, (GOOD, BAD))
    for words in ("Only for Bob.", ""):
        used = peer.people["bob"].presses(message, "gb|||run:status", forged=True)
        press = (await host.received(PressEvent, 1 if words else 2))[-1]
        await told(connector, press, words)
        await peer.discord.until(lambda one=used: one.answer)
    assert message.content == "An answer."
    assert len(_ids(message)) == 2
    assert await peer.notices("bob") == ["Only for Bob."]


async def test_what_was_said_of_a_form_is_whispered_as_a_whole_where_it_cannot_be_shown(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    message = await answer(connector, peer)
    ada = peer.people["ada"]
    ada.menu("Rate this answer…", message)
    await peer.discord.until(lambda: ada.form is not None)
    form = ada.form
    assert form is not None
    lost = "POST /interactions/{interaction_id}/{interaction_token}/callback"
    peer.discord.faults.refuse(lost, 404, 10062, "Unknown interaction")
    ada.submits(form, verdict="bad", reason="too long")
    for n, event in enumerate(await host.received(RatingEvent, 2)):
        await told(connector, event, f"Kept {n}.")
    assert [one.content for one in peer.discord.said(ada.dm)] == ["Kept 0.\nKept 1."]


async def test_a_command_that_is_refused_without_a_word_leaves_nothing(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    host.answer = lambda event: Receipt(event_id=event.event_id, outcome=Outcome.DENIED)
    used = peer.command("bob", "train", peer.lab)
    await peer.discord.until(lambda: used.answer)
    await peer.discord.until(lambda: not peer.people["bob"].notices)
    assert await peer.notices("bob") == []
    assert not peer.discord.interactions.failed(used)


async def test_a_defect_leaves_nobody_waiting_and_is_not_told_again_for_ever(
    connector: Any, peer: DiscordPeer, host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a defect of the core's")

    before = connector._gateway.progress.stored
    monkeypatch.setattr(host, "submit", broken)
    used = peer.command("ada", "status")
    await peer.discord.until(lambda: used.answer)
    assert "try again" in (await peer.notices("ada"))[-1]
    await peer.discord.until(lambda: connector._gateway.progress.stored > before)


async def test_a_long_answer_to_a_command_comes_in_parts(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    peer.command("ada", "history")
    [command] = await host.received(CommandEvent)
    await told(connector, command, "\n".join(f"{n}: an answer" for n in range(400)))
    await peer.discord.until(lambda: len(peer.people["ada"].notices) >= 3)
    whole = "\n".join(await peer.notices("ada"))
    assert whole.startswith("0: an answer")
    assert whole.endswith("399: an answer")


# -- what is typed


async def test_a_typed_command_is_answered_in_private(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    await peer.say("rl status", room=SHARED, mention=True)
    [command] = await host.received(CommandEvent)
    await told(connector, command, "Version 3.")
    assert peer.discord.said(peer.lab) == []
    assert [one.content for one in peer.discord.said(peer.people["ada"].dm)] == ["Version 3."]
    await peer.say("/rl status")
    here = (await host.received(CommandEvent, 2))[-1]
    await told(connector, here, "Version 4.")
    assert peer.discord.said(peer.people["ada"].dm)[-1].content == "Version 4."


async def test_an_answer_in_a_server_quotes_the_question_and_pings_nobody(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    await peer.say("hello", room=SHARED, mention=True)
    [asked] = await host.received(MessageEvent)
    await connector.stream(asked.channel, asked.message_id).finish(Reply(text="Hi @everyone!"))
    call = peer.discord.called(*SEND.split(" ", 1))[-1]
    assert call.body["message_reference"]["message_id"] == asked.message_id
    assert call.body["allowed_mentions"] == {"parse": []}
    assert call.body["flags"] & 4, "no preview of links"


async def test_a_post_in_a_forum_is_a_conversation_of_its_own(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    forum = peer.discord.channel("ideas", peer.guild, kind=FORUM)
    ada = peer.people["ada"]
    first = ada.posts("One", "what about it?", forum, mention=True)
    ada.posts("Two", "and this?", forum, mention=True)
    one, two = await host.received(MessageEvent, 2)
    assert one.channel.id == two.channel.id == forum.id
    assert one.channel.thread == first.id != two.channel.thread
    await connector.stream(one.channel, one.message_id).finish(Reply(text="In one.", turn=TURN))
    [sent] = peer.discord.said(peer.discord.world.channels[one.channel.thread])
    ada.reacts(sent, "👍")
    [rated] = await host.received(RatingEvent)
    assert (rated.channel, rated.message_id) == (one.channel, sent.id)


async def test_with_the_intent_words_in_our_threads_need_no_mention(
    discord: FakeDiscord, tmp_path: Path
) -> None:
    discord.application.privileged.add(intents.MESSAGE_CONTENT)
    peer = DiscordPeer(discord, message_content=True)
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    connector = build(SPEC, host, peer)
    await connector.start()
    for thread in ("ours", "theirs"):
        await peer.say("hello", room=SHARED, thread=thread, mention=thread == "ours")
    [asked] = await host.received(MessageEvent)
    await connector.send(asked.channel, Reply(text="Hi.", turn=TURN))
    await connector.stop()
    await connector.start()
    for thread in ("theirs", "ours"):
        await peer.say("and more", room=SHARED, thread=thread)
    await peer.say("yes?", room=SHARED, reply_to=peer.discord.said(_thread(peer, asked))[0].id)
    events = await host.received(MessageEvent, 3)
    assert [event.text for event in events] == ["hello", "and more", "yes?"]
    assert events[1].channel == asked.channel, "known after a restart, too"
    await connector.stop()
    await host.close()


def _thread(peer: DiscordPeer, event: MessageEvent) -> Any:
    return peer.discord.world.channels[event.channel.thread]


async def test_the_channel_of_a_thread_is_asked_for_once(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    """After a resumed restart the gateway tells nothing of channels."""
    thread = peer.people["ada"].opens_thread("one", peer.lab)
    await peer.discord.until(lambda: connector._places.parent(thread.id))
    await connector.stop()
    connector._places._parents.clear()
    await connector.start()
    for text in ("hello", "again"):
        peer.people["ada"].says(text, thread, mention=True)
    events = await host.received(MessageEvent, 2)
    assert {(event.channel.id, event.channel.thread) for event in events} == {(peer.lab.id, thread.id)}
    assert len(peer.discord.called("GET", "/channels/{channel_id}")) == 1


async def test_reactions_that_are_swept_away_are_looked_at(
    connector: Any, peer: DiscordPeer, host: RecordingHost
) -> None:
    """Discord does not say whose they were."""
    from goodbot.api.connector import OpenTurn

    message = await answer(connector, peer)
    ref, ada = peer.ref(message), peer.people["ada"]
    known = frozenset({(message.id, ada.id, "reaction:👍")})
    turns = [OpenTurn(turn=TURN, messages=(ref,), reactions=known)]
    message.reactions["👍"] = [ada.id]
    assert await connector.reconcile(turns) == []
    message.reactions.clear()
    assert await connector.reconcile(turns) == [], "nothing hints at it"
    where = {"channel_id": peer.lab.id, "guild_id": peer.guild.id, "message_id": message.id}
    progress = connector._gateway.progress
    connector._intake.take("MESSAGE_REACTION_REMOVE_ALL", where, progress)
    [event] = await connector.reconcile(turns)
    assert (event.kind, event.source) == (RatingKind.RETRACT, "reaction:👍")


async def test_a_super_reaction_that_is_gone_leaves_the_plain_one(connector: Any, peer: DiscordPeer) -> None:
    from goodbot.api.connector import OpenTurn

    message = await answer(connector, peer)
    ref, ada = peer.ref(message), peer.people["ada"]
    message.reactions["👍"], message.supers["👍"] = [ada.id], [ada.id]
    connector._reconciler.again()
    found = await connector.reconcile([OpenTurn(turn=TURN, messages=(ref,), reactions=frozenset())])
    assert {(event.kind, event.source, event.value) for event in found} == {
        (RatingKind.RATE, "reaction:👍", 1.0),
        (RatingKind.RATE, "reaction:👍!", 1.0),
    }
    del message.supers["👍"]
    known = frozenset((event.message_id, ada.id, event.source) for event in found)
    connector._reconciler.again()
    [event] = await connector.reconcile([OpenTurn(turn=TURN, messages=(ref,), reactions=known)])
    assert (event.kind, event.source) == (RatingKind.RETRACT, "reaction:👍!")


# -- streams


async def test_while_it_thinks_it_is_typing_and_edits_are_few(connector: Any, peer: DiscordPeer) -> None:
    channel: ChannelRef = peer.room(SHARED)
    stream = connector.stream(channel)
    await peer.discord.until(lambda: peer.discord.called("POST", "/channels/{channel_id}/typing"))
    text = ""
    for n in range(40):
        text += f"word{n} "
        await stream.append(f"word{n} ")
    [ref] = await stream.finish(Reply(text=text, turn=TURN))
    edits = peer.discord.called("PATCH", "/channels/{channel_id}/messages/{message_id}")
    assert len(edits) < 10, "an interval lies between them"
    assert peer.discord.world.messages[ref.id].content == text.rstrip()


async def test_an_edit_that_is_refused_for_now_is_left_out_and_the_last_one_waits(
    connector: Any, peer: DiscordPeer
) -> None:
    stream = connector.stream(peer.room(SHARED))
    await stream.append("one ")
    peer.discord.faults.rate_limit("PATCH /channels/{channel_id}/messages/{message_id}", seconds=0.2, times=2)
    await asyncio.sleep(0.06)
    await stream.append("two ")
    await stream.append("three ")
    [ref] = await stream.finish(Reply(text="one two three four", turn=TURN))
    assert peer.discord.world.messages[ref.id].content == "one two three four"


async def test_a_message_that_takes_no_edits_gets_one_in_its_place_at_the_end_not_one_a_piece(
    connector: Any, peer: DiscordPeer
) -> None:
    stream = connector.stream(peer.room(SHARED))
    await stream.append("one ")
    [begun] = peer.discord.said(peer.lab)
    route = "PATCH /channels/{channel_id}/messages/{message_id}"
    peer.discord.faults.refuse(route, 403, 50005, "Cannot edit a message by another user", times=3)
    for word in ("two ", "three "):
        await asyncio.sleep(0.06)
        await stream.append(word)
    assert peer.discord.said(peer.lab) == [begun]
    [ref] = await stream.finish(Reply(text="one two three", turn=TURN))
    assert [one.content for one in peer.discord.said(peer.lab) if one.id == ref.id] == ["one two three"]


async def test_a_message_that_somebody_deleted_is_sent_again(connector: Any, peer: DiscordPeer) -> None:
    stream = connector.stream(peer.room(SHARED))
    await stream.append("one ")
    [begun] = peer.discord.said(peer.lab)
    peer.discord.world.delete(begun)
    [ref] = await stream.finish(Reply(text="one two", turn=TURN))
    assert ref.id != begun.id
    assert [one.content for one in peer.discord.said(peer.lab)] == ["one two"]


async def test_a_message_whose_confirmation_was_lost_is_not_sent_twice(
    connector: Any, peer: DiscordPeer
) -> None:
    """The core calls `finish` again; Discord knows the message by its nonce."""
    from goodbot.base.errors import RetriableError

    stream = connector.stream(peer.room(SHARED))
    real, lost = stream._api.call, [True]

    async def loses(method: str, path: str, **options: Any) -> Any:
        answered = await real(method, path, **options)
        if path.endswith("/messages") and lost:
            raise RetriableError("lost", retry_after=lost.pop() and 0.0)
        return answered

    stream._api.call = loses
    with pytest.raises(RetriableError):
        await stream.finish(Reply(text="Once.", turn=TURN))
    [ref] = await stream.finish(Reply(text="Once.", turn=TURN))
    stream._api.call = real
    assert [(one.id, one.content) for one in peer.discord.said(peer.lab)] == [(ref.id, "Once.")]


async def test_b10_an_answer_that_is_sent_again_after_a_crash_is_the_same_message(
    connector: Any, peer: DiscordPeer
) -> None:
    """Discord takes one nonce for one message: half an answer gets the rest, and its buttons."""
    ada = peer.people["ada"]
    asked = ada.says("What is love?")
    await connector.stream(peer.room(ChannelKind.PRIVATE), asked.id).append("one ")
    [begun] = peer.discord.said(ada.dm)
    reply = Reply(text="one two", turn=TURN, buttons=(GOOD, BAD))
    for _ in "ab":  # killed half way, and after the end
        [ref] = await connector.stream(peer.room(ChannelKind.PRIVATE), asked.id).finish(reply)
    assert [(one.id, one.content) for one in peer.discord.said(ada.dm)] == [(begun.id, "one two")]
    assert ref.id == begun.id
    assert begun.components
    [other] = await connector.send(peer.room(ChannelKind.PRIVATE), Reply(text="News.", reply_to=asked.id))
    assert other.id != ref.id, "what is no answer has a message of its own"


async def test_words_that_were_added_after_a_lost_confirmation_are_shown(
    connector: Any, peer: DiscordPeer
) -> None:
    """The nonce brings the message back as it is: it is not what was asked for this time."""
    from goodbot.base.errors import RetriableError

    stream = connector.stream(peer.room(SHARED))
    real, lost = stream._api.call, [True]

    async def loses(method: str, path: str, **options: Any) -> Any:
        answered = await real(method, path, **options)
        if path.endswith("/messages") and lost:
            lost.pop()
            raise RetriableError("lost")
        return answered

    stream._api.call = loses
    await stream.append("one ")
    [ref] = await stream.finish(Reply(text="one two", turn=TURN))
    stream._api.call = real
    assert [(one.id, one.content) for one in peer.discord.said(peer.lab)] == [(ref.id, "one two")]
