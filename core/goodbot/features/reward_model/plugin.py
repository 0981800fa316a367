# SPDX-License-Identifier: Apache-2.0
"""The feature `reward_model`, for the plugin host: what works beside the bot, and its part of the report."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.feature import FeatureSpec
from goodbot.api.hookspecs import hookimpl
from goodbot.api.predicted import FEATURE
from goodbot.api.report import ReportSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardModelSettings:
    """The section `[features.reward_model]`."""

    ask: bool = False
    """Whether people are asked for what it is least sure of: first in `waiting`, half of a new queue."""


@hookimpl
def register_feature() -> FeatureSpec:
    return FeatureSpec(
        name=FEATURE,
        factory="goodbot.features.reward_model.looking:RewardModel",
        settings=RewardModelSettings,
    )


@hookimpl
def register_report() -> ReportSpec:
    return ReportSpec(
        name="predicted",
        title="What the reward model predicts",
        factory="goodbot.features.reward_model.telling:PredictedPart",
    )
