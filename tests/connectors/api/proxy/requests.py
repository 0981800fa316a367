# SPDX-License-Identifier: Apache-2.0
"""One request of each API, as their clients send them."""

from __future__ import annotations

from typing import Any

ASKED = [{"role": "user", "content": "What do good dogs do?"}]
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
FUNCTION: dict[str, Any] = {"name": "add", "description": "Adds.", "parameters": PARAMETERS}
TOOL: dict[str, Any] = {"type": "function", "function": FUNCTION}

CHAT: dict[str, Any] = {"model": "m-1", "messages": ASKED, "temperature": 0.5}
RESPONSES: dict[str, Any] = {"model": "m-1", "input": ASKED[0]["content"], "instructions": "Be kind."}
MESSAGES: dict[str, Any] = {"model": "m-1", "max_tokens": 99, "messages": ASKED, "system": "Be kind."}
COMPLETIONS: dict[str, Any] = {"model": "m-1", "prompt": "Good dogs"}

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/v1/completions": COMPLETIONS,
}
TOOLS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {**CHAT, "tools": [TOOL]},
    "/v1/responses": {**RESPONSES, "tools": [{"type": "function", "strict": None, **FUNCTION}]},
    "/v1/messages": {
        **MESSAGES,
        "tools": [{"name": "add", "description": "Adds.", "input_schema": PARAMETERS}],
    },
}
