# SPDX-License-Identifier: Apache-2.0
"""The button for messages while no page is open, in a real Chromium.

No browser here reaches the service of its maker. So what the browser would answer is put into the page,
and what the service would bring is given to the worker.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from goodbot.testing.connector_base import eventually

from tests.connectors.web.browsing import Person, person, press, until
from tests.connectors.web.push_service import Keys
from tests.connectors.web.scripted import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

ON, OFF = "Tell me also when this page is closed", "Tell me nothing when this page is closed"
ENDPOINT = "https://push.example/send/1"
ANSWERS = """
  window.asked = [];
  const made = (endpoint) => ({
    endpoint,
    toJSON: () => ({ endpoint, expirationTime: null, keys: KEYS }),
    unsubscribe: async () => {
      window.asked.push("ended");
      sessionStorage.removeItem("endpoint");
    },
  });
  PushManager.prototype.getSubscription = async () => {
    const endpoint = sessionStorage.getItem("endpoint");
    return endpoint ? made(endpoint) : null;
  };
  PushManager.prototype.subscribe = async (options) => {
    window.asked.push(options);
    if (sessionStorage.getItem("refuses")) throw new DOMException("Registration failed", "AbortError");
    sessionStorage.setItem("endpoint", "ENDPOINT");
    return made("ENDPOINT");
  };
"""


@pytest_asyncio.fixture(loop_scope="module")
async def eve(chromium: Any, bot: Scripted) -> AsyncIterator[Person]:
    """Signed in, with a worker, where answers are rated."""
    async with person(chromium, service_workers="allow") as eve:
        script = ANSWERS.replace("KEYS", json.dumps(Keys().given)).replace("ENDPOINT", ENDPOINT)
        await eve.context.add_init_script(script)
        await eve.context.grant_permissions(["notifications"], origin=bot.address)
        await eve.come_back(bot, "eve")
        await eve.page.goto(f"{bot.address}/rate")
        await eve.sees(ON)
        yield eve


def told(bot: Scripted) -> list[str]:
    """Where messages to eve go."""
    return [one.push.endpoint for one in bot.connector._sessions.pushed().values() if one.push]


async def test_it_is_one_press_on_and_one_press_off(eve: Person, bot: Scripted) -> None:
    assert told(bot) == []
    await eve.sees("It comes through the service of the browser’s maker.")
    await press(eve, ON)
    await eve.sees(OFF)
    assert told(bot) == [ENDPOINT]
    [options] = await eve.page.evaluate("window.asked")
    key = await eve.page.evaluate(
        "fetch('/api/push', { method: 'POST', headers: { 'Content-Type': 'application/json' },"
        " body: JSON.stringify({ do: 'look' }) }).then((response) => response.json()).then(({ key }) => key)"
    )
    assert options == {"userVisibleOnly": True, "applicationServerKey": key}
    await eve.page.reload()
    await eve.sees(OFF)
    assert await eve.page.evaluate("window.asked") == [], "nothing has changed"
    await press(eve, OFF)
    await eve.sees(ON)
    assert told(bot) == []
    assert await eve.page.evaluate("window.asked") == ["ended"]


async def test_a_browser_that_has_a_new_endpoint_says_so_when_it_comes_back(
    eve: Person, bot: Scripted
) -> None:
    await press(eve, ON)
    await eve.sees(OFF)
    sessions = bot.connector._sessions
    [(digest, one)] = sessions.pushed().items()
    assert one.push
    await sessions.change_push({digest: (one.push, replace(one.push, endpoint=f"{ENDPOINT}-old"))})
    await eve.page.reload()
    await eve.sees(OFF)
    await until(lambda: told(bot) == [ENDPOINT])
    await sessions.end_all()
    await eve.come_back(bot, "eve")
    await eve.page.evaluate(f"sessionStorage.setItem('endpoint', '{ENDPOINT}')")  # tabs have their own
    await eve.page.goto(f"{bot.address}/rate")
    await eve.sees(ON)
    ended = await eve.page.evaluate("window.asked")
    assert ended == ["ended"], "the browser listens to nobody any more"


async def test_what_the_browser_refuses_is_said_and_nothing_is_kept(eve: Person, bot: Scripted) -> None:
    await eve.page.evaluate("sessionStorage.setItem('refuses', '1')")
    await press(eve, ON)
    await eve.sees("This browser cannot reach the service of its maker.")
    assert told(bot) == []
    await eve.page.evaluate("sessionStorage.removeItem('refuses')")
    await eve.page.evaluate("Notification.requestPermission = async () => 'denied'")
    await press(eve, ON)
    await eve.sees("This browser does not allow it.")
    assert told(bot) == []
    assert len(await eve.page.evaluate("window.asked")) == 1


async def test_what_comes_is_shown_by_the_worker(eve: Person, bot: Scripted) -> None:
    line = await eve.context.new_cdp_session(eve.page)
    found: list[dict[str, Any]] = []
    line.on("ServiceWorker.workerRegistrationUpdated", lambda event: found.extend(event["registrations"]))
    await line.send("ServiceWorker.enable")
    await until(lambda: found)
    said = {"told": "5 answers wait for your rating."}
    await line.send(
        "ServiceWorker.deliverPushMessage",
        {"origin": bot.address, "registrationId": found[0]["registrationId"], "data": json.dumps(said)},
    )
    look = """navigator.serviceWorker.ready.then((worker) => worker.getNotifications())
      .then((all) => all.map(({ title, tag }) => [title, tag]))"""

    async def shown() -> bool:
        return await eve.page.evaluate(look) == [[said["told"], "waiting"]]

    await eventually(shown)
