# SPDX-License-Identifier: Apache-2.0
"""Codex as goodbot sees it: events as recorded of the real one (0.169.0), and such as it would send."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from goodbot.api.events import CaptureEvent, Event, Outcome, RatingEvent, Receipt
from goodbot.api.turns import turn_id
from goodbot.testing.host import RecordingHost
from goodbot_connectors.codex import SPEC, sidecar
from goodbot_connectors.codex.config import CodexSettings
from goodbot_connectors.codex.connector import CodexConnector
from goodbot_connectors.kit.bridge import clients

from tests.support import patience

_RECORDED = Path(__file__).parent / "recorded"
MAIN = "01a203ed-3b44-7022-819f-4064e052618b"
"""The session of the recordings."""
_numbers = itertools.count(1)


def recorded(name: str) -> Any:
    """Of the real program: `hooks` and `notify` of one session, in order, `rollouts`, `hooks_list`."""
    return json.loads((_RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def receipt(event: Event) -> Receipt:
    """What a core says: a capture becomes a turn, a rating counts."""
    if isinstance(event, CaptureEvent):
        return Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=turn_id(event))
    text = f"Counted {event.value}." if isinstance(event, RatingEvent) else "Done."
    return Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=text)


class Codex:
    """One Codex on this machine."""

    def __init__(self, host: RecordingHost, token: str, http: aiohttp.ClientSession) -> None:
        self.host, self._token, self._http = host, token, http

    async def hook(self, event: dict[str, Any], status: int = 200) -> dict[str, Any]:
        """What the hook prints, empty for nothing."""
        return await self._post("hook", event, status)

    async def notify(self, event: dict[str, Any]) -> None:
        assert await self._post("notify", event, 200) == {}

    async def prompt(self, text: str, session: str = MAIN, turn: str = "") -> tuple[str, str]:
        """Type a prompt. Returns its turn, and what it was blocked with, empty if it was not."""
        turn = turn or f"turn-{next(_numbers)}"
        answer = await self.hook(
            {
                "session_id": session,
                "turn_id": turn,
                "hook_event_name": "UserPromptSubmit",
                "model": "m",
                "prompt": text,
            }
        )
        assert answer.get("decision", "block") == "block"
        return turn, answer.get("reason", "")

    async def stop(self, turn: str, text: str | None, session: str = MAIN) -> str:
        """The agent has answered. Returns what is shown under it."""
        answer = await self.hook(
            {
                "session_id": session,
                "turn_id": turn,
                "hook_event_name": "Stop",
                "model": "m",
                "stop_hook_active": False,
                "last_assistant_message": text,
            }
        )
        return answer.get("systemMessage", "")

    async def ask(self, prompt: str, answer: str, session: str = MAIN) -> str:
        """A whole turn; returns its id."""
        turn, blocked = await self.prompt(prompt, session)
        assert not blocked
        await self.stop(turn, answer, session)
        return turn

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.host.events if isinstance(event, kind)]

    @property
    def captures(self) -> list[CaptureEvent]:
        return self.of(CaptureEvent)

    @property
    def ratings(self) -> list[RatingEvent]:
        return self.of(RatingEvent)

    def answer(self, number: int) -> str:
        """Our id of the answer with this number, from 0."""
        return turn_id(self.captures[number])

    async def _post(self, path: str, event: dict[str, Any], status: int) -> dict[str, Any]:
        async with self._http.post(
            f"{self.host.address}/v1/codex/{path}",
            json=event,
            headers={"Authorization": f"Bearer {self._token}"},
        ) as response:
            text = await response.text()
            assert response.status in ((200, 204) if status == 200 else (status,)), text
            return json.loads(text) if text else {}


@contextlib.asynccontextmanager
async def codex(home: Path, host: RecordingHost | None = None) -> AsyncIterator[Codex]:
    """A connector that runs, and the Codex that talks to it. The same `host` again: after a restart."""
    folder = home / "connectors" / "codex"
    own = host is None
    host = host or RecordingHost(SPEC, state_dir=folder)
    host.answer = receipt
    token = clients.create(home, "codex", "me")
    connector = CodexConnector(host, CodexSettings())
    host.mount(connector)
    await connector.start()
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(patience(30))) as http:
            yield Codex(host, token, http)
    finally:
        await connector.stop()
        if own:
            await host.close()
            assert host.failures == []


def written_rollouts(home: Path, folder: Path) -> None:
    """What Codex keeps of its threads, by the recordings, in `home`; `folder` is our own."""
    sidecar.remember_codex(folder, home)
    for first in recorded("rollouts"):
        day = home / "sessions" / "2026" / "11" / "22"
        day.mkdir(parents=True, exist_ok=True)
        path = day / f"rollout-2026-11-22T15-43-28-{first['payload']['id']}.jsonl"
        path.write_text(json.dumps(first) + "\n", encoding="utf-8")
