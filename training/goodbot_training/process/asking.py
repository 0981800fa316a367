# SPDX-License-Identifier: Apache-2.0
"""The child's side of `ask` (`docs/worker-protocol.md`): a question out, lines in until it is answered."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from goodbot.base.worded import Worded
from goodbot.base.worded_parts import reason_in

from goodbot_training.backends.asking import RemoteReply, UnansweredError


class Asking:
    """Asks by events, and reads the answers on stdin; one question at a time."""

    def __init__(self, emit: Callable[[dict[str, Any]], None], stdin: BinaryIO) -> None:
        self._emit, self._stdin = emit, stdin
        self._asked = 0

    def __call__(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, file: BinaryIO | None = None
    ) -> RemoteReply:
        """See `goodbot_training.backends.asking.AskServer`."""
        self._asked += 1
        question = {"method": method, "path": path, "body": body, "file": file is not None}
        self._emit({"event": "ask", "id": self._asked, **question})
        while line := self._stdin.readline():
            told = json.loads(line)
            if told.get("id") != self._asked:
                continue
            if "part" in told and file is not None:
                file.write(base64.b64decode(told["part"]))
            elif "error" in told:
                flags = {name: told.get(name) is True for name in ("unsent", "forbidden")}
                raise UnansweredError(reason_in(told, "error"), **flags)
            else:
                return RemoteReply(
                    status=int(told["status"]),
                    text=str(told.get("text", "")),
                    retry_after=str(told.get("retry_after", "")),
                )
        raise UnansweredError(Worded("goodbot answers no more"))
