# SPDX-License-Identifier: Apache-2.0
"""A person at the real Claude Code, whose hooks a connector of ours answers; `RECORD=1` keeps the calls."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from goodbot.config.secrets import Secrets
from goodbot_connectors.claude_code.config import ClaudeCodeSettings
from goodbot_connectors.claude_code.connector import ClaudeCodeConnector
from goodbot_connectors.claude_code.setup import ClaudeCodeSetup

from tests.agents.claude_model import Model, serving
from tests.agents.claude_person import Person
from tests.connectors.claude_code.peer import RECORDED, SESSION, Peer
from tests.core.builders import until

_ROWS = ("user", "assistant", "attachment", "queue-operation")
_KEYS = (
    "type",
    "promptId",
    "isSidechain",
    "isMeta",
    "message",
    "attachment",
    "origin",
    "promptSource",
    "operation",
    "content",
    "uuid",
    "parentUuid",
    "timestamp",
    "sessionId",
    "version",
)


class Scene(Peer):
    """It keeps what the hooks have said."""

    person: Person
    model: Model
    heard: list[dict[str, Any]]

    async def start(self) -> None:
        self.connector = ClaudeCodeConnector(self, self.settings)
        take = self.connector.take

        async def listening(user: str, payload: dict[str, Any]) -> dict[str, Any]:
            self.heard.append(payload)
            return await take(user, payload)

        self.connector.take = listening
        self.mount(self.connector)
        await self.connector.start()

    def told(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.heard if one["hook_event_name"] == name]

    async def stops(self, count: int) -> None:
        """Until so many answers have been reported."""
        await until(lambda: len(self.told("Stop")) >= count, seconds=60)

    def record(self, name: str) -> None:
        """Keep the scene for `make test`, with nothing of this machine in it."""
        if not os.environ.get("RECORD"):
            return
        RECORDED.mkdir(exist_ok=True)
        session = self.heard[0]["session_id"]
        heard = [self._scrubbed(one, session) for one in self.heard]
        text = json.dumps(heard, indent=1, ensure_ascii=False)
        (RECORDED / f"{name}.json").write_text(text + "\n")
        rows: list[str] = []
        for line in Path(self.heard[0]["transcript_path"]).read_text().splitlines():
            row = json.loads(line)
            kind = row.get("attachment", {}).get("type", "queued_command")
            if row["type"] in _ROWS and kind == "queued_command":
                kept = {key: row[key] for key in _KEYS if key in row}
                rows.append(json.dumps(self._scrubbed(kept, session), ensure_ascii=False))
        (RECORDED / f"{name}.jsonl").write_text("\n".join(rows) + "\n")

    def _scrubbed(self, value: dict[str, Any], session: str) -> dict[str, Any]:
        text = json.dumps(value, ensure_ascii=False)
        work, home = (
            "".join(c if c.isalnum() else "-" for c in str(path))
            for path in (self.person.work, self.person.home)
        )
        for old, new in (
            (session, SESSION),
            (str(self.person.work), "/work"),
            (work, "-work"),
            (home, "-work"),
            (str(self.person.home), "/srv/ada"),
            (f"/tmp/claude-{os.getuid()}", "/tmp/claude-1000"),
        ):
            text = text.replace(old, new)
        assert "pytest" not in text, text
        return json.loads(text)


def setup_of(scene: Scene, home: Path) -> ClaudeCodeSetup:
    settings = replace(scene.settings, config_dir=str(scene.person.directory))
    setup = ClaudeCodeSetup(Secrets((), {}), settings)
    setup.home, setup.address = home, scene.address
    return setup


@asynccontextmanager
async def scene(tmp_path: Path, settings: ClaudeCodeSettings | None = None) -> AsyncIterator[Scene]:
    """Model, person and connector; nothing is installed yet."""
    async with serving() as model:
        made = Scene(tmp_path / "goodbot", settings)
        made.heard = []
        made.model, made.person = model, Person(tmp_path / "ada", model)
        try:
            await made.start()
            yield made
        finally:
            await made.close()
        assert made.failures == []
