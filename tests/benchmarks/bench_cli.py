# SPDX-License-Identifier: Apache-2.0
"""CPU of the short commands, interpreter start included: `--version`, and `status` of a running bot."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from statistics import median

from goodbot.config.lock import socket_path

ROUNDS = 11


def main() -> None:
    """Print the table. The daemon's side is a socket that answers at once: its CPU is not ours."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(socket_path(home, "control.sock")))
        server.listen()
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        calls = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "goodbot --version": [sys.executable, "-m", "goodbot", "--version"],
            "goodbot status": [sys.executable, "-m", "goodbot", "--home", directory, "status"],
            "goodbot good": [sys.executable, "-m", "goodbot", "--home", directory, "good"],
        }
        samples: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, command in calls.items():
                samples[name].append(_cpu(command))
        server.close()
    print("\n## CPU of short commands (median, ms)\n")
    print("| command | CPU ms |")
    print("|---|---|")
    for name, found in samples.items():
        print(f"| {name} | {1000 * median(found):.0f} |")


def _serve(server: socket.socket) -> None:
    answer = json.dumps({"ok": True, "text": "12 of 40", "data": {}}).encode() + b"\n"
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            connection.sendall(answer)


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
