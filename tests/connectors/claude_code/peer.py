# SPDX-License-Identifier: Apache-2.0
"""Claude Code as its hooks are: what it posts, with a token, and what it is answered."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
from goodbot.api.events import CaptureEvent, CommandEvent, Event, Outcome, RatingEvent, Receipt
from goodbot.api.sentences import because
from goodbot.api.turns import turn_id
from goodbot.base.clock import Clock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.claude_code import SPEC
from goodbot_connectors.claude_code.config import ClaudeCodeSettings
from goodbot_connectors.claude_code.connector import PATH, ClaudeCodeConnector
from goodbot_connectors.kit.bridge import clients

RECORDED = Path(__file__).with_name("recorded")
SESSION = "5e551011-0000-4000-8000-000000000001"


class Peer(RecordingHost):
    """A core that counts ratings and obeys commands, and the connector in front of it."""

    def __init__(
        self, home: Path, settings: ClaudeCodeSettings | None = None, clock: Clock | None = None
    ) -> None:
        here = home / "connectors" / "claude_code"
        super().__init__(SPEC, state_dir=here, clock=clock)
        self.settings = settings or ClaudeCodeSettings()
        self.token = clients.create(home, "claude_code", "me")
        self.answer = self._receipt
        self.ratings = 11
        self.said: list[str] = []
        """What commands were typed."""

    async def start(self) -> None:
        self.connector = ClaudeCodeConnector(self, self.settings)
        self.mount(self.connector)
        await self.connector.start()

    async def restart(self) -> None:
        """As another process would begin, on what was stored."""
        await self.connector.stop()
        await self.start()

    async def close(self) -> None:
        await self.connector.stop()
        await super().close()

    async def submit(self, events: Sequence[Event], *, cursor: str | None = None) -> tuple[Receipt, ...]:
        receipts = await super().submit(events, cursor=cursor)
        for event, receipt in zip(events, receipts, strict=True):
            if isinstance(event, CommandEvent) and not receipt.duplicate:
                self.said.append(f"{event.name} {event.args}".strip())
                done = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=f"Did {event.name}.")
                self.spawn(self.connector.acknowledge(event, done), "acknowledge")
        return receipts

    def _receipt(self, event: Event) -> Receipt:
        turn, reasons = "", ()
        if isinstance(event, RatingEvent):
            self.ratings += event.value is not None
            turn = event.turn
            said = because("good" if (event.value or 0) > 0 else "bad")
            reasons = (said, because("until", available=self.ratings, needed=40))
        elif isinstance(event, CaptureEvent):
            turn = turn_id(event)
        return event.receipt(Outcome.ACCEPTED, *reasons, turn=turn)

    async def post(self, data: bytes | str | dict[str, Any], token: str | None = None) -> Any:
        """What a hook's call is answered: the JSON of a 200, else the status."""
        text = json.dumps(data) if isinstance(data, dict) else data
        body = io.BytesIO(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        token = self.token if token is None else token
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.address + PATH, data=body, headers=headers) as response,
        ):
            return await response.json() if response.status == 200 else response.status

    async def replay(self, name: str, only: int | None = None) -> list[Any]:
        """Post what the real program has posted; where it has a transcript, of that."""
        answers: list[Any] = []
        for payload in recorded(name)[:only]:
            answers.append(await self.post(payload))
        return answers

    # One person at it

    async def ask(self, prompt: str, session: str = SESSION) -> str:
        """They write; the id of the turn."""
        prompt_id = str(uuid.uuid4())
        await self.post(payload("UserPromptSubmit", prompt_id, session, prompt=prompt))
        return prompt_id

    async def stop(self, prompt_id: str, answer: str, session: str = SESSION, **more: Any) -> Any:
        """Claude has answered."""
        return await self.post(payload("Stop", prompt_id, session, last_assistant_message=answer, **more))

    async def exchange(self, prompt: str, answer: str, session: str = SESSION) -> CaptureEvent:
        await self.stop(await self.ask(prompt, session), answer, session)
        return self.captures[-1]

    async def rl(self, words: str, session: str = SESSION) -> str:
        """They type `/rl WORDS`; what they are shown."""
        prompt_id = str(uuid.uuid4())
        typed = f"/rl {words}".strip()
        await self.post(payload("UserPromptSubmit", prompt_id, session, prompt=typed))
        answer = await self.post(
            payload(
                "UserPromptExpansion",
                prompt_id,
                session,
                expansion_type="slash_command",
                command_name="rl",
                command_args=words,
                command_source="userSettings",
                prompt=typed,
            )
        )
        assert answer["decision"] == "block"
        assert answer["hookSpecificOutput"] == {
            "hookEventName": "UserPromptExpansion",
            "suppressOriginalPrompt": True,
        }
        return str(answer["reason"])

    @property
    def captures(self) -> list[CaptureEvent]:
        return [event for event in self.events if isinstance(event, CaptureEvent)]

    @property
    def rated(self) -> list[RatingEvent]:
        return [event for event in self.events if isinstance(event, RatingEvent)]


def payload(event: str, prompt_id: str, session: str = SESSION, **more: Any) -> dict[str, Any]:
    """In the shape that the recorded ones have."""
    return {
        "session_id": session,
        "transcript_path": f"/srv/ada/.claude/projects/-work/{session}.jsonl",
        "cwd": "/work",
        "prompt_id": prompt_id,
        "permission_mode": "default",
        "hook_event_name": event,
        **more,
    }


def recorded(name: str) -> list[dict[str, Any]]:
    """The hooks' calls of one scene with the real program, in their order."""
    return json.loads((RECORDED / f"{name}.json").read_text())
