# SPDX-License-Identifier: Apache-2.0
"""What the model is shown: the conversation so far, as much as fits, and the question. Pure.

The core has no tokenizer, so what something costs is estimated from what the sampler has counted.
An answer of ours costs exactly the tokens that it was sampled as. For words of people there are two
figures. `history_tokens` is filled by a likely one: the densest prompt of the same conversation tells
how many tokens a byte is. The model's context is filled by one that no vocabulary exceeds, a token a
byte, so that earlier exchanges never overflow it. Only a question that has no room by that figure may:
it is asked alone, and refused if by the likely one it does not fit either. (Random characters can be
denser than that; the end of such a question is then read badly.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api.actions import Hint
from goodbot.api.completions import without_form
from goodbot.api.events import Message
from goodbot.api.model_shape import Architecture
from goodbot.api.noted import joined
from goodbot.api.sentences import Reason, because, clause, words
from goodbot.api.turns import Turn
from goodbot.base.errors import GoodbotError
from goodbot.config import ServingConfig
from goodbot.store.turns import PastExchange

_DENSITY = 0.5
"""Tokens a byte of UTF-8, at least: more than usual vocabularies need for words in any script."""
_USUAL = 30_000
"""Entries of a vocabulary; one that is smaller may need a token a byte."""
_MESSAGE, _TEMPLATE = 8, 64
"""Tokens that a chat template puts around one message, and before all of them, at most."""


class TooLongError(GoodbotError):
    """What is to be answered does not fit into the model's context."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(clause(words(reason), small=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One prompt, and whose earlier exchanges are in it (as `Turn.context`)."""

    messages: Sequence[Message]
    context: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """How many tokens there are. `context` 0: the model does not say."""

    context: int = 0
    answer: int = 512
    """The longest answer."""
    history: int = 2048
    """For earlier exchanges, at most."""
    density: float = _DENSITY
    """Tokens a byte of UTF-8 where nothing was counted."""

    @classmethod
    def of(cls, shape: Architecture | None, config: ServingConfig) -> Room:
        """Of a model, as far as its own config tells."""
        return cls(
            context=shape.context if shape else 0,
            answer=config.max_tokens,
            history=config.history_tokens,
            density=1.0 if shape and shape.vocabulary < _USUAL else _DENSITY,
        )

    @property
    def prompt(self) -> float:
        """For the whole prompt. Of a small context an answer gets half: the question comes first."""
        if not self.context:
            return math.inf
        return self.context - min(self.answer, self.context // 2) - _TEMPLATE


def compose(
    system: str, earlier: Sequence[PastExchange], text: str, room: Room, *, notes: str = ""
) -> Prompt:
    """The prompt that asks `text` after as many of the earlier exchanges (oldest first) as fit.

    `notes` is one more line of the system's, which gives way first. Raises TooLongError when not even the
    question fits.
    """
    density = max([room.density, *(_density(exchange) for exchange in earlier)])
    if notes and sum(map(_most, (text, whole := joined(system, notes)))) <= room.prompt:
        system = whole
    asked = [text, system] if system else [text]
    if (over := sum(_likely(one, density) for one in asked) - room.prompt) > 0:
        part = 1 - over / max(1, _likely(text, density) - _MESSAGE)
        raise TooLongError(because("no_room", most=max(10, int(len(text) * part) // 10 * 10)))
    likely, most = room.history, room.prompt - sum(map(_most, asked))
    shown: list[PastExchange] = []
    for exchange in reversed(earlier):
        answer = exchange.answer_tokens + _MESSAGE if exchange.answer_tokens else 0
        likely -= _likely(exchange.question, density) + (answer or _likely(exchange.answer, density))
        counted = exchange.prompt_tokens or math.inf  # the question was in that prompt
        most -= min(_most(exchange.question), counted) + (answer or _most(exchange.answer))
        if likely < 0 or most < 0:
            break
        shown.insert(0, exchange)
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    for exchange in shown:
        messages += [
            {"role": "user", "content": exchange.question},
            {"role": "assistant", "content": exchange.answer},
        ]
    return Prompt(
        messages=[*messages, {"role": "user", "content": text}],
        context=tuple((exchange.turn, exchange.talker) for exchange in shown),
    )


def again(earlier: Turn, hint: Hint, room: Room, system: str, *, notes: str = "") -> Prompt:
    """The prompt for another answer: that of the earlier one, it, and what was wrong with it.

    The system says what it says now: what was asked of answers may have been taken back since. The notes
    give way where it does not fit, then the oldest exchanges. Raises TooLongError when that is not enough.
    """
    talker = f"{earlier.talker.connector}:{earlier.talker.id}"
    before = "".join(str(one["content"]) for one in earlier.messages if one["role"] == "system")
    now = joined(system, notes)
    if now != system and _asked(earlier) + _most(hint.told) + _longer(now, before) > room.prompt:
        now = system
    while _asked(earlier) + _most(hint.told) + _longer(now, before) > room.prompt:
        if not earlier.context:
            raise TooLongError(because("no_room_again"))
        oldest = earlier.context[0]
        earlier = earlier.without(lambda id_, who, oldest=oldest: (id_, who) == oldest)
    said: list[Message] = [{"role": "system", "content": now}] if now else []
    return Prompt(
        messages=[
            *said,
            *(one for one in without_form(earlier.messages)[0] if one["role"] != "system"),
            {"role": "assistant", "content": earlier.response},
            {"role": "user", "content": hint.told},
        ],
        context=(*earlier.context, (earlier.id, talker)),
    )


def _asked(earlier: Turn) -> int:
    """Tokens of a prompt and its answer, at most."""
    sizes = (_most(str(message["content"])) for message in earlier.messages)
    asked = len(earlier.prompt_tokens) - earlier.thought_tokens or sum(sizes)
    return asked + (len(earlier.tokens) + _MESSAGE if earlier.tokens else _most(earlier.response))


def _longer(now: str, before: str) -> int:
    """Tokens that the system's words take more than they did, at most."""
    return max(0, _most(now) - (_most(before) if before else 0)) if now else 0


def _density(exchange: PastExchange) -> float:
    """Tokens a byte of the prompt that an earlier answer was given to, as the sampler counted."""
    if not exchange.prompt_tokens or not exchange.prompt_bytes:
        return 0.0
    words = exchange.prompt_tokens - _MESSAGE * exchange.prompt_messages
    return min(1.0, words / exchange.prompt_bytes)


def _likely(text: str, density: float) -> int:
    return math.ceil(len(text.encode()) * density) + _MESSAGE


def _most(text: str) -> int:
    return len(text.encode()) + _MESSAGE
