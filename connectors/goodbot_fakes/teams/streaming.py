# SPDX-License-Identifier: Apache-2.0
"""Streamed answers: learn.microsoft.com/microsoftteams/platform/bots/streaming-ux.

The pieces are `typing` activities with the whole text so far, the end is a `message`; what belongs
together says an entity `streaminfo`. Only in personal chats, one at a time, two minutes at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from goodbot_fakes.teams.errors import TeamsError
from goodbot_fakes.teams.fields import Json, items
from goodbot_fakes.teams.tenant import Message, Tenant, TenantConversation

_SECONDS = 120.0
_INFORMATIVE = 1000


@dataclass(kw_only=True, slots=True)
class Stream:
    """One answer that is being written."""

    message: Message
    sequence: int
    begun: float
    asked: float
    """When the last piece came."""
    cancelled: bool = False


def info(activity: Json) -> Json | None:
    """The entity that makes an activity a piece of a stream."""
    found = [e for e in items(activity, "entities") if e.get("type") == "streaminfo"]
    return found[0] if found else None


class Streams:
    """The streams of one tenant. With `pieces_per_second` set, faster ones are throttled."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._open: dict[str, Stream] = {}
        self.pieces_per_second = 0.0

    def stop(self, message: Message) -> None:
        """The person has pressed “Stop”."""
        self._open[message.id].cancelled = True

    def take(self, conversation: TenantConversation, activity: Json, found: Json) -> tuple[int, str]:
        """One piece; the status and the id that it is answered with."""
        if conversation.kind != "personal":
            raise _no("BadArgument", "Streaming API is not enabled in this conversation", 405)
        kind, type_ = found.get("streamType"), activity.get("type")
        if kind == "final":
            if type_ != "message" or not found.get("streamId"):
                raise _no("BadRequest", "Only end streaming type is allowed as message", 400)
            return self._end(activity, str(found["streamId"]))
        if kind not in ("informative", "streaming") or type_ != "typing":
            raise _no("BadRequest", "Only start or continue streaming type is allowed", 400)
        if not activity.get("text"):
            raise _no("BadRequest", "Start or continue streaming activities should include text", 400)
        if kind == "informative" and len(activity["text"]) > _INFORMATIVE:
            raise _no("ContentStreamNotAllowed", "Message size too large")
        if "streamSequence" not in found:
            raise _no("BadRequest", "streamSequence is missing", 400)
        if not found.get("streamId"):
            return 201, self._begin(conversation, activity, found)
        self._go_on(activity, found)
        return 202, ""

    def _begin(self, conversation: TenantConversation, activity: Json, found: Json) -> str:
        if found["streamSequence"] != 1:
            raise _no("BadRequest", "A stream begins with streamSequence 1", 400)
        if any(s.message.conversation is conversation and self._lives(s) for s in self._open.values()):
            raise _no("ContentStreamNotAllowed", "Another stream is under way in this chat")
        message = self._tenant.post(conversation, self._tenant.bot, activity)
        message.stream = found["streamType"]
        now = self._tenant.clock.monotonic()
        self._open[message.id] = Stream(message=message, sequence=1, begun=now, asked=now)
        return message.id

    def _go_on(self, activity: Json, found: Json) -> None:
        stream = self._stream(found["streamId"])
        now, message = self._tenant.clock.monotonic(), stream.message
        if self.pieces_per_second and now - stream.asked < 1 / self.pieces_per_second:
            raise TeamsError(429, "Throttled", "API calls quota exceeded!", Retry_After="1")
        if found["streamSequence"] <= stream.sequence:
            raise _no("ContentStreamSequenceOrderPreConditionFailed", "Out of order", 412)
        before = message.text if message.stream == "streaming" else ""
        if found["streamType"] == "streaming" and not activity["text"].startswith(before):
            raise _no("ContentStreamNotAllowed", "Content should contain what was streamed before")
        stream.sequence, stream.asked = found["streamSequence"], now
        message.activity, message.stream = activity, found["streamType"]

    def _end(self, activity: Json, id_: str) -> tuple[int, str]:
        stream = self._stream(id_)
        if not activity.get("text") and not activity.get("attachments"):
            raise _no("BadRequest", "End streaming activity should include text or a card", 400)
        if activity.get("text") and activity.get("attachments"):
            raise _no("BadRequest", "This fake ends no stream with several messages", 400)
        stream.message.activity, stream.message.stream = activity, "final"
        del self._open[id_]
        return 202, id_

    def _stream(self, id_: str) -> Stream:
        stream = self._open.get(id_)
        if stream is None:
            raise _no("ContentStreamNotAllowed", "Not allowed on a completed streamed message")
        if stream.cancelled:
            raise _no("ContentStreamNotAllowed", "Content stream was canceled by user")
        if not self._lives(stream):
            raise _no("ContentStreamNotAllowed", "Finished due to exceeded streaming time")
        return stream

    def _lives(self, stream: Stream) -> bool:
        late = self._tenant.clock.monotonic() - stream.begun > _SECONDS
        return not (late or stream.cancelled)


def _no(code: str, message: str, status: int = 403) -> TeamsError:
    return TeamsError(status, code, message)
