# SPDX-License-Identifier: Apache-2.0
"""What came after an answer: the next message of the same person, or the results of its tools. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.completions import without_tools
from goodbot.api.events import Message
from goodbot.api.judge import JudgeCase
from goodbot.api.turns import Turn

_TAIL = 4
"""Messages before an answer that a later prompt must repeat, where it goes on from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NextState:
    """It is what the prompt of the later answer `turn` ends with."""

    turn: str
    texts: tuple[str, ...]
    by_tool: bool
    at: float
    """When it came, in seconds since the epoch."""

    def case(self, turn: Turn) -> JudgeCase:
        """With the answer that it came after."""
        return JudgeCase(
            request=str(turn.question.get("content") or ""),
            answer=turn.response,
            next=self.texts,
            by_tool=self.by_tool,
        )


def next_state(turn: Turn, later: Sequence[Turn], seconds: float) -> NextState | None:
    """What came after an answer within `seconds`, by the next answers of the same person in that place.

    `later` are in the order in which they came. Their times are by a clock that may have been set meanwhile:
    whoever knows that less has passed gives no limit.

    In our own chats that is the next message. A program that brings in whole transcripts may have several
    going on in one place: there the next prompt counts that repeats the answer and what it was given to.
    """
    for one in later:
        if one.created_at - turn.created_at > seconds:
            break
        if turn.origin != "captured":
            return NextState(
                turn=one.id, texts=(str(one.question.get("content") or ""),), by_tool=False, at=one.created_at
            )
        if (rest := _went_on(turn, one)) is not None:
            results = tuple(str(said["content"]) for said in rest if said["role"] == "tool")
            return NextState(
                turn=one.id,
                texts=results or tuple(str(said["content"]) for said in rest),
                by_tool=bool(results),
                at=one.created_at,
            )
    return None


def _went_on(turn: Turn, one: Turn) -> list[Message] | None:
    """What stands behind the answer in a later prompt, where that is the last answer in it."""
    asked, goes = _said(turn), _said(one)
    answers = [n for n, message in enumerate(goes) if message["role"] == "assistant"]
    if not answers or answers[-1] == len(goes) - 1:
        return None
    before, answer = goes[: answers[-1]], _bare(goes[answers[-1]]["content"])
    tail = min(_TAIL, len(before), len(asked))
    same = tail > 0 and _words(before[-tail:]) == _words(asked[-tail:])
    # The answer's tool calls stand behind its words, in the form of a model's template.
    return goes[answers[-1] + 1 :] if same and _bare(turn.response).startswith(answer) else None


def _said(turn: Turn) -> list[Message]:
    """Without what the program itself says, which may be another in each request, like a clock."""
    return [message for message in without_tools(turn.messages)[0] if message["role"] != "system"]


def _words(messages: Sequence[Message]) -> list[tuple[Any, str]]:
    return [(message["role"], _bare(message["content"])) for message in messages]


def _bare(content: object) -> str:
    return "".join(str(content).split())
