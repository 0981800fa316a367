# SPDX-License-Identifier: Apache-2.0
"""Reading requests and answers that may hold anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from goodbot.api.completions import with_tools, without_tools
from goodbot_connectors.api.proxy.dialects import chat, completions, messages, responses, shapes
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, ResponseReader, ToolCall
from goodbot_connectors.api.proxy.listening import ResponseTap
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.connectors.api.proxy import upstream

READ: list[Callable[[Mapping[str, Any]], ChatRequest]] = [
    chat.asked,
    completions.asked,
    responses.asked,
    messages.asked,
]
ANSWERS: list[tuple[Callable[[], ResponseReader], Any]] = [
    (chat.ChatAnswer, upstream.chat),
    (completions.CompletionAnswer, upstream.completions),
    (responses.ResponseAnswer, upstream.responses),
    (messages.MessageAnswer, upstream.messages),
]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_chat_is_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    found = chat.asked(
        {
            "model": "m",
            "temperature": 0,
            "max_tokens": 7,
            "max_completion_tokens": 9,
            "stop": "x",
            "messages": [
                {"role": "developer", "content": "A"},
                {"role": "system", "content": "B"},
                {"role": "user", "content": [{"type": "text", "text": "see "}, IMAGE, {"text": "it"}]},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "3"}]},
            ],
        }
    )
    assert found.messages == [
        {"role": "system", "content": "A\n\nB"},
        {"role": "user", "content": "see it\n\n[Attached, and not visible to you: an image]"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
    ]
    assert (found.temperature, found.max_tokens, found.stops) == (0.0, 9, ("x",))


def test_messages_are_read() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "3"}]}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    found = messages.asked(
        {
            "model": "m",
            "system": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}],
            "messages": [
                {"role": "user", "content": "add"},
                {"role": "assistant", "content": [thought, {"type": "text", "text": "Sure."}, use]},
                {"role": "user", "content": [result, {"type": "text", "text": "and now?"}]},
            ],
            "tools": [
                {"name": "add", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
        }
    )
    assert [one["role"] for one in found.messages] == ["system", "user", "assistant", "tool", "user"]
    assert found.messages[2]["content"] == "Sure."
    assert found.messages[2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert found.messages[3] == {"role": "tool", "content": "3", "tool_call_id": "t1"}
    assert [one["function"]["name"] for one in found.tools] == ["add"]


def test_responses_are_read() -> None:
    found = responses.asked(
        {
            "model": "m",
            "instructions": "Be kind.",
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "D"}]},
                {"role": "user", "content": "add"},
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Sure."}],
                },
                {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** x"},
                {"type": "function_call_output", "call_id": "c1", "output": "3"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
            ],
            "tools": [
                {"type": "function", "name": "add", "parameters": {}},
                {"type": "web_search"},
                {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
            ],
        }
    )
    assert found.messages[0] == {"role": "system", "content": "Be kind.\n\nD"}
    assert [one["role"] for one in found.messages] == ["system", "user", "assistant", "tool", "tool"]
    calls = found.messages[2]["tool_calls"]
    assert [one["function"]["arguments"] for one in calls] == ["{}", '{"input": "*** x"}']
    assert found.messages[2]["content"] == "Sure."
    assert (found.custom, len(found.tools)) == ({"apply_patch"}, 2)
    assert found.whole
    assert not responses.asked({"input": "x", "previous_response_id": "r"}).whole


def test_the_words_before_many_calls_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each of 80,000 calls, one request stopped everything for 40 minutes."""
    looked = list[str]()
    split = shapes.split

    def counted(text: str, **more: Any) -> tuple[str, str]:
        looked.append(text)
        return split(text, **more)

    monkeypatch.setattr(shapes, "split", counted)
    said = {"role": "assistant", "content": "<think>Hm.</think>Sure, <b>all</b>."}
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "f"} for n in range(50)]
    [first, second] = responses.asked(
        {"input": [said, *calls, {"type": "function_call_output", "output": "1"}, *calls]}
    ).messages[::2]
    assert (first["content"], second["content"]) == ("Sure, <b>all</b>.", "")
    for message in (first, second):
        assert [one["id"] for one in message["tool_calls"]] == [one["call_id"] for one in calls]
    assert [text for text in looked if text] == [said["content"]]


def test_a_stream_whose_end_does_not_repeat_it_is_read_from_its_items() -> None:
    answer = responses.ResponseAnswer()
    for event in upstream.responses({"model": "m"}, ["Hi"], False)[0]:
        data = json.loads(event.split(b"data: ")[1])
        if data["type"] == "response.completed":
            data["response"]["output"] = []
        answer.event(data)
    assert answer.said() == ChatResponse(text="Hi", finish="completed", model="m")


@pytest.mark.parametrize(("make", "sent"), ANSWERS)
@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_answers_are_read_however_they_are_cut(
    make: Callable[[], ResponseReader], sent: Any, tools: bool, size: int
) -> None:
    asked = {"model": "m", "tools": [1]} if tools else {"model": "m"}
    events, whole = sent(asked, ["Good ", "dogs ☂"], False)
    once = ResponseTap(make(), stream=False)
    once.feed(json.dumps(whole).encode())
    data, listener = b"".join(events), ResponseTap(make(), stream=True)
    for start in range(0, len(data), size):
        listener.feed(data[start : start + size])
    streamed = listener.end()
    assert streamed.text == once.end().text
    assert streamed.finish == once.said().finish != ""
    expected = [("add", {"a": 1, "b": 2})] if tools and make is not completions.CompletionAnswer else []
    assert [(c.name, json.loads(c.arguments)) for c in streamed.calls] == expected
    half = ResponseTap(make(), stream=True)
    half.feed(data[: len(data) // 2])
    assert half.end().finish == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "messages",
                    "input",
                    "tools",
                    "type",
                    "text",
                    "function",
                    "name",
                    "choices",
                    "delta",
                    "index",
                    "tool_calls",
                    "response",
                    "output",
                    "item",
                    "message",
                    "system",
                    "tool_choice",
                    "stop",
                    "prompt",
                    "logprobs",
                    "sglext",
                    "output_ids",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


KEYS = st.sampled_from(
    [
        "messages",
        "input",
        "tools",
        "system",
        "prompt",
        "choices",
        "type",
        "delta",
        "index",
        "response",
        "output",
        "item",
    ]
)


@settings(max_examples=40)
@given(st.dictionaries(KEYS, JSON))
def test_nothing_that_is_json_makes_a_reader_fail(body: dict[str, Any]) -> None:
    for read in READ:
        found = read(body)
        assert all(isinstance(message["content"], str) for message in found.messages)
        json.dumps(with_tools(found.messages, found.tools))
    for make, _ in ANSWERS:
        one = make()
        one.event(body)
        one.whole(body)
        assert isinstance(one.said().response(), str)


def test_calls_are_text_as_the_chat_template_writes_them() -> None:
    from goodbot_training.tiny.chatml import tool_call

    said = ChatResponse(text="", calls=(ToolCall(id="c", name="add", arguments='{"a": "1"}'),), finish="stop")
    assert said.response() == tool_call("add", {"a": "1"})
    two = ChatResponse(text="Hm.", calls=(*said.calls, *said.calls))
    assert two.response(lines=True).split("\n")[:2] == ["Hm.", "<tool_call>"]


def test_tools_travel_with_the_first_message() -> None:
    tools = [{"type": "function", "function": {"name": "add"}}]
    prompt = [{"role": "user", "content": "hi"}]
    carried = with_tools(prompt, tools)
    assert carried == [{"role": "user", "content": "hi", "tools": tools}]
    assert without_tools(carried) == (prompt, tools)
    assert without_tools(prompt) == (prompt, [])
    assert with_tools([], tools)[0]["role"] == "system"


def test_an_event_without_end_is_given_up() -> None:
    listener = ResponseTap(chat.ChatAnswer(), stream=True)
    for _ in range(80):
        listener.feed(b"x" * (64 * 1024))
    listener.feed(b"\n\ndata: {}\n\n")
    assert listener.end().finish == ""
