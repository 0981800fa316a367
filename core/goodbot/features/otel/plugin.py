# SPDX-License-Identifier: Apache-2.0
"""The feature `otel`, for the plugin host: its settings, and what must be installed for it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from goodbot.api.feature import FeatureSpec
from goodbot.api.hookspecs import hookimpl
from goodbot.base.addresses import is_here

NAME = "otel"


@dataclass(frozen=True, kw_only=True, slots=True)
class OtelSettings:
    """The section `[features.otel]`."""

    endpoint: str = "http://127.0.0.1:4318"
    """Where the collector takes OTLP over HTTP, without `/v1/traces`."""
    local: bool = False
    """It is in the own network, and may be reached without encryption."""
    content: bool = False
    """With what was asked and answered in shared channels; never with that of private chats."""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.endpoint)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            raise ValueError("endpoint is no address: write it as https://HOST:PORT") from None
        if not host or parts.scheme not in ("http", "https"):
            raise ValueError("endpoint must be an address: write it as https://HOST:PORT")
        if parts.scheme == "http" and not is_here(host) and not self.local:
            raise ValueError("endpoint must begin with https://, or set local = true for your own network")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError(
                "endpoint holds more than an address: set OTEL_EXPORTER_OTLP_HEADERS for what logs in"
            )


@hookimpl
def register_feature() -> FeatureSpec:
    return FeatureSpec(
        name=NAME,
        factory="goodbot.features.otel.spans:Spans",
        settings=OtelSettings,
        requires=("opentelemetry",),
        extra=NAME,
    )
