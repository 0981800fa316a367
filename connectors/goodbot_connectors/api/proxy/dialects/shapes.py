# SPDX-License-Identifier: Apache-2.0
"""A request and an answer, whatever API they came in."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from goodbot.api.events import Message
from goodbot.api.plain import question
from goodbot.base import sampling
from goodbot.base.endings import is_plain
from goodbot.base.thoughts import split

from goodbot_connectors.kit.fields import as_json, string, sub

CALL, CALL_END = "<tool_call>", "</tool_call>"
_TEXTS = ("text", "input_text", "output_text")
_ATTACHED = {
    "image_url": "an image",
    "input_image": "an image",
    "image": "an image",
    "input_audio": "a sound",
    "audio": "a sound",
    "video_url": "a film",
    "file": "a file",
    "input_file": "a file",
    "document": "a file",
}
_LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """The model asks for a tool. `arguments` is the JSON text of an object (a custom tool's is its input)."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatRequest:
    """A request. `messages` are in the OpenAI shape, each `content` a text that says where an image came."""

    model: str
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    """In the shape of chat completions; only those that the program runs itself."""
    custom: frozenset[str] = frozenset()
    """Names of tools that take plain text."""
    stream: bool = False
    max_tokens: int = 0
    temperature: float | None = None
    seed: int | None = None
    stops: Sequence[str] = ()
    filters: Mapping[str, float] = field(default_factory=dict[str, float])
    """Fields of `goodbot.base.sampling.Filters` that it asks for; others are as configured."""
    narrowed: bool = False
    """Drawn through what is no filter of ours (a grammar, other penalties …), or several at once."""
    machine: bool = False
    """The answer is for a program to read: it has to fit a schema."""
    one_call: bool = False
    """At most one tool is to be called in the answer."""
    thinks: bool = False
    """The program wants to see what the model thinks before it answers."""
    whole: bool = True
    """The whole prompt is here. Not so where the server is to remember what came before."""

    @property
    def system(self) -> bool:
        """Whether it begins with a word to the model from the program."""
        return bool(self.messages) and self.messages[0].get("role") == "system"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatResponse:
    """A whole answer. Token ids and log-probs only where our own server told them."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    """The API's own word; empty: it broke off."""
    model: str = ""
    several: bool = False
    """There were more answers than this one."""
    prompt_tokens: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    thought: str = ""
    thought_tokens: int = 0
    """So many of the last `prompt_tokens` are the thought's."""
    lifts: tuple[float, ...] = ()
    """See `goodbot.api.server.Generated`."""

    def response(self, lines: bool = False) -> str:
        """All of it as text, calls as chat templates write them; `lines`: as those do that give each
        part of a call a line of its own (Qwen's), else on one line."""
        gap = "\n" if lines else ""
        parts = [self.text] if self.text or not self.calls else []
        for call in self.calls:
            name = json.dumps(call.name, ensure_ascii=False)
            body = f'{{"name": {name}, "arguments": {call.arguments or "{}"}}}'
            parts.append(f"{CALL}{gap}{body}{gap}{CALL_END}")
        return gap.join(parts)


class ResponseReader(Protocol):
    """Learns what an answer says while it goes by."""

    def event(self, data: Mapping[str, Any]) -> None:
        """One event of a stream."""
        ...

    def whole(self, body: Mapping[str, Any]) -> None:
        """An answer that is not streamed."""
        ...

    def said(self) -> ChatResponse:
        """What is known now."""
        ...


def text_of(content: object) -> str:
    """The words of a message, whose content is a text or a list of parts; what is no text is left out."""
    if isinstance(content, str):
        return content
    return "".join(_words(part) for part in objects(content))


def unthought(text: str) -> str:
    """What an assistant has said, without a thought before it."""
    thought, answer = ("", text) if is_plain(text) else split(text, asked=text)  # tags around it are its own
    return answer if thought else text


def told(content: object) -> str:
    """What a model of words gets of a message: its words, and what came with it, as chats say that."""
    return question(text_of(content), attached(content)).lstrip("\n")


def attached(content: object) -> list[str]:
    """What came with a message and is no text: its name, or what it is."""
    return [name for part in objects(content) if (name := _attachment(part))]


def _words(part: Mapping[str, Any]) -> str:
    kind = part.get("type", "text")
    if kind in _TEXTS:
        return string(part, "text")
    if kind == "document" and string(sub(part, "source"), "type") in ("text", "content"):
        source = sub(part, "source")
        return string(source, "data") or text_of(source.get("content"))
    return string(part, "refusal")


def _attachment(part: Mapping[str, Any]) -> str:
    kind = string(part, "type")
    if kind not in _ATTACHED or _words(part):
        return ""
    name = string(part, "filename") or string(part, "title") or string(sub(part, "file"), "filename")
    name = " ".join(name.replace("[", "(").replace("]", ")").split())
    return name[:_LONGEST_NAME] or _ATTACHED[kind]


def objects(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects of a list."""
    if isinstance(value, list):
        for one in cast("list[object]", value):
            if isinstance(one, dict):
                yield cast("Mapping[str, Any]", one)


def called(id_: str, name: str, arguments: str) -> dict[str, Any]:
    """A call as it stands in a message of the assistant."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def function(name: str, description: str, parameters: object) -> dict[str, Any]:
    """The declaration of a tool."""
    about = {"description": description} if description else {}
    return {
        "type": "function",
        "function": {
            "name": name,
            **about,
            "parameters": as_json(parameters) or {"type": "object", "properties": {}},
        },
    }


def assistant(text: str, calls: Sequence[Mapping[str, Any]]) -> Message:
    """A message of the assistant, without what it thought first: that is no part of any history."""
    return {"role": "assistant", "content": unthought(text), **({"tool_calls": list(calls)} if calls else {})}


def together(messages: Sequence[Message]) -> list[Message]:
    """The same with all that the program says at the beginning in one message, as templates want it."""
    first: list[str] = []
    for message in messages:
        if message["role"] != "system":
            break
        first.append(str(message["content"]))
    rest = list(messages[len(first) :])
    joined = "\n\n".join(text for text in first if text)
    return [{"role": "system", "content": joined}, *rest] if joined else rest


def number(body: Mapping[str, Any], name: str) -> float | None:
    """A number, if it is one."""
    value = body.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def count(body: Mapping[str, Any], *names: str) -> int:
    """The first of these that is a whole number above 0, at most a million; else 0."""
    for name in names:
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return min(value, 1_000_000)
    return 0


def seed(body: Mapping[str, Any]) -> int | None:
    """The dice that were asked for."""
    value = body.get("seed")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def stops(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Where an answer is to end: one text or several."""
    value = body.get(name)
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list):
        found = cast("list[object]", value)
        return tuple(one for one in found if isinstance(one, str) and one)
    return ()


def filters(body: Mapping[str, Any]) -> dict[str, float]:
    """What a request says of how its answer is filtered; what no filter can be is left out."""
    found: dict[str, float] = {}
    for name in sampling.FILTERS:
        if body.get(name) is not None:
            with contextlib.suppress(ValueError):
                found[name] = sampling.checked(name, body[name])
    return found


def wants_thought(body: Mapping[str, Any]) -> bool:
    """Whether a request asks, in any API's way, that the model think and that this be seen."""
    template = sub(body, "chat_template_kwargs")
    return (
        string(body, "reasoning_effort") not in ("", "none")
        or string(sub(body, "thinking"), "type") in ("enabled", "adaptive")
        or (bool(sub(body, "reasoning")) and sub(body, "reasoning").get("effort") != "none")
        or any(one is True for one in (body.get("include_reasoning"), body.get("thinking")))
        or any(template.get(name) is True for name in ("enable_thinking", "thinking"))
    )


def is_narrowed(body: Mapping[str, Any]) -> bool:
    """Whether the answer is drawn in a way that these fields say, and that is no filter of ours."""
    return bool(narrowing(body))


def narrowing(body: Mapping[str, Any]) -> str:
    """The first field that says so; empty for none."""
    return next((name for name, off in _WHOLE.items() if body.get(name) not in (None, off, [], {})), "")


def is_formed(body: Mapping[str, Any]) -> bool:
    """Whether the answer is held to a form, which its first token belongs to."""
    named = [(body.get(name), off) for name, off in _WHOLE.items() if name.startswith(_FORMS)]
    return any(said not in (None, off, [], {}) for said, off in named)


_FORMS = ("response_format", "structured_outputs", "guided_")
_WHOLE: Mapping[str, object] = {
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": None,
    "n": 1,
    "best_of": 1,
    "min_tokens": 0,
    "response_format": {"type": "text"},
    "guided_json": None,
    "guided_regex": None,
    "guided_choice": None,
    "guided_grammar": None,
    "structured_outputs": None,
    "bad_words": None,
    "use_beam_search": False,
}
"""Fields that narrow it, and their values that do not."""
