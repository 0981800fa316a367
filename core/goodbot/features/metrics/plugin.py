# SPDX-License-Identifier: Apache-2.0
"""The feature `metrics`, for the plugin host."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.feature import FeatureSpec
from goodbot.api.hookspecs import hookimpl

TOKEN = "GOODBOT_METRICS_TOKEN"  # noqa: S105  its name
"""The secret that whoever reads the figures must send."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricsSettings:
    """There is nothing to set."""


@hookimpl
def register_feature() -> FeatureSpec:
    return FeatureSpec(
        name="metrics",
        factory="goodbot.features.metrics.page:Metrics",
        settings=MetricsSettings,
        answers=True,
        secrets=(TOKEN,),
    )
