# SPDX-License-Identifier: Apache-2.0
"""Answers that other programs have given: what of one can be stored, and the turn that it becomes. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from goodbot.api.events import CaptureEvent, Message
from goodbot.api.plain import PROGRAM, is_wordless
from goodbot.api.sentences import Reason, because
from goodbot.api.turns import Turn, turn_id
from goodbot.base.redact import redact
from goodbot.base.text import clean
from goodbot.base.thoughts import split

LONGEST = 8 * 1024 * 1024
"""Characters of a prompt and its answer together: more than any model reads."""
TRAINS = 256 * 1024
"""Characters of an answer with its prompt that may train, and as many tokens: about 64,000 of most models."""
_MESSAGES = 20_000
_DEEPEST = 160
_KINDS = ("main", "side")
_INT32 = 2**31
_NOT_SHOWN = {"image_url": "[image]", "input_image": "[image]", "image": "[image]"}


def unfit(event: CaptureEvent) -> Reason | None:
    """Why a capture cannot be stored; None if it can."""
    if event.kind not in _KINDS:
        return because("capture_kind")
    if not event.messages or len(event.messages) > _MESSAGES:
        return because("capture_messages", most=_MESSAGES)
    numbers = (event.prompt_tokens, event.tokens)  # each of them is a character at least
    left = LONGEST - len(event.response) - len(event.thought) - sum(map(len, numbers))
    for message in event.messages:
        if not isinstance(message.get("role"), str):
            return because("capture_role")
        left = _room(message, left, 0)
        if left < 0:
            return because("capture_size", most=LONGEST, deepest=_DEEPEST)
    return _unfit_numbers(event)


def trains(turn: Turn) -> bool:
    """Whether somebody asked in words, and it is short enough: hundreds of long ones would fill the memory.

    An answer to nothing, or to pictures alone, teaches nothing that is meant.
    """
    said = [str(one.get("content") or "") for one in turn.messages if one.get("role") not in PROGRAM]
    if all(map(is_wordless, said)):
        return False
    left = TRAINS - max(len(turn.response), len(turn.prompt_tokens) + len(turn.tokens))
    for message in turn.messages:
        left = _room(message, left, 0)
    return left >= 0


def size(event: CaptureEvent) -> int:
    """Bytes, about, that a capture takes in the store; cheap, so that it can be asked first."""
    numbers = (event.prompt_tokens, event.tokens, event.logprobs, event.lifts)
    return _bytes((event.messages, event.response, event.thought)) + 4 * sum(map(len, numbers))


def _bytes(value: object) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode(errors="replace"))
    if isinstance(value, Mapping):
        return sum(_bytes(k) + _bytes(v) + 4 for k, v in cast("Mapping[object, object]", value).items())
    if isinstance(value, (list, tuple)):
        return sum(_bytes(one) + 4 for one in cast("Sequence[object]", value))
    return 4


def storable(event: CaptureEvent) -> CaptureEvent:
    """The event with its words such as a database takes them, and text for each content.

    Keys and tokens in it are masked; then those of the model go, too: they would spell them.
    """
    messages = tuple(_message(message) for message in event.messages)
    response, thought = _text(event.response), redact(_text(event.thought))
    if not thought and (found := split(response, asked=event.messages))[0]:
        thought, response = redact(found[0]), found[1]
        event = replace(event, prompt_tokens=(), tokens=(), logprobs=(), lifts=())
    masked = tuple(_each(redact, message) for message in messages), redact(response)
    if masked != (messages, response):
        event = replace(event, prompt_tokens=(), tokens=(), logprobs=(), lifts=())
    return replace(event, messages=masked[0], response=masked[1], thought=thought, model=_text(event.model))


def turn_of(
    event: CaptureEvent, *, base: str, scope: str, now: float, version: int | None, own: str = ""
) -> Turn:
    """The turn that a capture becomes. `base` is our own model, `version` its adapter or None."""
    return Turn(
        id=turn_id(event),
        channel=event.channel,
        talker=event.user,
        messages=event.messages,
        response=event.response,
        version=version or 0,
        model=base,
        temperature=event.temperature,
        created_at=now,
        prompt_tokens=event.prompt_tokens,
        tokens=event.tokens,
        logprobs=event.logprobs,
        filters=event.filters,
        lifts=event.lifts,
        scope=scope,
        own=own,
        kind=event.kind,
        origin="captured",
        thought=event.thought,
        thought_tokens=event.thought_tokens,
        answered_by="" if version is not None else event.model or base,
    )


def _unfit_numbers(event: CaptureEvent) -> Reason | None:
    if not (math.isfinite(event.temperature) and 0 <= event.temperature <= 100):
        return because("capture_temperature")
    if event.version is not None and not 0 <= event.version < _INT32:
        return because("capture_version")
    if event.logprobs and len(event.logprobs) != len(event.tokens):
        return because("capture_logprobs")
    if event.lifts and len(event.lifts) != len(event.logprobs):
        return because("capture_lifts")
    if not all(map(math.isfinite, (*event.logprobs, *event.lifts))):
        return because("capture_numbers")
    for tokens in (event.prompt_tokens, event.tokens):
        if tokens and not (min(tokens) >= 0 and max(tokens) < _INT32):
            return because("capture_tokens")
    return None


def _room(value: object, left: int, depth: int) -> int:
    """What is left of `left` characters; negative when that, or the depth, is used up."""
    if isinstance(value, str):
        return left - len(value)
    if isinstance(value, Mapping):
        inner: Sequence[object] = [
            *cast("Mapping[object, object]", value),
            *cast("Mapping[object, object]", value).values(),
        ]
    elif isinstance(value, (list, tuple)):
        inner = cast("Sequence[object]", value)
    else:
        finite = (
            value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        )
        return left - 8 if finite else -1
    for one in inner if depth < _DEEPEST else ():
        if (left := _room(one, left - 4, depth + 1)) < 0:
            return left
    return left if depth < _DEEPEST else -1


def _message(message: Message) -> Message:
    """A message whose content is text: what is no text in it is named."""
    kept: Message = _each(_text, message)
    kept["content"] = _content(kept.get("content"))
    return kept


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else str(content)
    return "\n".join(_part(part) for part in cast("list[Any]", content))


def _part(part: object) -> str:
    if not isinstance(part, dict):
        return str(part)
    known = cast("dict[str, Any]", part)
    text = known.get("text")
    kind = str(known.get("type", "file"))
    return text if isinstance(text, str) else _NOT_SHOWN.get(kind, f"[{kind}]")


def _each(do: Callable[[str], str], value: Any) -> Any:
    """The value with this done to every text in it."""
    if isinstance(value, str):
        return do(value)
    if isinstance(value, Mapping):
        return {do(str(k)): _each(do, v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_each(do, one) for one in cast("Sequence[Any]", value)]
    return value


def _text(text: str) -> str:
    return text if text.isascii() else clean(text)
