"""The thoughts in what model servers send: in a field of their own, or within the text.

The fields: `reasoning_content` (DeepSeek, SGLang, llama.cpp, vLLM), `reasoning` (vLLM since 0.11, mlx_lm,
OpenRouter), `thinking` (Ollama), and content in parts (Mistral).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from goodbot.api.marks import chat_template
from goodbot.base.thoughts import (
    KNOWN,
    Splitter,
    Thought,
    ThoughtTags,
    opened_by_template,
    orphan,
    split,
    tidy,
)

if TYPE_CHECKING:
    from goodbot.inference.servers.chat import Completion

FIELDS = ("reasoning_content", "reasoning", "thinking")


def opened(model: Path, *, thinking: bool) -> ThoughtTags | None:
    """The thought that the template of our base begins, for a server that has no parser for it."""
    return opened_by_template(chat_template(model), thinking=thinking)


def told(model: Path, *, thinking: bool) -> str:
    """Whether the model in a directory thinks, and who sees it; empty for one that does not, as far as
    its template says."""
    template = chat_template(model)
    if "thinking" in template.replace("<thinking", "").replace("</thinking", ""):
        if not thinking:
            return "the model can think before it answers, and does not: [serving] thinking = false"
    elif not any(one.opens in template for one in KNOWN if one.sure and not one.then):
        return ""
    return "the model thinks before it answers; that is not shown: `/rl thought` tells it to who asked"


class Reader:
    """Takes the messages of one answer, and tells thought from text."""

    def __init__(self, opened: ThoughtTags | None = None) -> None:
        self._splitter = Splitter(opened=opened)
        self._apart: list[str] = []
        self._text: list[str] = []
        self._answer_at: int | None = None
        """Tokens that came before the first of the answer's."""

    def delta(self, message: Mapping[str, Any], tokens: int) -> list[str | Thought]:
        """More of the answer; `tokens` had come before it, -1 where that cannot be told."""
        found: list[str | Thought] = []
        content = message.get("content")
        field = next((one for one in FIELDS if _string(message.get(one))), "")
        thought = _string(message.get(field)) if field else _parts(content, "thinking")
        if thought:
            if self._splitter.thinking:  # the server has a parser: the text is the answer alone
                self._splitter = Splitter()
            self._apart.append(thought)
            found.append(Thought(thought))
        text = content if isinstance(content, str) else _parts(content, "text")
        return found + self._told(self._splitter.feed(text), tokens)

    def end(self, tokens: int, *, cut: bool) -> list[str | Thought]:
        """What was held back."""
        return self._told(self._splitter.end(cut=cut), tokens)

    def completed(self, whole: Completion) -> Completion:
        """The whole answer with its thought apart.

        Tokens stay where it is known which of them are the answer's.
        """
        text = "".join(self._text)
        thought = "".join(self._apart) or tidy(self._splitter.thought)
        at = self._answer_at
        if not thought and orphan(text) is not None:
            thought, text = split(text)
            at = None
        whole = replace(whole, text=text, thought=thought)
        if not thought:
            return whole
        if at is None or not 0 < at < len(whole.tokens):
            return replace(whole, prompt_tokens=(), tokens=(), logprobs=())
        return replace(
            whole,
            prompt_tokens=(*whole.prompt_tokens, *whole.tokens[:at]),
            tokens=whole.tokens[at:],
            logprobs=whole.logprobs[at:],
            thought_tokens=at,
        )

    def _told(self, pieces: list[str | Thought], tokens: int) -> list[str | Thought]:
        told: list[str | Thought] = []
        for piece in pieces:
            if isinstance(piece, str):
                said = piece if self._answer_at is not None or not self._apart else piece.lstrip()
                if self._answer_at is None and said.strip():
                    self._answer_at = tokens
                self._text.append(said)
                told += [said] if said else []
            else:
                told.append(piece)
        return told


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parts(content: object, kind: str) -> str:
    """The words of one kind in a content that is a list of parts."""
    if not isinstance(content, list):
        return ""
    found: list[str] = []
    for part in cast("list[object]", content):
        if not isinstance(part, dict):
            continue
        known = cast("dict[str, object]", part)
        if known.get("type") == kind:
            inner = known.get(kind)
            found.append(_string(inner) or _parts(inner, "text"))
    return "".join(found)
