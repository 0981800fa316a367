# SPDX-License-Identifier: Apache-2.0
"""The readers of Linux, on planted trees and on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from goodbot.base.machine import linux
from goodbot.learning.idle import read_machine

from tests.support import patience


def supply(sys_: Path, name: str, **files: str) -> None:
    directory = sys_ / "class/power_supply" / name
    directory.mkdir(parents=True)
    for file, text in files.items():
        (directory / file).write_text(text + "\n")


def test_a_machine_without_supplies_has_no_battery(tmp_path: Path) -> None:
    assert linux.on_battery(tmp_path) is None


def test_a_laptop_off_its_mains_runs_on_battery(tmp_path: Path) -> None:
    supply(tmp_path, "AC", type="Mains", online="0")
    supply(tmp_path, "BAT0", type="Battery", status="Discharging", scope="System")
    assert linux.on_battery(tmp_path) is True


@pytest.mark.parametrize("kind", ["Mains", "USB"])
def test_a_laptop_that_is_plugged_in_does_not(tmp_path: Path, kind: str) -> None:
    """Under load some discharge all the same."""
    supply(tmp_path, "BAT0", type="Battery", status="Discharging")
    supply(tmp_path, "ucsi", type=kind, online="1")
    assert linux.on_battery(tmp_path) is False


def test_a_full_battery_is_not_drawn_from(tmp_path: Path) -> None:
    supply(tmp_path, "BAT0", type="Battery", status="Full")
    assert linux.on_battery(tmp_path) is False


def test_the_battery_of_a_mouse_is_not_the_machines(tmp_path: Path) -> None:
    supply(tmp_path, "hidpp_battery_0", type="Battery", status="Discharging", scope="Device")
    assert linux.on_battery(tmp_path) is None


def test_a_ups_in_an_outage_counts(tmp_path: Path) -> None:
    supply(tmp_path, "ups", type="UPS", status="Discharging")
    assert linux.on_battery(tmp_path) is True


class Proc:
    """A planted `/proc`: 4 cores, 100 ticks a second each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user = self.idle = 0

    def pass_(self, *, busy: int, idle: int) -> None:
        self.user += busy
        self.idle += idle
        self.root.mkdir(exist_ok=True)
        line = f"cpu  {self.user} 0 0 {self.idle} 0 0 0 0 0 0\ncpu0 1 2 3\n"
        (self.root / "stat").write_text(line)

    def process(self, pid: int, parent: int, ticks: int, name: str = "python") -> None:
        directory = self.root / str(pid)
        directory.mkdir(parents=True, exist_ok=True)
        fields = f"{pid} ({name}) S {parent} 1 1 0 -1 4194304 1 0 0 0 {ticks} 0 0 0 30 10 1 0 99"
        (directory / "stat").write_text(fields)


def test_our_own_work_and_our_childrens_is_no_pressure(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.pass_(busy=0, idle=0)
    proc.process(10, 1, 0)  # we
    proc.process(11, 10, 0, "a (strange) name")  # our trainer
    proc.process(12, 11, 0)  # and its helper
    proc.process(99, 1, 0)  # somebody else
    load = linux.Load(proc=tmp_path, pid=10)
    assert load.others() is None

    proc.process(11, 10, 200, "a (strange) name")
    proc.process(12, 11, 100)
    proc.process(99, 1, 50)
    proc.pass_(busy=350, idle=50)
    assert load.others() == pytest.approx(50 / 400)
    assert set(load.family()) == {10, 11, 12}

    proc.process(99, 1, 450)
    proc.pass_(busy=400, idle=0)
    assert load.others() == 1.0


def test_a_moment_is_too_short_to_tell(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.pass_(busy=0, idle=0)
    proc.process(10, 1, 0)
    load = linux.Load(proc=tmp_path, pid=10)
    proc.pass_(busy=50, idle=0)
    assert load.others() is None
    proc.pass_(busy=50, idle=100)
    assert load.others() == 0.5


def test_a_machine_that_hides_its_counters_objects_to_nothing(tmp_path: Path) -> None:
    load = linux.Load(proc=tmp_path, pid=10)
    assert load.others() is None
    (tmp_path / "stat").write_text("cpu 1 2\n")
    assert load.others() is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_this_machine_knows_its_own_children_from_others() -> None:
    """A busy child of ours is not other programs' use, however busy they are."""
    read = read_machine()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            load = linux.Load()
            before = load.family()
            assert {os.getpid(), child.pid} <= set(before)
            deadline = time.monotonic() + patience(30)
            while load.family()[child.pid] < before[child.pid] + 30:
                assert time.monotonic() < deadline, "it got no processor"
                time.sleep(0.05)
            others = load.others()
            assert others is None or 0 <= others <= 1
        finally:
            child.kill()
    readings = read(False)
    assert readings.on_battery in (None, True, False)
    assert readings.others_gpu is None or 0 <= readings.others_gpu <= 1
