# SPDX-License-Identifier: Apache-2.0
"""Where the children of a test find what lies in the tests: they look for no module where they are started.

`PYTHONPATH` names it, which no child of a real goodbot is given.
"""

from __future__ import annotations

import os
from pathlib import Path

from goodbot.base import spawn

_TESTS = str(Path(__file__).parents[1])

spawn._KEPT += ("PYTHONPATH",)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_TESTS, os.environ.get("PYTHONPATH"))))
