# SPDX-License-Identifier: Apache-2.0
"""`python -m goodbot_training.formats`: one conversion, asked for by a line on stdin."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from goodbot.base.worded_parts import parts_of

from goodbot_training.formats import jobs
from goodbot_training.job.types import data_error
from goodbot_training.process import autopsy, worker


def main() -> int:
    """Read one job, do it, and say how it ended."""
    signal.signal(signal.SIGTERM, _terminate)
    autopsy.tell_uncaught()
    lines = worker.Lines()
    worker.give_way()
    watch = threading.Thread(target=worker.outlive_nobody, args=(os.getppid(),), daemon=True)
    watch.start()
    try:
        try:
            raw: Any = json.loads(sys.stdin.buffer.readline())
        except ValueError as error:
            raise data_error("The conversion is not JSON.") from error
        jobs.run(jobs.ConversionJob.parse(raw), lines.emit)
    except Exception as error:
        kind, reason = worker.failure(error)
        trace = autopsy.trace(error)
        lines.emit({"event": "failed", "kind": kind, "reason": reason, **parts_of(reason), "trace": trace})
    return 0


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    code: Any = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    worker.leave(code if isinstance(code, int) else 1)
