# SPDX-License-Identifier: Apache-2.0
"""How values lie in the database: JSON for events and receipts, packed arrays for tokens."""

from __future__ import annotations

import dataclasses
import json
from array import array
from collections.abc import Sequence
from typing import Any

from goodbot.api.events import (
    Button,
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    OrderKey,
    Outcome,
    PressEvent,
    Receipt,
    UserRef,
)
from goodbot.api.sentences import Reason, in_words, words
from goodbot.base.sampling import UNFILTERED, Filters
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import apart, together

_OPEN_EVENTS: dict[str, type[Event]] = {"message": MessageEvent, "command": CommandEvent, "press": PressEvent}


_CODED = '[["'
"""So begins what `dump_reasons` makes of codes."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
"""Made once: `json.dumps` makes one at every call, which every rating would pay for several times."""


def dump_json(value: Any) -> str:
    """Compact, stable JSON."""
    return _ENCODER.encode(value)


def dump_reasons(reasons: Sequence[Reason]) -> str:
    """Reasons as one text: JSON, or the words alone of what has no code."""
    match reasons:
        case [Reason(code="text", facts={"text": str(text)})] if not (
            text.startswith(_CODED) or (isinstance(text, Worded) and text.values)
        ):
            return str(text)
        case _:
            return dump_json([apart(one) for one in reasons]) if reasons else ""


def load_reasons(text: str) -> tuple[Reason, ...]:
    """What `dump_reasons` has made, or a sentence that a goodbot before it has kept."""
    if not text.startswith(_CODED):
        return in_words(text)
    try:
        return tuple(Reason(code, together(facts)) for code, facts in json.loads(text))
    except (ValueError, TypeError):
        return in_words(text)


def worded_reasons(text: str) -> str:
    """What `dump_reasons` has made as a goodbot before it has it: in English."""
    return words(*load_reasons(text))


def dump_receipt(receipt: Receipt, digest: str = "") -> str:
    """A receipt as JSON, without `duplicate`, with its event's `digest`; reasons in place of their words.

    An empty text is written, too: a goodbot before reasons reads it.
    """
    offer = [[button.action, button.label] for button in receipt.offer]
    return dump_json(
        {
            "e": receipt.event_id,
            "o": receipt.outcome,
            "x": "" if receipt.reasons else receipt.text,
            "t": receipt.turn,
            **({"r": apart(receipt.reasons)} if receipt.reasons else {}),
            **({"f": offer} if offer else {}),
            **({"d": digest} if digest else {}),
        }
    )


def worded_receipt(text: str) -> str:
    """A stored receipt as a goodbot before reasons has it: their words in place of them."""
    raw = json.loads(text)
    reasons = raw.pop("r", ())
    return dump_json({**raw, "x": raw["x"] or words(*_received(reasons))})


def _received(reasons: Sequence[tuple[str, Any]]) -> tuple[Reason, ...]:
    return tuple(Reason(code, together(facts)) for code, facts in reasons)


def load_receipt(text: str) -> Receipt:
    """A stored receipt; whoever gets it back is a replay, so it is marked `duplicate`."""
    raw = json.loads(text)
    reasons = _received(raw.get("r", ()))
    return Receipt(
        event_id=raw["e"],
        outcome=Outcome(raw["o"]),
        text=raw["x"] or words(*reasons),
        reasons=reasons,
        turn=raw["t"],
        duplicate=True,
        offer=tuple(Button(action=action, label=label) for action, label in raw.get("f", ())),
        digest=raw.get("d", ""),
    )


def dump_event(event: Event) -> str:
    """A message, a command or a press as JSON."""
    kind = next(name for name, cls in _OPEN_EVENTS.items() if isinstance(event, cls))
    raw = dataclasses.asdict(event)
    del raw["user"]["speaks_for"]  # it has been counted: nothing else asks for it
    if not raw.get("looked", True):
        del raw["looked"]  # a goodbot before it does not know it
    return dump_json({"kind": kind, **raw})


def load_event(text: str) -> Event:
    """The event that `dump_event` wrote."""
    raw = json.loads(text)
    cls = _OPEN_EVENTS[raw.pop("kind")]
    raw["order"] = OrderKey(*raw["order"])
    raw["user"] = UserRef(**raw["user"])
    raw["channel"] = ChannelRef(**{**raw["channel"], "kind": ChannelKind(raw["channel"]["kind"])})
    if "attachments" in raw:
        raw["attachments"] = tuple(raw["attachments"])
    return cls(**raw)


def dump_filters(filters: Filters) -> str:
    """What was done to a distribution, as JSON: what changes nothing is left out."""
    return dump_json(filters.told())


def load_filters(text: str) -> Filters:
    """The filters that `dump_filters` wrote."""
    return Filters.parse(json.loads(text)) if text != "{}" else UNFILTERED


def pack_ints(values: Sequence[int]) -> bytes:
    """Token ids as 32-bit integers."""
    return array("i", values).tobytes()


def pack_floats(values: Sequence[float]) -> bytes:
    """Log-probabilities as 32-bit floats, which is what the sampler computed."""
    return array("f", values).tobytes()


def unpack_ints(data: bytes) -> tuple[int, ...]:
    """The token ids that `pack_ints` wrote."""
    return tuple(array("i", data))


def unpack_floats(data: bytes) -> tuple[float, ...]:
    """The log-probabilities that `pack_floats` wrote."""
    return tuple(array("f", data))
