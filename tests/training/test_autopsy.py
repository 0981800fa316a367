# SPDX-License-Identifier: Apache-2.0
"""What an unforeseen error leaves in the log: where, which, its message, and nobody's words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.base.errors import TrainingError
from goodbot_training.process import autopsy

from tests.support import patience
from tests.training.test_worker import make_job, start, train


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autopsy, "_heard", set[str]())
    monkeypatch.setattr(autopsy, "_knows", False)


def test_a_message_is_told_without_what_people_said() -> None:
    autopsy.heard({"messages": [{"content": "My zebra is called Otto 4711, for now"}]})
    error = RuntimeError("Invalid strides, got [1, 8, 64] for zebra 'so Otto said' 4711: 你好 called")
    told = autopsy.trace(error)
    assert told == "RuntimeError: Invalid strides, got [1, 8, 64] for … '…' …: … called"


def test_where_nothing_is_known_only_the_words_of_errors_are_told() -> None:
    assert autopsy.trace(KeyError("zebra")) == "KeyError: '…'"
    ids = ", ".join(map(str, range(9)))
    assert autopsy.trace(ValueError(f"unexpected [{ids}]")) == "ValueError: unexpected […]"


def test_a_sentence_of_ours_needs_no_trace_but_its_cause_does() -> None:
    assert autopsy.trace(TrainingError("No.")) == ""
    try:
        raise TrainingError("The tokenizer cannot be loaded.") from OSError("missing vocabulary")
    except TrainingError as error:
        told = autopsy.trace(error)
    assert told.startswith("OSError: missing vocabulary\n")
    assert "test_autopsy.py" in told
    assert told.endswith("TrainingError: The tokenizer cannot be loaded.")


_UNCAUGHT = """
import threading
from goodbot_training.process import autopsy
class Ends:
    def __del__(self):
        raise ValueError("unexpected zebra")
def die():
    raise ValueError("invalid zebra")
autopsy.tell_uncaught()
autopsy.heard("a zebra")
thread = threading.Thread(target=die)
thread.start()
thread.join()
Ends()
"""


def test_what_nobody_catches_is_told_without_what_people_said_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _UNCAUGHT], capture_output=True, text=True, errors="replace", check=True
    )
    assert "ValueError: invalid " in done.stderr
    assert "ValueError: unexpected " in done.stderr
    assert "zebra" not in done.stderr


def test_a_trainer_says_what_it_died_of(tmp_path: Path) -> None:
    events, _ = train(make_job(tmp_path, tmp_path), "tests.training.broken:Broken")
    trace = events[-1]["trace"]
    assert "ValueError: Invalid strides, got [1, 8, 64] with a" in trace
    assert "RuntimeError: the product of matrices failed" in trace
    assert "broken.py" in trace
    messages = [line for line in trace.splitlines() if "Error: " in line]
    assert "PRIVATE" not in "".join(messages)


def test_a_sampler_that_does_not_come_up_says_so_too(tmp_path: Path) -> None:
    with start("serve", "tests.training.broken:Broken") as child:
        out, _ = child.communicate('{"protocol": 1, "model": "x"}\n', timeout=patience(60))
    assert "Invalid strides, got [1, 8, 64]" in out
