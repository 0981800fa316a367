# SPDX-License-Identifier: Apache-2.0
"""The readers that ask a program: macOS and NVIDIA, on what those print."""

from __future__ import annotations

import sys

import pytest
from goodbot.base.machine import macos, nvidia
from goodbot.base.machine.tool import ask
from goodbot.learning.idle import read_machine

ON_MAINS = "Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t100%; charged; 0:00 remaining\n"
ON_BATTERY = "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t71%; discharging\n"
PS = """\
    1     0   0.5
  100     1  40.0
  101   100 250.0
  102   101  10.0
  500     1 120.0
"""
PMON = """\
# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command
# Idx           #    C/G      %      %      %      %      %      %    name
    0        4001     C      70     12      -      -      -      -    python
    0        4002     C      25      3      -      -      -      -    a game
    0           -     -       -      -      -      -      -      -    -
"""


@pytest.fixture(autouse=True)
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")


class Tools:
    """Programs that print what they are told to, by their words."""

    def __init__(self, **answers: str) -> None:
        self._answers = answers
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, *command: str) -> str:
        self.asked.append(command)
        line = " ".join(command)
        return next((text for word, text in self._answers.items() if word in line), "")


@pytest.mark.parametrize(("says", "means"), [(ON_MAINS, False), (ON_BATTERY, True), ("", None)])
def test_pmset_tells_the_battery(says: str, means: bool | None) -> None:
    assert macos.on_battery(Tools(pmset=says)) is means


def test_ps_tells_the_load_of_those_that_are_not_ours() -> None:
    assert macos.others_load(Tools(ps=PS), pid=100, cores=4) == pytest.approx(1.205 / 4)
    assert macos.others_load(Tools(ps=PS), pid=1, cores=4) == 0.0
    assert macos.others_load(Tools(), pid=100, cores=4) is None


def smi(used: str, apps: str = "", pmon: str = "") -> Tools:
    return Tools(**{"utilization.gpu": used, "compute-apps": apps, "pmon": pmon})


def test_a_server_that_only_holds_memory_does_not_block_training() -> None:
    assert nvidia.others_gpu(smi("0\n", "4002\n"), {4001}, training=False) == 0.0


def test_others_use_what_we_do_not() -> None:
    assert nvidia.others_gpu(smi("90\n", "4002\n"), {4001}, training=False) == 0.9
    assert nvidia.others_gpu(smi("95\n", "4001\n4002\n", PMON), {4001}, training=True) == 0.25


@pytest.mark.parametrize("used", ["", "[N/A]\n", "No devices were found\n"])
def test_no_reading_is_no_pressure(used: str) -> None:
    assert nvidia.others_gpu(smi(used), {4001}, training=False) is None


def test_where_processes_are_hidden_our_own_run_is_not_taken_for_others() -> None:
    assert nvidia.others_gpu(smi("97\n"), {4001}, training=True) is None
    untold = PMON.replace("70", " -")
    assert nvidia.others_gpu(smi("97\n", "4001\n", untold), {4001}, training=True) is None


def test_it_asks_about_the_gpu_that_training_would_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    tools = smi("0\n")
    nvidia.others_gpu(tools, (), training=False)
    assert tools.asked[0][:3] == ("nvidia-smi", "-i", "2")
    for hidden in ("", "-1", "none"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert nvidia.others_gpu(tools, (), training=False) is None


def test_a_tool_that_is_not_there_or_fails_says_nothing() -> None:
    assert ask("goodbot-has-no-such-program") == ""
    assert ask(sys.executable, "-c", "print('half'); raise SystemExit(3)") == ""
    assert ask(sys.executable, "-c", "print('whole')") == "whole\n"


def test_a_tool_gets_no_token_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "secret")
    assert "secret" not in ask(sys.executable, "-c", "import os; print(dict(os.environ))")


def test_an_unknown_platform_is_never_under_pressure() -> None:
    readings = read_machine("plan9")(False)
    assert (readings.on_battery, readings.others_load, readings.others_gpu) == (None, None, None)
