# SPDX-License-Identifier: Apache-2.0
"""The trainer's side of a cluster: each question is an `ask` of the worker protocol, for the driver."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO

from goodbot.api.backend import StepStats, TrainingBatch
from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import reason_in

from goodbot_training.backends.asking import AskServer, RemoteReply, UnansweredError
from goodbot_training.backends.ray import wire

_PART = 8 << 20
"""Bytes of a state that go at once."""


class ClusterClient:
    """One training on a cluster at a time."""

    def __init__(self, ask: AskServer, remote: Mapping[str, Any]) -> None:
        """`remote` is the job's: `host`, and the job's own `settings`."""
        self._ask, self.host = ask, str(remote.get("host"))
        self.settings: Mapping[str, Any] = remote.get("settings") or {}

    def begin(self, about: Mapping[str, Any], state: bytes) -> None:
        """Have workers made that are in this state. Raises TrainingError, as all that follows."""
        for start in range(0, len(state), _PART):
            part = base64.b64encode(state[start : start + _PART]).decode()
            self._done("POST", "state", {"part": part, "first": not start})
        self._done("POST", "begin", {**about, "settings": dict(self.settings)})

    def step(self, batch: TrainingBatch) -> StepStats:
        """One step, by all workers."""
        reply = self._done("POST", "step", wire.told(batch))
        try:
            return _stats(json.loads(reply.text))
        except (AttributeError, OverflowError, TypeError, ValueError) as error:
            odd = Worded("{host} answers with something that is no step.", host=self.host)
            raise TrainingError(odd) from error

    def state(self) -> bytes:
        """Weights, moments and counts as they are now; from here on a lost worker begins."""
        file = io.BytesIO()
        self._done("GET", "state", None, file)
        return file.getvalue()

    def end(self) -> None:
        """Give the workers up."""
        self._done("POST", "end", {})

    def _done(
        self, method: str, path: str, body: Mapping[str, Any] | None, file: BinaryIO | None = None
    ) -> RemoteReply:
        try:
            reply = self._ask(method, path, body, file)
        except UnansweredError as error:
            kind = "error" if error.forbidden else "died"
            raise TrainingError(Worded("{why}.", why=error), kind=kind) from error
        if reply.status != 200:
            why = json.loads(reply.text)
            raise TrainingError(reason_in(why), kind=str(why["kind"]))
        return reply


def _stats(found: Mapping[str, Any]) -> StepStats:
    """What was said of a step, as numbers. Raises TypeError or ValueError for anything else."""
    numbers = {name: float(value) for name, value in found.items()}
    if not all(map(math.isfinite, numbers.values())):
        raise ValueError
    tokens, skipped = int(numbers.pop("tokens", 0)), bool(numbers.pop("skipped", False))
    return StepStats(**numbers, tokens=tokens, skipped=skipped)
