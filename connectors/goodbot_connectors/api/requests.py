# SPDX-License-Identifier: Apache-2.0
"""What a request asks for, as events: pure but for the ids of what has no key."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from goodbot.api.events import CaptureEvent, ChannelRef, Event, OrderKey, RatingEvent, RatingKind, UserRef
from goodbot.api.turns import turn_id

from goodbot_connectors.api.table import LONGEST_KEY, LONGEST_NAME, SPEAKS_FOR
from goodbot_connectors.kit.bridge.body import HttpError

_WORDS = {"good": 1.0, "bad": -1.0}
SOURCE = "api"
"""Of a rating: a client that rates an answer anew replaces what it said before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestStamp:
    """Who asks, when, and under which id; `digest` is of what was sent, where the id is theirs."""

    event_id: str
    digest: str
    order: OrderKey
    user: UserRef
    channel: ChannelRef

    def fields(self, suffix: str = "") -> dict[str, Any]:
        """The fields that every event has; several of one request have a suffix each."""
        return {
            "event_id": self.event_id + suffix,
            "digest": self.digest,
            "order": self.order,
            "user": self.user,
            "channel": self.channel,
        }


def speaks_for(names: Sequence[str]) -> str:
    """For whom of the people behind it a client speaks, of the headers that say so; empty for itself.

    Raises HttpError (400) for what is no name.
    """
    name = names[0] if names else ""
    fits = len(name) <= LONGEST_NAME and name.isascii() and name.isprintable() and " " not in name
    if len(names) > 1 or (names and not name) or not fits:
        raise HttpError(
            400, f"Send one {SPEAKS_FOR}, of 1 to {LONGEST_NAME} visible ASCII characters without spaces."
        )
    return name


def identity(key: str | None, route: str, user: str, body: Mapping[str, Any]) -> tuple[str, str]:
    """Event id and digest of a request. The same key of one client and route is the same event.

    Raises HttpError (400) for a key that is none.
    """
    if key is None:
        return uuid.uuid4().hex, ""
    if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
        raise HttpError(
            400, f"An Idempotency-Key has 1 to {LONGEST_KEY} visible ASCII characters, without spaces."
        )
    id_ = hashlib.sha256(f"{user}\0{route}\0{key}".encode()).hexdigest()[:40]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return f"key-{id_}", hashlib.sha256(text.encode()).hexdigest()


def capture(body: Mapping[str, Any], stamp: RequestStamp, client: str, *, admin: bool) -> list[Event]:
    """The events of a checked body of `POST /v1/turns`: the answer, and what is said of it at once.

    That names it by a message of its own: the turn may be one that another program has reported. Only
    an `admin` client joins what others have reported: a trace would be a key to their answers.
    """
    answer = _answer(body, stamp, admin=admin)
    if (said := body.get("feedback")) is None:
        return [answer]
    named = answer if answer.message_id else replace(answer, message_id=turn_id(answer))
    rated = replace(stamp, event_id=f"{stamp.event_id}:said")
    return [
        named,
        *(replace(one, message_id=named.message_id) for one in ratings({"turn": "", **said}, rated, client)),
    ]


def _answer(body: Mapping[str, Any], stamp: RequestStamp, *, admin: bool) -> CaptureEvent:
    tokens = body.get("tokens", ())
    version = body.get("version")
    return CaptureEvent(
        **stamp.fields(),
        messages=tuple(body["messages"]),
        response=body["response"],
        model=body.get("model", ""),
        version=None if version is None else int(version),
        message_id=body.get("message_id", ""),
        trace=body.get("trace", "") if admin else "",
        kind=body.get("kind", "main"),
        temperature=float(body.get("temperature", 1.0)),
        prompt_tokens=tuple(int(one) for one in body.get("prompt_tokens", ())),
        tokens=tuple(int(one["id"]) for one in tokens),
        logprobs=tuple(float(one["logprob"]) for one in tokens),
    )


def ratings(body: Mapping[str, Any], stamp: RequestStamp, client: str) -> list[RatingEvent]:
    """The events of a checked body of `POST /v1/feedback`.

    The first has the request's own id, whatever it is: that tells whether the id was used before.
    """
    outcome = body.get("kind") == "outcome"
    turn, found = body["turn"], list[RatingEvent]()
    if "score" in body:
        score = body["score"]
        value = _WORDS[score] if isinstance(score, str) else float(score)
        found.append(
            RatingEvent(
                **stamp.fields(),
                turn=turn,
                value=value,
                kind=RatingKind.OUTCOME if outcome else RatingKind.RATE,
                source=f"outcome:{body.get('source', client)}" if outcome else SOURCE,
            )
        )
    for name, kind in (("comment", RatingKind.COMMENT), ("better", RatingKind.BETTER)):
        if name in body:
            said = RatingEvent(
                **stamp.fields(f":{name}" if found else ""),
                turn=turn,
                kind=kind,
                text=body[name],
                source=SOURCE,
            )
            found.append(said)
    return found


def retraction(turn: str, stamp: RequestStamp) -> RatingEvent:
    """The event of `DELETE /v1/feedback/{turn}`: all that was said of it."""
    return RatingEvent(**stamp.fields(), turn=turn, kind=RatingKind.RETRACT)
