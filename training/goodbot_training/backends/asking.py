# SPDX-License-Identifier: Apache-2.0
"""How a backend speaks to the server that computes its steps: through goodbot, since it has no network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, runtime_checkable

from goodbot.base.errors import GoodbotError


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteReply:
    """What the server has said; of a file, its text is empty."""

    status: int
    text: str = ""
    retry_after: str = ""


class UnansweredError(GoodbotError):
    """No whole answer came; why, as a clause."""

    def __init__(self, why: str, *, unsent: bool = False, forbidden: bool = False) -> None:
        self.unsent = unsent
        """Whether the server cannot have got the question."""
        self.forbidden = forbidden
        """Whether goodbot does not ask that, however often it is told to."""
        super().__init__(why)


class AskServer(Protocol):
    """One question to the server."""

    def __call__(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, file: BinaryIO | None = None
    ) -> RemoteReply:
        """What it answers, whatever the status; with `file` the answer goes there. Raises UnansweredError."""
        ...


@runtime_checkable
class ComputesElsewhere(Protocol):
    """A backend whose steps a server computes (`goodbot.api.backend.BackendSpec.remote`)."""

    def connect(self, ask: AskServer, remote: Mapping[str, Any]) -> None:
        """Take who is asked, and the job's `remote`. One that is never called computes here: for a plan."""
        ...
