"""A turn: one prompt, one answer of ours, and all that training needs to know of how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.events import ChannelRef, Message, UserRef


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
    temperature: float
    created_at: float
    prompt_tokens: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """One a token, by the sampler, at `temperature`; empty where the server gave none."""
    scope: str = "default"
    kind: str = "main"
    origin: str = "goodbot"
