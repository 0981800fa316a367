# SPDX-License-Identifier: Apache-2.0
"""ChatML as the tiny model speaks it: messages to text, and the same as a Jinja template.

``render_messages`` and ``CHAT_TEMPLATE`` must agree to the character; a test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypedDict


class ChatMessage(TypedDict):
    """One message of a chat; ``role`` is system, user, assistant or tool."""

    role: str
    content: str


END_OF_TEXT = "<|endoftext|>"
START = "<|im_start|>"
END = "<|im_end|>"
CALL, CALL_END = "<tool_call>", "</tool_call>"
_TOOLS = "Tools: "

# Some clients give a call's arguments as an object, some as the JSON text of one.
CHAT_TEMPLATE = """\
{%- set first = messages[0].content if messages[0].role == 'system' else none %}
{%- if tools %}
{{- '<|im_start|>system\\n' + (first + '\\n' if first else '') }}
{{- 'Tools: ' + (tools | tojson) + '<|im_end|>\\n' }}
{%- elif first is not none %}
{{- '<|im_start|>system\\n' + first + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in (messages if first is none else messages[1:]) %}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for tool_call in message.tool_calls or [] %}
{%- set tool_call = tool_call.function or tool_call %}
{{- '<tool_call>{"name": "' + tool_call.name + '", "arguments": ' }}
{%- if tool_call.arguments is string %}{{- tool_call.arguments }}
{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
{{- '}</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def tools_prompt(declarations: str) -> str:
    """The line of a system message that declares tools; ``declarations`` is a JSON array."""
    return f"{_TOOLS}{declarations}"


def tool_call(name: str, arguments: Mapping[str, str]) -> str:
    """The text of an assistant message that calls a tool."""
    return f"{CALL}{json.dumps({'name': name, 'arguments': dict(arguments)})}{CALL_END}"


def segments(messages: Sequence[ChatMessage]) -> list[tuple[str, bool]]:
    """The chat's text in pieces, each with whether the assistant wrote it (its end mark too)."""
    pieces: list[tuple[str, bool]] = []
    for message in messages:
        mine = message["role"] == "assistant"
        pieces.append((f"{START}{message['role']}\n", False))
        pieces.append((message["content"] + END, mine))
        pieces.append(("\n", False))
    return pieces


def render_messages(messages: Sequence[ChatMessage], *, answer_next: bool = False) -> str:
    """The chat's text; with ``answer_next`` it ends where the assistant's reply begins."""
    text = "".join(piece for piece, _ in segments(messages))
    return f"{text}{START}assistant\n" if answer_next else text
