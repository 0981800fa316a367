# SPDX-License-Identifier: Apache-2.0
"""The data sets of Hugging Face's TRL, in their conversational format.

https://huggingface.co/docs/trl/dataset_formats: unpaired preference for KTO, preference with a prompt of its
own for DPO, language modeling for SFT. Tools go along as `tools`, where the prompt had any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from goodbot.api.completions import without_tools
from goodbot.api.events import Message
from goodbot.api.export import ExportedAnswer, Line

_KEPT = ("role", "content", "name", "tool_calls", "tool_call_id")
"""Of a message: what chat templates know."""


def kto(answer: ExportedAnswer) -> Iterator[Line]:
    """An answer that most find good or bad; of a tie nobody knows."""
    if answer.score and answer.record["answer"]:
        prompt, tools = _prompt(answer.record["messages"])
        yield {
            "prompt": prompt,
            "completion": _said(answer.record["answer"]),
            "label": answer.score > 0,
            **tools,
        }


def dpo(answer: ExportedAnswer) -> Iterator[Line]:
    """Each pair of answers of which somebody preferred one."""
    for pair in answer.pairs:
        if pair.preferred and pair.other:
            prompt, tools = _prompt(pair.messages)
            yield {"prompt": prompt, "chosen": _said(pair.preferred), "rejected": _said(pair.other), **tools}


def sft(answer: ExportedAnswer) -> Iterator[Line]:
    """A conversation that ends with an answer that most find good."""
    if (answer.score or 0) > 0 and answer.record["answer"]:
        prompt, tools = _prompt(answer.record["messages"])
        yield {"messages": [*prompt, *_said(answer.record["answer"])], **tools}


def _said(text: str) -> list[Message]:
    return [{"role": "assistant", "content": text}]


def _prompt(messages: Sequence[Message]) -> tuple[list[Message], dict[str, Any]]:
    plain, tools = without_tools(messages)
    kept = [{key: message[key] for key in _KEPT if message.get(key) is not None} for message in plain]
    return kept, {"tools": tools} if tools else {}
