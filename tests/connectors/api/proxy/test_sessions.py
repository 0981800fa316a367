# SPDX-License-Identifier: Apache-2.0
"""Which conversation a request belongs to, whether somebody reads its answer, and how others call it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from goodbot.testing import VirtualClock
from goodbot_connectors.api.proxy import sessions
from goodbot_connectors.api.proxy.dialects import chat
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, ToolCall
from goodbot_connectors.api.proxy.kinds import MAIN, SIDE, kind
from goodbot_connectors.api.proxy.sessions import ProxySession, ProxySessions

TOOL = {"type": "function", "function": {"name": "add"}}
HELLO = {"role": "user", "content": "Hello"}
SYSTEM = {"role": "system", "content": "Be kind."}
TOPIC = "Analyze if this message indicates a new conversation topic."
SAID = ChatResponse(text="Hi!", finish="stop")


def asked(*messages: dict[str, Any], **more: Any) -> ChatRequest:
    return chat.asked({"model": "m", "messages": list(messages or (HELLO,)), **more})


def said_by(text: str, *calls: ToolCall) -> ChatResponse:
    return ChatResponse(text=text, calls=calls, finish="stop")


def sessions_of(seconds: float = 60.0) -> tuple[ProxySessions, VirtualClock]:
    clock = VirtualClock()
    return ProxySessions(clock, seconds), clock


@pytest.mark.parametrize(
    "headers",
    [
        {"session_id": "s1"},
        {"x-session-id": "s1"},
        {"x-session-affinity": "s1"},
        {"x-claude-code-session-id": "s1"},
        {sessions.CODEX: json.dumps({"session_id": "s1"})},
        {"session_id": "s1", "x-session-id": "other"},
    ],
)
async def test_a_program_that_names_its_session_is_believed(headers: dict[str, str]) -> None:
    known, _ = sessions_of()
    found = await known.of("ada", headers, asked(), "new")
    assert (found.id, found.named) == ("s1", True)
    assert await known.of("ada", headers, asked(), "other") is found
    assert await known.of("bob", headers, asked(), "other") is not found  # each client has its own


async def test_a_session_is_what_goes_on_from_its_last_answer() -> None:
    known, _ = sessions_of()
    first = await known.of("ada", {}, asked(SYSTEM, HELLO), "one")
    await known.answered("ada", first, asked(SYSTEM, HELLO), SAID)
    other = {**SYSTEM, "content": "It is 10:05."}  # what the program says changes all the time
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Hi! "}]}
    more = asked(other, HELLO, answer, {"role": "user", "content": "More"})
    assert (await known.of("ada", {}, more, "two")).id == "one"
    assert (await known.of("bob", {}, more, "three")).id == "three"
    changed = asked(HELLO, {**answer, "content": "Ho!"}, HELLO)
    assert (await known.of("ada", {}, changed, "four")).id == "four"
    assert (await known.of("ada", {}, asked(SYSTEM, HELLO), "five")).id == "five"  # begins like the first


async def test_an_answer_that_calls_a_tool_is_known_however_its_arguments_are_spaced() -> None:
    known, _ = sessions_of()
    first = await known.of("ada", {}, asked(), "one")
    call = ToolCall(id="c", name="add", arguments='{"a": 1,  "b":2}')
    await known.answered("ada", first, asked(), said_by("", call))
    again = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}
    answer = {"role": "assistant", "content": None, "tool_calls": [again]}
    result = {"role": "tool", "tool_call_id": "c", "content": "3"}
    assert (await known.of("ada", {}, asked(HELLO, answer, result), "two")).id == "one"


async def test_the_last_turn_of_a_session_is_over_with_it() -> None:
    known, clock = sessions_of(seconds=60.0)
    first = await known.of("ada", {}, asked(), "one")
    await known.answered("ada", first, asked(), SAID)
    more = asked(HELLO, {"role": "assistant", "content": "Hi!"}, HELLO)
    clock.advance(59.0)
    assert (await known.of("ada", {}, more, "two")).id == "one"
    clock.advance(61.0)
    assert (await known.of("ada", {}, more, "three")).id == "three"
    assert len(known) == 1


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_MOST_SESSIONS", 10)
    monkeypatch.setattr(sessions, "_MOST_ANSWERS", 20)
    known, _ = sessions_of()
    for number in range(100):
        one = asked({"role": "user", "content": f"{number}"})
        await known.answered("ada", await known.of("ada", {}, one, f"s{number}"), one, SAID)
    assert len(known) == 10
    assert len(known._answers) == 20  # pyright: ignore[reportPrivateUsage]


async def test_foreign_names_are_bounded() -> None:
    known, _ = sessions_of()
    for name in ("x" * 10_000, "a\x1b[2J"):
        assert len((await known.of("ada", {"session_id": name}, asked(), "n")).id) == 32


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
DIGEST = hashlib.sha256(b"Hi!").hexdigest()


@pytest.mark.parametrize(
    ("headers", "trace"),
    [
        ({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}, f"w3c:{TRACE}"),
        ({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, ""),
        ({"traceparent": f"00-{TRACE.upper()}-00f067aa0ba902b7-01"}, ""),
        ({"traceparent": "nonsense"}, ""),
        ({sessions.CODEX: '{"turn_id": "t9", "session_id": "s"}'}, "codex:t9"),
        ({sessions.CODEX: "[" * 9000}, ""),
        ({"x-claude-code-session-id": "s1"}, f"claude:s1:{DIGEST}"),
        ({}, ""),
    ],
)
def test_traces(headers: dict[str, str], trace: str) -> None:
    assert sessions.trace(headers, said_by(" Hi!\n")) == trace


def test_an_answer_without_words_has_no_trace_of_claudes() -> None:
    assert sessions.trace({"x-claude-code-session-id": "s1"}, said_by("")) == ""


def _kind(request: ChatRequest, headers: dict[str, str] | None = None, **more: Any) -> str:
    session = more.pop("session", None) or ProxySession(id="s", named=True, seen=0.0)
    said = more.pop("said", SAID)
    return kind(headers or {}, request, said, session, chat=more.pop("chat", True))


def test_turns_of_people_are_main() -> None:
    call = ToolCall(id="c", name="add", arguments="{}")
    assert _kind(asked()) == MAIN
    assert _kind(asked(tools=[TOOL]), said=said_by("", call)) == MAIN
    assert _kind(asked(HELLO, {"role": "tool", "tool_call_id": "c", "content": "3"})) == MAIN
    assert _kind(asked(max_tokens=17)) == MAIN
    assert _kind(asked(HELLO, SYSTEM)) == MAIN  # as Claude Code tells its surroundings


@pytest.mark.parametrize(
    ("request_", "more"),
    [
        (asked(), {"chat": False}),
        (asked(), {"said": ChatResponse(text="a", finish="stop", several=True)}),
        (asked(), {"said": said_by(" ")}),
        (asked(HELLO, {"role": "assistant", "content": "Sure,"}), {}),
        (asked(response_format={"type": "json_schema"}), {}),
        (asked(max_tokens=1), {}),
        (asked(SYSTEM), {}),
        (asked({"role": "user", "content": "Generate a concise, single-line task title for: x"}), {}),
        (asked({**SYSTEM, "content": TOPIC}, HELLO), {}),
        (asked(), {"headers": {sessions.CODEX: '{"request_kind": "prewarm"}'}}),
        (asked(), {"headers": {sessions.CODEX: '{"thread_source": "subagent"}'}}),
        (asked(), {"headers": {"x-turn-type": "side"}}),
        (asked(), {"headers": {"x-turn-type": "heartbeat"}}),
    ],
)
def test_helpers_are_side(request_: ChatRequest, more: dict[str, Any]) -> None:
    assert _kind(request_, **more) == SIDE
    told = {**more, "headers": {"x-turn-type": "Main"}}
    assert _kind(request_, **told) == MAIN  # the program's own word counts most


def test_a_helper_of_a_named_session_lacks_what_its_main_line_has() -> None:
    session = ProxySession(id="s", named=True, seen=0.0)
    assert _kind(asked(SYSTEM, HELLO, tools=[TOOL]), session=session) == MAIN
    assert _kind(asked(SYSTEM, HELLO), session=session) == SIDE
    assert _kind(asked(HELLO, tools=[TOOL]), session=session) == SIDE
    assert _kind(asked(SYSTEM, HELLO, tools=[TOOL]), session=session) == MAIN
    guessed = ProxySession(id="s", named=False, seen=0.0, tools=True, system=True)
    assert _kind(asked(), session=guessed) == MAIN  # it may be another conversation
