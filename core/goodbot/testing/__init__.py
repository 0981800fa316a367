# SPDX-License-Identifier: Apache-2.0
"""Contracts and fakes for plugin authors. Imports pytest; the host never imports this.

`ConnectorContract`, `BackendContract`, `ServingContract`, `SurveyContract`, `ObjectiveContract` and
`TrackerContract` are suites to subclass,
`Driver` is the ground of the far side that the first is given, `RecordingHost` is a core that only
takes notes, `Pilot` is a whole goodbot that is driven by what people do.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

pytest.register_assert_rewrite(
    "goodbot.testing.backend",
    "goodbot.testing.backend_base",
    "goodbot.testing.backend_checkpoints",
    "goodbot.testing.objective",
)
pytest.register_assert_rewrite(
    "goodbot.testing.connector",
    "goodbot.testing.connector_base",
    "goodbot.testing.connector_events",
    "goodbot.testing.connector_feedback",
    "goodbot.testing.connector_ratings",
    "goodbot.testing.connector_replies",
)
pytest.register_assert_rewrite(
    "goodbot.testing.serving",
    "goodbot.testing.serving_adapters",
    "goodbot.testing.serving_answers",
    "goodbot.testing.serving_base",
)

pytest.register_assert_rewrite("goodbot.testing.survey", "goodbot.testing.tracker")

if TYPE_CHECKING:
    from goodbot.config import ServingConfig, TrainingConfig
    from goodbot.daemon.loopback import Answer
    from goodbot.testing.backend import BackendContract
    from goodbot.testing.clock import VirtualClock
    from goodbot.testing.connector import ConnectorContract
    from goodbot.testing.host import RecordingHost
    from goodbot.testing.objective import ObjectiveContract
    from goodbot.testing.pilot import Pilot
    from goodbot.testing.platform import Driver, PlatformDriver, Post
    from goodbot.testing.serving import ServingContract
    from goodbot.testing.serving_base import server_parts
    from goodbot.testing.survey import SurveyContract
    from goodbot.testing.tracker import TrackerContract

__all__ = [
    "Answer",
    "BackendContract",
    "ConnectorContract",
    "Driver",
    "ObjectiveContract",
    "Pilot",
    "PlatformDriver",
    "Post",
    "RecordingHost",
    "ServingConfig",
    "ServingContract",
    "SurveyContract",
    "TrackerContract",
    "TrainingConfig",
    "VirtualClock",
    "server_parts",
]

_HOMES = {
    "Answer": "goodbot.daemon.loopback",
    "BackendContract": "goodbot.testing.backend",
    "ConnectorContract": "goodbot.testing.connector",
    "Driver": "goodbot.testing.platform",
    "ObjectiveContract": "goodbot.testing.objective",
    "Pilot": "goodbot.testing.pilot",
    "PlatformDriver": "goodbot.testing.platform",
    "Post": "goodbot.testing.platform",
    "RecordingHost": "goodbot.testing.host",
    "ServingConfig": "goodbot.config",
    "ServingContract": "goodbot.testing.serving",
    "SurveyContract": "goodbot.testing.survey",
    "TrackerContract": "goodbot.testing.tracker",
    "TrainingConfig": "goodbot.config",
    "VirtualClock": "goodbot.testing.clock",
    "server_parts": "goodbot.testing.serving_base",
}


def __getattr__(name: str) -> Any:
    """Import late: who tests a connector needs no NumPy, which the backend suite does."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
