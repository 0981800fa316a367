# SPDX-License-Identifier: Apache-2.0
"""What the connector sends, against a Slack that we did not write: npm emulate.

It has no Socket Mode and no streams, so the connector runs in HTTP mode and answers by edits.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.actions import THUMBS, retry_row
from goodbot.api.connector import Connector, OpenTurn
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    OrderKey,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    UserRef,
)
from goodbot.base.errors import ConnectorError
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack import SPEC, home
from goodbot_connectors.slack.config import BOT_TOKEN, SIGNING_SECRET, SlackSettings
from slack_sdk.web.async_client import AsyncWebClient

from tests.connectors.slack import schema
from tests.node.install import HERE, node
from tests.support import missing, patience, require

TOKEN = "xoxb-100000000001-emulate"
SCOPES = "chat:write,im:write,im:read,im:history,channels:history,channels:read,reactions:read,users:read"
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Emulated:
    """An emulate that listens, as a platform that a connector is built for."""

    api_base: str
    settings: SlackSettings
    environ: dict[str, str]

    def ada(self) -> AsyncWebClient:
        """Ada's own client."""
        return AsyncWebClient(token="xoxp-ada", base_url=self.api_base)


@pytest.fixture(scope="module")
def emulated() -> Iterator[Emulated]:
    require("slack_bolt")
    if problem := schema.unavailable():
        missing(f"npm emulate cannot be started: {problem}")
    # It ends when its standard input does: leaving the block closes that.
    with subprocess.Popen(
        [node(), HERE / "slack_emulate.mjs", TOKEN, SCOPES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), "NODE_ENV": "test"},
    ) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        base = f"http://127.0.0.1:{port}/api/"
        settings = SlackSettings(mode="http", port=0, api_base=base, edit_interval=0.0)
        try:
            yield Emulated(base, settings, {BOT_TOKEN: TOKEN, SIGNING_SECRET: "0" * 32})
        finally:
            process.communicate(timeout=patience(10))


@pytest.fixture
async def connector(emulated: Emulated, tmp_path: Path) -> AsyncIterator[Connector]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=emulated.environ)
    platform: Any = emulated
    connector = build(SPEC, host, platform)
    await connector.start()
    yield connector
    await connector.stop()
    await host.close()


@pytest.fixture
async def place(emulated: Emulated, connector: Connector) -> ChannelRef:
    """Ada's direct messages with us."""
    found = await connector.private((await emulated.ada().auth_test())["user_id"])
    assert found is not None
    return found


async def seen(emulated: Emulated, place: ChannelRef) -> list[Json]:
    """What Ada reads there, oldest first."""
    history = await emulated.ada().api_call("conversations.history", params={"channel": place.id})
    return history["messages"][::-1]


async def test_an_answer_is_sent_edited_and_replaced_in_place(
    emulated: Emulated, connector: Connector, place: ChannelRef
) -> None:
    before = len(await seen(emulated, place))
    [ref] = await connector.send(place, Reply(text="Four.", turn="abc", buttons=THUMBS))
    [posted] = (await seen(emulated, place))[before:]
    assert (posted["ts"], posted["text"]) == (ref.id, "Four.")
    assert [block["type"] for block in posted["blocks"]] == ["markdown", "context_actions"]
    await connector.edit(ref, Reply(text="4.", turn="abc"))
    stream = connector.replace([ref], place)
    await stream.append("Just ")
    await stream.finish(Reply(text="Just 4.", turn="def", buttons=THUMBS))
    [edited] = (await seen(emulated, place))[before:]
    assert (edited["ts"], edited["text"]) == (ref.id, "Just 4.")
    assert "def" in json.dumps(edited["blocks"])


async def test_where_slack_does_not_stream_an_answer_grows_by_edits(
    emulated: Emulated, connector: Connector, place: ChannelRef
) -> None:
    [root] = await connector.send(place, Reply(text="A thread begins."))
    thread = dataclasses.replace(place, thread=root.id)
    text = ("All work and no play makes a dull bot. " * 250).strip()
    stream = connector.stream(thread, root.id)
    await stream.append(text[:100])
    refs = await stream.finish(Reply(text=text, turn="abc", buttons=THUMBS))
    assert len(refs) == 3
    replies = await emulated.ada().api_call(
        "conversations.replies", params={"channel": place.id, "ts": root.id}
    )
    found = {message["ts"]: message for message in replies["messages"]}
    words = "".join(found[ref.id]["blocks"][0]["text"] for ref in refs)
    assert "".join(words.split()) == "".join(text.split())
    assert all(found[ref.id]["thread_ts"] == root.id for ref in refs)


async def test_what_became_of_a_rating_is_told_and_reactions_are_read_again(
    emulated: Emulated, connector: Connector, place: ChannelRef
) -> None:
    [ref] = await connector.send(place, Reply(text="Four.", turn="abc", buttons=THUMBS))
    ada = (await emulated.ada().auth_test())["user_id"]
    event = RatingEvent(
        event_id="1",
        order=OrderKey(1),
        channel=place,
        kind=RatingKind.RATE,
        value=-1.0,
        user=UserRef(connector="slack", account=connector.account, id=ada),
        turn="abc",
        message_id=ref.id,
    )
    receipt = Receipt(event_id="1", outcome=Outcome.ACCEPTED, text="Bad.", offer=retry_row())
    await connector.acknowledge(event, receipt)
    await emulated.ada().reactions_add(channel=place.id, timestamp=ref.id, name="tada")
    [found] = await connector.reconcile([OpenTurn(turn="abc", messages=(ref,))])
    assert isinstance(found, RatingEvent)
    assert (found.user.id, found.source, found.value) == (ada, "reaction:tada", 1.0)


async def test_the_home_tab_is_taken(emulated: Emulated, connector: Any, place: ChannelRef) -> None:
    view = home.view(channel=place.id, status="All is well.", more="And more.")
    ada = (await emulated.ada().auth_test())["user_id"]
    published = await connector._connected().call("views.publish", user_id=ada, view=view)
    assert published["view"]["type"] == "home"


async def test_what_slack_refuses_is_named(
    emulated: Emulated, connector: Connector, place: ChannelRef, tmp_path: Path
) -> None:
    elsewhere = dataclasses.replace(place, id="C00000404", kind=ChannelKind.SHARED)
    with pytest.raises(ConnectorError, match="channel_not_found"):
        await connector.send(elsewhere, Reply(text="hello?"))
    environ = emulated.environ | {BOT_TOKEN: f"{TOKEN}-poor"}
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=environ)
    platform: Any = emulated
    poor = build(SPEC, host, platform)
    await poor.start()
    ada = (await emulated.ada().auth_test())["user_id"]
    with pytest.raises(ConnectorError, match="lacks the scope im:write"):
        await poor.private(ada)
    await poor.stop()
    await host.close()
