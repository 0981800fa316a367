# SPDX-License-Identifier: Apache-2.0
"""Who reacted to a message on Slack, for `goodbot_connectors.kit.reconciling`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from goodbot.api.events import MessageRef
from goodbot.base.clock import Clock

from goodbot_connectors.kit.fields import items, string, strings, sub
from goodbot_connectors.kit.reconciling import Reconciler, Standing
from goodbot_connectors.slack.api import Api
from goodbot_connectors.slack.emoji import emoji_key
from goodbot_connectors.slack.identity import BotIdentity
from goodbot_connectors.slack.presses import key


def reconciler(
    clock: Clock, values: Mapping[str, float], api: Callable[[], Api], me: Callable[[], BotIdentity]
) -> Reconciler:
    """One that asks Slack; `api` and `me` are those of the moment."""

    async def ask(ref: MessageRef) -> Standing:
        answer = await api().call("reactions.get", channel=ref.channel.id, timestamp=ref.id, full="true")
        return {
            (user, f"reaction:{name}")
            for reaction in items(sub(answer, "message"), "reactions")
            if emoji_key(name := string(reaction, "name")) in values
            for user in map(key, strings(reaction, "users"))
            if user and user != me().user
        }

    return Reconciler(
        ask=ask,
        value=lambda source: values.get(emoji_key(source.removeprefix("reaction:"))),
        now_ms=lambda: int(clock.now() * 1000),
    )


def when(ts: str) -> float:
    """A message's place among all; the last for what is no id of one."""
    try:
        return float(ts)
    except ValueError:
        return math.inf
