# SPDX-License-Identifier: Apache-2.0
"""Webhook mode: Telegram calls us, with a secret that nobody else has, until we have stored it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from goodbot.api.events import Button, MessageEvent, RatingEvent, Reply
from goodbot.base.errors import FatalConnectorError, StoreError
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector import ConnectorContract
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.telegram import SPEC
from goodbot_fakes.telegram import TOKEN, FakeTelegram
from goodbot_fakes.telegram.webhook import HEADER

from tests.connectors.telegram.fake import Driver, channel, check_conversation, connected
from tests.support import free_port, patience, require

if TYPE_CHECKING:
    from goodbot.api.connector import ConnectorSpec

PUBLIC = "https://bots.example"
PATH = "/goodbot/telegram"
GOOD = Button(action="good", label="👍")


def webhook_driver(fake: FakeTelegram) -> Driver:
    """A connector that is called at a public address, with a proxy in between."""
    port = free_port()
    fake.webhook.routes[PUBLIC] = f"http://127.0.0.1:{port}"
    return Driver(fake, mode="webhook", webhook_url=PUBLIC + PATH, webhook_port=port)


@pytest.fixture
def driver(fake: FakeTelegram) -> Driver:
    return webhook_driver(fake)


@pytest.fixture
async def host(driver: Driver, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ)
    yield host
    await host.close()


class TestTelegramWebhook(ConnectorContract):
    """All that holds for polling holds here."""

    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.telegram"

    @pytest.fixture
    async def platform(self, fake: FakeTelegram) -> Driver:
        return webhook_driver(fake)

    @pytest.fixture
    async def host(
        self, spec: ConnectorSpec, platform: Driver, tmp_path: Path
    ) -> AsyncIterator[RecordingHost]:
        platform.host = host = RecordingHost(spec, state_dir=tmp_path, environ=platform.environ)
        yield host
        await host.close()

    async def test_a_crash_after_the_commit_repeats_nothing(
        self, spec: ConnectorSpec, host: RecordingHost, platform: Driver
    ) -> None:
        """A webhook has no offset: Telegram calls again, and the ledger knows the event."""
        first = build(spec, host, platform)
        await first.start()
        host.freeze()
        await platform.say("stored")
        await host.received(MessageEvent)
        await first.stop()
        host.release()
        second = build(spec, host, platform)
        await second.start()
        await platform.say("next")
        events = await host.received(MessageEvent, 2)
        await eventually(lambda: quiet(platform))
        await second.stop()
        assert [event.text for event in events] == ["stored", "next"]
        assert host.attempts == [(events[0],), (events[0],), (events[1],)]


async def test_it_asks_for_what_it_reads_and_sends_a_secret(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host):
        [asked] = fake.calls("setWebhook")
    assert asked["url"] == PUBLIC + PATH
    assert {"message", "message_reaction", "callback_query"} <= set(asked["allowed_updates"])
    assert len(asked["secret_token"]) >= 32
    assert TOKEN.partition(":")[2] not in asked["secret_token"]
    assert fake.calls("getUpdates") == []


@pytest.mark.parametrize("body", ["update", "nonsense", "empty"])
@pytest.mark.parametrize(
    "given", ["absent", "empty", "wrong", "truncated", "longer", "other case", "non-ASCII", "bytes", "twice"]
)
async def test_without_the_secret_nobody_gets_in(
    fake: FakeTelegram, driver: Driver, host: RecordingHost, given: str, body: str
) -> None:
    """Always 401, whatever the body is, and never 500."""
    async with connected(driver, host):
        secret = fake.webhook.secret
        name = HEADER.encode()
        headers = {
            "absent": [],
            "empty": [(name, b"")],
            "wrong": [(name, b"x" * len(secret))],
            "truncated": [(name, secret[:-1].encode())],
            "longer": [(name, f"{secret}x".encode())],
            "other case": [(name, secret.upper().encode())],
            "non-ASCII": [(name, "gehéim🙂".encode())],
            "bytes": [(name, b"\xff\xfe")],
            "twice": [(name, b"x"), (name, secret.encode())],
        }[given]
        sent = {"update": json.dumps(update(driver)).encode(), "nonsense": b"\xff{", "empty": b""}
        assert await raw_post(address(fake), headers, sent[body]) == 401
        await asyncio.sleep(0.02)
        assert host.attempts == []


async def test_with_the_secret_a_call_is_an_update(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host):
        secret = [(HEADER.encode(), fake.webhook.secret.encode())]
        sent = json.dumps(update(driver)).encode()
        assert await raw_post(address(fake), secret, sent) == 200
        [event] = await host.received(MessageEvent)
        assert event.text == "hello"
        for wrong in (b"\xff{", b"", b"[" * 5000):
            assert await raw_post(address(fake), secret, wrong) == 400
        for strange in (b"[]", b'"x"', b"null", b'{"update_id": "x"}'):
            assert await raw_post(address(fake), secret, strange) in (200, 400)
        async with aiohttp.ClientSession() as http:
            async with http.get(address(fake)) as response:
                assert response.status in (404, 405)
            async with http.post(address(fake) + "/else", data=sent) as response:
                assert response.status == 404
        assert len(host.events) == 1
        assert host.failures == []


async def test_200_leaves_only_after_the_commit(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host):
        host.hold()
        await driver.say("keep this")
        await host.wait(lambda: bool(host.attempts))
        await asyncio.sleep(0.1)
        assert fake.webhook.attempts == []
        assert len(fake.updates.pending) == 1
        host.release()
        await eventually(lambda: quiet(driver))
        assert [status for _, status in fake.webhook.attempts] == [200]


async def test_what_could_not_be_stored_is_called_again(tmp_path: Path) -> None:
    """Telegram's retries: at once, then after 2 s, 4 s …"""
    require("telegram")
    clock = VirtualClock()
    async with FakeTelegram(clock=clock) as fake:
        driver = webhook_driver(fake)
        host = RecordingHost(SPEC, state_dir=tmp_path, environ=driver.environ)
        async with connected(driver, host) as connector:
            [answer] = await connector.send(channel(driver), Reply(text="4", turn="t"))
            host.refuse(4)
            await driver.react(answer, new="👍")
            [event] = await host.received(RatingEvent)
            await eventually(lambda: quiet(driver))
            assert [status for _, status in fake.webhook.attempts] == [503] * 4 + [200]
            assert {attempt[0].event_id for attempt in host.attempts} == {event.event_id}
            assert clock.slept == [0.0, 2.0, 4.0, 8.0]
            assert fake.webhook.info["last_error_message"].startswith("Wrong response")
        await host.close()
        check_conversation(fake)


async def test_a_kill_before_the_answer_brings_the_call_again(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host) as connector:
        [answer] = await connector.send(channel(driver), Reply(text="4", turn="t", buttons=(GOOD,)))
        host.freeze()  # stored, and then nothing is said to Telegram
        await driver.press(answer, "good")
        [first] = await host.received(RatingEvent)
        stopping = asyncio.create_task(connector.stop())
        await asyncio.wait({stopping}, timeout=patience(10))
    host.release()
    assert len(fake.updates.pending) == 1
    async with connected(driver, host):
        await eventually(lambda: quiet(driver))
    assert await host.received(RatingEvent) == [first], "the same event, which counts once"
    assert len(host.attempts) >= 2


async def test_chats_do_not_wait_for_each_other(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    """Telegram keeps the order within a chat only."""
    async with connected(driver, host):
        host.hold()
        for user in ("ada", "bob", "carl", "ada"):
            await driver.say("hi", user=user)
        await host.wait(lambda: len(host.attempts) >= 3)
        await asyncio.sleep(0.05)
        assert len(host.attempts) == 3, "Ada's second waits for her first"
        host.release()
        events = await host.received(MessageEvent, 4)
        assert len({event.user.id for event in events[:3]}) == 3


async def test_back_to_polling_our_own_webhook_is_taken_back(
    fake: FakeTelegram, driver: Driver, host: RecordingHost
) -> None:
    async with connected(driver, host):
        await driver.say("by webhook")
        await host.received(MessageEvent)
    assert fake.webhook.url, "it stays while we are down: what comes meanwhile is kept"
    await driver.say("while it was down")
    polling = Driver(fake)
    async with connected(polling, host):
        await polling.say("by polling")
        said = [event.text for event in await host.received(MessageEvent, 3)]
    assert said == ["by webhook", "while it was down", "by polling"]
    assert fake.webhook.url == ""


async def test_a_port_that_is_taken_is_named(fake: FakeTelegram, driver: Driver, host: RecordingHost) -> None:
    taken = socket.create_server(("127.0.0.1", driver.settings.webhook_port))
    with taken, pytest.raises(FatalConnectorError, match="webhook_port"):
        await build(SPEC, host, driver).start()
    assert fake.calls("setWebhook") == []


async def test_a_refused_store_is_no_server_error(
    fake: FakeTelegram, driver: Driver, host: RecordingHost, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(driver, host):
        host.refuse(1)
        secret = [(HEADER.encode(), fake.webhook.secret.encode())]
        sent = json.dumps(update(driver)).encode()
        assert await raw_post(address(fake), secret, sent) == 503
    assert "hello" not in caplog.text
    assert StoreError.__name__ not in caplog.text


# -- looks


def address(fake: FakeTelegram) -> str:
    return fake.webhook.routes[PUBLIC] + PATH


def update(driver: Driver) -> dict[str, Any]:
    user = driver.people["ada"].user
    chat = driver.people["ada"].chat.json
    message = {"message_id": 1, "date": 1, "chat": chat, "from": user, "text": "hello"}
    return {"update_id": 1, "message": message}


async def quiet(driver: Driver) -> bool:
    return await driver.unacknowledged() == 0


async def raw_post(url: str, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
    """POST with whatever bytes a hostile client sends; the status."""
    where, _, path = url.removeprefix("http://").partition("/")
    host, _, port = where.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"POST /{path} HTTP/1.1".encode(), b"Host: x", b"Connection: close"]
    lines += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    lines += [name + b": " + value for name, value in headers]
    writer.write(b"\r\n".join([*lines, b"", b""]) + body)
    await writer.drain()
    status = (await reader.readline()).split()[1]
    await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(status)
