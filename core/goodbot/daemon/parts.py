# SPDX-License-Identifier: Apache-2.0
"""The finished parts of one running goodbot."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.access.groups import RaterGroups
from goodbot.commands.runner import CommandRunner
from goodbot.commands.services import Services
from goodbot.conversation.ingest import Dispatcher
from goodbot.conversation.judging import Judging
from goodbot.daemon.connectors import ConnectorManager
from goodbot.daemon.maintenance import Maintenance


@dataclass(frozen=True, kw_only=True)
class OperatingParts(Services):
    """All parts of a goodbot."""

    commands: CommandRunner
    dispatcher: Dispatcher
    """Takes in what connectors submit."""
    groups: RaterGroups
    judging: Judging
    manager: ConnectorManager
    maintenance: Maintenance
