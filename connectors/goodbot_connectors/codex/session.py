# SPDX-License-Identifier: Apache-2.0
"""What is known of one session of Codex: what was said, and which answer a rating means now. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from goodbot.api.events import Message
from goodbot.base.redact import redact

from goodbot_connectors.kit.fields import as_json, string, strings

MOST_MESSAGES = 24
LONGEST = 48_000
"""Characters of what was said before a prompt; older words go first."""
_MOST_CAPTURED = 40
RUNNING = "This answer is still being written: rate it when it is there."
STOPPED = (
    "The last answer was not seen to its end: it was stopped, or goodbot was not running. There is nothing "
    "to rate; the next answer can be rated."
)
NONE = (
    "No answer of this conversation is known here yet: the next one can be rated (after going back in it, "
    "too)."
)
NO_UNDO = "There is no rating in this session that could be taken back."


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """Of one main thread of Codex, by its hooks (or, where they do not run, by `notify`)."""

    at: float = 0.0
    """When it was used last, in seconds since the epoch."""
    turn: str = ""
    """Codex' id of the newest turn that has begun."""
    running: bool = False
    """Whether its answer has not been seen."""
    prompts: tuple[str, ...] = ()
    """What was said within that turn: more than one where somebody wrote on meanwhile."""
    before: tuple[tuple[str, str], ...] = ()
    """Role and text of what was said before that turn, oldest first."""
    answer: str = ""
    """Our id of the last answer."""
    rated: str = ""
    """Our id of the answer that was rated last."""
    captured: tuple[tuple[str, str], ...] = ()
    """Turns of Codex that are stored, each with a hash of its answer; the newest."""
    heard: int = 0
    """How many of the thread's own messages were accounted for, where `notify` told of them."""

    def begin(self, turn: str, prompt: str) -> Session:
        """Somebody wrote a prompt."""
        prompt = redact(prompt)
        if turn == self.turn:
            return replace(self, running=True, prompts=(*self.prompts, prompt))
        unanswered = [("user", text) for text in self.prompts] if self.running else []
        return replace(
            self, turn=turn, running=True, prompts=(prompt,), before=_bounded((*self.before, *unanswered))
        )

    def lost(self, turn: str = "") -> Session:
        """Something was said that we have not heard of: no answer that we know is the last one."""
        return replace(self, turn=turn or self.turn, running=True, prompts=())

    def reopened(self) -> Session:
        """Before its last answer: the agent went on in the same turn, and answers anew."""
        before = self.before[:-1] if self.before and self.before[-1][0] == "assistant" else self.before
        return replace(self, before=before, prompts=())

    def messages(self) -> tuple[Message, ...]:
        """The prompt of the turn that runs: what was said before it, and in it."""
        said = (*self.before, *(("user", text) for text in self.prompts))
        return tuple({"role": role, "content": text} for role, text in said)

    def end(self, turn: str, response: str, answer: str) -> Session:
        """The answer of that turn is stored as `answer`."""
        prompts = [("user", text) for text in self.prompts]
        return replace(
            self,
            turn=turn,
            running=False,
            prompts=(),
            answer=answer,
            before=_bounded((*self.before, *prompts, ("assistant", redact(response)))),
            captured=((*self.captured, (turn, digest(response)))[-_MOST_CAPTURED:]),
        )

    def seen(self, turn: str) -> str:
        """The hash of a turn's stored answer, the newest; empty if none is."""
        return next((hash_ for id_, hash_ in reversed(self.captured) if id_ == turn), "")

    def event(self, turn: str, response: str) -> str:
        """The id of an answer: its turn's; where that has had other words before, with theirs."""
        first = next((hash_ for id_, hash_ in self.captured if id_ == turn), "")
        return turn if first in ("", digest(response)) else f"{turn}:{digest(response)}"

    def wrong(self, turn: str) -> str:
        """Why nothing can be rated in a prompt of this turn, as a sentence; empty if something can."""
        if self.turn and turn == self.turn:
            return RUNNING  # it was typed while the agent was at work, whatever has been said since
        if self.running:
            return STOPPED
        return "" if self.answer else NONE


def digest(text: str) -> str:
    """A short hash of words, whatever white space is around them."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()[:12]


def dump(session: Session) -> str:
    return json.dumps(asdict(session), separators=(",", ":"), ensure_ascii=False)


def load(text: str) -> Session:
    """What `dump` has written; what is not understood counts as absent."""
    try:
        kept = as_json(json.loads(text or "{}"))
    except ValueError:
        return Session()
    at, heard = kept.get("at"), kept.get("heard")
    return Session(
        at=float(at) if isinstance(at, (int, float)) else 0.0,
        turn=string(kept, "turn"),
        running=kept.get("running") is True,
        prompts=tuple(strings(kept, "prompts")),
        before=_pairs(kept.get("before")),
        answer=string(kept, "answer"),
        rated=string(kept, "rated"),
        captured=_pairs(kept.get("captured")),
        heard=heard if isinstance(heard, int) else 0,
    )


def _pairs(value: Any) -> tuple[tuple[str, str], ...]:
    pairs = cast("list[list[Any]]", value) if isinstance(value, list) else []
    return tuple((str(one[0]), str(one[1])) for one in pairs if len(one) == 2)


def _bounded(said: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The newest of it; it never begins with an answer whose question is gone."""
    kept: list[tuple[str, str]] = []
    left = LONGEST
    for role, text in reversed(said[-MOST_MESSAGES:]):
        left -= len(text)
        if left < 0:
            break
        kept.append((role, text))
    while kept and kept[-1][0] != "user":
        kept.pop()
    return tuple(reversed(kept))
