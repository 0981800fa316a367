# SPDX-License-Identifier: Apache-2.0
"""A chat platform in memory: for programs that embed goodbot, for the demo, for tests.

It is a connector like any other: what a person does here goes through `ConnectorHost.submit`, and
what they see comes back through `send` and `acknowledge`. Register this module as a plugin and
name the people in the grants::

    plugins = open_plugins(config)
    plugins.register(loopback, "loopback")
    async with App.open(config, plugins, grants={"loopback": Grants(owners=("owner",))}) as app:
        chat = loopback.of(app.connectors.running)
        answer = await chat.say("What is 2 + 2?")
        await chat.react(answer, "👍")
"""

from __future__ import annotations

from collections.abc import Mapping

from goodbot.api.connector import Connector, ConnectorSpec
from goodbot.api.hookspecs import hookimpl
from goodbot.daemon.loopback.chat import Loopback
from goodbot.daemon.loopback.spec import OWNER, SPEC, VALUES, Answer, LoopbackSettings

__all__ = ["OWNER", "SPEC", "VALUES", "Answer", "Loopback", "LoopbackSettings", "of"]


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer the platform in memory."""
    return SPEC


def of(connectors: Mapping[str, Connector]) -> Loopback:
    """The platform in memory among a running goodbot's connectors. Raises LookupError."""
    for connector in connectors.values():
        if isinstance(connector, Loopback):
            return connector
    raise LookupError("the loopback plugin is not registered, or no grants name it")
