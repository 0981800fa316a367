# SPDX-License-Identifier: Apache-2.0
"""The fake Slack against Slack's own SDK: it refuses, retries and disconnects as Slack does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from goodbot.testing.clock import VirtualClock
from goodbot_fakes.slack import FakeSlack, Pace, SlackError, signing
from goodbot_fakes.slack.blocks import shown
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from tests.connectors.slack import schema
from tests.connectors.slack.conftest import VIRTUAL, pass_time
from tests.support import missing

Json = dict[str, Any]
FEEDBACK = {
    "type": "context_actions",
    "elements": [
        {
            "type": "feedback_buttons",
            "action_id": "rate",
            "positive_button": {"text": {"type": "plain_text", "text": "Good"}, "value": "good"},
            "negative_button": {"text": {"type": "plain_text", "text": "Bad"}, "value": "bad"},
        }
    ],
}
MODAL = {
    "type": "modal",
    "callback_id": "why",
    "title": {"type": "plain_text", "text": "Why?"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "reason",
            "label": {"type": "plain_text", "text": "Reason"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }
    ],
}


def client(slack: FakeSlack) -> AsyncWebClient:
    return AsyncWebClient(token=slack.app.bot_token, base_url=slack.api_url)


class Listener:
    """A Socket Mode client of slack_sdk that takes notes; `answer` acknowledges or does not."""

    def __init__(self, slack: FakeSlack) -> None:
        self.seen: list[Json] = []
        self.silent = False
        self.payload: Json | None = None
        self.sdk = SocketModeClient(slack.app.app_token, web_client=client(slack), ping_interval=0.1)
        self.sdk.socket_mode_request_listeners.append(self._take)

    async def _take(self, sdk: Any, request: Any) -> None:
        self.seen.append({"payload": request.payload, "retry": request.retry_attempt})
        if not self.silent:
            answer = SocketModeResponse(request.envelope_id, self.payload)
            await sdk.send_socket_mode_response(answer)

    async def close(self) -> None:
        await self.sdk.close()
        tasks = (self.sdk.message_processor, self.sdk.message_receiver)
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)


@pytest.fixture
async def listen(slack: FakeSlack) -> AsyncIterator[Callable[[], Any]]:
    opened: list[Listener] = []

    async def connect() -> Listener:
        opened.append(Listener(slack))
        await opened[-1].sdk.connect()
        await slack.until(lambda: len(slack.sockets) >= len(opened))
        return opened[-1]

    yield connect
    for listener in opened:
        await listener.close()


def test_both_directions_are_held_to_slacks_own_types() -> None:
    """The fixture `slack` does that wherever these schemas can be made."""
    if problem := schema.unavailable():
        missing(f"Slack's types are not there: {problem}")
    schema.check_call("chat.update", {"channel": "C1", "ts": "1.2", "text": "x"})
    with pytest.raises(AssertionError, match="txet"):
        schema.check_call("chat.update", {"channel": "C1", "ts": "1.2", "txet": "x"})
    block = {"type": "actions", "elements": [{"type": "button", "text": "Good"}]}
    with pytest.raises(AssertionError, match="chat"):
        schema.check_call("chat.postMessage", {"channel": "C1", "text": "x", "blocks": [block]})


# -- Socket Mode


async def test_a_message_is_delivered_once_and_acknowledged(
    slack: FakeSlack, listen: Callable[[], Any]
) -> None:
    listener = await listen()
    message = slack.people.say("ada", "2 < 3 & 4 > 1")
    await slack.settled()
    [seen] = listener.seen
    assert seen["payload"]["event"]["text"] == "2 &lt; 3 &amp; 4 &gt; 1"
    assert seen["payload"]["event"]["channel_type"] == "im"
    assert shown(message.text, message.blocks) == "2 < 3 & 4 > 1"
    assert slack.sockets.frames[0]["type"] == "hello"
    assert [delivery.state for delivery in slack.outbox.log] == ["acknowledged"]


@VIRTUAL
async def test_what_is_not_acknowledged_comes_again_at_once_after_a_minute_and_after_five(
    slack: FakeSlack, listen: Callable[[], Any]
) -> None:
    listener = await listen()
    listener.silent = True
    slack.people.say("ada", "are you there?")
    await slack.until(lambda: len(listener.seen) == 1)
    for before, after, count in ((2.8, 1.0, 2), (61.5, 3.0, 3), (300.5, 5.0, 4)):
        await pass_time(slack, before)
        assert len(listener.seen) == count - 1
        await pass_time(slack, after)
        await slack.until(lambda n=count: len(listener.seen) == n)
    await pass_time(slack, 4.0)
    await slack.settled()
    assert [seen["retry"] for seen in listener.seen] == [0, 1, 2, 3]
    assert len({seen["payload"]["event_id"] for seen in listener.seen}) == 1
    assert [delivery.state for delivery in slack.outbox.log] == ["lost"]


async def test_one_of_several_sockets_gets_each_event(slack: FakeSlack, listen: Callable[[], Any]) -> None:
    listeners = [await listen() for _ in range(3)]
    for number in range(6):
        slack.people.say("ada", str(number))
    await slack.settled()
    assert [len(listener.seen) for listener in listeners] == [2, 2, 2]


async def test_the_eleventh_socket_is_refused(slack: FakeSlack) -> None:
    http = client(slack)
    import aiohttp

    async with aiohttp.ClientSession() as session:
        sockets: list[Any] = []
        for _ in range(11):
            url = (await http.apps_connections_open(app_token=slack.app.app_token))["url"]
            sockets.append(await session.ws_connect(url))
        assert (await sockets[10].receive_json())["reason"] == "too_many_websockets"
        assert (await sockets[9].receive_json())["num_connections"] == 10
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)
        for socket in sockets:
            await socket.close()


async def test_after_a_disconnect_the_sdk_connects_anew_and_nothing_is_lost(
    slack: FakeSlack, listen: Callable[[], Any]
) -> None:
    listener = await listen()
    await slack.sockets.disconnect("refresh_requested")
    slack.people.say("ada", "in between")
    await slack.until(lambda: len(slack.sockets) == 1)
    await slack.settled()
    assert len(listener.seen) == 1


@pytest.mark.parametrize("slack", [Pace(ack=0.5, retries=(0.0, *[0.5] * 20))], indirect=True)
async def test_a_cut_network_delivers_nothing_until_it_is_mended(
    slack: FakeSlack, listen: Callable[[], Any]
) -> None:
    listener = await listen()
    slack.cut()
    delivery = slack.people.say("ada", "hello?")
    with pytest.raises(Exception, match=r"(?i)disconnect|connect"):
        await client(slack).auth_test()
    assert slack.outbox.pending
    assert delivery.text == "hello?"
    slack.mend()
    await slack.until(lambda: len(slack.sockets) == 1)
    await slack.settled()
    assert len(listener.seen) == 1


# -- the Web API


async def test_the_token_decides_what_is_answered(slack: FakeSlack) -> None:
    answer = await client(slack).auth_test()
    assert answer["user_id"] == slack.app.user.id
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")
    for token, error in (("xoxb-wrong", "invalid_auth"), (slack.app.app_token, "not_allowed_token_type")):
        with pytest.raises(SlackApiError, match=error):
            await AsyncWebClient(token=token, base_url=slack.api_url).auth_test()


async def test_a_missing_scope_is_named(slack: FakeSlack) -> None:
    message = slack.people.say("ada", "hello")
    slack.app.scopes.discard("reactions:read")
    with pytest.raises(SlackApiError) as caught:
        await client(slack).reactions_get(channel=message.channel, timestamp=message.ts)
    assert caught.value.response["error"] == "missing_scope"
    assert caught.value.response["needed"] == "reactions:read"
    slack.people.react("ada", message.channel, message.ts, "+1")
    assert [d.payload["event"]["type"] for d in slack.outbox.log] == ["message"]


async def test_a_limit_is_a_429_with_a_pause(slack: FakeSlack) -> None:
    slack.faults.rate_limit("auth.test", seconds=7)
    with pytest.raises(SlackApiError) as caught:
        await client(slack).auth_test()
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "7"
    await client(slack).auth_test()


async def test_a_channel_without_the_app_is_closed_to_it(slack: FakeSlack) -> None:
    elsewhere = slack.workspace.add_channel("elsewhere", [slack.people.id("ada")])
    slack.people.say("ada", "hello", elsewhere.id, mention=True)
    assert slack.outbox.log == []
    with pytest.raises(SlackApiError, match="not_in_channel"):
        await client(slack).chat_postMessage(channel=elsewhere.id, text="hi")
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await client(slack).chat_postMessage(channel="C404", text="hi")


async def test_a_stream_grows_and_ends_with_buttons(slack: FakeSlack) -> None:
    http, question = client(slack), slack.people.say("ada", "2+2?")
    place = {"channel": question.channel}
    started = await http.chat_startStream(**place, thread_ts=question.ts, markdown_text="It ")
    ts = started["ts"]
    await http.chat_appendStream(**place, ts=ts, markdown_text="is *4*")
    with pytest.raises(SlackApiError, match="streaming_state_conflict"):
        await http.chat_update(**place, ts=ts, text="no")
    await http.chat_stopStream(**place, ts=ts, markdown_text=".", blocks=[FEEDBACK])
    with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
        await http.chat_appendStream(**place, ts=ts, markdown_text="more")
    answer = slack.workspace.message(question.channel, ts)
    assert shown(answer.text, answer.blocks) == "It is *4*."
    assert answer.thread_ts == question.ts
    pressed = slack.people.press("ada", answer, lambda element: element.value == "bad")
    [action] = pressed.payload["actions"]
    assert (action["type"], action["value"]) == ("feedback_buttons", "bad")
    lab = slack.workspace.add_channel("lab", [slack.people.id("ada"), slack.app.user.id])
    asked = slack.people.say("ada", "2+2?", lab.id, mention=True)
    with pytest.raises(SlackApiError, match="missing_recipient"):
        await http.chat_startStream(channel=lab.id, thread_ts=asked.ts, markdown_text="4")


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}],
        [{"type": "section", "text": {"type": "mrkdwn", "text": ""}}],
        [{"type": "actions", "elements": []}],
        [{"type": "actions", "elements": FEEDBACK["elements"]}],
        [{"type": "divider", "block_id": "a"}, {"type": "divider", "block_id": "a"}],
        [{"type": "divider"}] * 51,
        [{"type": "buttons"}],
    ],
)
async def test_blocks_beyond_slacks_limits_are_refused(slack: FakeSlack, blocks: Any) -> None:
    channel = slack.people.direct("ada").id
    with pytest.raises(SlackApiError) as caught:
        await client(slack).chat_postMessage(channel=channel, text="x", blocks=blocks)
    assert caught.value.response["error"] == "invalid_blocks"
    assert caught.value.response["response_metadata"]["messages"]


async def test_an_ephemeral_message_is_for_one_person(slack: FakeSlack) -> None:
    bob = slack.people.id("bob")
    lab = slack.workspace.add_channel("lab", [slack.people.id("ada"), bob, slack.app.user.id])
    ada = slack.people.id("ada")
    await client(slack).chat_postEphemeral(channel=lab.id, user=ada, text="psst")
    assert [message.text for message in slack.people.notices("ada")] == ["psst"]
    assert slack.people.notices("bob") == []
    assert slack.workspace.in_channel(lab.id) == []
    stranger = slack.people.id("carl")
    with pytest.raises(SlackApiError, match="user_not_in_channel"):
        await client(slack).chat_postEphemeral(channel=lab.id, user=stranger, text="psst")


async def test_a_thread_and_its_reactions_can_be_read_again(slack: FakeSlack) -> None:
    root = slack.people.say("ada", "one")
    for number in range(5):
        slack.people.say("ada", str(number), thread=root.ts)
    slack.people.react("bob", root.channel, root.ts, "tada")
    http = client(slack)
    first = await http.conversations_replies(channel=root.channel, ts=root.ts, limit=4)
    assert len(first["messages"]) == 4
    cursor = first["response_metadata"]["next_cursor"]
    rest = await http.conversations_replies(channel=root.channel, ts=root.ts, limit=4, cursor=cursor)
    assert [m["text"] for m in rest["messages"]] == ["3", "4"]
    found = await http.reactions_get(channel=root.channel, timestamp=root.ts)
    expected = {"name": "tada", "users": [slack.people.id("bob")], "count": 1}
    assert found["message"]["reactions"] == [expected]


# -- interactions, with bolt


@pytest.fixture
async def bolt(slack: FakeSlack) -> AsyncIterator[AsyncApp]:
    app = AsyncApp(client=client(slack), signing_secret=slack.app.signing_secret)
    http = AsyncWebClient(token=slack.app.app_token, base_url=slack.api_url)
    handler = AsyncSocketModeHandler(app, slack.app.app_token, web_client=http, ping_interval=0.1)
    await handler.connect_async()
    await slack.until(lambda: len(slack.sockets) == 1)
    yield app
    await handler.close_async()
    sdk: Any = handler.client
    await asyncio.gather(sdk.message_processor, sdk.message_receiver, return_exceptions=True)


async def test_a_command_is_answered_privately(slack: FakeSlack, bolt: AsyncApp) -> None:
    @bolt.command("/rl")
    async def command(ack: Any, command: Json, respond: Any) -> None:
        await ack(f"{command['text']}: all is well")
        await respond("and more")

    slack.people.command("ada", "status")
    await slack.until(lambda: len(slack.people.notices("ada")) == 2)
    texts = sorted(message.text for message in slack.people.notices("ada"))
    assert texts == ["and more", "status: all is well"]


async def test_a_modal_is_opened_by_a_fresh_trigger_and_submitted(slack: FakeSlack, bolt: AsyncApp) -> None:
    triggers: list[str] = []
    typed: list[Json] = []

    @bolt.shortcut("rate")
    async def shortcut(ack: Any, shortcut: Json, client: AsyncWebClient) -> None:
        await ack()
        triggers.append(shortcut["trigger_id"])
        await client.views_open(trigger_id=shortcut["trigger_id"], view=MODAL)

    @bolt.view("why")
    async def submitted(ack: Any, view: Json) -> None:
        value = view["state"]["values"]["reason"]["text"]["value"]
        if not value:
            await ack(response_action="errors", errors={"reason": "Say something."})
            return
        typed.append(value)
        await ack()

    answer = await client(slack).chat_postMessage(channel=slack.people.direct("ada").id, text="4")
    message = slack.workspace.message(answer["channel"], answer["ts"])
    slack.people.shortcut("ada", message, "rate")
    await slack.until(lambda: slack.people.modal("ada") is not None)
    view = slack.people.modal("ada")
    assert view is not None
    slack.people.submit("ada", view, {})
    await slack.settled()
    assert slack.people.modal("ada") is view, "errors keep it open"
    slack.people.submit("ada", view, {"text": "too long"})
    await slack.until(lambda: slack.people.modal("ada") is None)
    assert typed == ["too long"]
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await client(slack).views_open(trigger_id=triggers[0], view=MODAL)


@VIRTUAL
async def test_a_trigger_is_good_for_three_seconds(slack: FakeSlack) -> None:
    message = slack.people.say("ada", "hello")
    trigger = slack.people.shortcut("ada", message, "rate").payload["trigger_id"]
    assert isinstance(slack.clock, VirtualClock)
    slack.clock.advance(3.5)
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await client(slack).views_open(trigger_id=trigger, view=MODAL)


async def test_a_response_url_replaces_what_was_pressed_five_times(slack: FakeSlack, bolt: AsyncApp) -> None:
    seen: list[int] = []

    @bolt.action("go")
    async def go(ack: Any, respond: Any) -> None:
        await ack()
        for n in range(6):
            answer = await respond(f"done {n}", replace_original=True)
            seen.append(answer.status_code)

    button = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}}
    place = slack.people.direct("ada").id
    await client(slack).chat_postEphemeral(
        channel=place,
        user=slack.people.id("ada"),
        text="Go?",
        blocks=[{"type": "actions", "elements": [button]}],
    )
    [notice] = slack.people.notices("ada")
    slack.people.press("ada", notice, lambda element: element.action_id == "go")
    await slack.until(lambda: len(seen) == 6)
    assert seen == [200] * 5 + [404]
    assert [message.text for message in slack.people.notices("ada")] == ["done 4"]


async def test_a_home_tab_is_published(slack: FakeSlack, bolt: AsyncApp) -> None:
    @bolt.event("app_home_opened")
    async def opened(event: Json, client: AsyncWebClient) -> None:
        section = {"type": "section", "text": {"type": "mrkdwn", "text": "Hello"}}
        await client.views_publish(user_id=event["user"], view={"type": "home", "blocks": [section]})

    slack.people.open_home("ada")
    await slack.until(lambda: slack.people.home("ada") is not None)
    home = slack.people.home("ada")
    assert home is not None
    assert shown("", home.body["blocks"]) == "Hello"


async def test_only_known_commands_can_be_typed(slack: FakeSlack) -> None:
    with pytest.raises(SlackError, match="unknown_command"):
        slack.people.command("ada", "x", command="/other")


# -- HTTP mode


@pytest.fixture
async def receiver(slack: FakeSlack) -> AsyncIterator[AsyncApp]:
    """bolt's own server, which checks signatures."""
    app = AsyncApp(client=client(slack), signing_secret=slack.app.signing_secret)
    runner = web.AppRunner(app.server(port=0, path="/slack/events").web_app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    slack.app.socket_mode = False
    slack.app.request_url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    yield app
    await runner.cleanup()


async def test_signed_requests_are_taken_and_forged_ones_are_not(
    slack: FakeSlack, receiver: AsyncApp
) -> None:
    seen: list[str] = []

    @receiver.event("message")
    async def heard(event: Json) -> None:
        seen.append(event["text"])

    assert await slack.requests.verify()
    slack.people.say("ada", "hello")
    await slack.settled()
    assert seen == ["hello"]
    body = json.dumps(slack.outbox.log[0].payload).encode()
    forged = signing.forgeries(slack.app.signing_secret, slack.clock.now(), body)
    for name in ("no signature", "another secret", "another body", "ten minutes old", "truncated"):
        status, _, _ = await slack.requests.post(body, signed=forged[name])
        assert status == 401, name
    assert seen == ["hello"]


async def test_retries_over_http_say_that_they_are(slack: FakeSlack) -> None:
    heard: list[tuple[str | None, str | None]] = []
    answers = [500, 500, 200]

    async def endpoint(request: web.Request) -> web.Response:
        names = ("X-Slack-Retry-Num", "X-Slack-Retry-Reason")
        heard.append((request.headers.get(names[0]), request.headers.get(names[1])))
        return web.Response(status=answers[len(heard) - 1])

    app = web.Application()
    app.router.add_post("/", endpoint)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    slack.app.socket_mode = False
    slack.app.request_url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    slack.people.say("ada", "hello")
    await slack.settled()
    await runner.cleanup()
    assert heard == [(None, None), ("1", "http_error"), ("2", "http_error")]
    assert Pace().retries == (0.0, 60.0, 300.0)


def test_who_tests_another_platform_needs_no_aiohttp() -> None:
    code = "import sys; sys.modules['aiohttp'] = None; import goodbot.testing, goodbot_fakes"
    subprocess.run([sys.executable, "-c", code], check=True)
