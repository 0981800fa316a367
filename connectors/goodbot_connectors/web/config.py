# SPDX-License-Identifier: Apache-2.0
"""Settings of `[connectors.web]`. It has no secret: who signs in is proven by a one-time code."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.base.checks import Days


@dataclass(frozen=True, kw_only=True)
class WebSettings:
    """How goodbot behaves in a browser."""

    session_days: Days = 30
    """After so many days a browser has to sign in anew."""
    keep_days: Days = 30
    """A conversation that nobody has touched for so many days is not kept for its page any more."""
