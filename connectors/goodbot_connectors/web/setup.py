# SPDX-License-Identifier: Apache-2.0
"""Setting the browser up: nothing is needed elsewhere, so there is little to ask or to leave."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.setup import Check, ConnectorSetup, Identity
from goodbot.api.texts import say
from goodbot.api.texts.terminal import phrase


class WebSetup(ConnectorSetup):
    """The daemon's own pages."""

    title = "The browser"
    guide = say("guide_web")
    pairs = False

    async def identify(self) -> Identity:
        """There is no account but our own."""
        return Identity(account="web", name=phrase("own_pages"))

    async def examine(self) -> Sequence[Check]:
        """Whether its address can be had is looked at with the other ports."""
        return ()
