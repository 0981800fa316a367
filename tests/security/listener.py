# SPDX-License-Identifier: Apache-2.0
"""A program in `llama-server`'s place: it tries what foreign code in it would try, then serves at its port.

At `/attempts` it reports how each attempt ended.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from typing import ClassVar

from goodbot.base.cage import landlock

from tests.security import burglar

NEIGHBOUR = "GOODBOT_TEST_NEIGHBOUR"
"""The environment variable with the port that somebody else listens at."""
HOST = "127.0.0.1"
FASTOPEN, ULP = 0x20000000, 31
MPTCP, SCTP = 262, 132


def program(directory: Path) -> Path:
    """It as one executable file."""
    path = directory / "llama-server"
    path.write_text(f"#!{sys.executable} -P\nfrom {__name__} import main\nmain()\n")
    path.chmod(0o700)
    return path


def of_tcp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def attempts(model: Path, own: int, theirs: int) -> dict[str, Callable[[], object]]:
    """All of the burglar's, and what one who may listen could try besides."""
    there = (HOST, theirs)
    forbidden: dict[str, Callable[[], object]] = {
        "connect to itself": lambda: socket.create_connection((HOST, own), 5),
        "connect by what is sent": lambda: of_tcp().sendto(b"x", FASTOPEN, there),
        "connect by a message": lambda: of_tcp().sendmsg([b"x"], [], FASTOPEN, there),
        "UDP": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "TCP by IPv6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM),
        "several ways at once": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP),
        "SCTP": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP),
        "packets in order": lambda: socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET),
        "another protocol later": lambda: of_tcp().setsockopt(socket.IPPROTO_TCP, ULP, b"smc"),
    }
    if landlock.abi() >= 4:
        forbidden |= {
            "any port": lambda: of_tcp().bind((HOST, 0)),
            "a neighbour's port": lambda: of_tcp().bind(there),
        }
    return {**burglar.attempts({"model": str(model), "port": theirs}), **forbidden}


class Handler(BaseHTTPRequestHandler):
    said: ClassVar[str]

    def do_GET(self) -> None:
        answers = {"/health": '{"status": "ok"}', "/lora-adapters": "[]", "/attempts": self.said}
        content = answers[self.path].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--port", type=int)
    given, _ = parser.parse_known_args()
    Handler.said = burglar.report(attempts(given.model.parent, given.port, int(os.environ[NEIGHBOUR])))
    TCPServer((HOST, given.port), Handler).serve_forever()
