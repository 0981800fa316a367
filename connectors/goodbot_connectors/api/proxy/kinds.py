# SPDX-License-Identifier: Apache-2.0
"""Whether somebody reads an answer (`main`), or a program asked for it beside the conversation (`side`).

Side turns are kept and never trained on. The program's own word counts most: `X-Turn-Type: main` or
`side`. Without one an answer is main, unless one of these holds:

1. Codex says that the request is no turn of its user's (`request_kind`, `thread_source`).
2. It is no chat (`/v1/completions`), there were several answers, or the prompt was not whole.
3. The last message is neither a person's nor a tool's result. (What the program itself says behind it does
   not count: Claude Code tells its surroundings there.)
4. It has to fit a schema (`response_format`, `text.format`), so that a program can read it; or 16 tokens were
   enough for it, or it says nothing at all; or nothing was asked in words, but a picture came.
5. The prompt is that of a known helper, which makes a title or a summary (`HELPERS`).
6. The program has named the session, whose other requests had tools or a system message, and this has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from goodbot.api.events import Message
from goodbot.api.plain import is_wordless

from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse
from goodbot_connectors.api.proxy.sessions import ProxySession, codex
from goodbot_connectors.kit.fields import string

MAIN, SIDE = "main", "side"
HEADER = "x-turn-type"
_SHORT = 16
"""Tokens: of an answer that says yes or no, or that a key works."""
_LOOKED_AT = 4000
"""Characters of a prompt's first and last message, where helpers say what they want."""
HELPERS = (
    "generate a concise, single-line task title",
    "analyze if this message indicates a new conversation topic",
    "generate a concise, sentence-case title",
    "please write a 5-10 word title",
    "generate a concise, 3-5 word title",
    "generate 1-3 broad tags categorizing the main themes",
    "suggest 3-5 relevant follow-up questions",
    "your task is to create a detailed summary of the conversation so far",
    "summarize this coding conversation",
)
"""What prompts of Codex, Claude Code and Open WebUI say that nobody sees the answer of."""


def kind(
    headers: Mapping[str, str], asked: ChatRequest, said: ChatResponse, session: ProxySession, *, chat: bool
) -> str:
    """`MAIN` or `SIDE`. `chat`: it is one of the APIs that have roles."""
    told = headers.get(HEADER, "").strip().lower()
    if told:
        return MAIN if told == MAIN else SIDE
    found = SIDE if _is_side(headers, asked, said, session, chat=chat) else MAIN
    if found == MAIN:
        session.tools = session.tools or bool(asked.tools)
        session.system = session.system or asked.system
    return found


def _is_side(
    headers: Mapping[str, str], asked: ChatRequest, said: ChatResponse, session: ProxySession, *, chat: bool
) -> bool:
    about = codex(headers)
    if string(about, "request_kind") not in ("", "turn"):
        return True
    if string(about, "thread_source") not in ("", "user"):
        return True
    asked_last = _last(asked)
    last = asked_last.get("role", "")
    return (
        not chat
        or said.several
        or not asked.whole
        or last not in ("user", "tool")
        or (last == "user" and is_wordless(str(asked_last["content"])))
        or asked.machine
        or 0 < asked.max_tokens <= _SHORT
        or not (said.text.strip() or said.calls)
        or _is_helper(asked)
        or (session.named and session.tools and not asked.tools)
        or (session.named and session.system and not asked.system)
    )


def _is_helper(asked: ChatRequest) -> bool:
    for message in (asked.messages[0], _last(asked)):
        text = str(message["content"])[:_LOOKED_AT].lower()
        if any(words in text for words in HELPERS):
            return True
    return False


def _last(asked: ChatRequest) -> Message:
    """The last message that is not the program's own."""
    none: Message = {}
    return next((one for one in reversed(asked.messages) if one["role"] != "system"), none)
