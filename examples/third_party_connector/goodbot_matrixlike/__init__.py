# SPDX-License-Identifier: Apache-2.0
"""goodbot on a Matrix-shaped platform. Importing this imports no HTTP library."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot import Capability, ConnectorSpec, Probe, hookimpl

from goodbot_matrixlike.probe import transport

TOKEN = "GOODBOT_MATRIXLIKE_TOKEN"  # noqa: S105  the variable's name
"""The environment variable with the account's access token."""


@dataclass(frozen=True, kw_only=True)
class MatrixlikeSettings:
    """`[connectors.matrixlike]`, besides the grants (`owners`, `raters`, `talkers`)."""

    homeserver: str = "http://127.0.0.1:8008"
    poll_seconds: float = 30.0
    """How long the homeserver holds a sync open while nothing happens."""


SPEC = ConnectorSpec(
    name="matrixlike",
    factory="goodbot_matrixlike.connector:MatrixlikeConnector",
    capabilities=Capability.REACTIONS | Capability.RECONCILE,
    settings=MatrixlikeSettings,
    message_limit=16_000,  # an event holds 65 535 bytes, a UTF-16 unit is three at most
    requires=("httpx",),
    secrets=(TOKEN,),
    setup="goodbot_matrixlike.setup:MatrixlikeSetup",
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer the platform."""
    return SPEC


@hookimpl
def register_probe() -> Probe:
    """Offer a line of `goodbot doctor`."""
    return Probe(name="transport", run=transport)
