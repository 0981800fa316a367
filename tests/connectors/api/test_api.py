# SPDX-License-Identifier: Apache-2.0
"""The API on a whole goodbot: what is kept, who may what, and that nothing is guessed or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from goodbot.access import limits
from goodbot.api.events import CaptureEvent, OrderKey
from goodbot.base import full_disk
from goodbot.config import ServingConfig
from goodbot.testing import VirtualClock

from tests.connectors.api.daemon import ANSWER, Served, served
from tests.core.builders import CHANNEL, OWNER, check_store, rows
from tests.support import free_port


@pytest.fixture
async def api(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Served]:
    async with served(tmp_path, unused_tcp_port) as api:
        yield api
        await check_store(api.bot.store)


async def label(api: Served, turn: str) -> Any:
    return dict(await rows(api.bot.store, "SELECT rater, value FROM labels WHERE turn = ?", (turn,)))


async def test_an_answer_is_kept_rated_shown_and_taken_back(api: Served) -> None:
    turn = await api.me.captured(model="gpt-9", session="s1", temperature=0.5)
    status, said = await api.me.post(
        "/v1/feedback", {"turn": turn, "score": 1, "comment": "quick", "better": "It is 4."}
    )
    assert (status, said["turn"], said["outcome"]) == (200, turn, "accepted")
    assert "until" in said["text"] or said["text"]
    assert await label(api, turn) == {"api:me": 1.0}
    status, shown = await api.me.get(f"/v1/turns/{turn}")
    assert status == 200
    assert shown["messages"] == ANSWER["messages"]
    assert (shown["response"], shown["model"], shown["off_policy"]) == ("4.", "gpt-9", True)
    assert (shown["score"], shown["comments"], shown["better"]) == (1.0, ["quick"], "It is 4.")
    assert (shown["session"], shown["kind"]) == ("s1", "main")
    status, said = await api.me.ask("DELETE", f"/v1/feedback/{turn}")
    assert (status, said["turn"]) == (200, turn)
    assert await label(api, turn) == {}
    assert (await api.me.get(f"/v1/turns/{turn}"))[1]["score"] is None


async def test_a_trace_is_no_key_to_what_another_connector_has_seen(api: Served) -> None:
    at: dict[str, Any] = {"user": OWNER, "channel": CHANNEL, "order": OrderKey(1)}
    private = CaptureEvent(
        event_id="h",
        messages=({"role": "user", "content": "a private question"},),
        response="4.",
        trace="w3c:1",
        **at,
    )
    [owners] = await api.bot.chat.host.submit([private])
    for client in (api.ci, api.guest):
        turn = await client.captured(trace="w3c:1")
        assert turn != owners.turn
        assert (await client.get(f"/v1/turns/{owners.turn}"))[0] == 404
        assert (await client.get(f"/v1/turns/{turn}"))[1]["messages"] == ANSWER["messages"]
    said = {"turn": owners.turn, "score": -1}
    assert (await api.ci.post("/v1/feedback", said))[0] == 404
    assert await label(api, owners.turn) == {}
    assert await api.me.captured(trace="w3c:1") == owners.turn  # an owner's program joins it


SCORES = [(1, 1.0), (-1, -1.0), (0.25, 0.25), ("good", 1.0), ("bad", -1.0), (0, 0.0)]


async def test_a_score_is_a_number_or_a_word_and_a_client_has_one_opinion(api: Served) -> None:
    turn = await api.me.captured()
    for score, value in SCORES:
        assert (await api.me.post("/v1/feedback", {"turn": turn, "score": score}))[0] == 200
        assert await label(api, turn) == {"api:me": value}


AMBIGUOUS: list[tuple[dict[str, Any], str]] = [
    ({"score": 1}, "the body needs `turn`."),
    ({}, "the body needs `turn`."),
    ({"turn": "", "score": 1}, "`turn` must not be empty."),
    ({"turn": "t"}, "the body needs `score`, `comment` or `better`."),
    ({"turn": "t", "score": 1.01}, "`score` must lie between -1 and 1."),
    ({"turn": "t", "score": "great"}, "`score` must be “good” or “bad”."),
    ({"turn": "t", "score": True}, "`score` must be a number or a text."),
    ({"turn": "t", "score": None}, "`score` must be a number or a text."),
    ({"turn": "t", "score": 1, "kind": "judge"}, "`kind` must be “rate” or “outcome”."),
    ({"turn": "t", "score": 1, "last": True}, "`last` is not known here: "),
    ({"turn": "t", "comment": "  "}, "`comment` must not be empty."),
    ({"turn": "t", "comment": "x" * 10_001}, "`comment` is too long: at most 10000 characters."),
    (
        {"turn": "t", "score": 1, "kind": "outcome", "comment": "x"},
        "`comment` is not known here: turn, kind, score or source.",
    ),
    (
        {"turn": "t", "score": 1, "source": "pytest"},
        "`source` is not known here: turn, score, comment, better or kind.",
    ),
    ({"turn": 5, "score": 1}, "`turn` must be a text."),
]


async def test_what_is_ambiguous_is_an_error_and_no_guess(api: Served) -> None:
    """There is an answer that could be meant: it is never taken for the one that is."""
    turn = await api.me.captured()
    for body, why in AMBIGUOUS:
        status, said = await api.me.post("/v1/feedback", body)
        assert (status, said["error"]["type"]) == (422, "unprocessable"), body
        assert why in said["error"]["message"]
    assert await label(api, turn) == {}


async def test_an_answer_that_is_not_there_or_not_theirs_is_404(api: Served) -> None:
    mine = await api.me.captured()
    for caller in (api.ci, api.guest):
        for turn in (mine, "0123456789abcdef", "x", "%2F"):
            status, said = await caller.get(f"/v1/turns/{turn}")
            assert (status, said["error"]["type"]) == (404, "not_found")
    status, said = await api.ci.post("/v1/feedback", {"turn": mine, "score": 1})
    assert (status, said["error"]["message"]) == (404, "ci has no answer of that id.")
    assert (await api.ci.ask("DELETE", f"/v1/feedback/{mine}"))[0] == 404
    assert await label(api, mine) == {}


async def test_an_owner_s_program_may_rate_what_another_program_has_reported(api: Served) -> None:
    theirs = await api.ci.captured()
    assert (await api.me.get(f"/v1/turns/{theirs}"))[1]["response"] == "4."
    assert (await api.me.post("/v1/feedback", {"turn": theirs, "score": -1}))[0] == 200
    assert (await api.ci.post("/v1/feedback", {"turn": theirs, "score": 1}))[0] == 200
    assert await label(api, theirs) == {"api:me": -1.0, "api:ci": 1.0}


async def test_talking_is_not_rating_and_a_stranger_may_neither(api: Served) -> None:
    turn = await api.guest.captured()
    status, said = await api.guest.post("/v1/feedback", {"turn": turn, "score": 1})
    assert (status, said["error"]["type"]) == (403, "forbidden")
    assert await label(api, turn) == {}
    status, said = await api.stranger.post("/v1/turns", ANSWER)
    assert status == 403
    assert "people grant" in said["error"]["message"]
    assert await rows(api.bot.store, "SELECT count(*) FROM turns") == [(1,)]


async def test_outcomes_are_what_was_measured_each_source_for_itself(api: Served) -> None:
    turn = await api.ci.captured()
    for source, score in (("tests", -1), ("lint", 1), ("tests", 1)):
        body = {"turn": turn, "score": score, "kind": "outcome", "source": source}
        assert (await api.ci.post("/v1/feedback", body))[0] == 200
    found = await rows(api.bot.store, "SELECT kind, source, value FROM events ORDER BY seq")
    assert found == [
        ("outcome", "outcome:tests", -1.0),
        ("outcome", "outcome:lint", 1.0),
        ("outcome", "outcome:tests", 1.0),
    ]


async def test_an_answer_and_what_became_of_it_are_one_request_and_one_commit(api: Served) -> None:
    outcome = {"score": "good", "kind": "outcome", "source": "tests"}
    status, said = await api.ci.post("/v1/turns", {**ANSWER, "feedback": outcome}, "k")
    assert (status, said["outcome"]) == (201, "accepted")
    assert await label(api, said["turn"]) == {"api:ci": 1.0}
    again = await api.ci.post("/v1/turns", {**ANSWER, "feedback": outcome}, "k")
    assert again == (201, {**said, "duplicate": True})
    other = {**ANSWER, "feedback": {**outcome, "score": "bad"}}
    assert (await api.ci.post("/v1/turns", other, "k"))[0] == 409
    assert await label(api, said["turn"]) == {"api:ci": 1.0}
    status, rated = await api.ci.post("/v1/feedback", {"turn": said["turn"], "score": -1})
    assert (status, rated["turn"]) == (200, said["turn"]), "it is rated by its id all the same"
    words = {"comment": "slow", "better": "Four."}
    turn = (await api.me.post("/v1/turns", {**ANSWER, "feedback": {"score": 0.5, **words}}))[1]["turn"]
    shown = (await api.me.get(f"/v1/turns/{turn}"))[1]
    assert (shown["score"], shown["comments"], shown["better"]) == (0.5, ["slow"], "Four.")
    for wrong in ({}, {"turn": "t", "score": 1}, {"kind": "outcome"}, None, "good"):
        status, said = await api.me.post("/v1/turns", {**ANSWER, "feedback": wrong})
        assert status == 422, wrong
    status, said = await api.guest.post("/v1/turns", {**ANSWER, "feedback": {"score": 1}})
    assert status == 403
    assert said["error"]["message"].startswith("The answer is kept as ")
    status, said = await api.me.post("/v1/turns", {**ANSWER, "kind": "side", "feedback": {"score": 1}})
    assert status == 422, "nobody rates what nobody reads"
    assert "`feedback` is not known here" in said["error"]["message"]


async def test_a_side_turn_is_not_rated_and_says_why(api: Served) -> None:
    turn = (await api.me.post("/v1/turns", {**ANSWER, "kind": "side"}))[1]["turn"]
    assert (await api.me.get(f"/v1/turns/{turn}"))[0] == 200
    status, said = await api.me.post("/v1/feedback", {"turn": turn, "score": 1})
    assert (status, said["error"]["message"]) == (
        422,
        f"{turn} is a side turn: nobody reads it, so it is not rated.",
    )
    status, said = await api.guest.post("/v1/feedback", {"turn": turn, "score": 1})
    assert status in (403, 404), "it is not theirs"


# -- the same request again


async def test_a_key_makes_a_request_one_however_often_it_is_sent(api: Served) -> None:
    first = await api.me.post("/v1/turns", ANSWER, "k")
    assert await api.me.post("/v1/turns", dict(reversed(ANSWER.items())), "k") == (
        201,
        {**first[1], "duplicate": True},
    )
    status, said = await api.me.post("/v1/turns", {**ANSWER, "response": "5."}, "k")
    assert (status, said["error"]["type"]) == (409, "conflict")
    other = await api.ci.post("/v1/turns", ANSWER, "k")
    assert other[1]["turn"] != first[1]["turn"], "each client has keys of its own"
    body = {"turn": first[1]["turn"], "score": 1, "comment": "yes"}
    rated = await api.me.post("/v1/feedback", body, "k")
    assert await api.me.post("/v1/feedback", body, "k") == (200, {**rated[1], "duplicate": True})
    for wrong in ({**body, "score": -1}, {**body, "comment": "no"}, {"turn": body["turn"], "score": 1}):
        assert (await api.me.post("/v1/feedback", wrong, "k"))[0] == 409
    assert await rows(api.bot.store, "SELECT count(*) FROM events") == [(2,)]
    assert await rows(api.bot.store, "SELECT count(*) FROM turns") == [(2,)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"comment": "yes"}, {"score": -1}),
        ({"better": "Four."}, {"score": -1, "comment": "no"}),
        ({"score": 1}, {"comment": "no", "better": "Five."}),
    ],
)
async def test_a_key_that_was_used_says_nothing_of_the_answer_of_then(
    api: Served, first: dict[str, Any], second: dict[str, Any]
) -> None:
    kept = (await api.me.post("/v1/turns", {**ANSWER, "feedback": first}, "k"))[1]["turn"]
    other = {**ANSWER, "response": "5.", "feedback": second}
    shown = await api.me.get(f"/v1/turns/{kept}")
    assert (await api.me.post("/v1/turns", other, "k"))[0] == 409
    assert await api.me.get(f"/v1/turns/{kept}") == shown
    said = {"turn": kept}
    assert (await api.me.post("/v1/feedback", {**said, **first}, "f"))[0] == 200
    shown = await api.me.get(f"/v1/turns/{kept}")
    assert (await api.me.post("/v1/feedback", {**said, **second}, "f"))[0] == 409
    assert await api.me.get(f"/v1/turns/{kept}") == shown


async def test_the_same_key_at_once_is_one_turn(api: Served) -> None:
    said = await asyncio.gather(*(api.me.post("/v1/turns", ANSWER, "k") for _ in range(8)))
    assert len({one["turn"] for _, one in said}) == 1
    assert sum(not one["duplicate"] for _, one in said) == 1


async def test_without_a_key_two_are_two(api: Served) -> None:
    assert await api.me.captured() != await api.me.captured()


async def test_a_command_is_done_once_a_key(api: Served) -> None:
    first = await api.me.post("/v1/commands", {"name": "pause"}, "k")
    assert first[0] == 200
    await api.me.post("/v1/commands", {"name": "resume"})
    again = await api.me.post("/v1/commands", {"name": "pause"}, "k")
    assert again[1]["text"] == first[1]["text"]
    assert (await api.bot.status())["paused"] is False, "it was not done a second time"
    assert (await api.me.post("/v1/commands", {"name": "off"}, "k"))[0] == 409


async def test_a_key_that_is_none_is_refused(api: Served) -> None:
    for key in (" ", "a b", "é", "x" * 256, "a\tb"):
        status, said = await api.me.post("/v1/turns", ANSWER, key)
        assert (status, said["error"]["type"]) == (400, "invalid_request"), key
    assert await rows(api.bot.store, "SELECT count(*) FROM turns") == [(0,)]


# -- commands


async def test_commands_are_on_a_list_and_admin_ones_need_both(api: Served) -> None:
    status, said = await api.ci.post("/v1/commands", {"name": "status"})
    assert (status, said["outcome"]) == (200, "accepted")
    for name in ("good", "undo", "web", "pair", "people", "forget", "link", "GOOD", "ｔｒａｉｎ", "+1"):
        for caller in (api.me, api.ci):
            status, said = await caller.post("/v1/commands", {"name": name})
            assert (status, said["error"]["type"]) == (403, "forbidden"), name
    status, said = await api.ci.post("/v1/commands", {"name": "pause"})
    assert (status, said["error"]["message"]) == (
        403,
        "ci may not use 'pause': `goodbot api token add ci --admin` makes a token that may.",
    )
    assert not (await api.bot.status())["paused"]
    assert (await api.me.post("/v1/commands", {"name": "pause"}))[0] == 200
    assert (await api.bot.status())["paused"]
    trail = await rows(api.bot.store, "SELECT actor, action FROM audit")
    assert ("api:me", "pause") in trail


async def test_an_admin_token_of_somebody_who_is_no_owner_opens_nothing_more(
    api: Served, tmp_path: Path
) -> None:
    from goodbot_connectors.kit.bridge import clients

    api.ci.token = clients.create(tmp_path / "bot", "api", "ci", admin=True)
    status, said = await api.ci.post("/v1/commands", {"name": "pause"})
    assert (status, said["error"]["type"]) == (403, "forbidden")
    assert not (await api.bot.status())["paused"]
    mine = await api.me.captured()
    assert (await api.ci.get(f"/v1/turns/{mine}"))[0] == 404
    assert (await api.ci.post("/v1/feedback", {"turn": mine, "score": 1}))[0] == 404


async def test_a_command_that_fails_says_why(api: Served) -> None:
    status, said = await api.me.post("/v1/commands", {"name": "rollback", "args": "v99"})
    assert (status, said["error"]["type"]) == (422, "unprocessable")
    assert said["error"]["message"]


async def test_status_says_who_asks_and_what_answers(api: Served) -> None:
    status, said = await api.ci.get("/v1/status")
    assert (status, said["client"], said["admin"]) == (200, "ci", False)
    assert "the base model answers" in said["text"]
    assert (await api.me.get("/v1/status"))[1]["admin"] is True


async def test_what_goodbot_wants_to_say_comes_with_the_next_command(api: Served) -> None:
    connector = api.bot.app.connectors.running["api"]
    from goodbot.api.events import Reply

    channel = await connector.private("me")
    assert channel is not None
    await connector.send(channel, Reply(text="v3 is live"))
    news = [(await api.me.post("/v1/commands", {"name": "help"}))[1]["news"] for _ in range(2)]
    assert news == [["v3 is live"], []]


# -- the rest


async def test_what_is_stored_is_there_when_it_is_answered(api: Served) -> None:
    """Ack after commit: another connection to the database finds it."""
    import sqlite3

    turn = await api.me.captured()
    await api.me.post("/v1/feedback", {"turn": turn, "score": 1})
    path = api.bot.app.config.home / "goodbot.db"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        found = db.execute("SELECT value FROM labels WHERE turn = ?", (turn,)).fetchall()
    db.close()
    assert found == [(1.0,)]


async def test_nothing_is_said_to_be_stored_when_it_was_not(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goodbot.base.errors import StoreError

    async def fails(*_: object, **__: object) -> None:
        raise StoreError("the disk failed")

    with monkeypatch.context() as patch:
        patch.setattr(api.bot.store, "write", fails)
        status, said = await api.me.post("/v1/turns", ANSWER, "k")
        assert (status, said["error"]["type"]) == (503, "unavailable")
    status, said = await api.me.post("/v1/turns", ANSWER, "k")
    assert (status, said["duplicate"]) == (201, False)


async def test_the_unix_socket_answers_the_same(api: Served) -> None:
    path = api.bot.app.config.home / "http.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=str(path))) as session:
        headers = {"x-api-key": api.me.token}
        async with session.get("http://localhost/v1/status", headers=headers) as response:
            assert (response.status, (await response.json())["client"]) == (200, "me")
        async with session.get("http://localhost/v1/status") as response:
            assert response.status == 401, "whoever can open it needs a token all the same"
        async with session.get("http://evil.example/v1/status", headers=headers) as response:
            assert response.status == 421


async def test_the_words_of_a_stranger_s_page_are_masked_and_nothing_of_a_token_is_kept(
    api: Served, tmp_path: Path
) -> None:
    turn = await api.me.captured(response="my key is sk-proj-" + "a1B2" * 12)
    await api.me.post("/v1/feedback", {"turn": turn, "score": 1})
    await api.me.post("/v1/commands", {"name": "status"})
    await api.bot.store.write(lambda db: _checkpoint(db))
    for path in (tmp_path / "bot").rglob("*"):
        if path.is_file():
            assert api.me.token.encode() not in path.read_bytes(), path


async def _checkpoint(db: Any) -> None:
    del db


async def test_what_is_told_counts_after_the_clock_was_set_back_over_a_restart(tmp_path: Path) -> None:
    now = VirtualClock().now()
    async with served(tmp_path, free_port(), clock=VirtualClock(now, waits=True)) as one:
        turn = await one.me.captured()
        await one.me.post("/v1/feedback", {"turn": turn, "score": 1})
        assert await label(one, turn) == {"api:me": 1.0}
    for back in (600, 86_400):
        async with served(tmp_path, free_port(), clock=VirtualClock(now - back, waits=True)) as one:
            status, said = await one.me.post("/v1/feedback", {"turn": turn, "score": -1})
            assert (status, said["text"].partition(" ")[0]) == (200, "Bad."), said
            assert await label(one, turn) == {"api:me": -1.0}
            status, said = await one.me.ask("DELETE", f"/v1/feedback/{turn}")
            assert (status, said["text"].startswith("Taken back.")) == (200, True), said
            assert await label(one, turn) == {}


async def test_s7_what_is_not_kept_is_429_with_a_sentence(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await api.me.captured()
    little = SimpleNamespace(free=full_disk.RESERVE - 1)
    monkeypatch.setattr(full_disk.shutil, "disk_usage", lambda _: little)
    status, said = await api.me.post("/v1/turns", ANSWER)
    assert (status, said["error"]["type"]) == (429, "too_many_requests")
    assert said["error"]["message"].startswith("Less than 500 MB of the disk are free")
    assert (await api.me.post("/v1/feedback", {"turn": turn, "score": 1}))[0] == 200


async def test_26_4_whoever_is_told_to_try_again_is_counted_in_status(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted those for whom there was no place, and not those whom the API itself had put off."""
    assert "told to try again later" not in await api.bot.command("status")
    with monkeypatch.context() as patch:
        patch.setattr(full_disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=full_disk.RESERVE - 1))
        assert [(await api.me.post("/v1/turns", ANSWER))[0] for _ in range(2)] == [429, 429]
    assert "2 calls by HTTP were told to try again later" in await api.bot.command("status")


async def test_s7_people_behind_one_client_are_counted_one_by_one(tmp_path: Path) -> None:
    """One of them who rated without end took the day's number from all others behind the same token."""
    few = {"serving": ServingConfig(ratings_per_day=2)}
    async with served(tmp_path, free_port(), sections=few) as api:
        turn = await api.ci.captured()

        async def rate(name: str = "") -> int:
            behind = {"X-Goodbot-User": name} if name else {}
            body = {"turn": turn, "score": 1}
            return (await api.ci.ask("POST", "/v1/feedback", body, "", **behind))[0]

        assert [await rate("ada") for _ in range(4)] == [200, 200, 429, 429]
        assert [await rate("bob"), await rate(), await rate(), await rate()] == [200, 200, 200, 429]
        undo = f"/v1/feedback/{turn}"
        assert (await api.ci.ask("DELETE", undo, **{"X-Goodbot-User": "ada"}))[0] == 200
        many = [await rate(f"somebody-{number}") for number in range(2 * limits.PEOPLE_AT_ONCE)]
        assert many.count(200) == 2 * limits.PEOPLE_AT_ONCE - 5, "of the client with all of them so many"
        assert many[-1] == 429, "whatever names the client makes up"
        assert await rows(api.bot.store, "SELECT count(*) FROM labels") == [(1,)], "it has one vote"


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 200])
async def test_who_speaks_for_somebody_names_them(api: Served, name: str) -> None:
    turn = await api.ci.captured()
    body = {"turn": turn, "score": 1}
    status, said = await api.ci.ask("POST", "/v1/feedback", body, "", **{"X-Goodbot-User": name})
    assert (status, "X-Goodbot-User" in said["error"]["message"]) == (400, True)
    assert await label(api, turn) == {}
