# SPDX-License-Identifier: Apache-2.0
"""What connectors tell the core, and what the core answers: frozen values, no behaviour.

Identity is always the platform's own stable id within one connector account, never a display name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from goodbot.api.sentences import Reason, words
from goodbot.base.sampling import UNFILTERED, Filters

Message = dict[str, Any]
"""One chat message in the OpenAI shape: `{"role": "user", "content": "..."}`."""


class OrderKey(NamedTuple):
    """When the platform says that something happened, comparable within one connector account."""

    time_ms: int
    """Milliseconds since the epoch, by the platform's clock."""
    tiebreak: str = ""
    """The platform's own sequence, zero-padded so that text order is its order."""
    ours: bool = False
    """It is this machine's or a page's time, which says nothing beside a platform's: a rating then
    counts after all that its rater has said of the answer before it came in."""


class ChannelKind(StrEnum):
    """Who can read a channel."""

    PRIVATE = "private"
    SHARED = "shared"
    ENCRYPTED = "encrypted"


@dataclass(frozen=True, kw_only=True, slots=True)
class UserRef:
    """A person (or a bot) as one connector account knows them."""

    connector: str
    account: str
    id: str
    is_bot: bool = False
    name: str = field(default="", compare=False)
    """For display only; never part of a decision."""
    language: str = field(default="", compare=False)
    """What they read, as the platform tells it (`pt-BR`), where it does."""
    speaks_for: str = field(default="", compare=False)
    """Of a program with many people behind it: for whom it speaks now, by its own name for them. What one
    person may say in a day is counted for each. It is not stored and decides nothing else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelRef:
    """Where a conversation happens; `thread` narrows it to a thread or topic."""

    connector: str
    account: str
    id: str
    kind: ChannelKind
    thread: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageRef:
    """One message on the platform. Ids are unique within (connector, account, channel id)."""

    channel: ChannelRef
    id: str


class RatingKind(StrEnum):
    """What a rating event does to the ledger."""

    RATE = "rate"
    RETRACT = "retract"
    COMMENT = "comment"
    BETTER = "better"
    OUTCOME = "outcome"
    JUDGE = "judge"


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Common part of all events. `event_id` is unique within (connector, account) for ever."""

    event_id: str
    order: OrderKey
    user: UserRef
    channel: ChannelRef
    digest: str = ""
    """Of what the client sent, where it chooses the `event_id` itself: the same id with another digest
    is refused (`Outcome.CONFLICT`)."""

    def receipt(
        self, outcome: Outcome, *reasons: Reason | None, turn: str = "", offer: tuple[Button, ...] = ()
    ) -> Receipt:
        """Answer this event.

        Args:
            outcome: What became of it.
            reasons: Why, as codes; their words become the text, in the person's language.
            turn: The turn that it is about.
            offer: Buttons that the person may press next.

        Returns:
            The receipt, not stored yet.
        """
        given = tuple(filter(None, reasons))
        return Receipt(
            event_id=self.event_id,
            outcome=outcome,
            text=self.say(*given),
            language=self.user.language,
            reasons=given,
            turn=turn,
            offer=offer,
        )

    def say(self, *reasons: Reason | None) -> str:
        """Put reasons into sentences for the person whose event it is."""
        return words(*reasons, language=self.user.language)


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageEvent(Event):
    """Somebody wrote something. `addressed`: a private chat, a mention or a reply to us."""

    text: str
    message_id: str
    addressed: bool
    reply_to: str = ""
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RatingEvent(Event):
    """Somebody rated one answer, or took that back.

    The answer is named by `message_id` (any of the messages that it was sent as) or by `turn`.
    A RETRACT names what it takes back: the event (`retracts`), else the `source`; with
    neither it takes back all that the same person said of the answer until then.
    """

    kind: RatingKind
    message_id: str = ""
    turn: str = ""
    source: str = ""
    """What carried the rating: `reaction:👍`, `button`, `command`. One live rating a source."""
    value: float | None = None
    """-1 (bad) to +1 (good); only with RATE, OUTCOME and JUDGE."""
    retracts: str = ""
    """With RETRACT: the `event_id` of the event that is taken back."""
    text: str = ""
    """A comment or a better answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandEvent(Event):
    """Somebody typed `/rl NAME ARGS`; `reply_to` is the message it answers, if any.

    `message_id` is the command's own message, where the platform has one. `looked`: nobody typed it,
    somebody has opened or pressed a page that shows its answer.
    """

    name: str
    args: str = ""
    reply_to: str = ""
    message_id: str = ""
    looked: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PressEvent(Event):
    """Somebody pressed a button of ours that is no rating: see `goodbot.api.actions`.

    `turn` and `message_id` name the answer under which it stood, if any.
    """

    action: str
    turn: str = ""
    message_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureEvent(Event):
    """An answer that another program has given, as it was: from then on a turn like ours.

    `user` asked for it and needs TALK. `Receipt.turn` is the turn that it became, or, where the same
    `trace` was captured before, that one.
    """

    messages: tuple[Message, ...]
    """The whole prompt, oldest first, in the OpenAI shape, tool calls and their results among them."""
    response: str
    """The answer's text; tool calls in the text form of the model's own chat template."""
    model: str = ""
    """What answered, as the other program calls it; empty: our own base model."""
    version: int | None = None
    """The adapter version of ours that wrote it, 0 for the base model; None: it is not ours, so the
    answer is off-policy."""
    message_id: str = ""
    """Ratings may name it so, within its channel; empty: by its turn alone."""
    trace: str = ""
    """Names the model call across connectors: a second capture of it makes no second turn."""
    kind: str = "main"
    """`main`, or `side` for a call that nobody reads: stored, never trained on, not offered for rating."""
    temperature: float = 1.0
    prompt_tokens: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """One a token, by the server that sampled them; empty where it gave none."""
    thought: str = ""
    """What the model thought before the response. One that the response begins with is split off."""
    thought_tokens: int = 0
    """So many of the last `prompt_tokens` are the thought's."""
    filters: Filters = UNFILTERED
    """What was done to the distribution beside the temperature, see `goodbot.api.server.Generated`."""
    lifts: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Button:
    """One tap. `action` is what comes back; never trusted, always looked up.

    It comes back whole: where a platform's own data is shorter (64 bytes on Telegram), the connector
    keeps a long one and sends a key.
    """

    action: str
    label: str


class Outcome(StrEnum):
    """What became of an event."""

    ACCEPTED = "accepted"
    DENIED = "denied"
    IGNORED = "ignored"
    UNKNOWN_TARGET = "unknown_target"
    FAILED = "failed"
    CONFLICT = "conflict"
    """Its id was used before, for something else (`Event.digest`): nothing was stored."""
    PAIRED = "paired"
    """It was a one-time code: whoever sent it is an owner now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """The durable answer to one event; a replay of the event gets the same one."""

    event_id: str
    outcome: Outcome
    text: str = ""
    """What to tell that person, privately where the platform can; empty: say nothing."""
    language: str = field(default="", compare=False)
    """Of `text`, where it is made of reasons."""
    reasons: tuple[Reason, ...] = ()
    """What `text` is made of, as codes and facts; none of a text that quotes somebody, like a command's."""
    turn: str = ""
    offer: tuple[Button, ...] = ()
    """What that person may press next; shown with `text`, where only they see it."""
    duplicate: bool = field(default=False, compare=False)
    digest: str = field(default="", compare=False)
    """Of the event, if it had one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What goes out. `turn` is set when it is an answer that may be rated."""

    text: str
    turn: str = ""
    reply_to: str = ""
    buttons: tuple[Button, ...] = ()
    silent: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """An answer that somebody may rate, as an inbox shows it (`ConnectorHost.inbox`)."""

    turn: str
    connector: str
    kind: ChannelKind
    """Where it was asked."""
    question: str
    answer: str
    created_at: float
    """Seconds since the epoch."""
    version: int
    """The adapter version that wrote it; 0 is the base model."""
    label: float | None = None
    """The thumb of whoever asks, in [-1, 1]."""
    stars: float | None = None
    """Their stars, in [-1, 1] (`labels.star_value`), beside a thumb or alone."""
