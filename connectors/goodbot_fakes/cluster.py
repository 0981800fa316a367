# SPDX-License-Identifier: Apache-2.0
"""A cluster's driver, as a program: it says what it was told, and what it has, in place of Ray.

`RAY_FAULT` in its environment: `dies` (in the middle of an answer), `nobody` (no cluster answers),
`other` (a machine that nobody has named), `deaf` (it reads no question).
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from typing import Any

_MACHINES = [
    {"address": "127.0.0.2", "cpu": 1.0, "gpu": 0.0},
    {"address": "127.0.0.3", "cpu": 4.0, "gpu": 1.0},
]


def _answer(asked: dict[str, Any], told: dict[str, Any]) -> list[dict[str, Any]]:
    if os.environ.get("RAY_FAULT") == "nobody":
        why = {"kind": "error", "reason": f"No Ray cluster answers at {told['address']}."}
        return [{"status": 500, "text": json.dumps(why)}]
    if asked["path"] == "plan":
        named = os.environ.get("RAY_FAULT") != "other"
        machines = [_MACHINES[0] | {"named": True}, _MACHINES[1] | {"named": named}]
        return [{"status": 200, "text": json.dumps({"machines": machines})}]
    if asked["method"] == "GET":
        return [*({"part": base64.b64encode(part).decode()} for part in (b"one ", b"two")), {"status": 200}]
    environ = {
        name: os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "GOODBOT_TRAINING_KEY")
    }
    return [{"status": 200, "text": json.dumps({"asked": asked, "told": told, "environ": environ})}]


def main() -> None:
    """Answer until nobody asks any more."""
    told = json.loads(sys.stdin.readline())
    if os.environ.get("RAY_FAULT") == "deaf":
        signal.pause()
    for line in sys.stdin:
        if os.environ.get("RAY_FAULT") == "dies":
            sys.stdout.write('{"sta')
            sys.stderr.write("the cluster is on fire\n")
            sys.exit(3)
        for said in _answer(json.loads(line), told):
            sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
