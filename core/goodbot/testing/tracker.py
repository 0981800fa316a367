# SPDX-License-Identifier: Apache-2.0
"""What every experiment tracker must do. Subclass `TrackerContract` and give it one fixture.

::

    from goodbot.testing import TrackerContract

    class TestMine(TrackerContract):
        @pytest.fixture
        def spec(self):
            return my_plugin.register_tracker()
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from goodbot.api.tracker import Setting, TrackerSpec
from goodbot.learning.tracking import child

ABOUT: Mapping[str, Setting] = {
    "model": "tiny",
    "ratings": 40,
    "kl": 0.1,
    "quantized": False,
    "base_bits": None,
}
"""A setting of every type."""
STEPS: Sequence[Mapping[str, Any]] = (
    {"step": 1, "numbers": {"train/loss": 0.5, "train/kl": 0.25}},
    {"step": 2, "numbers": {"train/loss": 0.25, "train/kl": 0.125, "train/eta": 1.0}},
)
"""What is told need not be the same at each step."""


class TrackerContract:
    """A run is kept as it is told, whatever it ends as, and again where it goes on."""

    @pytest.fixture
    def spec(self) -> TrackerSpec:
        """What the plugin registers."""
        raise NotImplementedError("override the fixture `spec`")

    @pytest.fixture
    def settings(self, spec: TrackerSpec) -> Any:
        """The section `[tracking.NAME]`; override it where a key has no default that could be right."""
        return spec.settings()

    @pytest.fixture(autouse=True)
    def environment(self) -> Iterator[None]:
        """A tracker has a process of its own, and may set variables there."""
        with mock.patch.dict(os.environ):
            yield

    def feed(self, spec: TrackerSpec, messages: Sequence[Mapping[str, Any]]) -> None:
        """Do what the tracker's process does (`goodbot.learning.tracking.child`), in this one."""
        child.feed(spec.factory, iter([dict(message) for message in messages]))

    def kept(self, directory: Path) -> list[Path]:
        """List the files that a run has left; override it for a tracker that writes elsewhere."""
        return sorted(file for file in directory.rglob("*") if file.is_file())

    def _track(self, spec: TrackerSpec, settings: Any, directory: Path, *told: Mapping[str, Any]) -> None:
        schema = spec.settings
        run = {
            "run": "run-7",
            "directory": str(directory),
            "about": ABOUT,
            "schema": f"{schema.__module__}:{schema.__qualname__}",
            "settings": dataclasses.asdict(settings),
        }
        self.feed(spec, [run, *told])

    def test_the_settings_are_a_frozen_dataclass(self, settings: Any) -> None:
        assert dataclasses.is_dataclass(settings)
        with pytest.raises(dataclasses.FrozenInstanceError):
            settings.any_name = None  # pyright: ignore[reportAttributeAccessIssue]

    @pytest.mark.parametrize("state", ["activated", "refused", "failed", "superseded"])
    def test_a_run_is_kept_whatever_it_ends_as(
        self, spec: TrackerSpec, settings: Any, state: str, tmp_path: Path
    ) -> None:
        self._track(spec, settings, tmp_path, *STEPS, {"state": state})
        assert any(file.stat().st_size for file in self.kept(tmp_path)), "nothing was written"

    def test_a_run_that_ends_before_its_first_step_is_no_fault(
        self, spec: TrackerSpec, settings: Any, tmp_path: Path
    ) -> None:
        self._track(spec, settings, tmp_path, {"state": "failed"})

    def test_a_run_goes_on_under_its_name_after_an_interruption(
        self, spec: TrackerSpec, settings: Any, tmp_path: Path
    ) -> None:
        self._track(spec, settings, tmp_path, STEPS[0])  # the daemon is gone: no word of a state
        before = {file: file.read_bytes() for file in self.kept(tmp_path)}
        self._track(spec, settings, tmp_path, *STEPS, {"state": "activated"})
        after = {file: file.read_bytes() for file in self.kept(tmp_path)}
        assert after != before, "the second half is not kept"
        assert all(after.get(file) for file, kept in before.items() if kept), "the first half is gone"
