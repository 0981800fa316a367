# SPDX-License-Identifier: Apache-2.0
"""A Slack on this machine: a workspace with people in it, its Web API, and its deliveries.

::

    async with FakeSlack() as slack:
        lab = slack.workspace.add_channel("lab", [slack.app.user.id, slack.people.id("ada")])
        slack.people.say("ada", "hello", lab.id, mention=True)   # an app_mention and a message
        slack.faults.rate_limit("chat.update", seconds=2)        # 429 with Retry-After
        await slack.sockets.disconnect("refresh_requested")      # as Slack does every few hours

It refuses what Slack refuses: missing scopes, conversations that the app is not in, blocks beyond
Slack's limits, used triggers. It tries as often as Slack does, on a clock that a test may hold.
Its shapes were checked against Slack's own type definitions; where Slack has told nobody, it is
the strict one. It is one workspace with one app; there are no files, no search, no OAuth.
"""

from __future__ import annotations

from goodbot_fakes.slack.app import EVENTS, SCOPES, SlackApp
from goodbot_fakes.slack.delivery import Delivery, Outbox, Pace
from goodbot_fakes.slack.errors import SlackError
from goodbot_fakes.slack.people import People
from goodbot_fakes.slack.server import FakeSlack
from goodbot_fakes.slack.workspace import Channel, Message, User, View, Workspace

__all__ = [
    "EVENTS",
    "SCOPES",
    "Channel",
    "Delivery",
    "FakeSlack",
    "Message",
    "Outbox",
    "Pace",
    "People",
    "SlackApp",
    "SlackError",
    "User",
    "View",
    "Workspace",
]
