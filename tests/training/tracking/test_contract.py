# SPDX-License-Identifier: Apache-2.0
"""goodbot's own trackers keep the contract that plugins are given."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from goodbot.api.tracker import TrackerSpec
from goodbot.testing import TrackerContract
from goodbot_training.tracking import tensorboard, trackio, wandb

from tests.support import missing


class Own(TrackerContract):
    """In a process of its own, as the daemon has it: none of the libraries comes into this one."""

    def feed(self, spec: TrackerSpec, messages: Sequence[Mapping[str, Any]]) -> None:
        if importlib.util.find_spec(spec.requires[0]) is None:
            missing(f"{spec.requires[0]} is not installed")
        lines = "".join(json.dumps(message) + "\n" for message in messages)
        command = [sys.executable, "-m", "goodbot.learning.tracking.child", spec.factory]
        done = subprocess.run(command, input=lines, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


class TestTensorBoard(Own):
    @pytest.fixture
    def spec(self) -> TrackerSpec:
        return tensorboard.register_tracker()


class TestTrackio(Own):
    @pytest.fixture
    def spec(self) -> TrackerSpec:
        return trackio.register_tracker()


class TestWandb(Own):
    @pytest.fixture
    def spec(self) -> TrackerSpec:
        return wandb.register_tracker()
