# SPDX-License-Identifier: Apache-2.0
"""What a model on a server of the owner's thinks, apart from what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from goodbot.api.chat_answers import FIELDS, Completion, Reader
from goodbot.api.completions import FarSide
from goodbot.api.marks import opened_by_template
from goodbot.base.thoughts import Thought, options

from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, is_formed
from goodbot_connectors.kit.fields import Json, string, sub

_FIRST = 0


def reader_of(far: FarSide, made: Json, asked: ChatRequest) -> Reader:
    """What reads an answer to `asked`, which that server got as `made`: its template may begin a thought."""
    told = sub(made, "chat_template_kwargs")
    thinking = any(told.get(name) is True for name in options(True))
    if is_formed(made):  # that leaves no room for the end of a thought
        return Reader(asked.messages)
    return Reader(asked.messages, opened_by_template(far.template, thinking=thinking))


def told_apart(reader: Reader, said: ChatResponse) -> ChatResponse:
    """A whole answer that `reader` has read, with its thought apart."""
    read = reader.completed(Completion(text="", finish=said.finish))
    if read.thought:  # which tokens are the thought's is not known: training reads the words
        return replace(said, text=read.text, thought=read.thought, prompt_tokens=(), tokens=(), logprobs=())
    return replace(said, text=read.text or said.text)


class ThoughtEditor:
    """Edits an answer of chat completions: what was thought stands in a field of its own, for who asked."""

    def __init__(self, far: FarSide, made: Json, asked: ChatRequest) -> None:
        """`made` is the request that the server got."""
        self._far, self._made, self._asked = far, made, asked
        self._readers: dict[int, Reader] = {}
        self._ended: set[int] = set()

    def edit(self, choice: dict[str, Any], part: str) -> None:
        """One choice, of which `part` has what was said: `delta` of a chunk, `message` of a whole answer."""
        number = choice.get("index", _FIRST)
        number = number if isinstance(number, int) else _FIRST
        if number not in self._readers:
            self._readers[number] = reader_of(self._far, self._made, self._asked)
        reader, said = self._readers[number], dict(sub(choice, part))
        pieces = reader.delta(said, 0)
        finish = string(choice, "finish_reason")
        if (finish or part == "message") and number not in self._ended:
            self._ended.add(number)
            pieces += reader.end(0, cut=finish == "length")
        thought = "".join(one.text for one in pieces if isinstance(one, Thought))
        text = "".join(one for one in pieces if isinstance(one, str))
        if part == "message":
            read = reader.completed(Completion(text="", finish=finish))
            thought, text = read.thought, read.text
        field = next((name for name in FIELDS if name in said), "reasoning_content")
        for name in FIELDS:
            said.pop(name, None)
        if text or said.get("content") is not None:
            said["content"] = text
        if thought and self._asked.thinks:
            said[field] = thought
        elif thought and "logprobs" in choice:  # they hold its words
            choice["logprobs"] = None
        choice[part] = said

    def said(self, said: ChatResponse) -> ChatResponse:
        """What the first choice says, as it came, with its thought apart."""
        reader = self._readers.get(_FIRST)
        return told_apart(reader, said) if reader else said
