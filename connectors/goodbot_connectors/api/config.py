# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.api]`: those of the proxy, for the API itself needs none."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot_connectors.api.proxy.config import ProxySettings


@dataclass(frozen=True, kw_only=True)
class ApiSettings(ProxySettings):
    """Who answers the programs that use goodbot as their API."""

    @property
    def needed_secrets(self) -> tuple[str, ...]:
        """None: what may call us has tokens that we make, and an upstream may need no key."""
        return ()
