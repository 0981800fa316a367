# SPDX-License-Identifier: Apache-2.0
"""Which conversation a request belongs to, and which model call it is for other connectors.

A program that names its session is believed. Of others the session is the one whose last answer the
request goes on from: every transcript is hashed message by message, which is linear in its length. It is
done in a thread: a transcript has megabytes, and others wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.events import Message
from goodbot.base.clock import Clock

from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, objects, unthought
from goodbot_connectors.kit.fields import Json, as_json, string, sub

_HEADERS = ("session_id", "x-session-id", "x-session-affinity", "x-claude-code-session-id")
"""Where programs name their session: OpenClaw, OpenClaw-RL's clients, OpenClaw again, Claude Code."""
CODEX = "x-codex-turn-metadata"
"""A JSON object: `session_id`, `turn_id`, `request_kind`, `thread_source`."""
_MOST_SESSIONS = 4096
_MOST_ANSWERS = 32768
"""Hashes of transcripts that are kept, of all sessions together: a few megabytes."""
_LONGEST = 128
_HEX = frozenset("0123456789abcdef")


@dataclass(slots=True)
class ProxySession:
    """One conversation of one client. What its main line looks like tells its helpers from it."""

    id: str
    named: bool
    """By the program itself."""
    seen: float
    """When it was used last, on the monotonic clock."""
    tools: bool = False
    """Requests of its main line had tools."""
    system: bool = False
    """They began with a system message."""


class ProxySessions:
    """Those that were used not long ago."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        """A session nobody has used for `seconds` is over."""
        self._clock, self._seconds = clock, seconds
        self._known: OrderedDict[tuple[str, str], ProxySession] = OrderedDict()
        self._answers: OrderedDict[tuple[str, bytes], str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    async def of(
        self, client: str, headers: Mapping[str, str], asked: ChatRequest, otherwise: str
    ) -> ProxySession:
        """The session of a request; a new one is called `otherwise` where its program does not name it."""
        named = _named(headers)
        digests = () if named else await asyncio.to_thread(_digests, asked.messages)
        now = self._clock.monotonic()
        self._expire(now)
        id_ = named or self._followed(client, digests) or otherwise
        session = self._known.pop((client, id_), None)
        if session is None:
            session = ProxySession(id=id_, named=bool(named), seen=now)
        session.seen = now
        self._known[client, id_] = session
        while len(self._known) > _MOST_SESSIONS:
            self._known.popitem(last=False)
        return session

    async def answered(
        self, client: str, session: ProxySession, asked: ChatRequest, said: ChatResponse
    ) -> None:
        """Remember an answer, so that what goes on from it is known again."""
        digest = await asyncio.to_thread(_digest, asked, said)
        self._answers[client, digest] = session.id
        while len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)

    def _followed(self, client: str, digests: Sequence[bytes]) -> str:
        """The session whose answer is the last one that we know of these."""
        for digest in reversed(digests):
            id_ = self._answers.get((client, digest), "")
            if id_ and (client, id_) in self._known:
                return id_
        return ""

    def _expire(self, now: float) -> None:
        """The oldest come first, as each is put last when it is used."""
        while self._known:
            key, session = next(iter(self._known.items()))
            if now - session.seen <= self._seconds:
                return
            del self._known[key]


def trace(headers: Mapping[str, str], said: ChatResponse) -> str:
    """What other connectors call this model call; empty where they have no name for it."""
    if turn := string(codex(headers), "turn_id"):
        return f"codex:{turn[:_LONGEST]}"
    if session := headers.get("x-claude-code-session-id", "").strip():
        text = said.text.strip()
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"claude:{session[:_LONGEST]}:{digest}" if text else ""
    version, _, rest = headers.get("traceparent", "").strip().partition("-")
    id_ = rest.partition("-")[0]
    good = len(version) == 2 and len(id_) == 32 and set(id_) <= _HEX and set(id_) != {"0"}
    return f"w3c:{id_}" if good else ""


def codex(headers: Mapping[str, str]) -> Json:
    """What Codex says of a request; an empty object where it is none of Codex's."""
    try:
        return as_json(json.loads(headers.get(CODEX, "{}")))
    except (ValueError, RecursionError):
        return {}


def _named(headers: Mapping[str, str]) -> str:
    names = (*(headers.get(name, "") for name in _HEADERS), string(codex(headers), "session_id"))
    found = next((name.strip() for name in names if name.strip()), "")
    if len(found) > _LONGEST or not found.isprintable():
        return hashlib.sha256(found.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return found


def _digest(asked: ChatRequest, said: ChatResponse) -> bytes:
    """A hash of the transcript that ends with this answer."""
    calls = [_called(one.name, one.arguments) for one in said.calls]
    message: Message = {"role": "assistant", "content": unthought(said.text), "calls": calls}
    return _digests([*asked.messages, message])[-1]


def _digests(messages: Sequence[Message]) -> Sequence[bytes]:
    """A hash of the transcript up to each answer in it. What the program itself says is left out: it may
    change from one request to the next, like a clock."""
    chain, found = hashlib.blake2b(digest_size=16), list[bytes]()
    for message in messages:
        role = message["role"]
        if role == "system":
            continue
        calls = message.get("calls") or [
            _called(string(what, "name"), string(what, "arguments"))
            for what in (sub(call, "function") for call in objects(message.get("tool_calls")))
        ]
        text = str(message["content"]).strip()
        # With its length before it no text reads as another and what follows it.
        chain.update(json.dumps([role, len(text), calls]).encode())
        chain.update(text.encode("utf-8", "surrogatepass"))
        if role == "assistant":
            found.append(chain.digest())
    return found


def _called(name: str, arguments: str) -> list[Any]:
    """A call, whatever spaces its arguments have: programs write them anew."""
    try:
        return [name, json.loads(arguments or "{}")]
    except (ValueError, RecursionError):
        return [name, arguments]
