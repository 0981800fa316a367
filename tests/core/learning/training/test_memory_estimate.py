# SPDX-License-Identifier: Apache-2.0
"""What a look at the machine costs the process that looks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from goodbot_training.tiny import model_path

LOOK = """
import json, sys
from pathlib import Path
from goodbot.learning.training import memory_estimate

def threads():
    return [line for line in open("/proc/self/status") if line.startswith("Threads")]

before = threads()
seconds = memory_estimate.seconds(Path(sys.argv[1]), "mlx")
libraries = [line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line]
print(json.dumps([seconds, "numpy" in sys.modules, libraries, threads() == before]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="read out of /proc")
def test_the_time_of_a_training_leaves_no_numpy_in_the_daemon() -> None:
    """It had 18 MB and the threads of OpenBLAS from then on."""
    words = [sys.executable, "-c", LOOK, str(model_path())]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    seconds, numpy, libraries, same = json.loads(done.stdout)
    assert seconds > 0
    assert (numpy, libraries, same) == (False, [], True)
