# SPDX-License-Identifier: Apache-2.0
"""Files that Claude Code gets from us: the command `/rl`, and all of it as a plugin."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from goodbot.api.setup import Manifest, Permission

from goodbot_connectors.claude_code.payloads import EXPANDED, STOPPED, SUBMITTED

FILE = "goodbot-claude-code.zip"
FOLDER = Path(__file__).with_name("plugin")
_ADDRESS = "http://127.0.0.1:8321"
"""What the plugin's files are written with."""
_DATE = (2026, 1, 1, 0, 0, 0)
"""Of all files in the zip: the same files make the same zip."""

COMMAND = """\
---
description: Rate Claude's last answer, so that goodbot learns from it
argument-hint: good | bad | undo | better TEXT | status | why | help
disable-model-invocation: true
---

goodbot has not answered, so this text has reached you instead. Say only this, in one sentence: goodbot is
not running, nothing was rated, and `goodbot run` starts it. Do nothing else.
"""
"""`commands/rl.md`: without it Claude Code knows no `/rl`; a hook of ours answers before a model sees it."""

WHY = {
    SUBMITTED: "to know what an answer is an answer to",
    STOPPED: "to keep Claude's answer",
    EXPANDED: "to take what is typed behind /rl, in place of a model",
}


def files(address: str) -> Iterator[tuple[str, bytes]]:
    """The plugin's files by their names, calling the daemon at `address`."""
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix in (".json", ".md"):
                content = content.replace(_ADDRESS.encode(), address.encode())
            yield path.relative_to(FOLDER).as_posix(), content


def manifest(address: str) -> Manifest:
    """The plugin as a zip, and what its hooks are for."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files(address):
            archive.writestr(zipfile.ZipInfo(name, _DATE), content)
    return Manifest(
        text=(FOLDER / "README.md").read_text(encoding="utf-8").replace(_ADDRESS, address),
        file=FILE,
        packed=made.getvalue(),
        permissions=tuple(Permission(name=name, why=why) for name, why in WHY.items()),
    )
