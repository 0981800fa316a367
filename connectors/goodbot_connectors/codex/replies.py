# SPDX-License-Identifier: Apache-2.0
"""What a hook answers Codex: JSON on its stdout, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable

from aiohttp import web

HELP = """In a prompt of its own:
`+1`, `-1`, 👍, 👎: the last answer of this session was good, or bad.
`␣/rl stars 4`: 1 to 5, beside good or bad.
`␣/rl reason TEXT`: what was wrong with it.
`␣/rl better TEXT`: what it should have been.
`␣/rl undo`: take the last rating back.
`␣/rl status`, `␣/rl why`: how far goodbot is, and what it has learned.
␣ is a space: without it Codex takes the line for a command of its own."""


def nothing() -> web.Response:
    """Go on: nothing is shown."""
    return web.Response(status=204)


def block(reason: str) -> web.Response:
    """The prompt does not go to the model; its person sees the reason."""
    return _json({"decision": "block", "reason": reason})


def say(lines: Iterable[str]) -> web.Response:
    """Under an answer: lines for its person, none for the model."""
    text = "\n".join(line for line in lines if line)
    return _json({"systemMessage": text}) if text else nothing()


def _json(body: dict[str, str]) -> web.Response:
    return web.Response(body=json.dumps(body, ensure_ascii=False).encode(), content_type="application/json")
