# SPDX-License-Identifier: Apache-2.0
"""What answers of model servers hold: the whole, its thought apart from its text, and their odd fields.

A thought comes in a field of its own or within the text. The fields: `reasoning_content` (DeepSeek,
SGLang, llama.cpp, vLLM), `reasoning` (vLLM since 0.11, mlx_lm, OpenRouter), `thinking` (Ollama), and
content in parts (Mistral).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from goodbot.api.manners import Manners
from goodbot.api.server import Generated
from goodbot.base.endings import tidy
from goodbot.base.sampling import Filters
from goodbot.base.thoughts import Splitter, Thought, ThoughtTags, orphan, split

FIELDS = ("reasoning_content", "reasoning", "thinking")
BROKEN_OFF = ("abort", "error")
"""What servers give as the reason of an end that is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """A whole answer. `logprobs` are the server's, one for each of `tokens`, or both are empty."""

    text: str
    finish: str
    prompt_tokens: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    first: Mapping[str, float] = field(default_factory=dict[str, float])
    """The likeliest first tokens by their text, where they were asked for (`top_logprobs`)."""
    thought: str = ""
    thought_tokens: int = 0
    """So many of the last `prompt_tokens` are the thought's."""
    manners: Manners = field(default_factory=Manners)
    """What its request was asked with."""

    def by(self, version: int, filters: Filters, *, own: bool = False) -> Generated:
        """Make the answer of a version out of this.

        Args:
            version: The adapter version that wrote it; 0 is the base model.
            filters: What the request asked to do to the distribution.
            own: Whether the log-probs are of the distribution before those filters.

        Returns:
            The whole answer, with what the server did in place of what was asked.
        """
        filters = self.manners.left(filters)
        return Generated(
            text=self.text,
            version=version,
            finish=self.finish,
            prompt_tokens=self.prompt_tokens,
            tokens=self.tokens,
            logprobs=self.logprobs,
            thought=self.thought,
            thought_tokens=self.thought_tokens,
            filters=filters,
            lifts=(0.0,) * len(self.logprobs) if own and filters else (),
            form=self.manners.form,
            temperature=self.manners.temperature,
        )


Part = str | Thought | Completion
"""What an answer comes as; the last one is the whole."""


class Reader:
    """Takes the messages of one answer, and tells thought from text."""

    def __init__(self, asked: object, opened: ThoughtTags | None = None) -> None:
        """`asked`: the messages that are answered; `opened`: the thought that the prompt has begun."""
        self._asked = asked
        self._splitter = Splitter(opened=opened, asked=asked)
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
            thought, text = split(text, asked=self._asked)
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
        if known.get("type") in (kind, f"output_{kind}"):
            inner = known.get(kind)
            found.append(_string(inner) or _parts(inner, "text"))
    return "".join(found)


def is_failure(chunk: Mapping[str, Any]) -> bool:
    """Whether a server says in the middle of an answer that it has failed; vLLM did so without `error`."""
    return bool(chunk.get("error")) or chunk.get("object") == "error"


def tops(entries: object) -> dict[str, float]:
    """`top_logprobs` of one place: log-prob by text; of two tokens with one text the likelier."""
    found: dict[str, float] = {}
    for entry in map(as_object, as_list(entries)):
        text, logprob = entry.get("token"), number(entry.get("logprob"))
        if isinstance(text, str) and math.isfinite(logprob):
            found[text] = max(logprob, found.get(text, -math.inf))
    return found


def number(value: object) -> float:
    """A finite number that JSON held, else NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if abs(value) < 1e9 else math.nan


def ids(value: object) -> tuple[int, ...]:
    """A list of token ids, empty for anything else. They are stored in 32 bits."""
    found = as_list(value)
    return tuple(found) if all(type(n) is int and 0 <= n < 1 << 31 for n in found) else ()


def as_object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
