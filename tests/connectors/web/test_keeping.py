# SPDX-License-Identifier: Apache-2.0
"""Conversations and sessions over restarts, time and a `forget me`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import MessageEvent, Outcome, Receipt, Reply
from goodbot.api.reply_stream import CancelledReplyError
from goodbot.base.errors import RetriableError, StoreError
from goodbot.testing import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.web import SPEC, WebSettings
from goodbot_connectors.web.cache import ConversationCache
from goodbot_connectors.web.connector import WebConnector
from goodbot_connectors.web.entries import FAILED, YOU, PageConversation, PageEntry
from goodbot_connectors.web.normalize import channel_ref
from goodbot_connectors.web.sessions import BrowserSessions

from tests.core.builders import until

DAY = 86_400.0


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, clock=VirtualClock())
    yield host
    await host.close()


def clock(host: RecordingHost) -> VirtualClock:
    assert isinstance(host.clock, VirtualClock)
    return host.clock


async def shelf(host: RecordingHost) -> ConversationCache:
    made = ConversationCache(host, 30)
    await made.load()
    return made


async def keep(host: RecordingHost, on: ConversationCache, user: str, id_: str, text: str) -> None:
    talk = await on.open(user, id_)
    at = int(host.clock.now() * 1000)
    talk.put(PageEntry(id=f"q-{len(talk.entries)}", by=YOU, text=text, at=at))
    assert await on.save(user, talk)


async def test_conversations_outlive_a_restart_the_last_touched_first(host: RecordingHost) -> None:
    first = await shelf(host)
    for id_ in ("cats", "dogs", "cats"):
        clock(host).advance(1)
        await keep(host, first, "ada", id_, f"About {id_}")
    await keep(host, first, "bob", "cats", "Bob's")
    again = await shelf(host)
    assert [one.title for one in await again.list("ada")] == ["About cats", "About dogs"]
    assert len((await again.open("ada", "cats")).entries) == 2
    assert [one.title for one in await again.list("bob")] == ["Bob's"]


async def test_what_nobody_touches_is_not_kept(host: RecordingHost) -> None:
    first = await shelf(host)
    await keep(host, first, "ada", "old", "canary")
    clock(host).advance(31 * DAY)
    await keep(host, first, "ada", "new", "fresh")
    assert [one.id for one in await first.list("ada")] == ["new"]
    assert "canary" not in str(host._values)
    assert (await (await shelf(host)).open("ada", "old")).entries == []


async def test_b1_a_clock_that_is_ahead_while_a_page_is_opened_drops_nothing(host: RecordingHost) -> None:
    first, sessions = await shelf(host), BrowserSessions(host, 30)
    await keep(host, first, "ada", "old", "canary")
    cookie = await sessions.begin("ada")
    clock(host).jump(40 * DAY)
    assert [one.id for one in await first.list("ada")] == ["old"]
    await sessions.begin("bob")
    clock(host).jump(-40 * DAY)
    for shown in (first, await shelf(host)):
        assert [one.id for one in await shown.list("ada")] == ["old"]
        assert len((await shown.open("ada", "old")).entries) == 1
    assert sessions.user(cookie) == "ada"
    clock(host).jump(40 * DAY)
    await first.list("ada")
    clock(host).advance(3600)  # it has lasted
    assert await first.list("ada") == []
    assert "canary" not in str(host._values)


@pytest.mark.parametrize("place", ["old", "new"])
async def test_what_is_touched_is_kept_while_what_is_old_is_dropped(host: RecordingHost, place: str) -> None:
    first = await shelf(host)
    for id_ in ("old", "older"):
        await keep(host, first, "ada", id_, "canary")
    clock(host).advance(31 * DAY)
    await keep(host, first, "ada", place, "fresh")
    await first.list("ada")
    for kept in (first, await shelf(host)):
        assert [one.id for one in await kept.list("ada")] == [place]
        assert (await kept.open("ada", place)).entries[-1].text == "fresh"
        assert (await kept.open("ada", "older")).entries == []


@pytest.mark.parametrize("outcome", [Outcome.DENIED, Outcome.IGNORED, Outcome.FAILED, Outcome.CONFLICT])
async def test_a_refused_message_is_shown_and_not_kept(host: RecordingHost, outcome: Outcome) -> None:
    connector = WebConnector(host, WebSettings())
    await connector.start()
    await connector._take("ada", {"id": "q1", "in": "main", "say": "first"})
    page = connector._live.attach("ada", "session")
    why = "That was too often."
    host.answer = lambda event: Receipt(event_id=event.event_id, outcome=outcome, text=why)
    await connector._take("ada", {"id": "q1", "in": "main", "say": "canary in its place"})
    done = await connector._take("ada", {"id": "q2", "in": "main", "say": "canary q2"})
    assert (done["outcome"], done["text"]) == (outcome.value, why)
    page.close()
    place = channel_ref("ada", "main")
    assert [one.text for one in (await connector.conversation(place)).entries] == ["first"]
    assert "canary" not in str(host._values)
    [frame] = [json.loads(text) for _, text in connector._live._frames["ada"] if "canary" in text]
    assert frame["entry"] | {"at": 0} == {
        **asdict(PageEntry(id="q2", by=YOU, text="canary q2", at=0, state=FAILED, note=why)),
        "buttons": [],
    }


async def test_messages_do_not_fill_the_memory(host: RecordingHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodbot_connectors.web.cache._MOST_OPEN", 5)
    kept = await shelf(host)
    for number in range(10):
        await keep(host, kept, "ada", f"talk-{number}", "hello")
    assert len(kept._open) == 5
    monkeypatch.setattr("goodbot_connectors.web.cache._MOST_BYTES", 400_000)
    await keep(host, kept, "bob", "bob's", "🙂" * 10_000)
    for number in range(10):
        await keep(host, kept, "eve", f"talk-{number}", "🙂" * 32_000)
        assert sum(one.size for one in kept._open.values()) <= 400_000
    assert ("bob", "bob's") in kept._open, "who fills it makes room with their own first"
    assert (await kept.open("eve", "talk-0")).entries[0].text == "🙂" * 32_000


async def _at_once(connector: WebConnector, change: Coroutine[Any, Any, object]) -> None:
    """Something changes while its person opens another conversation, and there is room for one only."""

    async def elsewhere() -> None:
        for _ in range(8):
            await connector._shelf.open("ada", "other")

    async with asyncio.TaskGroup() as both, connector._shelf._lock:  # so that both wait, and take turns
        both.create_task(change)
        both.create_task(elsewhere())
        await asyncio.sleep(0)


@pytest.mark.parametrize("change", ["question", "answer", "failure", "news"])
async def test_what_is_not_stored_yet_outlives_another_conversation_that_is_opened(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr("goodbot_connectors.web.cache._MOST_OPEN", 1)
    connector = WebConnector(host, WebSettings())
    await connector.start()
    place = channel_ref("ada", "main")
    await connector._take("ada", {"id": "q1", "in": "main", "say": "first"})
    stream = connector.stream(place, "q1")
    await stream.append("can")
    changes: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "question": lambda: connector._take("ada", {"id": "q2", "in": "main", "say": "canary"}),
        "answer": lambda: stream.finish(Reply(text="canary", turn="t")),
        "failure": lambda: stream.cancel("canary"),
        "news": lambda: connector.send(place, Reply(text="canary")),
    }
    if change not in ("answer", "failure"):
        await stream.finish(Reply(text="4.", turn="t"))
    await _at_once(connector, changes[change]())
    again = WebConnector(host, WebSettings())
    await again.start()
    for kept in (connector, again):
        assert "canary" in (await kept.conversation(place)).dump()
    assert len(connector._shelf._open) == 1, "what is stored makes room"


async def test_what_changes_while_it_is_stored_is_not_stored_yet(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodbot_connectors.web.cache._MOST_OPEN", 1)
    kept, slow, real = await shelf(host), asyncio.Event(), host.set

    async def set_(key: str, value: str) -> None:
        await slow.wait()
        await real(key, value)

    await keep(host, kept, "ada", "main", "first")
    monkeypatch.setattr(host, "set", set_)
    talk = await kept.open("ada", "main")
    talk.put(PageEntry(id="q2", by=YOU, text="second", at=0))
    saving = asyncio.create_task(kept.save("ada", talk))
    await asyncio.sleep(0)
    await kept.open("ada", "other")
    assert await kept.open("ada", "main") is talk, "it is being stored"
    talk.put(PageEntry(id="q3", by=YOU, text="third", at=0))
    slow.set()
    await saving
    await kept.open("ada", "other")
    assert await kept.open("ada", "main") is talk, "its third is not stored"
    await kept.save("ada", talk)
    await kept.open("ada", "other")
    assert [*kept._open] == [("ada", "other")]
    assert [one.text for one in (await kept.open("ada", "main")).entries] == ["first", "second", "third"]


async def test_forgetting_leaves_no_word_and_no_name(host: RecordingHost) -> None:
    connector = WebConnector(host, WebSettings())
    await connector.start()
    for user in ("olga", "bob"):  # a name that no digest can hold by chance
        await connector.send(channel_ref(user, "main"), Reply(text=f"canary of {user}"))
    sessions = connector._sessions
    cookie, other = await sessions.begin("olga"), await sessions.begin("bob")
    assert "olga" in str(host._values)
    await connector.forget("olga")
    await connector.forget("olga")
    assert "olga" not in str(host._values)
    assert "canary of bob" in str(host._values)
    assert (sessions.user(cookie), sessions.user(other)) == ("", "bob")
    assert await connector.private("olga") is None
    assert (await connector.conversation(channel_ref("olga", "main"))).entries == []


async def test_sessions_end_by_themselves(host: RecordingHost) -> None:
    sessions = BrowserSessions(host, 30)
    await sessions.load()
    cookie = await sessions.begin("ada")
    clock(host).advance(29 * DAY)
    assert sessions.user(cookie) == "ada"
    clock(host).advance(2 * DAY)
    assert sessions.user(cookie) == ""
    again = BrowserSessions(host, 30)
    await again.load()
    assert again.user(cookie) == ""


async def test_a_session_of_a_time_to_come_ends_after_its_days_too(host: RecordingHost) -> None:
    clock(host).jump(400 * DAY)
    cookie = await BrowserSessions(host, 30).begin("ada")
    clock(host).jump(-400 * DAY)
    sessions = BrowserSessions(host, 30)
    await sessions.load()
    assert sessions.user(cookie) == "ada"
    clock(host).advance(31 * DAY)
    assert sessions.user(cookie) == ""


async def test_a_browser_that_signs_in_anew_has_one_session(host: RecordingHost) -> None:
    sessions = BrowserSessions(host, 30)
    first = await sessions.begin("ada")
    second = await sessions.begin("bob", instead=first)
    assert (sessions.user(first), sessions.user(second)) == ("", "bob")


async def test_the_oldest_of_too_many_browsers_is_signed_out(host: RecordingHost) -> None:
    sessions = BrowserSessions(host, 30)
    cookies: list[str] = []
    for _ in range(51):
        clock(host).advance(1)
        cookies.append(await sessions.begin("ada"))
    assert [sessions.user(cookie) for cookie in cookies] == ["", *["ada"] * 50]


async def test_an_answer_that_could_not_be_kept_is_sent_again(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = WebConnector(host, WebSettings())
    await connector.start()
    place = channel_ref("ada", "main")
    stream = connector.stream(place, "q1")
    await stream.append("It is")

    async def full(key: str, value: str) -> None:
        raise StoreError("no space left on the device (a test says so)")

    with monkeypatch.context() as patch:
        patch.setattr(host, "set", full)
        with pytest.raises(RetriableError, match="no space left"):
            await stream.finish(Reply(text="It is 4.", turn="t"))
    [ref] = await stream.finish(Reply(text="It is 4.", turn="t"))
    again = WebConnector(host, WebSettings())
    await again.start()
    [kept] = (await again.conversation(place)).entries
    assert (kept.id, kept.text, kept.state) == (ref.id, "It is 4.", "")


async def _full(key: str, value: str) -> None:
    raise StoreError("no space left on the device (a test says so)")


async def _kept(host: RecordingHost) -> list[str]:
    """What the next process has of the conversation, by its ids."""
    return [one.id for one in (await (await shelf(host)).open("ada", "main")).entries]


async def test_a_question_that_could_not_be_kept_is_kept_before_its_page_is_told_so(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = WebConnector(host, WebSettings())
    await connector.start()
    asked = {"id": "q1", "in": "main", "say": "What is 2 + 2?"}
    await connector._shelf.alias("ada")
    connector._tasks[1].cancel()  # nobody tries again by itself
    with monkeypatch.context() as patch:
        patch.setattr(host, "set", _full)
        for _ in range(2):
            with pytest.raises(RetriableError, match="no space left"):
                await connector._take("ada", asked)
    assert (await connector._take("ada", asked))["outcome"] == "accepted"
    assert await _kept(host) == ["q1"]
    assert len(host.events) == 1


async def test_what_could_not_be_kept_is_kept_as_soon_as_it_can_be(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody sends it again: a page that was closed meanwhile."""
    connector = WebConnector(host, WebSettings())
    await connector.start()
    await connector._shelf.alias("ada")
    with monkeypatch.context() as patch:
        patch.setattr(host, "set", _full)
        with pytest.raises(RetriableError, match="no space left"):
            await connector._take("ada", {"id": "q1", "in": "main", "say": "What is 2 + 2?"})

    async def kept() -> bool:
        return await _kept(host) == ["q1"]

    await until(kept)
    with monkeypatch.context() as patch:
        patch.setattr(host, "set", _full)
        with pytest.raises(RetriableError, match="no space left"):
            await connector._take("ada", {"id": "q2", "in": "main", "say": "And 3 + 3?"})
        await until(lambda: connector._keeper._left)
        await connector.stop()
    await connector.forget("ada")
    connector._tasks = [host.spawn(connector._keeper.loop(), "what is not stored yet")]
    connector._keeper._wake.set()
    await until(lambda: not connector._keeper._left)
    assert "3 + 3" not in str(host._values), "nothing of who was forgotten meanwhile comes back"


async def test_news_that_could_not_be_kept_are_shown_once_when_they_are_sent_again(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = WebConnector(host, WebSettings())
    await connector.start()
    await connector._shelf.alias("ada")
    place = await connector.private("ada")
    assert place is not None
    with monkeypatch.context() as patch:
        patch.setattr(host, "set", _full)
        with pytest.raises(RetriableError, match="no space left"):
            await connector.send(place, Reply(text="Version 2 is in use."))
    await connector.send(place, Reply(text="Version 2 is in use."))
    assert [one.text for one in (await connector.conversation(place)).entries] == ["Version 2 is in use."]


@pytest.mark.parametrize("deed", ["delete", "revive"])
async def test_what_could_not_be_done_to_a_conversation_is_done_the_next_time(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    kept = await shelf(host)
    await keep(host, kept, "ada", "main", "canary")
    if deed == "revive":
        await kept.delete("ada", "main")
    do = kept.delete if deed == "delete" else kept.revive
    with monkeypatch.context() as patch:
        patch.setattr(host, "set", _full)
        with pytest.raises(StoreError):
            await do("ada", "main")
    await do("ada", "main")
    stored = next(value for key, value in host._values.items() if key.startswith("list "))
    assert json.loads(stored)["deleted"] == (["main"] if deed == "delete" else [])


async def test_an_answer_that_is_sent_again_after_a_crash_takes_its_own_place(host: RecordingHost) -> None:
    place = channel_ref("ada", "main")
    for _ in range(2):
        connector = WebConnector(host, WebSettings())
        await connector.start()
        await connector.stream(place, "q1").finish(Reply(text="It is 4.", turn="t"))
    assert len((await connector.conversation(place)).entries) == 1


async def test_a_question_whose_commit_outlived_a_crash_is_shown_once_before_its_answer(
    host: RecordingHost,
) -> None:
    place = channel_ref("ada", "main")
    sent = {"id": "q1", "in": "main", "say": "What is 2 + 2?"}
    first = WebConnector(host, WebSettings())
    await first.start()
    host.freeze()
    dying = asyncio.create_task(first._take("ada", sent))
    await host.received(MessageEvent)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    host.release()
    connector = WebConnector(host, WebSettings())
    await connector.start()
    await connector.stream(place, "q1").finish(Reply(text="4.", turn="t"))  # out of the core's inbox
    for _ in range(2):  # the page was never told that we have it
        done = await connector._take("ada", sent)
        assert (done["taken"], done["outcome"]) == ("q1", "accepted")
    shown = [(one.text, one.state) for one in (await connector.conversation(place)).entries]
    assert shown == [("What is 2 + 2?", ""), ("4.", "")]
    assert len(host.events) == 1


async def test_a_conversation_has_the_name_that_its_person_gave_it(host: RecordingHost) -> None:
    first = await shelf(host)
    await keep(host, first, "ada", "cats", "About cats")
    await first.rename("ada", "cats", "Pets")
    await first.rename("ada", "none", "Nothing")
    again = await shelf(host)
    assert [one.title for one in await again.list("ada")] == ["Pets"]
    await again.rename("ada", "cats", "")
    assert [one.title for one in await again.list("ada")] == ["About cats"]


async def test_what_is_deleted_is_gone_and_late_answers_do_not_bring_it_back(host: RecordingHost) -> None:
    connector = WebConnector(host, WebSettings())
    await connector.start()
    place, asked = channel_ref("ada", "main"), {"id": "q1", "in": "main", "say": "canary"}
    await connector._take("ada", asked)
    stream = connector.stream(place, "q1")
    await stream.append("canary, ")
    await connector._take("ada", {"id": "d1", "in": "main", "delete": True})
    with pytest.raises(CancelledReplyError):  # nobody waits for the rest
        await stream.append("too")
    await stream.cancel("stopped")
    assert "canary" not in str(host._values)
    again = WebConnector(host, WebSettings())
    await again.start()
    await again.stream(place, "q1").finish(Reply(text="canary", turn="t"))  # out of the core's inbox
    await again._take("ada", asked)  # a page that was never told that we have it
    assert "canary" not in str(host._values)
    assert await again._shelf.list("ada") == []
    await again._take("ada", {"id": "q2", "in": "main", "say": "something new"})
    assert [one.title for one in await again._shelf.list("ada")] == ["something new"]


async def test_news_come_again_after_they_were_deleted(host: RecordingHost) -> None:
    connector = WebConnector(host, WebSettings())
    await connector.start()
    await connector._shelf.alias("ada")
    place = await connector.private("ada")
    assert place is not None
    await connector.send(place, Reply(text="canary"))
    await connector._take("ada", {"id": "d1", "in": "news", "delete": True})
    assert "canary" not in str(host._values)
    await connector.send(place, Reply(text="Version 2 is in use."))
    assert [one.id for one in await connector._shelf.list("ada")] == ["news"]


async def test_a_search_finds_words_and_titles_of_one_s_own_page_by_page(
    host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodbot_connectors.web.cache._LOOKED_AT", 2)
    kept = await shelf(host)
    said = {"a": "STRASSE 100% _x", "b": "nothing", "c": "x\nauf der Straße, weit von hier", "d": "other"}
    for id_, text in said.items():
        clock(host).advance(1)
        await keep(host, kept, "ada", id_, text)
    await kept.rename("ada", "b", "Die Straße")
    await keep(host, kept, "bob", "secret", "Straße")
    for shelf_ in (kept, await shelf(host)):
        found, after = await shelf_.find("ada", "strasse")
        assert ([one.id for one in found], after) == (["c"], "c")
        assert found[0].excerpt == "auf der Straße, weit von hier"
        found, after = await shelf_.find("ada", "strasse", after)
        assert ([(one.id, one.excerpt) for one in found], after) == (
            [("b", ""), ("a", "STRASSE 100% _x")],
            "",
        )
        assert [one.id for one in (await shelf_.find("ada", "100%", "c"))[0]] == ["a"]
        assert (await shelf_.find("ada", "%nothing"))[0] == []
    assert len(kept._open) == 5, "a search leaves memory as it was"


async def test_a_search_keeps_nobody_waiting(host: RecordingHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks through what may be large beside the event loop, a bounded number of bytes at a time."""
    threads, real = set[threading.Thread](), PageConversation.excerpt

    def excerpt(self: PageConversation, text: str) -> str | None:
        threads.add(threading.current_thread())
        return real(self, text)

    monkeypatch.setattr(PageConversation, "excerpt", excerpt)
    monkeypatch.setattr("goodbot_connectors.web.cache._LOOKED_AT_BYTES", 90_000)
    kept = await shelf(host)
    for number in range(4):
        clock(host).advance(1)
        await keep(host, kept, "ada", f"c{number}", f"straw {'x' * 12_000} needle")
    for shelf_ in (kept, await shelf(host)):
        found, after = await shelf_.find("ada", "needle")
        assert ([one.id for one in found], after) == (["c3", "c2"], "c2")
        found, after = await shelf_.find("ada", "needle", after)
        assert ([one.id for one in found], after) == (["c1", "c0"], "")
    assert threads
    assert threading.main_thread() not in threads
