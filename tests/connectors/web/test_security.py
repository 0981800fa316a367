# SPDX-License-Identifier: Apache-2.0
"""What another page, a stranger or a broken client may do to the pages: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.api.events import MessageEvent, RatingEvent
from goodbot.base.errors import RetriableError
from goodbot_connectors.web.api import AT_ONCE
from goodbot_connectors.web.guard import CONTENT_POLICY, LARGEST
from goodbot_connectors.web.site import Site

from tests.connectors.web.peer import Browser
from tests.connectors.web.scripted import Scripted, scripted, waiting
from tests.core.builders import until

OTHERS = (
    "null",
    "",
    "http://127.0.0.1:1",
    "https://evil.example",
    "http://localhost",
    "file://",
    "http://127.0.0.1.evil.example",
    "http://evil.example#",
    "javascript:0",
    "http://[",
    "*",
)
READ = (
    *("/api/me", "/api/inbox", "/api/conversation?id=main", "/api/conversations?text=a"),
    *("/api/notes", "/api/progress", "/api/versions", "/api/ratings", "/api/people", "/api/live"),
    *("/api/activity", "/api/activity/checked", "/api/taught", "/api/topics", "/api/settings"),
    "/api/report",
)
SAY = {"id": "a1", "at": 1, "in": "main", "say": "hello"}


@pytest.fixture
async def bot(tmp_path: Path) -> AsyncIterator[Scripted]:
    async with scripted(tmp_path) as bot:
        yield bot
        assert bot.failures == []


@pytest.fixture
async def ada(bot: Scripted) -> AsyncIterator[Browser]:
    """Signed in."""
    bot.codes["ada's code"] = "ada"
    async with contextlib.aclosing(Browser(bot.address)) as browser:
        await browser.log_in("ada's code")
        yield browser


@pytest.fixture
async def stranger(bot: Scripted) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(bot.address, headers={"Origin": bot.address}) as http:
        yield http


async def status(http: aiohttp.ClientSession, method: str, path: str, **options: Any) -> int:
    async with http.request(method, path, **options) as response:
        await response.read()
        return response.status


async def later(http: aiohttp.ClientSession, method: str, path: str, **options: Any) -> tuple[int, str]:
    """The status, and after how many seconds to try again."""
    async with http.request(method, path, **options) as response:
        return response.status, response.headers.get("Retry-After", "")


@pytest.mark.parametrize("origin", OTHERS)
@pytest.mark.parametrize("path", ["/api/do", "/api/notes", "/api/login", "/api/logout", "/api/push"])
async def test_no_other_page_can_do_anything(bot: Scripted, ada: Browser, origin: str, path: str) -> None:
    bot.codes["another"] = "bob"
    body = {**SAY, "code": "another", "do": "delete", "number": "1"}
    assert await status(ada.http, "POST", path, json=body, headers={"Origin": origin}) == 403
    assert (bot.events, bot.told_notes, set(bot.codes)) == ([], [], {"another"})
    assert await status(ada.http, "GET", "/api/me") == 200, "still signed in"


async def test_without_an_origin_nothing_is_done(bot: Scripted, ada: Browser) -> None:
    async with aiohttp.ClientSession(bot.address, cookie_jar=ada.http.cookie_jar) as http:
        assert await status(http, "POST", "/api/do", json=SAY) == 403
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await http.ws_connect("/api/live")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_what_a_browser_says_came_from_elsewhere_reads_nothing(ada: Browser, site: str) -> None:
    """Pages at another port of this host are same-site: they would have the cookie."""
    for path in (
        "/api/me",
        "/api/inbox",
        "/api/conversation?id=main",
        "/api/notes",
        "/api/progress",
        "/api/versions",
        "/api/live",
    ):
        assert await status(ada.http, "GET", path, headers={"Sec-Fetch-Site": site}) == 403


@pytest.mark.parametrize("origin", OTHERS[:5])
async def test_the_live_line_is_refused_before_it_opens(ada: Browser, origin: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        await ada.http.ws_connect("/api/live", headers={"Origin": origin})


async def test_a_stranger_sees_the_pages_and_nothing_else(
    bot: Scripted, stranger: aiohttp.ClientSession
) -> None:
    bot.waiting.append(waiting("t1", "What is secret?", "This."))
    for path in (
        "/api/me",
        "/api/inbox",
        "/api/conversation?id=main",
        "/api/notes",
        "/api/progress",
        "/api/versions",
        "/api/ratings",
        "/api/activity",
        "/api/activity/checked",
        "/api/people",
        "/api/taught",
        "/api/topics",
        "/api/report",
        "/api/settings",
        "/api/queues",
        "/api/waiting",
        "/api/live",
    ):
        assert await status(stranger, "GET", path) == 401
    assert await status(stranger, "POST", "/api/do", json=SAY) == 401
    assert await status(stranger, "POST", "/api/notes", json={"do": "off", "number": "1"}) == 401
    assert await status(stranger, "POST", "/api/ratings", json={"do": "out", "turns": ["t1"]}) == 401
    said = {"do": "set", "key": "serving.stars", "value": True, "before": False}
    assert await status(stranger, "POST", "/api/settings", json=said) == 401
    assert await status(stranger, "POST", "/api/report", json={"do": "make"}) == 401
    assert await status(stranger, "POST", "/api/queues", json={"do": "close", "id": 1}) == 401
    assert bot.told_queues == []
    assert (bot.left_out, bot.wanted, bot.reports_begun) == ([], [], 0)
    assert (bot.events, bot.told_notes) == ([], [])
    pages = ("/progress", "/versions", "/ratings", "/people", "/activity", "/settings", "/notes", "/login")
    for path in ("/", "/rate", "/report", *pages):
        async with stranger.get(path) as response:
            assert response.status == 200
            assert "secret" not in await response.text()


@pytest.mark.parametrize(
    "body", [{"do": "move", "number": "1"}, {"do": "off", "number": "1 everybody"}, {"do": "off"}, {}]
)
async def test_of_a_note_a_page_changes_four_things(
    bot: Scripted, ada: Browser, body: dict[str, str]
) -> None:
    assert await status(ada.http, "POST", "/api/notes", json=body) == 400
    assert bot.told_notes == []
    edit = {"do": "edit", "number": "1", "text": "no\nlists"}
    assert await status(ada.http, "POST", "/api/notes", json=edit) == 200
    assert bot.told_notes == [("edit", "1", "no", "lists")]


async def test_a_guessed_or_forged_cookie_is_nobody(bot: Scripted, ada: Browser) -> None:
    [cookie] = list(ada.http.cookie_jar)
    for forged in ("", "x", cookie.value[:-1], cookie.value + "x", "a" * 4000):
        async with aiohttp.ClientSession(bot.address, cookies={cookie.key: forged}) as http:
            assert await status(http, "GET", "/api/me") == 401


async def test_a_cookie_or_a_code_that_is_no_text_is_nobody(
    bot: Scripted, stranger: Any, caplog: pytest.LogCaptureFixture
) -> None:
    host = bot.address.removeprefix("http://")
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    head = f"GET /api/me HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nCookie: goodbot-{port}="
    writer.write(head.encode() + b"\xff\r\n\r\n")
    assert b" 401 " in (await reader.read()).partition(b"\r\n")[0]
    writer.close()
    asked: list[str] = []

    async def log_in(code: str) -> str:
        asked.append(code)
        return ""

    bot.log_in = log_in
    headers = {"Content-Type": "application/json"}
    body = b'{"code": "\\ud800"}'
    assert await status(stranger, "POST", "/api/login", data=body, headers=headers) == 401
    assert asked == ["\ufffd"], "what the core can hash"
    assert "Traceback" not in caplog.text


async def test_a_page_of_somebody_else_s_does_nothing_here(bot: Scripted, ada: Browser) -> None:
    for user, expected in (("bob", 401), ("b%C3%B6b", 401), ("ada", 200), ("a%64a", 200)):
        headers = {"X-Goodbot-User": user}
        assert await status(ada.http, "POST", "/api/do", json=SAY, headers=headers) == expected
        assert await status(ada.http, "GET", "/api/me", headers=headers) == expected
    assert {event.user.id for event in bot.events} == {"ada"}


async def test_ids_of_sessions_are_not_kept_and_outlive_a_restart(bot: Scripted, ada: Browser) -> None:
    [cookie] = list(ada.http.cookie_jar)
    assert len(cookie.value) >= 43, "256 bits"
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert cookie.key.endswith(bot.address.rpartition(":")[2]), "another port has another cookie"
    assert cookie.value not in str(bot._values)
    await bot.restart()
    assert await status(ada.http, "GET", "/api/me") == 200
    assert await status(ada.http, "POST", "/api/logout", json={}) == 200
    ada.http.cookie_jar.update_cookies({cookie.key: cookie.value})
    assert await status(ada.http, "GET", "/api/me") == 401, "signed out here, not only there"


async def test_over_https_the_cookie_goes_nowhere_else(bot: Scripted) -> None:
    bot.codes["code"] = "ada"
    secure = bot.address.replace("http:", "https:")  # a proxy with a certificate stands before us
    async with (
        aiohttp.ClientSession(bot.address) as http,
        http.post("/api/login", json={"code": "code"}, headers={"Origin": secure}) as response,
    ):
        assert response.status == 200
        assert "Secure" in response.headers["Set-Cookie"]


async def test_everybody_is_signed_out_at_once(bot: Scripted, ada: Browser) -> None:
    await bot.connector.sign_out()
    assert await status(ada.http, "GET", "/api/me") == 401
    await until(lambda: not ada.listening.is_set())


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/",
            "/rate",
            "/progress",
            "/versions",
            "/ratings",
            "/activity",
            "/report",
            "/people",
            "/notes",
            "/login",
            "/files/chat.js",
        ),
        *("/api/me", "/api/inbox", "/api/notes", "/api/progress", "/api/versions", "/api/ratings"),
        *("/api/queues", "/api/waiting", "/worker.js", "/manifest.webmanifest"),
        *("/api/activity", "/api/people", "/api/report", "/api/settings"),
    ],
)
async def test_every_answer_is_held_to_our_own_files(ada: Browser, path: str) -> None:
    async with ada.http.get(path) as response:
        assert response.status == 200
        assert response.headers["Content-Security-Policy"] == CONTENT_POLICY
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert not [name for name in response.headers if name.lower().startswith("access-control")]
        if path.startswith("/api/"):
            assert response.headers["Cache-Control"] == "no-store"


async def test_the_policy_is_the_strict_one_and_the_pages_keep_it(stranger: Any) -> None:
    assert "unsafe" not in CONTENT_POLICY
    assert CONTENT_POLICY.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "frame-ancestors 'none'" in CONTENT_POLICY
    for path in Site().paths:
        if path.endswith(".png") or "/vendored/" in path:  # that runs in a worker alone: test_vendored
            continue
        async with stranger.get(path) as response:
            text = await response.text()
        assert not any(word in text for word in ("innerHTML", "outerHTML", "insertAdjacentHTML"))
        assert not any(word in text for word in ("document.write", "eval(", "DOMParser"))
        if "<!doctype html>" in text:
            assert not re.findall(r"""\s(?:on\w+|style)=|<script>|<style|(?:src|href)="(?!/|#)""", text)


async def test_files_have_no_path_of_anybody_s_making(stranger: Any) -> None:
    for path in (
        "/files/../connector.py",
        "/files/%2e%2e/connector.py",
        "/files/..%2fconfig.py",
        "/files/",
        "/files/chat.html",
        "/files//etc/passwd",
        "/files/chat.js/",
        "/files/chat.js%00",
    ):
        assert await status(stranger, "GET", path, allow_redirects=False) == 404


async def test_a_file_that_has_not_changed_is_not_sent_again(stranger: Any) -> None:
    async with stranger.get("/files/chat.js") as response:
        tag = response.headers["ETag"]
    assert await status(stranger, "GET", "/files/chat.js", headers={"If-None-Match": tag}) == 304


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"null", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'"\xff\xfe"', 400),
        (b"{}", 400),
        (b'{"id":"a","in":"b"}', 400),
        (b'{"id":1,"in":"b","say":"x"}', 400),
        (b'{"id":"a","in":"../x","say":"x"}', 400),
        (b'{"id":"a","in":"b","say":{}}', 400),
        (b'{"id":"a","in":"b","say":"  "}', 400),
        (b'{"id":"a b","in":"b","say":"x"}', 400),
        (b'{"id":"a","in":"b","undo":"reaction:x"}', 400),
        (b'{"id":"a","in":"b","press":"good"}', 200),  # a press without an answer asks for nothing
        (b'{"x":"' + b"a" * LARGEST + b'"}', 413),
    ],
)
async def test_what_is_malformed_is_refused_with_a_sentence(
    bot: Scripted, ada: Browser, body: bytes, expected: int
) -> None:
    headers = {"Content-Type": "application/json"}
    async with ada.http.post("/api/do", data=body, headers=headers) as response:
        assert response.status == expected
        if expected != 200:
            assert (await response.json())["error"].endswith((".", "words."))
    assert not [e for e in bot.events if isinstance(e, (MessageEvent, RatingEvent))]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_what_a_form_could_send_is_refused(bot: Scripted, ada: Browser, kind: str) -> None:
    headers = {"Content-Type": kind}
    body = b'{"id":"a","in":"b","say":"x"}'
    assert await status(ada.http, "POST", "/api/do", data=body, headers=headers) == 415
    assert bot.events == []


async def test_ids_that_one_person_makes_up_are_not_another_s(bot: Scripted, ada: Browser) -> None:
    """Else somebody could silence a message, or read the receipt of a rating that is not theirs."""
    bot.codes["bob's code"] = "bob"
    async with contextlib.aclosing(Browser(bot.address)) as bob:
        await bob.log_in("bob's code")
        done = [await status(one.http, "POST", "/api/do", json=SAY) for one in (ada, bob)]
    assert done == [200, 200]
    assert len({event.event_id for event in bot.events}) == 2
    assert all("ada" not in e.event_id and "bob" not in e.event_id for e in bot.events)


async def test_what_one_person_asks_at_once_leaves_room_for_all_others(bot: Scripted, ada: Browser) -> None:
    """Whoever had a session could hold all places of the port with slow searches, say."""
    bot.codes["bob's code"] = "bob"
    async with contextlib.aclosing(Browser(bot.address)) as bob:
        await bob.log_in("bob's code")
        bot.hold()

        async def says(who: Browser, number: int) -> int:
            return await status(who.http, "POST", "/api/do", json={**SAY, "id": f"a{number}"})

        waiting = [asyncio.create_task(says(ada, number)) for number in range(AT_ONCE)]
        await until(lambda: len(bot.attempts) == AT_ONCE)
        assert await says(ada, AT_ONCE) == 429
        assert await later(ada.http, "GET", "/api/me") == (429, "1")
        assert await status(ada.http, "GET", "/") == 200, "the page itself is anybody's"
        waiting.append(asyncio.create_task(says(bob, 1)))
        await until(lambda: len(bot.attempts) == AT_ONCE + 1)
        bot.release()
        assert {await one for one in waiting} == {200}
        assert await says(ada, AT_ONCE) == 200


async def test_26_4_what_is_to_be_tried_again_says_when(
    bot: Scripted, ada: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page's 503 and 429 had no Retry-After, which those of the API have."""
    bot.refuse()
    assert await later(ada.http, "POST", "/api/do", json=SAY) == (503, "1")
    assert await later(ada.http, "POST", "/api/do", json=SAY) == (200, "")

    async def log_in(code: str) -> str:
        raise RetriableError("too many wrong codes: wait a minute", retry_after=40.2)

    monkeypatch.setattr(bot, "log_in", log_in)
    assert await later(ada.http, "POST", "/api/login", json={"code": "x"}) == (503, "41")


async def test_a_code_is_used_by_post_only_and_once(bot: Scripted, stranger: Any) -> None:
    bot.codes["code"] = "ada"
    assert await status(stranger, "GET", "/api/login?code=code") == 405
    assert await status(stranger, "GET", "/login?code=code") == 200
    assert set(bot.codes) == {"code"}
    assert await status(stranger, "POST", "/api/login", json={"code": ["code"]}) == 401
    assert await status(stranger, "POST", "/api/login", json={"code": "code"}) == 200
    assert await status(stranger, "POST", "/api/login", json={"code": "code"}) == 401


async def test_no_word_and_no_id_is_logged(
    bot: Scripted, ada: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    await status(ada.http, "POST", "/api/do", json={**SAY, "say": "canary words"})
    await status(ada.http, "POST", "/api/do", data=b"{canary")
    await ada.get("/api/conversation", id="main")
    [cookie] = list(ada.http.cookie_jar)
    assert "canary" not in caplog.text
    assert cookie.value not in caplog.text
    assert "ada's code" not in caplog.text
