# SPDX-License-Identifier: Apache-2.0
"""A turn: one prompt, one answer, and all that training needs to know of how it was made."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from goodbot.api.events import ChannelRef, Event, Message, UserRef
from goodbot.base.sampling import UNFILTERED, Filters

CHOICE = "choice"
"""The kind of an answer that was only shown in a blind question, and chosen or not."""
_ABOVE = 1e-3
"""A log-prob may lie so far above 0 by rounding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One answer worth learning from. Times are seconds since the epoch."""

    id: str
    channel: ChannelRef
    talker: UserRef
    messages: Sequence[Message]
    """The whole prompt as it went to the model, history included."""
    response: str
    version: int
    """The adapter version that wrote it; 0 is the base model."""
    model: str
    """Our base model when it was stored: the one that learns from it."""
    temperature: float
    created_at: float
    prompt_tokens: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """One a token, by the sampler, at `temperature` and filtered; empty where the server gave none."""
    filters: Filters = UNFILTERED
    """What was done to the distribution beside the temperature."""
    lifts: tuple[float, ...] = ()
    """By how many nats `filters` made each token likelier; empty where they did not, or nobody tells."""
    scope: str = "default"
    own: str = ""
    """The scope beside the shared one that it may teach: of a person, a channel or a team; empty: none."""
    kind: str = "main"
    """`main`, `side`: an answer that nobody reads, kept but never trained on or rated, or `CHOICE`."""
    origin: str = "goodbot"
    """`goodbot` for an answer of ours, `captured` for one that another program has given."""
    answered_by: str = ""
    """The model that wrote it, where that is not `version` of ours: the answer is off-policy then."""
    context: tuple[tuple[str, str], ...] = ()
    """Turn and person (`connector:id`) of each earlier exchange in `messages`, oldest first."""
    thought: str = ""
    """What the model thought before it answered: shown only on request, never in a prompt."""
    thought_tokens: int = 0
    """So many of the last `prompt_tokens` are the thought's."""

    def without(self, gone: Callable[[str, str], bool]) -> Turn:
        """Return the turn without those earlier exchanges of which `gone(turn, person)` is true.

        Its tokens are those of another prompt then, and its thought may repeat them: both are dropped.
        """
        kept = [not gone(*exchange) for exchange in self.context]
        if all(kept):
            return self
        start = len(self.messages) - 1 - 2 * len(kept)
        pairs = [self.messages[start + 2 * n : start + 2 * n + 2] for n in range(len(kept))]
        left = [message for pair, keep in zip(pairs, kept, strict=True) if keep for message in pair]
        return replace(
            self,
            messages=[*self.messages[:start], *left, self.messages[-1]],
            context=tuple(c for c, keep in zip(self.context, kept, strict=True) if keep),
            prompt_tokens=(),
            tokens=(),
            logprobs=(),
            lifts=(),
            thought="",
            thought_tokens=0,
        )

    def read_by(self, vocabulary: int) -> Turn:
        """Return the turn as a model of so many token ids (0: not known) can read it: else its words alone.

        One answer with numbers that mean nothing must not end the training of all the others.
        """
        ids, most = (*self.prompt_tokens, *self.tokens), vocabulary or math.inf
        sound = all(0 <= one < most for one in ids) and all(map(_logprob, self.logprobs))
        return self if sound and all(map(math.isfinite, self.lifts)) else self.in_words()

    def in_words(self) -> Turn:
        """Return the turn without the numbers of its tokens: its words are read anew where it is learnt."""
        return replace(self, prompt_tokens=(), tokens=(), logprobs=(), lifts=(), thought_tokens=0)

    @property
    def question(self) -> Message:
        """What was asked: an agent's prompt goes on behind it, with its calls and their results."""
        return self.messages[self._asked_at()]

    def _asked_at(self) -> int:
        """Where the question is: the last message of a user, else the last one."""
        last = len(self.messages) - 1
        return next((n for n in range(last, -1, -1) if self.messages[n]["role"] == "user"), last)

    def without_history(self) -> Turn:
        """Return the turn without all earlier exchanges of its prompt, whoever they were with."""
        start = self._asked_at()
        kept = [message for message in self.messages[:start] if message["role"] == "system"]
        return replace(
            self,
            messages=[*kept, *self.messages[start:]],
            context=(),
            prompt_tokens=(),
            tokens=(),
            logprobs=(),
            lifts=(),
            thought="",
            thought_tokens=0,
        )

    def said(self, which: Callable[[str, str], bool]) -> list[str]:
        """List what was said to us in those earlier exchanges of its prompt, `which(turn, person)`."""
        start = len(self.messages) - 1 - 2 * len(self.context)
        return [
            str(self.messages[start + 2 * n]["content"])
            for n, exchange in enumerate(self.context)
            if which(*exchange)
        ]


def _logprob(value: float) -> bool:
    return math.isfinite(value) and value <= _ABOVE


def turn_id(event: Event) -> str:
    """The id of the turn that an event becomes: the same after a crash and a replay."""
    text = f"{event.user.connector}\0{event.user.account}\0{event.event_id}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def ids(event: Event) -> dict[str, str]:
    """What a log may say of an event: never its text."""
    return {"event_id": event.event_id, "turn": turn_id(event), "connector": event.user.connector}


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnTurn:
    """A turn, and one person's opinion of it as it stands."""

    turn: Turn
    score: float | None = None
    """In [-1, 1]."""
    comments: tuple[str, ...] = ()
    better: str | None = None
    """The answer that they would have liked, the last one they typed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnNote:
    """A line that answers to one person follow, as they are shown it."""

    number: int
    text: str
    used: bool
    """False: they have switched it off."""
    edited: bool
    """The words are their own."""
    ratings: int
    """How many ratings it rests on."""
    shared: bool
    """It holds for others, too."""
    learnt: bool = False
    """The version in use has learnt it: no prompt has it."""
