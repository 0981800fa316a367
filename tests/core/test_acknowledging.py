# SPDX-License-Identifier: Apache-2.0
"""What a connector shows of a receipt that says nothing of it itself."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Connector,
    ConnectorSpec,
    Event,
    MessageEvent,
    MessageRef,
    OrderKey,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    UserRef,
)

CODE = {"text": "AAAA-BBBB", "message_id": "1", "addressed": True}


class Plain(Connector):
    spec = ConnectorSpec(name="plain", factory="none:None", settings=object)
    account = "1"

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        self.settings.append(reply.text)
        return ()


def event(made: type[Event], room: ChannelKind, more: dict[str, Any]) -> Event:
    here = {"connector": "plain", "account": "1"}
    channel = ChannelRef(**here, id="c", kind=room)
    user = UserRef(connector="plain", account="1", id="ann")
    return made(event_id="1", order=OrderKey(1), user=user, channel=channel, **more)


@pytest.mark.parametrize(
    ("kind", "more", "room", "shown"),
    [
        (CommandEvent, {"name": "status"}, ChannelKind.PRIVATE, True),
        (
            MessageEvent,
            {"text": "AAAA-BBBB", "message_id": "1", "addressed": True},
            ChannelKind.PRIVATE,
            True,
        ),
        (RatingEvent, {"kind": RatingKind.RATE, "value": 1.0}, ChannelKind.PRIVATE, False),
        (CommandEvent, {"name": "status"}, ChannelKind.SHARED, False),
    ],
)
async def test_what_is_shown(kind: type[Event], more: dict[str, Any], room: ChannelKind, shown: bool) -> None:
    said: list[str] = []
    given = event(kind, room, more)
    await Plain(None, said).acknowledge(  # type: ignore[arg-type]
        given, Receipt(event_id="1", outcome=Outcome.ACCEPTED, text="You are my owner now.")
    )
    assert said == (["You are my owner now."] if shown else [])
