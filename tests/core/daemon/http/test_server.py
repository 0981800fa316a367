# SPDX-License-Identifier: Apache-2.0
"""The daemon's one HTTP server: connectors' pages, who is let in, and what one client may cost."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest
from goodbot.base import connection
from goodbot.base.errors import ConfigError, FatalConnectorError
from goodbot.config import HttpConfig, parse
from goodbot.daemon.http.http import PORT, Http
from goodbot.testing import RecordingHost

from tests.core.builders import open_bot, until
from tests.core.daemon.http.asking import get, raw
from tests.core.daemon.http.site import OTHER, SPEC, Site, SiteSettings, served
from tests.support import patience


async def test_a_connector_s_page_is_answered_beside_the_health(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, site):
        assert await get(unused_tcp_port, "/page") == (200, "a page of web")
        assert (await get(unused_tcp_port, "/healthz"))[0] == 200
        assert (await get(unused_tcp_port, "/nothing"))[0] == 404
        assert (await get(unused_tcp_port, "/page", method="POST"))[0] == 405
        assert site.host.address == f"http://127.0.0.1:{unused_tcp_port}"
        assert bot.app.connectors.errors == {}
    with pytest.raises(ConnectionRefusedError):
        await get(unused_tcp_port, "/page")


async def test_without_a_port_a_connector_with_pages_gets_the_usual_one(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PORT == 8321
    monkeypatch.setattr("goodbot.daemon.http.http.PORT", unused_tcp_port)
    async with served(tmp_path, 0) as (_, site):
        assert await get(unused_tcp_port, "/page") == (200, "a page of web")
        assert site.host.address == f"http://127.0.0.1:{unused_tcp_port}"


async def test_nothing_listens_for_connectors_without_pages(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert not bot.app.http.listening


async def test_until_it_has_started_and_after_it_has_stopped_a_connector_is_not_asked(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    http = Http(HttpConfig(port=unused_tcp_port))
    await http.start()
    host = RecordingHost(SPEC, state_dir=tmp_path)
    site = Site(host, SiteSettings())
    running: set[str] = set()
    assert (await get(unused_tcp_port, "/page"))[0] == 503
    await http.mount({"web": site.routes()}, running.__contains__)
    status, said = await get(unused_tcp_port, "/page")
    assert (status, said) == (503, '{"status": "web is not running"}\n')
    running.add("web")
    assert (await get(unused_tcp_port, "/page"))[0] == 200
    running.clear()
    assert (await get(unused_tcp_port, "/page"))[0] == 503
    await http.unmount()
    assert (await get(unused_tcp_port, "/page"))[0] == 503
    assert (await get(unused_tcp_port, "/healthz"))[0] == 200
    assert site.asked == 1
    await http.stop()
    await http.stop()


async def test_a_person_who_is_too_early_gets_a_page_that_asks_again(unused_tcp_port: int) -> None:
    http = Http(HttpConfig(port=unused_tcp_port))
    await http.start()
    url = f"http://127.0.0.1:{unused_tcp_port}/rate"
    async with aiohttp.ClientSession() as client:
        async with client.get(url, headers={"Accept": "text/html,*/*;q=0.8"}) as page:
            assert (page.status, page.content_type) == (503, "text/html")
            assert '<script src="/unready.js"></script>' in await page.text()
            assert "script-src 'self';" in page.headers["Content-Security-Policy"]
        async with client.get(urljoin(url, "/unready.js")) as script:
            assert (script.status, script.content_type) == (200, "text/javascript")
            assert "location.reload()" in await script.text()
        for method, accept in (("GET", "*/*"), ("POST", "text/html")):
            async with client.request(method, url, headers={"Accept": accept}) as said:
                assert (said.status, await said.json()) == (503, {"status": "starting"})
    await http.stop()


async def test_no_answer_tells_which_versions_run(tmp_path: Path, unused_tcp_port: int) -> None:
    """An application's, and all that is said beside one."""
    asked = [
        *(
            f"GET {path} HTTP/1.1\r\nHost: localhost"
            for path in ("/healthz", "/readyz", "/unready.js", "/page")
        ),
        "GET /nothing HTTP/1.1\r\nHost: localhost\r\nAccept: text/html",
        "PUT /healthz HTTP/1.1\r\nHost: localhost",
        "GET /page HTTP/1.1\r\nHost: evil.example",
        "GET /page HTTP/1.1",
        "nonsense",
    ]
    http = Http(HttpConfig(port=unused_tcp_port))
    await http.start()
    early = [await raw(unused_tcp_port, f"{one}\r\nConnection: close\r\n\r\n".encode()) for one in asked]
    await http.stop()
    async with served(tmp_path, unused_tcp_port):
        late = [await raw(unused_tcp_port, f"{one}\r\nConnection: close\r\n\r\n".encode()) for one in asked]
    for one, said in zip(asked * 2, [*early, *late], strict=True):
        assert "aiohttp" not in said[1], (one, said)
        assert "python" not in said[1], (one, said)


async def test_one_that_fails_to_start_answers_503_and_the_others_answer(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    other = {"path": "/other", "fails": "no luck"}
    async with served(tmp_path, unused_tcp_port, other={**other}) as (bot, _):
        assert "no luck" in bot.app.connectors.errors["other"]
        assert await get(unused_tcp_port, "/page") == (200, "a page of web")
        assert (await get(unused_tcp_port, "/other"))[0] == 503


async def test_two_that_want_one_path_are_told_which(tmp_path: Path, unused_tcp_port: int) -> None:
    with pytest.raises(ConfigError, match=r"\[connectors\.web\] answers at .*, and so does other"):
        async with served(tmp_path, unused_tcp_port, other={}):
            pass


async def test_health_is_ours(tmp_path: Path, unused_tcp_port: int) -> None:
    with pytest.raises(ConfigError, match=r"at /readyz, and so does goodbot itself"):
        async with served(tmp_path, unused_tcp_port, web={"path": "/readyz"}):
            pass


async def test_a_port_that_is_taken_is_said_before_anything_starts(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    taken = pytest.raises(ConfigError, match=f"port {unused_tcp_port} .*: set another port")
    with socket.create_server(("127.0.0.1", unused_tcp_port)), taken:
        async with served(tmp_path, unused_tcp_port):
            pass
    async with served(tmp_path, unused_tcp_port):  # and nothing of the first try is in the way
        pass


async def test_a_proxy_finds_the_usual_port_or_nothing(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds the port would get what people say behind the proxy."""
    monkeypatch.setattr("goodbot.daemon.http.http.PORT", unused_tcp_port)
    taken = pytest.raises(ConfigError, match=f"port {unused_tcp_port}")
    with socket.create_server(("127.0.0.1", unused_tcp_port)), taken:
        async with served(tmp_path, 0, http={"url": "https://bot.example.org"}):
            pass


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:1", 200),
        ("bot.example.org", 200),
        ("BOT.example.org:443", 200),
        ("second.example", 200),
        ("evil.example", 421),
        ("x.bot.example.org", 421),
        ("bot.example.org.", 421),
        ("bot.example.org@evil.example", 421),
        ("bot.example.org:x", 421),
    ],
)
async def test_a_page_is_answered_to_our_names_only(
    host: str, status: int, unused_tcp_port: int, tmp_path: Path
) -> None:
    """A page of a stranger's whose name was rebound to our address gets nothing of ours."""
    config = HttpConfig(port=unused_tcp_port, url="https://bot.example.org", names=("second.example",))
    http = Http(config)
    site = Site(RecordingHost(SPEC, state_dir=tmp_path), SiteSettings())
    await http.mount({"web": site.routes()}, lambda _: True)
    assert http.address == "https://bot.example.org"
    assert (await get(unused_tcp_port, "/page", host))[0] == status
    assert site.asked == (status == 200)
    await http.stop()


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:9"),
        ("0.0.0.0", "http://127.0.0.1:9"),
        ("::", "http://[::1]:9"),
        ("::1", "http://[::1]:9"),
        ("localhost", "http://localhost:9"),
        ("192.0.2.7", "http://192.0.2.7:9"),
    ],
)
def test_links_lead_to_where_it_listens(host: str, address: str) -> None:
    assert Http(HttpConfig(port=9, host=host)).address == address


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gpu.example.org"])
async def test_tokens_cross_a_network_only_where_somebody_has_said_how(
    host: str, unused_tcp_port: int, tmp_path: Path
) -> None:
    """T09: without `url` another host than the loopback is refused, before anything listens there."""
    routes = {"web": Site(RecordingHost(SPEC, state_dir=tmp_path), SiteSettings()).routes()}
    http = Http(HttpConfig(port=unused_tcp_port, host=host))
    with pytest.raises(ConfigError, match=r"TLS before goodbot\. .*`url` where people open it") as told:
        await http.mount(routes, lambda _: True)
    assert max(len(sentence.split()) for sentence in str(told.value).split(". ")) <= 25
    assert not http.listening


@pytest.mark.parametrize("url", ["https://bot.example.org", "http://localhost:9000"])
async def test_behind_a_proxy_or_in_a_container_it_may_listen_on_all_addresses(
    url: str, unused_tcp_port: int, tmp_path: Path
) -> None:
    http = Http(HttpConfig(port=unused_tcp_port, host="0.0.0.0", url=url))
    site = Site(RecordingHost(SPEC, state_dir=tmp_path), SiteSettings())
    await http.mount({"web": site.routes()}, lambda _: True)
    assert (await get(unused_tcp_port, "/page", url.partition("//")[2]))[0] == 200
    await http.stop()


async def test_health_alone_needs_no_url(unused_tcp_port: int) -> None:
    """A supervisor's probe from elsewhere carries nothing: it is allowed, and warned about."""
    http = Http(HttpConfig(port=unused_tcp_port, host="0.0.0.0"))
    await http.start()
    await http.mount({"web": ()}, lambda _: True)
    assert (await get(unused_tcp_port, "/healthz"))[0] == 200
    await http.stop()


@pytest.mark.parametrize(
    "url",
    [
        "bot.example.org",
        "ftp://x",
        "https://",
        "https://x/",
        "https://x/y",
        "https://a@x",
        "https://x:0",
        "https://x:y",
        "https://x?y",
        "https://x y",
    ],
)
def test_a_url_that_is_none_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="url must be like"):
        parse(f'[http]\nurl = "{url}"', home=tmp_path)
    assert parse('[http]\nurl = "https://x.org:8"', home=tmp_path).http.url == "https://x.org:8"


@pytest.mark.parametrize("name", ["", "https://x", "x:80", "a b"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="without scheme and port"):
        parse(f'[http]\nnames = ["{name}"]', home=tmp_path)


async def test_what_is_too_large_is_refused_in_words(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port):
        assert await get(unused_tcp_port, "/size", method="POST", body=b"x" * 5000) == (200, "5000")
        status, _ = await get(unused_tcp_port, "/size", method="POST", body=b"x" * (1 << 21))
        assert status == 413
        long = b"GET /page HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"a" * 9000 + b"\r\n\r\n"
        assert (await raw(unused_tcp_port, long))[0] == 400
        many = b"".join(b"X-%d: a\r\n" % n for n in range(500))
        head = b"GET /page HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n"
        assert (await raw(unused_tcp_port, head))[0] == 400
        for lines, status in ((7, 200), (9, 431)):  # T17: 16 KiB in all
            wide = b"".join(b"X-%d: %s\r\n" % (n, b"a" * 2000) for n in range(lines))
            head = b"GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + wide
            got, _, said = await raw(unused_tcp_port, head + b"\r\n")
            assert got == status
            assert (b"16384 bytes in all" in said) == (status == 431)


async def test_a_socket_that_is_left_half_open_is_closed(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither who says nothing, nor who never ends a head or a body, holds a connection for ever."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", patience(0.3))
    monkeypatch.setattr(connection, "BODY_SECONDS", patience(0.3))
    async with served(tmp_path, unused_tcp_port):
        for begun in (b"", b"GET /page HTTP/1.1\r\nHost: loc"):
            reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
            writer.write(begun)
            async with asyncio.timeout(patience(10)):
                assert await reader.read() == b""
            writer.close()
        head = b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx"
        async with asyncio.timeout(patience(10)):
            status, _, _ = await raw(unused_tcp_port, head)
        assert status == 408


async def test_what_fails_is_logged_and_not_shown(
    tmp_path: Path, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path, unused_tcp_port):
        status, said = await get(unused_tcp_port, "/broken")
        assert (status, said) == (500, '{"status": "error"}\n')
    assert "a request failed" in caplog.text


async def test_a_stop_waits_for_nobody(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port) as (_, site):
        waiting = asyncio.create_task(get(unused_tcp_port, "/never"))
        await until(lambda: site.asked)
    with pytest.raises((ConnectionError, IndexError)):
        await waiting


async def test_what_is_under_way_ends_with_the_app_that_answers_it(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """At a model switch the port stays, and nobody is left waiting for the App that is gone."""
    http = Http(HttpConfig(port=unused_tcp_port))
    site = Site(RecordingHost(SPEC, state_dir=tmp_path), SiteSettings())
    await http.mount({"web": site.routes()}, lambda _: True)
    waiting = asyncio.create_task(get(unused_tcp_port, "/never"))
    await until(lambda: site.asked)
    await http.unmount()
    with pytest.raises((ConnectionError, IndexError)):
        await asyncio.wait_for(waiting, patience(10))
    assert (await get(unused_tcp_port, "/page"))[0] == 503
    await http.mount({"web": site.routes()}, lambda _: True)
    assert (await get(unused_tcp_port, "/page"))[0] == 200
    await http.stop()


async def test_a_connector_says_that_it_does_not_work_and_that_it_works_again(
    tmp_path: Path, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, site):
        site.host.trouble("another program polls with this token")
        site.host.trouble("another program polls with this token")
        status = await bot.status()
        assert status["connectors"]["web"] == "another program polls with this token"
        assert (await get(unused_tcp_port, "/page"))[0] == 200, "it runs all the same"
        site.host.trouble("")
        site.host.trouble("")
        assert (await bot.status())["connectors"]["web"] == "running"
    assert caplog.text.count("another program polls") == 1
    assert caplog.text.count("works again") <= 1


async def test_a_clock_that_is_not_the_platforms_is_told_to_owners(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port) as (bot, site):
        assert (await bot.status())["clock"] == []
        site.host.told_time(site.host.clock.now() + 180)
        status = await bot.status()
        [told] = status["clock"]
        assert "180 s behind" in told
        assert status["connectors"]["web"] == "running"


async def test_what_has_stopped_a_connector_is_not_taken_back_with_its_trouble(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async def dies() -> None:
        raise FatalConnectorError("the token was withdrawn")

    async with served(tmp_path, unused_tcp_port) as (bot, site):
        site.host.trouble("the platform is slow")
        await asyncio.wait({site.host.spawn(dies(), "poll")})
        site.host.trouble("")
        assert (await bot.status())["connectors"]["web"] == "the token was withdrawn"


async def test_what_stops_a_connector_without_a_word_is_named(tmp_path: Path, unused_tcp_port: int) -> None:
    async def dies() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    async with served(tmp_path, unused_tcp_port) as (bot, site):
        await asyncio.wait({site.host.spawn(dies(), "poll")})
        said = (await bot.status())["connectors"]["web"]
        assert said == "poll failed: it took too long"


async def test_a_recording_host_has_a_real_server_for_pages(tmp_path: Path) -> None:
    host = RecordingHost(SPEC, state_dir=tmp_path)
    port = int(host.address.rpartition(":")[2])
    first, second = Site(host, SiteSettings()), Site(host, SiteSettings())
    host.mount(first)
    assert (await get(port, "/page"))[0] == 503
    await first.start()
    assert await get(port, "/page") == (200, "a page of web")
    await first.stop()
    assert (await get(port, "/page"))[0] == 503
    host.mount(second)
    await second.start()
    await until(lambda: host.address)
    assert (await get(port, "/page"))[0] == 200
    assert (first.asked, second.asked) == (1, 1)
    assert host.failures == []
    await host.close()
    with pytest.raises(ConnectionRefusedError):
        await get(port, "/page")
    bare = RecordingHost(OTHER, state_dir=tmp_path)
    await bare.close()
