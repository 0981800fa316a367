# SPDX-License-Identifier: Apache-2.0
"""Who wants it is told how many answers wait while no page is open: whom, when, what, and where to."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.exceptions import InvalidSignature
from goodbot.base.addresses import require_url
from goodbot.base.errors import StoreError
from goodbot.base.outward import post
from goodbot.base.proxies import VARIABLES
from goodbot.testing import VirtualClock
from goodbot_connectors.web import SPEC, push_message, pushing
from goodbot_connectors.web.pushing import Pushing

from tests.connectors.web.browsing import until
from tests.connectors.web.push_service import Keys, Service, data, push_service, sender
from tests.connectors.web.scripted import Scripted, waiting
from tests.support import patience

DAY = 86_400.0
# RFC 8291, section 5 and appendix A.
PLAIN = b"When I grow up, I want to be a watermelon"
OWN = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
THEIRS = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
SECRET = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
SEALED = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8w"
    "EqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


@pytest.fixture
async def bot(tmp_path: Path) -> AsyncIterator[Scripted]:
    host = Scripted(tmp_path)
    host.clock = VirtualClock(waits=True)
    try:
        await host.start()
        yield host
        assert host.failures == []
    finally:
        await host.close()


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """On this machine, where no service may be: the tests at the end are about that."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pushing, "require_url", lambda url, *, local: require_url(url, local=True))
    monkeypatch.setattr(pushing, "post", partial(post, local=True))
    async with push_service() as service:
        yield service


class Tab:
    """A browser that is signed in, and has no page open."""

    def __init__(self, http: aiohttp.ClientSession, service: Service | None, name: str) -> None:
        self.http, self.keys = http, Keys()
        self.endpoint = f"{service.origin if service else 'https://push.example'}/send/{name}"

    async def asks(self, do: str, **more: Any) -> tuple[int, dict[str, Any]]:
        async with self.http.post("/api/push", json={"do": do, **more}) as response:
            return response.status, await response.json()

    async def wants(self) -> dict[str, Any]:
        status, found = await self.asks("on", endpoint=self.endpoint, keys=self.keys.given)
        assert (status, found["endpoint"]) == (200, self.endpoint)
        return found


@contextlib.asynccontextmanager
async def tab(
    bot: Scripted, service: Service | None = None, user: str = "ada", name: str = "one", language: str = "en"
) -> AsyncGenerator[Tab]:
    jar = aiohttp.CookieJar(unsafe=True)
    headers = {"Origin": bot.address, "Accept-Language": language}
    async with aiohttp.ClientSession(bot.address, cookie_jar=jar, headers=headers) as http:
        bot.codes[name] = user
        async with http.post("/api/login", json={"code": name}) as response:
            assert response.status == 200
        yield Tab(http, service, name)


def clock(bot: Scripted) -> VirtualClock:
    assert isinstance(bot.clock, VirtualClock)
    return bot.clock


def ask(bot: Scripted, count: int) -> None:
    """So many more answers wait, from now."""
    start = len(bot.waiting)
    bot.waiting[:0] = [
        waiting(f"t{start + number}", "My question?", "An answer.", created_at=bot.clock.now())
        for number in range(count)
    ]


def pushes(bot: Scripted) -> Pushing:
    return bot.connector._pushing


async def look(bot: Scripted, after: float = 60.0) -> None:
    """What it does once so much time has passed."""
    clock(bot)._wall += after  # nobody who sleeps is woken: it looks when it is told to
    clock(bot)._monotonic += after
    await pushes(bot).look()


def test_a_message_is_encrypted_as_in_the_standards_own_example() -> None:
    assert push_message.encrypted(PLAIN, THEIRS, SECRET, once=OWN, salt=data(SALT)) == data(SEALED)


def test_only_our_key_signs_and_each_message_has_a_key_of_its_own() -> None:
    own, keys = push_message.made(), Keys()
    first, second = (
        push_message.encrypted(b'{"n": 1}', keys.given["p256dh"], keys.given["auth"]) for _ in range(2)
    )
    assert keys.read(first) == keys.read(second) == {"n": 1}
    assert first[:86] != second[:86]
    said = push_message.signed(own, "https://push.example/send/1", now=1000.0, contact="https://bot.example")
    key, claims = sender({"Authorization": said})
    assert key == push_message.public(own)
    assert claims == {"aud": "https://push.example", "exp": 1000 + 12 * 3600, "sub": "https://bot.example"}
    other = push_message.public(push_message.made())
    with pytest.raises(InvalidSignature):
        sender({"Authorization": f"{said.partition(', k=')[0]}, k={other}"})


async def test_a_number_comes_encrypted_and_signed_in_the_readers_language(
    bot: Scripted, service: Service
) -> None:
    async with tab(bot, service, language="de-AT,en") as ada:
        key = (await ada.asks("look"))[1]["key"]
        assert (await ada.wants())["key"] == key
        ask(bot, 5)
        await look(bot)
    [body], [headers] = service.bodies, service.headers
    assert service.paths == ["/send/one"]
    assert ada.keys.read(body) == {"told": "5 Antworten warten auf deine Bewertung."}
    assert (headers["Content-Encoding"], headers["TTL"]) == ("aes128gcm", "43200")
    assert headers["Topic"] == "waiting", "a later one takes its place"
    assert len(body) == 86 + 512 + 1 + 16, "of whatever it says"
    signer, claims = sender(headers)
    assert (signer, claims["aud"]) == (key, service.origin)
    assert bot.clock.now() < claims["exp"] <= bot.clock.now() + DAY
    assert "Cookie" not in headers
    assert "ada" not in str(headers)


async def test_it_is_said_once_in_a_day_and_only_of_new_ones(bot: Scripted, service: Service) -> None:
    async with tab(bot, service) as ada, tab(bot, service, name="two") as other:
        for one in (ada, other):
            await one.wants()
        ask(bot, 4)
        await look(bot)
        assert service.paths == []
        ask(bot, 1)
        await look(bot)
        assert sorted(service.paths) == ["/send/one", "/send/two"]
        clock(bot).jump(1)
        ask(bot, 3)
        await look(bot, DAY / 2)
        assert len(service.paths) == 2
        await look(bot, DAY / 2)
        assert len(service.paths) == 4
        assert other.keys.read(service.bodies[-1])["told"].startswith("8 ")
        await look(bot, 2 * DAY)
        assert len(service.paths) == 4, "they are the same ones"


async def test_who_has_a_page_open_there_or_may_not_rate_or_has_had_enough_is_not_told(
    bot: Scripted, service: Service
) -> None:
    async with tab(bot, service) as ada:
        await ada.wants()
        ask(bot, 5)
        async with ada.http.ws_connect("/api/live"):
            await until(lambda: bot.connector._live._pages.get("ada"))
            await look(bot)
        await until(lambda: not bot.connector._live._pages)
        bot.talkers.add("ada")
        await look(bot)
        bot.talkers.clear()
        assert service.paths == []
        assert (await ada.asks("off"))[1]["endpoint"] == ""
        await look(bot)
        assert service.paths == []
        await ada.wants()
        await look(bot)
        assert service.paths == ["/send/one"]


async def test_a_page_in_one_browser_keeps_nothing_from_another(bot: Scripted, service: Service) -> None:
    async with tab(bot, service) as desk, tab(bot, service, name="phone") as phone:
        await desk.wants()
        await phone.wants()
        ask(bot, 5)
        async with desk.http.ws_connect("/api/live"):
            await until(lambda: bot.connector._live._pages.get("ada"))
            await look(bot)
    assert service.paths == ["/send/phone"]


@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_is_gone_is_asked_nothing_more(
    bot: Scripted, service: Service, status: int
) -> None:
    service.answers = [status]
    async with tab(bot, service) as ada:
        await ada.wants()
        ask(bot, 5)
        await look(bot)
        assert (await ada.asks("look"))[1]["endpoint"] == ""
        await look(bot, 2 * DAY)
    assert service.paths == ["/send/one"]


@pytest.mark.parametrize(
    ("status", "retry_after", "waits"),
    [(429, "3600", 3600), (503, "7200", 7200), (429, "soon", 60), (500, "", 60), (307, "", 60), (0, "", 60)],
)
async def test_what_was_not_taken_is_sent_again_later_and_not_before(
    bot: Scripted,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    retry_after: str,
    waits: float,
) -> None:
    service.answers, service.retry_after = [status], retry_after
    async with tab(bot, service) as ada:
        await ada.wants()
        ask(bot, 5)
        with monkeypatch.context() as patched:
            if not status:  # for the silent one alone
                patched.setattr(pushing, "SECONDS", patience(0.5))
            await look(bot)
        await look(bot, waits - 1)
        assert service.paths == ["/send/one"], "no redirect is followed, either"
        await look(bot, 1)
        assert service.paths == ["/send/one"] * 2
        assert ada.keys.read(service.bodies[1])["told"].startswith("5 ")
        await look(bot, DAY - 120)
        assert len(service.paths) == 2


async def test_it_is_tried_less_and_less_often_and_no_service_can_put_it_off_for_ever(
    bot: Scripted, service: Service
) -> None:
    service.answers, service.retry_after = [500] * 3 + [429] + [500] * 99, "99999999999"
    async with tab(bot, service) as ada:
        await ada.wants()
        ask(bot, 5)
        service.retry_after = ""
        for waits in (60, 60, 120):
            await look(bot, waits)
        assert len(service.paths) == 3
        service.retry_after = "99999999999"
        await look(bot, 240)
        await look(bot, DAY)
        assert len(service.paths) == 5


async def test_who_signs_out_or_is_forgotten_is_told_nothing_more(bot: Scripted, service: Service) -> None:
    async with (
        tab(bot, service, name="out") as out,
        tab(bot, service, name="again") as again,
        tab(bot, service, user="bob", name="gone") as gone,
        tab(bot, service, user="cy", name="stays") as stays,
    ):
        for one in (out, again, gone, stays):
            await one.wants()
        async with out.http.post("/api/logout") as response:
            assert response.status == 200
        bot.codes["new"] = "ada"
        async with again.http.post("/api/login", json={"code": "new"}) as response:
            assert response.status == 200
        await bot.connector.forget("bob")
        ask(bot, 5)
        await look(bot)
        assert service.paths == ["/send/stays"]
        assert "gone" not in str(bot._values)
        await stays.wants()
        await bot.connector.sign_out()
        ask(bot, 1)
        await look(bot, 2 * DAY)
        assert service.paths == ["/send/stays"]


async def test_a_session_that_is_too_old_is_told_nothing_more(bot: Scripted, service: Service) -> None:
    async with tab(bot, service) as ada:
        await ada.wants()
        ask(bot, 5)
        await look(bot, 31 * DAY)
    assert service.paths == []


async def test_ten_browsers_of_one_person_and_each_endpoint_once(bot: Scripted, service: Service) -> None:
    async with contextlib.AsyncExitStack() as stack:
        tabs: list[Tab] = []
        for number in range(11):
            tabs.append(await stack.enter_async_context(tab(bot, service, name=f"b{number:02}")))
            clock(bot).jump(1)
        other = await stack.enter_async_context(tab(bot, service, user="bob", name="bob"))
        for one in tabs:
            await one.wants()
        other.endpoint = tabs[-1].endpoint  # the same browser, in which somebody else has signed in
        await other.wants()
        ask(bot, 5)
        await look(bot)
    assert sorted(service.paths) == [f"/send/b{number:02}" for number in range(1, 11)]
    bob = service.bodies[service.paths.index("/send/b10")]
    assert other.keys.read(bob)["told"].startswith("5 ")


async def test_a_restart_changes_nothing_and_no_backup_holds_any_of_it(
    bot: Scripted, service: Service
) -> None:
    async with tab(bot, service) as ada:
        key = (await ada.wants())["key"]
        await bot.restart()
        found = (await ada.asks("look"))[1]
        assert (found["key"], found["endpoint"]) == (key, ada.endpoint)
        ask(bot, 5)
        await look(bot)
        assert len(service.paths) == 1
        await bot.restart()
        ask(bot, 1)
        await look(bot)
        assert len(service.paths) == 1, "nor is anybody told twice"
    secret = [name for name, value in bot._values.items() if ada.endpoint in value or name == "push key"]
    assert sorted(secret) == ["push key", "sessions"]
    assert [one for one in secret for kept in SPEC.backup_values if fnmatchcase(one, kept)] == []


async def test_a_disk_that_is_full_makes_nobody_be_told_again_and_again(
    bot: Scripted, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_: Any) -> None:
        raise StoreError("no space left on the device (a test says so)")

    async with tab(bot, service) as ada:
        await ada.wants()
        ask(bot, 5)
        monkeypatch.setattr(bot.connector._sessions, "_store", full)
        for _ in range(3):
            await look(bot)
    assert len(service.paths) == 1


async def test_it_looks_by_itself(bot: Scripted, service: Service) -> None:
    async with tab(bot, service) as ada:
        await ada.wants()
        ask(bot, 5)
        await until(lambda: 60.0 in clock(bot).slept)
        clock(bot).advance(60.0)
        await until(lambda: service.paths)


async def test_without_the_library_it_is_not_offered(bot: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "_installed", lambda: False)
    async with tab(bot) as ada:
        assert (await ada.asks("look"))[1]["key"] == ""
        assert (await ada.asks("on", endpoint=ada.endpoint, keys=ada.keys.given))[0] == 400
    assert "push key" not in bot._values


@pytest.mark.parametrize(
    "endpoint",
    [
        *("", "push.example", "http://push.example/", "ftp://push.example/", "javascript:0"),
        *("https://127.0.0.1/", "https://[::1]/", "https://2130706433/", "https://10.0.0.1/"),
        *("https://169.254.169.254/latest", "https://me:pass@push.example/", "https://push.example:99999/"),
        *("https://push.example/a b\n", "https://push.example/ä", f"https://push.example/{'a' * 1000}"),
    ],
)
async def test_no_browser_names_an_address_that_is_not_public(bot: Scripted, endpoint: str) -> None:
    async with tab(bot) as ada:
        status, found = await ada.asks("on", endpoint=endpoint, keys=ada.keys.given)
        assert (status, (await ada.asks("look"))[1]["endpoint"]) == (400, ""), found


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"p256dh": THEIRS},
        {"p256dh": THEIRS, "auth": "AAAA"},
        {"p256dh": "B" + "A" * 86, "auth": SECRET},
        {"p256dh": f"{THEIRS[:-2]}*=", "auth": SECRET},
        {"p256dh": [THEIRS], "auth": SECRET},
    ],
)
async def test_what_is_no_key_of_a_browser_is_refused(bot: Scripted, keys: Any) -> None:
    async with tab(bot) as ada:
        assert (await ada.asks("on", endpoint=ada.endpoint, keys=keys))[0] == 400
        assert (await ada.asks("anything"))[0] == 400
        assert (await ada.asks("look"))[1]["endpoint"] == ""


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "10.0.0.8"])
async def test_a_name_that_leads_inside_gets_no_connection(
    bot: Scripted, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    asked: list[str] = []
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    async with push_service() as service, tab(bot) as ada:
        port = int(service.origin.rpartition(":")[2])
        ada.endpoint = f"https://push.example:{port}/"
        await ada.wants()
        ask(bot, 5)

        def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
            asked.append(host)
            return [(family, socket.SOCK_STREAM, 6, "", (address, port, *((0, 0) if ":" in address else ())))]

        with monkeypatch.context() as patched:
            patched.setattr(socket, "getaddrinfo", resolve)
            await look(bot)
        assert asked == ["push.example"]
        assert service.paths == []
        assert (await ada.asks("look"))[1]["endpoint"] == ada.endpoint
