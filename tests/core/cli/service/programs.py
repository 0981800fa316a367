# SPDX-License-Identifier: Apache-2.0
"""`systemctl`, `loginctl` and `launchctl`, as far as goodbot asks them.

Usage: python programs.py FOLDER PROGRAM ARGS. FOLDER/state says how to behave, FOLDER/calls keeps
what was asked. It imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

BASE, PROGRAM, ARGS = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
STATE: dict[str, Any] = json.loads((BASE / "state").read_text())
AGENT = """\
gui/0/goodbot = {
\tactive count = 1
\tstate = running

\tpid = 4711
\tendpoints = {
\t\tstate = x
\t}
}
"""


def end(code: int = 0, out: str = "", err: str = "") -> NoReturn:
    (BASE / "state").write_text(json.dumps(STATE))
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.exit(code)


def launchctl(verb: str, target: str = "", path: str = "") -> NoReturn:
    if verb == "print" and target.count("/") == 1:
        end(out="a user's session")
    if verb == "print":
        end(out=AGENT) if STATE["active"] else end(113, err="Could not find service")
    if verb == "print-disabled":
        listed = "".join(f'\t\t"{label}" => enabled\n' for label in STATE["enabled"])
        end(out=f"disabled services = {{\n{listed}}}\n")
    if verb == "enable":
        STATE["enabled"] = [target.rsplit("/")[-1]]
    if verb == "bootstrap":
        if STATE["busy"]:
            STATE["busy"] -= 1
            end(5, err="Bootstrap failed: 5: Input/output error")
        STATE["active"] = Path(path).exists()
    if verb == "bootout":
        STATE["active"] = False
    end()


def systemctl(user: str, verb: str, *words: str) -> NoReturn:
    assert user == "--user"
    unit = next((word for word in words if word.endswith(".service")), "")
    folder = Path(os.environ["XDG_CONFIG_HOME"], "systemd", "user")
    link = folder / "default.target.wants" / unit
    if verb == "show" and not unit:
        end(out="Version=252\n")
    if verb == "show":
        shown = {
            "UnitFileState": "enabled" if link.is_symlink() else "",
            "ActiveState": "active" if STATE["active"] else STATE.get("word", "inactive"),
            "MainPID": 4711 if STATE["active"] else 0,
            "ActiveEnterTimestamp": "Sat 2026-11-21 13:47:47 UTC",
            "StateChangeTimestamp": "",
        }
        end(out="".join(f"{key}={value}\n" for key, value in shown.items()))
    if verb == "enable":
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(folder / unit)
    if verb == "restart":
        if STATE["fails"]:
            STATE["word"] = "failed"
            end(1, err="Job failed")
        STATE["active"] = (folder / unit).exists()
    if verb == "disable":
        assert "--now" in words
        link.unlink(missing_ok=True)
        STATE["active"] = False
    end()


if __name__ == "__main__":
    with (BASE / "calls").open("a") as calls:
        calls.write(json.dumps([PROGRAM, *ARGS]) + "\n")
    if not STATE["there"]:
        end(1, err="Failed to connect to bus: No medium found")
    if PROGRAM == "loginctl":
        end(out=f"Linger={'yes' if STATE['lingers'] else 'no'}\n")
    launchctl(*ARGS) if PROGRAM == "launchctl" else systemctl(*ARGS)
